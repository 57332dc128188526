/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * daemon_poll.c -- a daemon reads the register, and lets a primary begin if no other primary is
 * alive.
 */
#include <stdlib.h>

#include "sim.h"

static bool daemon_may_promote(struct world *w, struct host *h, const struct register_seen *r,
			       const struct mirror_record *rec)
{
	uint64_t now = host_ms(w, h);
	enum mirror_copy copy = member_copy(&h->member, true);
	bool is_over;

	if ((copy == MIRROR_COPY_SYNCING || copy == MIRROR_COPY_EMPTY) &&
	    w->mode != SIM_ANY_CANDIDATE)
		return false;

	if (!r->alive_set)
		is_over = candidate_on_cleared(&h->candidate);
	else
		is_over = candidate_on_alive(&h->candidate, r->alive_epoch, r->alive_counter,
					     r->alive_revision, (struct candidate_read){now, now});
	return (is_over || w->mode == SIM_NO_LEASE) && !h->lib && !h->split &&
	       (rec->view.insync & MIRROR_BIT(h->id) || w->mode == SIM_ANY_CANDIDATE);
}

static void daemon_try_promote(struct world *w, struct host *h, const struct register_seen *r,
			       const struct mirror_record *rec, enum promotion_kind order)
{
	struct meta_holder holder = {.pid = w->uids + 1, .start_time = 1, .boot = h->boot};
	struct member_verdict v;

	if (!daemon_may_promote(w, h, r, rec) || !orders_may_follow(w, h, &rec->view, order) ||
	    growth_is_in_the_way(w, h, rec) || !plan_may_promote(w, h) ||
	    !sim_chance(w, plan_is_eager(w, h) ? 1000
			   : w->healing        ? 500
					       : 300))
		return;
	member_hold(&h->member, &holder, &v);
	if (v.answer == MEMBER_YES && !h->stopping)
		lib_start(w, h, r, false);
}

/* The operator runs `rpmirror resolve --discard`: in the fault-free part of a run, after a
 * promotion by force or a restore of the register, this discards the copy's data. */
static void daemon_resolve(struct world *w, struct host *h, const struct mirror_record *rec,
			   uint64_t revision)
{
	struct member_verdict v;

	bool by_force = w->forced && !(rec->view.insync & MIRROR_BIT(h->id));

	if (!w->healing || h->lib || !(by_force || w->resolving))
		return;
	member_discard(&h->member, rec, revision, &v);
	h->split = v.answer != MEMBER_YES;
	w->count.discards++;
	w->gave_up |= w->resolving;
	sim_trace(w, "%u: discards: %s", h->id, h->split ? v.text : "done");
}

/* The operator runs `rpmirror promote --force`. */
void daemon_force(struct world *w, struct host *h, const struct register_seen *seen)
{
	struct meta_holder holder = {.pid = w->uids + 1, .start_time = 1, .boot = h->boot};
	struct member_verdict v;

	if (h->split || growth_is_in_the_way(w, h, &w->reg.rec))
		return;
	member_hold(&h->member, &holder, &v);
	if (v.answer != MEMBER_YES || h->stopping)
		return;
	w->forced = true;
	w->count.forces++;
	lib_start(w, h, seen, true);
}

static void daemon_polled(struct world *w, struct event *e)
{
	struct host *h = &w->host[e->host];
	const struct register_seen *r = e->data;
	const struct mirror_record *rec = register_record(w, r->version);
	enum promotion_kind order;
	struct member_verdict v;

	if (h->daemon_uid != e->uid || !h->daemon_uid || !rec)
		return;
	/* Ignore a late answer: its record can be older than a record that was seen meanwhile, and
	 * would look like a restored register. */
	if (r->at < h->shown_at)
		return;
	h->shown_at = w->now;
	if (w->mode == SIM_SEEN_INSYNC_IGNORED)
		h->meta.promise.seen.view.insync = UINT8_MAX;
	member_on_record(&h->member, rec, r->revision, &v);
	if (v.answer == MEMBER_YES)
		member_end_clean(&h->member, rec, &v);
	h->split = v.answer != MEMBER_YES && w->mode != SIM_RESTORED_TRUSTED;
	if (h->split) {
		w->count.splits++;
		sim_trace(w, "%u: %s", h->id, v.text);
		daemon_resolve(w, h, rec, r->revision);
	} else if (v.answer == MEMBER_YES) {
		member_end_clean(&h->member, rec, &v);
	}
	order = orders_on_read(w, h, r, &rec->view);
	if (h->lib && !h->lib->ended) {
		primary_tick(&h->lib->p, host_ms(w, h));
		primary_on_changed(&h->lib->p, rec, r->revision);
		lib_run(w, h->lib);
	} else if (!h->lib && !h->stopping && order == PROMOTION_FORCE) {
		daemon_force(w, h, r);
	} else if (!h->lib && !h->stopping) {
		daemon_try_promote(w, h, r, rec, order);
	}
	growth_look(w, h, rec);
	host_settle(w, h);
}

static void daemon_poll_now(struct world *w, struct event *e)
{
	struct register_seen *r;

	if (register_is_away(w, e->host))
		return;
	r = malloc(sizeof(*r));
	if (!r)
		abort();
	*r = register_look(w);
	sched_add(w, sim_delay(w), daemon_polled, e->host, e->uid, 0, r);
}

void daemon_poll(struct world *w, struct event *e)
{
	if (w->host[e->host].daemon_uid != e->uid)
		return;
	sched_add(w, sim_delay(w), daemon_poll_now, e->host, e->uid, 0, NULL);
	sched_add(w, sim_between(w, 60 * MS, 140 * MS), daemon_poll, e->host, e->uid, 0, NULL);
}
