/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * primary_swap.c -- makes the swaps of one primary, and handles the records that it reads from the
 * register.
 *
 * One swap at a time is sent. A swap without an answer may still happen as long as no other swap of
 * the same record has happened. During that time the primary assumes the worse of both results
 * (primary_must_have). The next swap, which has a nonce of its own, decides the result of the
 * former swap.
 */
#include <errno.h>

#include "base/log.h"
#include "mirror/core/primary_impl.h"

static mirror_mask primary_joined(const struct primary *p)
{
	mirror_mask joined = 0;

	for (unsigned i = 0; i < MIRROR_MEMBERS_MAX; i++)
		if (p->members[i].state == PRIMARY_MEMBER_JOINED && !primary_in_s(p, i))
			joined |= MIRROR_BIT(i);
	return joined;
}

/* Change *offer, a copy of the present record, into the record of the swap that is due. Returns
 * false if no swap is due. */
static bool primary_offer_change(struct primary *p, struct mirror_record *offer, uint64_t nonce)
{
	mirror_mask lost = primary_lost(p);

	if (p->state == PRIMARY_PROMOTING)
		return (p->force ? view_force(offer, p->slot, nonce, NULL)
				 : view_promote(offer, p->slot, nonce, NULL)) == 0;
	if (p->state == PRIMARY_STARTING)
		return view_serve(offer, p->slot, nonce, NULL) == 0;
	if (p->state == PRIMARY_STOPPING)
		return view_demote(offer, p->slot, p->clean, nonce, NULL) == 0;
	if (p->state != PRIMARY_RECOVERING && !primary_is_serving(p))
		return false;
	if (lost && view_shrink(offer, p->slot, lost, nonce, NULL) == 0)
		return true;
	if (primary_fills(p) && primary_joined(p) &&
	    view_exchange(offer, p->slot, lost, primary_joined(p), nonce, NULL) == 0)
		return true;
	if (primary_admits(p) && primary_joined(p))
		return view_expand(offer, p->slot, primary_joined(p), nonce, NULL) == 0;
	return p->unknown && view_supersede(offer, p->slot, nonce, NULL) == 0;
}

bool primary_offer(struct primary *p)
{
	if (primary_is_over(p) || p->swapping || p->now < p->swap_retry_ms)
		return false;
	/* Most calls return here, without copying the record. */
	if (primary_is_serving(p) && !p->unknown && !primary_lost(p) && !primary_joined(p))
		return false;
	p->offer = p->rec;
	p->offer_against = p->rec.nonce;
	if (!primary_offer_change(p, &p->offer, p->random(p->arg)))
		return false;
	p->swapping = true;
	return true;
}

/* Adopt a change of S in the register: the member has entered or left S. */
static void primary_adopt_member(struct primary *p, unsigned slot, bool was_in)
{
	struct primary_member *m = &p->members[slot];
	bool is_in = primary_in_s(p, slot);

	if (is_in && m->state == PRIMARY_MEMBER_JOINED) {
		primary_member_set(p, slot, PRIMARY_MEMBER_EQUAL);
		m->insync_ms = p->now;
		/* Before the set serves, records must not be removed. */
		if (primary_is_serving(p))
			primary_pend_member(p, slot, PRIMARY_DO_RETIRE);
	} else if (is_in && !was_in) {
		/* A swap that succeeded late has added the member, which was given up meanwhile, so
		 * mark it as lost. */
		m->lost = true;
		primary_member_back_off(p, slot);
	} else if (was_in && !is_in) {
		m->lost = false;
		if (slot == p->slot)
			return;
		if (m->state == PRIMARY_MEMBER_EQUAL && primary_is_serving(p))
			/* A swap that succeeded late has removed the member, which was repaired
			 * meanwhile. */
			primary_member_set(p, slot, PRIMARY_MEMBER_JOINED);
		else
			primary_member_hold_off(p, slot);
	}
}

static void primary_begin_recovery(struct primary *p)
{
	primary_set_state(p, PRIMARY_RECOVERING, "the epoch is ours");
	p->unknown_count = 0;
	if (p->demoting)
		primary_set_state(p, PRIMARY_STOPPING, "demote");
}

