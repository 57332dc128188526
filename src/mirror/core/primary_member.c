/* SPDX-License-Identifier: BSD-3-Clause */
/* primary_member.c -- the states of one member at its primary: fenced, made equal, joining,
 * lost. */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "mirror/core/primary_impl.h"

static const char primary_silence[] = "it does not answer";

bool primary_is_refused(const struct primary *p, uint8_t slot)
{
	const struct primary_member *m = &p->members[slot];

	return m->state == PRIMARY_MEMBER_AWAY && m->trouble && m->trouble != primary_silence;
}

void primary_member_set(struct primary *p, unsigned slot, enum primary_member_state state)
{
	struct primary_member *m = &p->members[slot];

	if (m->state == state)
		return;
	LOG_INFO("mirror set '%s': member '%s': %s -> %s", p->rec.config.set, primary_name(p, slot),
		 primary_member_state_2str(m->state), primary_member_state_2str(state));
	m->state = state;
}

static void primary_member_expect(struct primary *p, unsigned slot)
{
	uint64_t limit_ms = p->rec.config.replica_timeout_ms;

	if (slot == p->suspect && limit_ms > PRIMARY_SILENT_MS)
		limit_ms = PRIMARY_SILENT_MS;
	p->members[slot].deadline_ms = p->now + limit_ms;
}

void primary_member_away(struct primary *p, unsigned slot, uint64_t pause_ms)
{
	struct primary_member *m = &p->members[slot];

	if (m->state == PRIMARY_MEMBER_NONE)
		return;
	if (m->state != PRIMARY_MEMBER_AWAY) {
		m->pending = 0;
		if (slot != p->slot)
			primary_pend_member(p, slot, PRIMARY_DO_DROP);
	}
	primary_member_set(p, slot, PRIMARY_MEMBER_AWAY);
	m->retry_ms = p->now + pause_ms;
	if (!primary_is_recovering(p) || !primary_in_s(p, slot))
		m->deadline_ms = 0;
	else if (!m->deadline_ms && !m->lost)
		primary_member_expect(p, slot);
}

static uint64_t primary_double(uint64_t last, uint64_t first, uint64_t most)
{
	uint64_t next = last ? 2 * last : first;

	return next < most ? next : most;
}

void primary_member_back_off(struct primary *p, unsigned slot)
{
	struct primary_member *m = &p->members[slot];

	m->backoff_ms = primary_double(m->backoff_ms, PRIMARY_RETRY_MS, PRIMARY_RETRY_MAX_MS);
	primary_member_away(p, slot, m->backoff_ms);
}

void primary_member_hold_off(struct primary *p, unsigned slot)
{
	struct primary_member *m = &p->members[slot];

	if (m->insync_ms && p->now - m->insync_ms >= PRIMARY_HOLDOFF_MAX)
		m->holdoff_ms = 0;
	m->insync_ms = 0;
	m->holdoff_ms =
		primary_double(m->holdoff_ms, p->rec.config.holdoff_ms, PRIMARY_HOLDOFF_MAX);
	primary_member_away(p, slot, m->holdoff_ms);
}

mirror_mask primary_members_configure(struct primary *p)
{
	mirror_mask fresh = 0;

	for (unsigned i = 0; i < MIRROR_MEMBERS_MAX; i++) {
		struct primary_member *m = &p->members[i];
		uint64_t id = p->rec.config.members[i].id;

		if (m->id == id)
			continue;
		bool engaged = m->state > PRIMARY_MEMBER_AWAY;

		memset(m, 0, sizeof(*m));
		fresh |= MIRROR_BIT(i);
		m->id = id;
		m->state = id ? PRIMARY_MEMBER_AWAY : PRIMARY_MEMBER_NONE;
		if (engaged)
			primary_pend_member(p, i, PRIMARY_DO_DROP);
	}
	return fresh;
}

/* Returns true for a member of S that is away and is not being swapped out. Flushes wait for such
 * a member, so it lacks only bytes that are not acknowledged. */
static bool primary_member_to_repair(const struct primary *p, unsigned slot)
{
	mirror_mask lost = primary_lost(p);

	if (!primary_is_source(p))
		return false;
	if (p->swapping && !(p->offer.view.insync & MIRROR_BIT(slot)))
		return false;
	return !(lost & MIRROR_BIT(slot)) || p->swap_failures > 0 ||
	       !view_may_shrink(&p->rec, lost, NULL);
}

