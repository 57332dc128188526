/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/io/policy.h"

#include "base/clock.h"

/* --- when a Write is sent ------------------------------------------------------------------- */

/*
 * A Write is deferred after FOLLOWED_MIN Writes in a row were each followed by a post within
 * FOLLOWED_NS. The required number grows if a deferred Write waited alone until the alarm, and the
 * next post was again a Write, because deferring gained nothing then. If the next post was another
 * request, its thread had only been delayed, and the number stays. After FOLLOWED_MAX followed
 * Writes in a row the number is FOLLOWED_MIN again.
 */
#define FOLLOWED_NS    20000u
#define FOLLOWED_MIN   2u
#define FOLLOWED_MAX   4096u
#define FOLLOWED_GROWS 16u

/*
 * The peer's program usually waits for a Send. So a Send is deferred only in a series of Sends
 * during which no thread polls the CQ. The required number of Sends doubles after a deferred Send
 * has waited alone.
 */
#define SENDS_MIN 8u
#define SENDS_MAX 4096u

void policy_send_init(struct policy_send *s)
{
	*s = (struct policy_send){.needed = FOLLOWED_MIN, .sends_needed = SENDS_MIN};
}

static void policy_count_followed(struct policy_send *s)
{
	if (s->followed < FOLLOWED_MAX)
		s->followed++;
	else
		s->needed = FOLLOWED_MIN;
}

static void policy_was_alone(struct policy_send *s)
{
	unsigned needed = s->needed * FOLLOWED_GROWS;

	s->needed = needed < FOLLOWED_MAX ? needed : FOLLOWED_MAX;
}

/* Judge the Write before this post: if it was deferred, did it wait in vain? If it was sent in its
 * own post, would it have waited in vain? */
static void policy_judge_last(struct policy_send *s, bool may_wait, uint64_t now)
{
	if (s->sent_at) {
		if (now - s->sent_at <= FOLLOWED_NS)
			policy_count_followed(s);
		else
			s->followed = 0;
		s->sent_at = 0;
	} else if (s->late) {
		if (may_wait)
			policy_was_alone(s);
		s->late = false;
	}
}

static enum policy_write policy_on_send(struct policy_send *s, bool waiting, uint64_t now)
{
	if (waiting) {
		s->alone = false;
		s->sends_needed = SENDS_MIN;
		return POLICY_JOINS;
	}
	policy_judge_last(s, false, now);
	if (s->sends < s->sends_needed) {
		s->sends++;
		return POLICY_SEND;
	}
	s->alone = true;
	return POLICY_WAIT;
}

enum policy_write policy_on_post(struct policy_send *s, enum policy_posted posted, bool waiting,
				 uint64_t now)
{
	bool may_wait = posted != POLICY_OTHER;

	if (posted == POLICY_A_SEND)
		return policy_on_send(s, waiting, now);
	s->sends = 0;
	if (waiting) {
		s->alone = false;
		policy_count_followed(s);
		return may_wait ? POLICY_JOINS : POLICY_SEND;
	}
	policy_judge_last(s, may_wait, now);
	if (!may_wait || s->followed < s->needed)
		return POLICY_SEND;
	s->alone = true;
	return POLICY_WAIT;
}

void policy_sent(struct policy_send *s, uint64_t now)
{
	s->sent_at = now;
}

void policy_looked(struct policy_send *s)
{
	if (!s->sends)
		return;
	if (s->alone && s->sends_needed < SENDS_MAX)
		s->sends_needed *= 2;
	s->alone = false;
	s->sends = 0;
}

void policy_sent_by_alarm(struct policy_send *s)
{
	policy_looked(s);
	s->followed = 0;
	s->late = s->alone;
}

void policy_in_vain(struct policy_send *s)
{
	policy_was_alone(s);
	s->followed = 0;
	s->alone = s->late = false;
}

/* --- the alarm ------------------------------------------------------------------------------ */

/* a longer time is caused by the scheduler, not by the alarm */
#define COST_MAX_NS (16 * NSEC_PER_US)
/* An alarm that is further away than this time is cheap, because the hardware timer is not
 * programmed for it. */
#define COST_NEAR_NS (1 * NSEC_PER_MS)
/* do not set another alarm if the present one expires at most this much too early */
#define EARLY_NS 5000u

static const struct {
	uint64_t ns;
	unsigned share; /* setting the alarm may take at most 1/share of the time */
} policy_uses[] = {
	[POLICY_WRITE] = {40 * NSEC_PER_US, 32},
	[POLICY_POLLS] = {150 * NSEC_PER_US, 32},
	/* An alarm that is closer than 150 us would also keep a virtual CPU from halting while the
	 * thread waits. */
	[POLICY_WAITS] = {150 * NSEC_PER_US, 10},
};

uint64_t policy_pace(enum policy_use use, uint64_t cost_ns)
{
	uint64_t least = policy_uses[use].share * cost_ns, ns = policy_uses[use].ns;

	return ns > least ? ns : least;
}

/* Setting the alarm is also cheap if another timer expires earlier. So a low measured cost has
 * little weight. */
uint64_t policy_cost(uint64_t average_ns, uint64_t ns, uint64_t ahead_ns)
{
	uint64_t weight = ns > average_ns ? 8 : 64;

	if (ahead_ns > COST_NEAR_NS)
		return average_ns;
	if (ns > COST_MAX_NS)
		ns = COST_MAX_NS;
	return ((weight - 1) * average_ns + ns) / weight;
}

bool policy_alarm_fits(uint64_t due, uint64_t now, uint64_t pace, bool others_wait)
{
	return due && due <= now + 2 * pace && (others_wait || due >= now + pace);
}