static void primary_begin_serving(struct primary *p)
{
	primary_set_state(p, PRIMARY_SERVING, "swapped");
	primary_pend(p, PRIMARY_DO_SERVE);
	for (unsigned i = 0; i < MIRROR_MEMBERS_MAX; i++) {
		struct primary_member *m = &p->members[i];

		m->deadline_ms = 0;
		if (!primary_in_s(p, i))
			continue;
		m->insync_ms = p->now;
		if (m->state == PRIMARY_MEMBER_EQUAL) {
			primary_pend_member(p, i, PRIMARY_DO_RETIRE);
		} else {
			/* The member was lost after the swap was sent. */
			m->lost = true;
			primary_member_back_off(p, i);
		}
	}
}

/* Adopt the newest record that was read from the register so far. */
static void primary_adopt(struct primary *p, const struct mirror_record *rec, uint64_t revision)
{
	mirror_mask before = p->rec.view.insync;

	p->rec = *rec;
	p->revision = revision;
	p->unknown = 0;
	p->swap_failures = 0;
	p->swap_backoff_ms = 0;
	p->swap_retry_ms = 0;
	LOG_INFO("mirror set '%s': the register has epoch %llu.%llu, S %#x", rec->config.set,
		 (unsigned long long)rec->view.epoch.number, (unsigned long long)rec->view.seq,
		 rec->view.insync);
	if (p->state == PRIMARY_PROMOTING) {
		before = rec->view.insync;
		primary_begin_recovery(p);
	}
	mirror_mask fresh = primary_members_configure(p);

	for (unsigned i = 0; i < MIRROR_MEMBERS_MAX; i++) {
		if (fresh & MIRROR_BIT(i))
			continue;
		primary_adopt_member(p, i, before & MIRROR_BIT(i));
		if (p->members[i].state > PRIMARY_MEMBER_FENCING)
			primary_pend_member(p, i, PRIMARY_DO_VIEW);
	}
	if (rec->view.phase == MIRROR_PHASE_NONE)
		primary_set_state(p, PRIMARY_DEMOTED, "swapped");
	else if (rec->view.phase == MIRROR_PHASE_SERVING && primary_is_recovering(p))
		primary_begin_serving(p);
}

/* Returns true if a swap of this primary has begun this epoch. */
static bool primary_is_our_promotion(const struct primary *p, const struct mirror_view *view)
{
	unsigned count =
		p->unknown_count < PRIMARY_UNKNOWN_MAX ? p->unknown_count : PRIMARY_UNKNOWN_MAX;

	if (view->primary != p->slot)
		return false;
	if (p->swapping && view->epoch.nonce == p->offer.nonce)
		return true;
	for (unsigned i = 0; i < count; i++)
		if (p->unknown_nonces[i] == view->epoch.nonce)
			return true;
	return false;
}

/* In the state `promoting`: find out whether this primary has begun the epoch, or another program
 * has changed the register. */
static void primary_learn_promoting(struct primary *p, const struct mirror_record *rec,
				    uint64_t revision, bool refused)
{
	if (primary_is_our_promotion(p, &rec->view))
		primary_adopt(p, rec, revision);
	else if (rec->nonce == p->rec.nonce && refused)
		primary_fail(p, -EBUSY, "the primary is alive");
	else if (rec->nonce != p->rec.nonce)
		primary_fail(p, -EAGAIN, "the register was changed by another program");
}

/* Returns true if the register was restored from a backup. The register had this record when the
 * present swap was refused. If the record is neither the one that the swap compared with nor a
 * newer one, the register was restored. Exception: a record that was read since the swap was sent
 * may itself be the cause of the refusal; then the next swap decides. */
static bool primary_is_restored(const struct primary *p, const struct mirror_record *rec)
{
	if (p->offer_against != p->rec.nonce)
		return false;
	if (rec->view.epoch.number != p->offer.view.epoch.number)
		return rec->view.epoch.number < p->offer.view.epoch.number;
	return rec->view.seq < p->offer.view.seq;
}

/* Returns true for a record of an operator's new configuration, which only takes members out of
 * S. */
static bool primary_is_configured(const struct primary *p, const struct mirror_record *rec)
{
	return rec->view.epoch.number == p->rec.view.epoch.number &&
	       rec->view.seq == p->rec.view.seq && rec->config.number > p->rec.config.number;
}

/* Handle a record of the register. refused: the present swap failed because the register had this
 * record. */