/* Returns true if it is time to fence the member. The own promise comes first. */
static bool primary_member_to_fence(const struct primary *p, unsigned slot)
{
	const struct primary_member *m = &p->members[slot];

	if (m->state != PRIMARY_MEMBER_AWAY || m->retry_ms > p->now)
		return false;
	if (primary_is_recovering(p) && primary_in_s(p, slot))
		return slot == p->slot || p->members[p->slot].state >= PRIMARY_MEMBER_RANGES;
	if (primary_is_recovering(p))
		return primary_fills(p) && !(p->unknown & MIRROR_BIT(slot));
	if (slot == p->slot)
		return false;
	if (primary_in_s(p, slot))
		return primary_member_to_repair(p, slot);
	return primary_admits(p) && !m->kept_out && !(p->unknown & MIRROR_BIT(slot));
}

static void primary_member_timed_out(struct primary *p, unsigned slot)
{
	struct primary_member *m = &p->members[slot];

	m->deadline_ms = 0;
	if (!m->trouble)
		m->trouble = primary_silence;
	if (primary_in_s(p, slot) && slot != p->slot)
		m->lost = true;
	if (m->state != PRIMARY_MEMBER_AWAY)
		primary_member_back_off(p, slot);
}

void primary_members_tick(struct primary *p)
{
	/* Handle losses first, because they change which other members are fenced. */
	for (unsigned i = 0; i < MIRROR_MEMBERS_MAX; i++)
		if (p->members[i].deadline_ms && p->now >= p->members[i].deadline_ms)
			primary_member_timed_out(p, i);
	for (unsigned i = 0; i < MIRROR_MEMBERS_MAX; i++) {
		struct primary_member *m = &p->members[i];

		if (!primary_member_to_fence(p, i))
			continue;
		primary_member_set(p, i, PRIMARY_MEMBER_FENCING);
		primary_pend_member(p, i, PRIMARY_DO_PROMISE);
		if (!m->deadline_ms)
			primary_member_expect(p, i);
	}
}

void primary_members_equalise(struct primary *p)
{
	for (unsigned i = 0; i < MIRROR_MEMBERS_MAX; i++)
		if (primary_in_s(p, i) && !p->members[i].lost &&
		    p->members[i].state < PRIMARY_MEMBER_WAITING)
			return;
	for (unsigned i = 0; i < MIRROR_MEMBERS_MAX; i++) {
		if (p->members[i].state != PRIMARY_MEMBER_WAITING)
			continue;
		primary_member_set(p, i, PRIMARY_MEMBER_EQUALISE);
		primary_pend_member(p, i, PRIMARY_DO_EQUALISE);
		primary_member_expect(p, i);
	}
}

void primary_member_useless(struct primary *p, unsigned slot, const char *trouble)
{
	struct primary_member *m = &p->members[slot];

	if (m->trouble != trouble)
		LOG_WARNING("mirror set '%s': member '%s' cannot be used: %s", p->rec.config.set,
			    primary_name(p, slot), trouble);
	m->trouble = trouble;
	if (primary_in_s(p, slot))
		m->lost = true;
	m->backoff_ms = PRIMARY_RETRY_MAX_MS;
	primary_member_back_off(p, slot);
}

/*
 * The member has seen a view that is newer than this primary's record. Either the register has lost
 * that view, or the register has the view and this primary has not read it yet. In the second case
 * the view is the result of this primary's own swap without an answer, of an operator's swap, or of
 * a newer primary's swap. Reads that begin now decide (primary_judge_ahead).
 */
static void primary_member_is_ahead(struct primary *p, unsigned slot,
				    const struct mirror_view *seen)
{
	struct primary_member *m = &p->members[slot];

	m->ahead = *seen;
	m->ahead_reads = p->reads + 2; /* a read that began earlier does not count */
	primary_read(p);
	m->lost = false;
	primary_member_away(p, slot, PRIMARY_RETRY_MS);
	m->trouble = "it has seen a newer state of the register than this host has read";
}

static bool primary_copy_is_usable(enum mirror_copy copy)
{
	return copy == MIRROR_COPY_INSYNC || copy == MIRROR_COPY_STALE ||
	       copy == MIRROR_COPY_UNKNOWN;
}

static void primary_on_promised_self(struct primary *p, const struct primary_report *report)
{
	struct primary_member *m = &p->members[p->slot];
	bool usable = primary_copy_is_usable(report->copy) ||
		      (p->force && report->copy == MIRROR_COPY_SYNCING);

	if (!p->force && view_compare(&p->rec, &report->seen) >= VIEW_NEWER) {
		primary_member_is_ahead(p, p->slot, &report->seen);
	} else if (!usable) {
		primary_fail(p, -EIO, "this host's copy cannot be used: %s",
			     mirror_copy_2str(report->copy));
	} else {
		m->deadline_ms = 0;
		primary_member_set(p, p->slot,
				   p->was_clean ? PRIMARY_MEMBER_EQUAL : PRIMARY_MEMBER_RANGES);
		if (!p->was_clean)
			primary_pend_member(p, p->slot, PRIMARY_DO_RANGES);
	}
}

