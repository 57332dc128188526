/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine_spin.c -- a leader checks for the next event for a short time before it sleeps.
 *
 * The leader checks recently active sources directly, because the poller would cost a system call
 * for each event. The poller does not report these sources meanwhile. If there are more than a few
 * such sources, the leader asks the poller instead, whose cost does not depend on their number.
 * Both kinds of spinning take a bounded time after the last event. They happen only as long as the
 * next event usually comes within that time. With two CPUs the leader spins only while one of them
 * seems to be spare (doc/policy.md, R9).
 */

#include "base/clock.h"
#include "softrnic/io/config.h"
#include "softrnic/io/engine_impl.h"
#include "softrnic/io/policy.h"

/* longest time for which the poller, timers and tasks have to wait */
#define SPIN_POLL_NS (20 * NSEC_PER_US)
/* after too many sources were active, do not spin for this time */
#define SPIN_CROWD_NS (5 * NSEC_PER_MS)

/* --- the sources to check: called with the loop's lock --------------------------------------- */

static int spin_find(const struct eng_spin *s, const struct eng_source *src)
{
	for (unsigned i = 0; i < s->n; i++)
		if (s->sources[i] == src)
			return (int)i;
	return -1;
}

void spin_forget(struct eng_spin *s, const struct eng_source *src)
{
	int i = spin_find(s, src);

	if (i >= 0)
		s->sources[i] = s->sources[--s->n];
}

/* Forget closed sources. No callback of a closed source begins, because the source may be about to
 * be freed. */
static void spin_forget_closed(struct eng_spin *s)
{
	for (unsigned i = s->n; i-- > 0;)
		if (s->sources[i]->closed)
			s->sources[i] = s->sources[--s->n];
}

/* Remove the last source and begin its callback. Returns NULL if there is no source, or if another
 * thread leads now. */
static struct eng_source *spin_drop(struct eng_runner *me)
{
	struct eng_spin *s = &me->loop->spin;
	struct eng_source *src = NULL;

	pthread_mutex_lock(&me->loop->lock);
	spin_forget_closed(s);
	if (me->leads && s->n > 0) {
		src = s->sources[--s->n];
		runner_begin(me, src);
	}
	pthread_mutex_unlock(&me->loop->lock);
	return src;
}

/* End the checks of all sources: from now on the poller reports them again. */
static void spin_stop(struct eng_runner *me)
{
	struct eng_source *src;

	while ((src = spin_drop(me))) {
		src->look_end(src);
		runner_finish(me);
	}
}

/* --- how long to check ---------------------------------------------------------------------- */

static uint64_t spin_get(const _Atomic uint64_t *time)
{
	return atomic_load_explicit(time, memory_order_relaxed);
}

static void spin_set(_Atomic uint64_t *time, uint64_t ns)
{
	atomic_store_explicit(time, ns, memory_order_relaxed);
}

/*
 * Record an event that arrived at the time `came`, and whose callback ended at `done`. The gap is
 * the time for which the leader has to spin until an event comes. It does not include the time of
 * the callback: sending the answer to a Read of 1 MiB takes longer than most spins.
 */
static void spin_found(struct eng_spin *s, uint64_t came, uint64_t done)
{
	uint64_t since = spin_get(&s->done_at);

	spin_set(&s->gap_ns, policy_gap(spin_get(&s->gap_ns), came > since ? came - since : 0,
					config_get()->spin_ns));
	spin_set(&s->done_at, done);
}

void spin_came(struct eng_spin *s, uint64_t now)
{
	spin_set(&s->came_at, now);
}

/* --- a spare CPU ---------------------------------------------------------------------------- */

/* Is the leader allowed to begin to spin, or to continue? */
static bool spin_has_cpu(struct eng_runner *me, uint64_t now)
{
	struct eng_spin *s = &me->loop->spin;
	uint64_t own, others;
	bool has;

	if (!config_get()->spins_on_spare)
		return true;
	pthread_mutex_lock(&me->loop->lock);
	if (policy_spare_is_due(&s->spare, now)) {
		own = clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
		others = clock_read_ns(CLOCK_PROCESS_CPUTIME_ID) - own;
		policy_spare_check(&s->spare, now, others);
	}
	has = policy_is_spare(&s->spare, now);
	pthread_mutex_unlock(&me->loop->lock);
	atomic_store_explicit(&s->rests, !has, memory_order_relaxed);
	return has;
}

static void spin_judge(struct eng_runner *me, uint64_t since, uint64_t now)
{
	if (!config_get()->spins_on_spare)
		return;
	pthread_mutex_lock(&me->loop->lock);
	policy_spun(&me->loop->spin.spare, now, now - since <= config_get()->spin_ns);
	pthread_mutex_unlock(&me->loop->lock);
}