static void primary_learn(struct primary *p, const struct mirror_record *rec, uint64_t revision,
			  bool refused)
{
	const struct mirror_view *now = &rec->view, *known = &p->rec.view;

	if (p->state == PRIMARY_PROMOTING) {
		primary_learn_promoting(p, rec, revision, refused);
	} else if (now->epoch.number > known->epoch.number ||
		   (now->epoch.number == known->epoch.number &&
		    now->epoch.nonce != known->epoch.nonce)) {
		primary_set_state(p, PRIMARY_FENCED, "the register has another epoch");
	} else if (primary_is_configured(p, rec) && now->insync & ~known->insync) {
		primary_fail(
			p, -ENOTUNIQ,
			"the register was restored, and its configuration was changed since then: "
			"split");
	} else if ((now->epoch.number == known->epoch.number && now->seq > known->seq) ||
		   primary_is_configured(p, rec)) {
		primary_adopt(p, rec, revision);
	} else if (refused && primary_is_restored(p, rec)) {
		primary_fail(p, -ENOTUNIQ, "the register went back to an older state: split");
	}
}

static void primary_swap_failed(struct primary *p)
{
	p->swap_failures++;
	p->swap_backoff_ms = p->swap_backoff_ms ? 2 * p->swap_backoff_ms : PRIMARY_SWAP_MS;
	if (p->swap_backoff_ms > PRIMARY_SWAP_MAX_MS)
		p->swap_backoff_ms = PRIMARY_SWAP_MAX_MS;
	p->swap_retry_ms = p->now + p->swap_backoff_ms;
}

void primary_on_swap(struct primary *p, enum primary_swap result, const struct mirror_record *now,
		     uint64_t revision)
{
	if (primary_is_over(p) || !p->swapping)
		return;
	switch (result) {
	case PRIMARY_SWAP_DONE:
	case PRIMARY_SWAP_CHANGED:
		primary_learn(p, now, revision, result == PRIMARY_SWAP_CHANGED);
		break;
	case PRIMARY_SWAP_UNKNOWN:
		p->unknown |= p->offer.view.insync;
		p->unknown_nonces[p->unknown_count++ % PRIMARY_UNKNOWN_MAX] = p->offer.nonce;
		primary_read(p);
		primary_swap_failed(p);
		break;
	case PRIMARY_SWAP_FAILED:
		primary_swap_failed(p);
		break;
	}
	p->swapping = false;
	primary_settle(p);
}

/* Decide about members that have promised a higher epoch than this primary's. The primary fails if
 * reads that began after the promise do not show that epoch. */
static void primary_judge_promises(struct primary *p)
{
	for (unsigned i = 0; i < MIRROR_MEMBERS_MAX; i++) {
		struct primary_member *m = &p->members[i];

		if (!m->promised.number || primary_is_over(p))
			continue;
		if (p->reads < m->refused_reads)
			primary_read(p);
		else if (i == p->slot || primary_in_s(p, i))
			primary_fail(
				p, -ENOTUNIQ,
				"split: '%s' has promised epoch %llu, which the register lacks",
				primary_name(p, i), (unsigned long long)m->promised.number);
	}
}

/* Decide about members that have seen a newer view than this primary's record. Either this primary
 * has adopted that view by now, or it fails because reads that began after the member's report do
 * not show the view. */
static void primary_judge_ahead(struct primary *p)
{
	for (unsigned i = 0; i < MIRROR_MEMBERS_MAX; i++) {
		struct primary_member *m = &p->members[i];

		if (!m->ahead.epoch.number || primary_is_over(p))
			continue;
		if (view_compare(&p->rec, &m->ahead) < VIEW_NEWER) {
			m->ahead = (struct mirror_view){0};
			if (m->state == PRIMARY_MEMBER_AWAY)
				m->retry_ms = p->now;
		} else if (p->reads < m->ahead_reads) {
			primary_read(p);
		} else if (i == p->slot || primary_in_s(p, i)) {
			primary_fail(p, -ENOTUNIQ,
				     "the register is older than the state that %s has seen",
				     i == p->slot ? "this host" : primary_name(p, i));
		} else {
			m->ahead = (struct mirror_view){0};
			primary_member_useless(
				p, i, "split: it has seen a state that the register lacks");
		}
	}
}

void primary_on_record(struct primary *p, const struct mirror_record *rec, uint64_t revision)
{
	p->reads++;
	primary_on_changed(p, rec, revision);
}

void primary_on_changed(struct primary *p, const struct mirror_record *rec, uint64_t revision)
{
	if (primary_is_over(p))
		return;
	primary_learn(p, rec, revision, false);
	primary_judge_promises(p);
	primary_judge_ahead(p);
	/* A swap without an answer has not happened yet. Make another swap, after which the first
	 * swap can never happen. */
	if (p->unknown)
		p->swap_retry_ms = p->now;
	primary_settle(p);
}