/* Before the application reads, a member of S is made equal over all ranges that may differ.
 * After that a member of S lacks only flushes that are not acknowledged. */
static void primary_on_promised_insync(struct primary *p, unsigned slot,
				       const struct primary_report *report)
{
	struct primary_member *m = &p->members[slot];

	if (view_compare(&p->rec, &report->seen) >= VIEW_NEWER) {
		primary_member_is_ahead(p, slot, &report->seen);
		return;
	}
	if (!primary_copy_is_usable(report->copy)) {
		primary_member_useless(p, slot, mirror_copy_2str(report->copy));
		return;
	}
	m->lost = false;
	m->kept_out = false;
	m->deadline_ms = 0;
	if (primary_is_serving(p)) {
		primary_member_set(p, slot, PRIMARY_MEMBER_EQUALISE);
		primary_pend_member(p, slot, PRIMARY_DO_EQUALISE);
		primary_member_expect(p, slot);
	} else if (p->was_clean) {
		primary_member_set(p, slot, PRIMARY_MEMBER_WAITING);
	} else {
		primary_member_set(p, slot, PRIMARY_MEMBER_RANGES);
		primary_pend_member(p, slot, PRIMARY_DO_RANGES);
		primary_member_expect(p, slot);
	}
}

static void primary_on_promised_outside(struct primary *p, unsigned slot,
					const struct primary_report *report)
{
	struct primary_member *m = &p->members[slot];

	if (!p->rec.view.forced && view_compare(&p->rec, &report->seen) >= VIEW_NEWER) {
		primary_member_is_ahead(p, slot, &report->seen);
	} else if (report->copy == MIRROR_COPY_FAILED) {
		primary_member_useless(p, slot, mirror_copy_2str(report->copy));
	} else if (report->tail_unknown) {
		/* A resync would mark the whole copy as compared, although the bytes beyond the
		 * end of this primary's copy were not compared. (A member of S stays in doubt
		 * instead.) */
		primary_member_useless(
			p, slot,
			"the set has grown, and all of this copy must be compared: it returns when "
			"the set is mapped again, with its new size");
	} else {
		m->deadline_ms = 0;
		/* Before the set serves, the bitmap lacks the ranges of this host's records. */
		m->uncertain |= report->copy == MIRROR_COPY_EMPTY || p->rec.view.forced ||
				primary_is_recovering(p);
		primary_member_set(p, slot, PRIMARY_MEMBER_RESYNC);
		primary_pend_member(p, slot, PRIMARY_DO_RESYNC);
	}
}

void primary_on_promised(struct primary *p, uint8_t slot, const struct primary_report *report)
{
	struct primary_member *m = &p->members[slot];

	if (primary_is_over(p) || m->state != PRIMARY_MEMBER_FENCING)
		return;
	m->pending = 0;
	m->uncertain = report->uncertain || report->copy == MIRROR_COPY_UNKNOWN;
	m->tail_unknown = report->tail_unknown;
	if (report->held) {
		m->trouble = "a process on its host still maps the copy";
		m->held_ms = primary_double(m->held_ms, PRIMARY_HELD_MS, PRIMARY_RETRY_MS);
		primary_member_away(p, slot, m->held_ms);
		primary_settle(p);
		return;
	}
	m->trouble = NULL;
	if (slot == p->suspect)
		p->suspect = MIRROR_NO_SLOT;
	m->promised = (struct mirror_epoch){0, 0};
	m->ahead = (struct mirror_view){0};
	m->splits = 0;
	m->backoff_ms = m->held_ms = 0;
	primary_pend_member(p, slot, PRIMARY_DO_VIEW);
	if (slot == p->slot)
		primary_on_promised_self(p, report);
	else if (primary_in_s(p, slot))
		primary_on_promised_insync(p, slot, report);
	else
		primary_on_promised_outside(p, slot, report);
	primary_settle(p);
}

/*
 * The member has promised a higher epoch. Either a newer primary exists, or the register has lost
 * that epoch: reads that begin now decide (primary_judge_promises). Before these reads a member of
 * S is not swapped out, because a restored register would permit that swap.
 */