void spin_note(struct eng_runner *me, struct eng_source *src)
{
	struct eng_spin *s = &me->loop->spin;
	uint64_t now;

	if (!config_get()->spin_ns)
		return;
	now = clock_now_ns();
	spin_found(s, spin_get(&s->came_at), now);
	if (atomic_load_explicit(&s->rests, memory_order_relaxed))
		return;
	pthread_mutex_lock(&me->loop->lock);
	if (src->look && !src->closed && spin_find(s, src) < 0) {
		if (s->n == SPIN_SOURCES)
			spin_set(&s->crowded_until, now + SPIN_CROWD_NS);
		else if (now >= spin_get(&s->crowded_until))
			s->sources[s->n++] = src;
	}
	pthread_mutex_unlock(&me->loop->lock);
}

/* --- checking ------------------------------------------------------------------------------ */

/* Begin a callback of source number `i`. Returns NULL if there is no such source, or if another
 * thread leads now. */
static struct eng_source *spin_begin_look(struct eng_runner *me, unsigned i)
{
	struct eng_spin *s = &me->loop->spin;
	struct eng_source *src = NULL;

	pthread_mutex_lock(&me->loop->lock);
	spin_forget_closed(s);
	if (me->leads && i < s->n) {
		src = s->sources[i];
		runner_begin(me, src);
	}
	pthread_mutex_unlock(&me->loop->lock);
	return src;
}

/* During the callback another thread may have replaced this thread, and have stopped the checks of
 * the source. This thread's look() may have started the checks again afterwards, so this thread
 * stops them as well. Otherwise neither the poller nor a leader would find the source's next
 * bytes. */
static void spin_end_look(struct eng_runner *me, struct eng_source *src, bool stays)
{
	struct eng_spin *s = &me->loop->spin;
	bool is_late;

	pthread_mutex_lock(&me->loop->lock);
	is_late = stays && spin_find(s, src) < 0;
	if (!stays)
		spin_forget(s, src);
	pthread_mutex_unlock(&me->loop->lock);
	if (is_late)
		src->look_end(src);
	runner_finish(me);
}

/* Check each source once. Returns true if bytes had arrived. */
static bool spin_look(struct eng_runner *me)
{
	struct eng_source *src;
	bool found = false;

	for (unsigned i = 0; (src = spin_begin_look(me, i)); i++) {
		enum eng_look look = src->look(src);

		found |= look == ENG_LOOK_FOUND;
		i -= look == ENG_LOOK_OVER; /* another source has moved to this index */
		spin_end_look(me, src, look != ENG_LOOK_OVER);
	}
	return found;
}

static bool spin_is_worth_it(const struct eng_spin *s, uint64_t now)
{
	return policy_spins(spin_get(&s->gap_ns), spin_get(&s->done_at), now,
			    config_get()->spin_ns);
}

/* Check the sources. */
static void spin_look_once(struct eng_runner *me, uint64_t now)
{
	struct eng_spin *s = &me->loop->spin;
	uint64_t since = spin_get(&s->done_at);

	if (!spin_look(me))
		return;
	spin_judge(me, since, now);
	spin_found(s, now, clock_now_ns());
}

/* Ask the poller. Returns the number of events. */
static int spin_ask(struct eng_runner *me, struct poller_event *evs, uint64_t now)
{
	struct eng_spin *s = &me->loop->spin;
	int n;

	spin_set(&s->polled_at, now);
	n = poller_wait(&me->loop->poller, evs, now, now);
	if (n > 0) {
		spin_judge(me, spin_get(&s->done_at), now);
		spin_came(s, now);
	}
	return n;
}

static int spin_until(struct eng_runner *me, struct poller_event *evs, uint64_t until,
		      uint64_t *now)
{
	struct eng_spin *s = &me->loop->spin;
	uint64_t done;
	int n;

	do {
		done = spin_get(&s->done_at);
		spin_look_once(me, *now);
		*now = clock_now_ns();
		if (s->n > 0 && *now - spin_get(&s->polled_at) < SPIN_POLL_NS)
			continue;
		/* another thread leads now, and handles the poller's reports */
		if (!leader_leads(me))
			return 0;
		n = spin_ask(me, evs, *now);
		if (n > 0)
			return n;
		if (!spin_has_cpu(me, *now))
			return 0;
	} while (*now < until && spin_is_worth_it(s, *now));
	if (done == spin_get(&s->done_at) && *now < until)
		spin_judge(me, done, *now);
	return 0;
}

int leader_spin(struct eng_runner *me, struct poller_event *evs, uint64_t until, uint64_t *now)
{
	struct eng_spin *s = &me->loop->spin;
	int n = 0;

	if (*now < spin_get(&s->crowded_until))
		spin_stop(me);
	if (spin_has_cpu(me, *now) && *now < until && spin_is_worth_it(s, *now))
		n = spin_until(me, evs, until, now);
	if (n == 0 && *now < until && s->n > 0)
		spin_stop(me);
	return n;
}