bool policy_keeps_alarm(uint64_t due, uint64_t before, uint64_t at, bool write_waits)
{
	return due && due <= at && (due != before || write_waits);
}

bool policy_is_overdue(uint64_t since, uint64_t now, uint64_t pace)
{
	return now - since + EARLY_NS >= pace;
}

bool policy_is_look_due(uint64_t due, uint64_t now, uint64_t pace)
{
	return due && due < now + pace;
}

/* --- which thread receives ------------------------------------------------------------------ */

#define POLLS_NS (800 * NSEC_PER_US)
#define WAITS_NS (150 * NSEC_PER_US)

bool policy_is_loop(unsigned polls, uint64_t before, uint64_t now)
{
	return polls > POLICY_LOOP && now - before < POLLS_NS;
}

bool policy_waits_again(uint64_t last, uint64_t now)
{
	return now - last < WAITS_NS;
}

/*
 * Weights for periods after a completion in which a thread does not poll. If Writes arrive in more
 * than one of three such periods, the thread is assumed to poll its memory meanwhile. During a
 * lease no Write can arrive in such a period, so a thread that only polls the CQ keeps its lease.
 */
#define MEMORY_MORE 2u
#define MEMORY_SEEN 4u
#define MEMORY_MAX  64u
/* this many loops of polls in a row count as one period without Writes */
#define MEMORY_LOOPS 64u

static void policy_count_memory(struct policy_lease *l, bool written)
{
	if (!written)
		l->memory -= l->memory > 0;
	else
		l->memory =
			l->memory + MEMORY_MORE < MEMORY_MAX ? l->memory + MEMORY_MORE : MEMORY_MAX;
}

void policy_look_begins(struct policy_lease *l, const struct policy_news *now)
{
	bool written = now->written != l->seen.written;

	if (!l->got && !(written && now->completed != l->seen.completed))
		return; /* the period after a completion is not over, or no request has completed */
	policy_count_memory(l, written);
	l->loops = 0;
	l->seen.completed = now->completed;
}

void policy_look_ends(struct policy_lease *l, const struct policy_news *now)
{
	l->got = now->completed != l->seen.completed;
	l->seen = *now;
}

bool policy_watches_memory(const struct policy_lease *l)
{
	return l->memory >= MEMORY_SEEN;
}

bool policy_may_lease(struct policy_lease *l)
{
	if (l->memory >= MEMORY_SEEN && ++l->loops == MEMORY_LOOPS) {
		l->loops = 0;
		policy_count_memory(l, false);
	}
	return !policy_watches_memory(l);
}

/* Writes that arrive without a completion suggest that the program reads the memory instead of
 * polling. If a request completed as well, the thread had a reason to poll, and was only
 * delayed. */
void policy_lease_unused(struct policy_lease *l, const struct policy_news *before,
			 const struct policy_news *now)
{
	if (now->written != before->written && now->completed == before->completed)
		l->memory = MEMORY_MAX;
	l->seen = *now;
	l->got = false;
}

bool policy_link_reports(const struct policy_lookers *l)
{
	return !l->leased && !l->spun && l->waiting == 0;
}

bool policy_arm_ends_lease(const struct policy_lookers *l, bool armed_before)
{
	return l->leased && (!l->waits || armed_before);
}

/* --- for how long a leader spins ------------------------------------------------------------ */

#define GAP_LONG 4u /* a gap longer than this many spins counts as this many spins */

uint64_t policy_gap(uint64_t average_ns, uint64_t ns, uint64_t spin_ns)
{
	uint64_t longest = GAP_LONG * spin_ns;

	return (3 * average_ns + (ns < longest ? ns : longest)) / 4;
}

bool policy_spins(uint64_t gap_ns, uint64_t done, uint64_t now, uint64_t spin_ns)
{
	return spin_ns && gap_ns <= spin_ns && now - done < spin_ns;
}

#define SPARE_CHECK_NS (1 * NSEC_PER_MS)
/* a CPU is spare if the program's other threads used less than 1/8 of a CPU */
#define SPARE_SHARE 8u
/* Pause after a spin in vain. Such a spin takes 50 us, so these spins take at most 1 % of the time,
 * and soon less. */
#define SPARE_PAUSE_NS     (5 * NSEC_PER_MS)
#define SPARE_PAUSE_MAX_NS (320 * NSEC_PER_MS)
/* number of spins in a row that found bytes, after which the next pause is short again */
#define SPARE_FOUND 64u

bool policy_spare_is_due(const struct policy_spare *s, uint64_t now)
{
	return now - s->checked_at >= SPARE_CHECK_NS;
}

/* The first check has no earlier value to compare with. If another thread has become the leader
 * since the last check, others_ns jumps or decreases. */
void policy_spare_check(struct policy_spare *s, uint64_t now, uint64_t others_ns)
{
	uint64_t used = others_ns - s->others_ns;

	s->spare = s->checked_at && used < (now - s->checked_at) / SPARE_SHARE;
	s->checked_at = now;
	s->others_ns = others_ns;
}

bool policy_is_spare(const struct policy_spare *s, uint64_t now)
{
	return s->spare && now >= s->not_before;
}

void policy_wrote_back(struct policy_spare *s, uint64_t now)
{
	if (s->not_before < now + SPARE_PAUSE_NS)
		s->not_before = now + SPARE_PAUSE_NS;
}

void policy_spun(struct policy_spare *s, uint64_t now, bool found)
{
	if (s->pause_ns == 0 || (found && ++s->found == SPARE_FOUND))
		s->pause_ns = SPARE_PAUSE_NS;
	if (found)
		return;
	s->found = 0;
	s->not_before = now + s->pause_ns;
	if (s->pause_ns < SPARE_PAUSE_MAX_NS)
		s->pause_ns *= 2;
}