static void primary_on_refused_epoch(struct primary *p, unsigned slot, struct mirror_epoch promised)
{
	struct primary_member *m = &p->members[slot];

	if (!mirror_epoch_is_equal(m->promised, promised)) {
		m->promised = promised;
		m->refused_reads = p->reads + 2; /* a read that began earlier does not count */
	}
	primary_read(p);
	m->lost = false;
	if (primary_in_s(p, slot))
		primary_member_away(p, slot, PRIMARY_RETRY_MS);
	else
		primary_member_useless(p, slot, "it has promised a higher epoch");
	m->trouble = "it has promised a higher epoch";
}

/* The member's daemon may have read the register a moment too early, so ask it several times. */
static void primary_on_refused_split(struct primary *p, unsigned slot)
{
	struct primary_member *m = &p->members[slot];

	if (slot != p->slot && !primary_in_s(p, slot)) {
		primary_member_useless(p, slot,
				       "split: it has seen a state that the register lacks");
	} else if (++m->splits >= PRIMARY_SPLITS) {
		primary_fail(p, -ENOTUNIQ, "split: '%s' has seen a state that the register lacks",
			     primary_name(p, slot));
	} else {
		m->trouble = "it has seen a state that the register lacks";
		primary_member_away(p, slot, PRIMARY_RETRY_MS);
	}
}

void primary_on_refused(struct primary *p, uint8_t slot, enum primary_refusal why,
			struct mirror_epoch promised)
{
	struct primary_member *m = &p->members[slot];

	if (primary_is_over(p) || m->state < PRIMARY_MEMBER_FENCING)
		return;
	if (why == PRIMARY_REFUSED_EPOCH) {
		primary_on_refused_epoch(p, slot, promised);
	} else if (why == PRIMARY_REFUSED_SPLIT) {
		primary_on_refused_split(p, slot);
	} else if (why == PRIMARY_REFUSED_COPY) {
		primary_member_useless(p, slot, "its copy is not the configured one");
	} else {
		m->trouble = "its daemon is busy";
		m->lost |= primary_is_serving(p) && primary_in_s(p, slot);
		primary_member_back_off(p, slot);
	}
	primary_settle(p);
}

/* Change the member's state if it is `from`. Returns false otherwise. */
static bool primary_member_step(struct primary *p, unsigned slot, enum primary_member_state from,
				enum primary_member_state to)
{
	struct primary_member *m = &p->members[slot];

	if (primary_is_over(p) || m->state != from)
		return false;
	m->deadline_ms = 0;
	primary_member_set(p, slot, to);
	return true;
}

void primary_on_ranges(struct primary *p, uint8_t slot)
{
	enum primary_member_state to =
		slot == p->slot ? PRIMARY_MEMBER_EQUAL : PRIMARY_MEMBER_WAITING;

	if (primary_member_step(p, slot, PRIMARY_MEMBER_RANGES, to))
		primary_settle(p);
}

void primary_on_progress(struct primary *p, uint8_t slot)
{
	if (!primary_is_over(p) && p->members[slot].state == PRIMARY_MEMBER_EQUALISE)
		primary_member_expect(p, slot);
}

void primary_on_equal(struct primary *p, uint8_t slot)
{
	if (!primary_member_step(p, slot, PRIMARY_MEMBER_EQUALISE, PRIMARY_MEMBER_EQUAL))
		return;
	p->members[slot].breaks = 0;
	if (primary_is_serving(p))
		primary_pend_member(p, slot, PRIMARY_DO_RETIRE);
	primary_settle(p);
}

void primary_on_joining(struct primary *p, uint8_t slot)
{
	if (primary_member_step(p, slot, PRIMARY_MEMBER_RESYNC, PRIMARY_MEMBER_JOINING))
		primary_settle(p);
}

void primary_on_joined(struct primary *p, uint8_t slot)
{
	if (primary_member_step(p, slot, PRIMARY_MEMBER_JOINING, PRIMARY_MEMBER_JOINED))
		primary_settle(p);
}

void primary_on_lost(struct primary *p, uint8_t slot)
{
	struct primary_member *m = &p->members[slot];

	if (primary_is_over(p) || m->state < PRIMARY_MEMBER_FENCING ||
	    (slot == p->slot && m->state == PRIMARY_MEMBER_EQUAL))
		return;
	m->breaks += m->state == PRIMARY_MEMBER_EQUALISE;
	if (primary_in_s(p, slot) && (primary_is_serving(p) || m->breaks >= PRIMARY_BREAKS))
		m->lost = true;
	if (m->state == PRIMARY_MEMBER_FENCING)
		/* the member's silence replaces the former reason why it is not used */
		m->trouble = primary_silence;
	if (m->state == PRIMARY_MEMBER_JOINING || m->state == PRIMARY_MEMBER_JOINED)
		primary_member_hold_off(p, slot);
	else
		primary_member_back_off(p, slot);
	primary_settle(p);
}
