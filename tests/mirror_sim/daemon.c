/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * daemon.c -- the daemon of a host: it applies core/member.h, cuts connections, places bytes,
 * answers, and lets a primary begin if no other primary is alive.
 */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

static struct meta_store daemon_store(struct host *h)
{
	return (struct meta_store){.base = h->disk.meta,
				   .len = h->disk.meta_len,
				   .persist = disk_persist_meta,
				   .arg = h};
}

static void daemon_release(struct world *w, struct host *h, bool clean)
{
	struct member_verdict v;

	if (w->mode == SIM_HOT_FORGOTTEN)
		memset(h->disk.meta + META_HOT_AT, 0, META_RING_AT - META_HOT_AT);
	member_release(&h->member, clean, &v);
	sim_trace(w, "%u: released%s, %s", h->id, clean ? " clean" : "",
		  v.answer == MEMBER_YES ? "done" : v.text);
}

void daemon_start(struct world *w, struct host *h)
{
	struct meta_store store = daemon_store(h);
	struct error err = {0};

	if (h->daemon_uid || !h->powered)
		return;
	h->growth = (struct growth){0};
	if (meta_load(&h->meta, &store, &err)) {
		oracle_fail(w, "host %u: metadata cannot be loaded", h->id);
		return;
	}
	if (h->disk.len < h->meta.super.size)
		oracle_fail(w, "host %u: its file is shorter than its copy", h->id);
	if (w->mode == SIM_DAMAGE_TRUSTED)
		h->meta.damage = 0;
	h->daemon_uid = ++w->uids;
	candidate_init(&h->candidate, w->reg.rec.config.lease_ms);
	h->split = false;
	sim_trace(w, "%u: daemon starts, flags %#x damage %#x", h->id, h->meta.super.flags,
		  h->meta.damage);
	if (member_init(&h->member, &h->meta, &h->boot) == 0 && h->meta.super.holder.pid &&
	    !(h->lib && h->lib->uid == h->meta.super.holder.pid))
		daemon_release(w, h, false);
	sched_add(w, sim_between(w, 0, 20 * MS), daemon_poll, h->id, h->daemon_uid, 0, NULL);
	host_settle(w, h);
}

void daemon_end(struct world *w, struct host *h)
{
	uint32_t uid = h->daemon_uid;

	if (!uid)
		return;
	sim_trace(w, "%u: daemon ends", h->id);
	h->daemon_uid = 0;
	growth_forget(h);
	orders_forget(h);
	member_fini(&h->member);
	meta_fini(&h->meta);
	net_daemon_gone(w, uid);
}

void host_power_cut(struct world *w, struct host *h)
{
	if (!h->powered)
		return;
	sim_trace(w, "%u: loses power", h->id);
	w->count.powercuts++;
	if (h->lib)
		lib_crash(w, h);
	daemon_end(w, h);
	h->powered = false;
	disk_power_cut(w, &h->disk);
}

void host_power_on(struct world *w, struct host *h)
{
	if (h->powered)
		return;
	h->powered = true;
	h->boot.bytes[0]++;
	daemon_start(w, h);
}

static void host_restart(struct world *w, struct event *e)
{
	struct host *h = &w->host[e->host];

	if (h->powered)
		daemon_start(w, h);
	else
		host_power_on(w, h);
}

void host_settle(struct world *w, struct host *h)
{
	int stopping = h->stopping;

	if (!stopping)
		return;
	h->stopping = 0;
	h->persists_left = -1;
	w->count.stops++;
	if (stopping == 2) {
		host_power_cut(w, h);
	} else {
		if (h->lib)
			lib_crash(w, h);
		daemon_end(w, h);
	}
	sched_add(w, sim_between(w, 20 * MS, 800 * MS), host_restart, h->id, 0, 0, NULL);
}

/* ---- connections ---- */

void daemon_on_closed(struct world *w, struct host *h, uint32_t conn)
{
	struct conn *c = &w->conns[conn];

	if (c->granted && c->dst_open)
		member_on_closed(&h->member, c->kind);
	c->dst_open = false;
}

static void daemon_lost(struct world *w, struct event *e)
{
	struct conn *c = &w->conns[e->arg];
	struct lib *lib = lib_find(w, c->from, c->lib_uid);

	if (!lib || !c->src_open)
		return;
	c->src_open = false;
	lib_on_conn_lost(w, lib, (uint32_t)e->arg);
	lib_run(w, lib);
	host_settle(w, &w->host[w->conns[e->arg].from]);
}

static void daemon_cut_one(struct world *w, uint32_t conn)
{
	w->conns[conn].dst_open = false;
	sched_add(w, sim_delay(w), daemon_lost, 0, 0, conn, NULL);
}

static void daemon_cut_late(struct world *w, struct event *e)
{
	daemon_cut_one(w, (uint32_t)e->arg);
}

/* Cut the connections of other hosts that have this epoch or an earlier one, except the connection
 * that sent the request. */
static void daemon_cut(struct world *w, struct host *h, uint32_t asker, struct mirror_epoch epoch)
{
	for (uint32_t i = 0; i < w->conn_count; i++) {
		struct conn *c = &w->conns[i];

		if (c->to != h->id || c->daemon_uid != h->daemon_uid || !c->dst_open ||
		    !c->granted || i == asker || c->epoch.number > epoch.number)
			continue;
		member_on_closed(&h->member, c->kind);
		if (w->mode == SIM_NO_EPOCH_CHECK)
			continue;
		if (w->mode == SIM_FENCE_EARLY)
			sched_add(w, sim_between(w, 0, 30 * MS), daemon_cut_late, 0, 0, i, NULL);
		else
			daemon_cut_one(w, i);
	}
}

static enum primary_refusal daemon_refusal(enum member_reason reason)
{
	switch (reason) {
	case MEMBER_EPOCH_OLD:
	case MEMBER_EPOCH_TWIN:
		return PRIMARY_REFUSED_EPOCH;
	case MEMBER_IS_SPLIT:
		return PRIMARY_REFUSED_SPLIT;
	case MEMBER_OTHER_SET:
	case MEMBER_OTHER_COPY:
	case MEMBER_OTHER_SIZE:
		return PRIMARY_REFUSED_COPY;
	default:
		return PRIMARY_REFUSED_BUSY;
	}
}

static bool daemon_judge(struct world *w, struct host *h, struct msg *m,
			 const struct member_verdict *v)
{
	m->refused = v->answer != MEMBER_YES;
	if (!m->refused)
		return true;
	sim_trace(w, "%u: refuses %d of epoch %llu: %s", h->id, m->type,
		  (unsigned long long)m->epoch.number, v->text);
	m->refusal = daemon_refusal(v->reason);
	if (m->refusal == PRIMARY_REFUSED_SPLIT && w->mode == SIM_RESTORED_TRUSTED)
		m->refusal = PRIMARY_REFUSED_BUSY;
	m->epoch = v->known;
	return false;
}

static void daemon_on_open(struct world *w, struct host *h, struct conn *c, struct msg *m)
{
	struct member_hello hello = {.uuid = w->reg.rec.config.uuid,
				     .member_id = c->member_id,
				     .epoch = c->epoch,
				     .kind = c->kind};
	struct member_verdict v;

	member_grant(&h->member, &hello, &v);
	if (!daemon_judge(w, h, m, &v))
		return;
	c->granted = c->dst_open = true;
}

static void daemon_promise_again(struct world *w, struct event *e)
{
	struct conn *c = &w->conns[e->arg];
	struct host *h = &w->host[c->to];

	if (h->daemon_uid && h->daemon_uid == c->daemon_uid)
		daemon_on_msg(w, h, (uint32_t)e->arg, e->data);
	host_settle(w, h);
}

static void daemon_fill_report(struct world *w, struct host *h, struct msg *m)
{
	struct member_report r;

	if (member_report(&h->member, &r))
		return;
	m->report = (struct primary_report){.copy = r.copy,
					    .held = r.is_held,
					    .uncertain = r.is_uncertain,
					    .seen = r.seen.view};
	m->copy_epoch = r.epoch;
	m->size = h->meta.super.size;
	m->unknown = r.is_unknown;
	sim_trace(w, "%u: reports %u hot extents, %u intents, %u ranges", h->id, r.hot, r.intents,
		  r.range_count);
	if (w->mode == SIM_LOST_RECORDS_TRUSTED)
		m->report.uncertain = false;
	if (w->mode == SIM_RESTORED_TRUSTED || w->mode == SIM_ANY_CANDIDATE)
		m->report.seen.epoch.number = 0;
}

/* Returns false if the answer is sent later. */
static bool daemon_on_promise(struct world *w, struct host *h, uint32_t conn, struct msg *m)
{
	struct member_verdict v = {.answer = MEMBER_YES};
	bool is_own = w->conns[conn].from == h->id;

	plan_on_promise(w, m->epoch);
	if (!(is_own && w->mode == SIM_NO_OWN_PROMISE))
		member_promise(&h->member, m->epoch, &v);
	if (v.answer != MEMBER_NO)
		daemon_cut(w, h, conn, m->epoch);
	if (v.answer == MEMBER_CUT_FIRST) {
		struct msg *again = malloc(sizeof(*again));

		if (!again)
			abort();
		*again = *m;
		sched_add(w, sim_between(w, 10, 2 * MS), daemon_promise_again, 0, 0, conn, again);
		return false;
	}
	if (daemon_judge(w, h, m, &v))
		daemon_fill_report(w, h, m);
	return true;
}

static void daemon_place_intent(struct world *w, struct host *h, const struct msg *m)
{
	uint8_t slot[INTENT_BYTES];
	struct intent_head head = {
		.seq = m->seq, .epoch = m->epoch, .acked = m->acked, .count = m->count};
	size_t len = intent_encode(slot, &head, m->ranges);

	if (w->mode != SIM_NO_INTENT)
		disk_place_intent(&h->disk, m->seq, slot, len);
}

/* A failed write-back is final. The end of the connection reports the failure to the primary. */
static bool daemon_write_back(struct world *w, struct host *h, uint32_t conn, uint32_t words)
{
	struct member_verdict v;

	if (disk_write_back(&h->disk, medium_extent(&h->disk, words)))
		return true;
	member_fail(&h->member, &v);
	sim_trace(w, "%u: its copy has failed", h->id);
	daemon_on_closed(w, h, conn);
	daemon_cut_one(w, conn);
	return false;
}

static bool daemon_on_flush(struct world *w, struct host *h, uint32_t conn, const struct msg *m)
{
	struct conn *c = &w->conns[conn];
	/* The connection can break in the middle of this message. */
	bool torn = c->cut_fwd != NEVER && sim_chance(w, 300);

	oracle_on_place(w, h, c);
	if (torn)
		c->cut_fwd = w->now; /* no later message arrives */
	if (torn && sim_chance(w, 300))
		return false;
	if (m->count) /* a message without words is only a flush operation */
		daemon_place_intent(w, h, m);
	for (unsigned i = 0; i < WORDS; i++) {
		if (!(m->mask >> i & 1))
			continue;
		if (torn && sim_chance(w, 300))
			return false;
		if (word_offset(i) < h->meta.super.size)
			disk_store(&h->disk, i, m->words[i]);
	}
	if (torn || !m->cover)
		return false;
	return w->mode == SIM_FLUSH_NOT_DURABLE ||
	       daemon_write_back(w, h, conn, words_of_block(m->cover));
}

static bool daemon_differs(const struct host *h, const struct msg *m, uint32_t words)
{
	for (unsigned i = 0; i < WORDS; i++)
		if ((m->mask & words) >> i & 1 && h->disk.cache[i] != m->words[i])
			return true;
	return false;
}

static bool daemon_on_piece(struct world *w, struct host *h, uint32_t conn, struct msg *m)
{
	const struct resync_piece *p = &m->piece;

	if (p->op == RESYNC_OP_COPY) {
		oracle_on_place(w, h, &w->conns[conn]);
		for (unsigned i = 0; i < WORDS; i++)
			if (m->mask >> i & 1 && word_offset(i) < h->meta.super.size)
				disk_store(&h->disk, i, m->words[i]);
		return w->mode == SIM_RESYNC_NOT_DURABLE || daemon_write_back(w, h, conn, m->mask);
	}
	/* A digest covers only durable bytes, so write the bytes back first. */
	if (!daemon_write_back(w, h, conn, m->mask))
		return false;
	m->differing = 0;
	for (unsigned b = 0; b < 64 && b * (uint64_t)MIRROR_BLOCK < p->len; b++) {
		struct mirror_range block = {p->offset + b * (uint64_t)MIRROR_BLOCK, MIRROR_BLOCK};

		if (daemon_differs(h, m, words_in(&block)))
			m->differing |= p->op == RESYNC_OP_COMPARE ? 1 : 1ull << b & p->blocks;
	}
	return true;
}

static void daemon_on_control(struct world *w, struct host *h, struct msg *m)
{
	struct member_verdict v = {.answer = MEMBER_YES};

	switch (m->type) {
	case MSG_RANGES:
		m->count = member_ranges(&h->member, 0, m->ranges, MSG_RANGES_MAX);
		if (h->member.range_count > MSG_RANGES_MAX) {
			m->count = 1;
			m->ranges[0] = (struct mirror_range){0, h->meta.super.size};
		}
		break;
	case MSG_RECORD:
		if (w->mode != SIM_RANGES_NOT_RECORDED)
			member_record_ranges(&h->member, m->epoch, m->ranges, m->count, &v);
		break;
	case MSG_BEGIN:
		member_resync_begin(&h->member, m->epoch, m->seq, &v);
		break;
	case MSG_END:
		member_resync_end(&h->member, m->epoch, &v);
		break;
	case MSG_RETIRE:
		member_retire(&h->member, m->epoch, MEMBER_SERVING, &v);
		break;
	default:
		h->shown_at = w->now;
		member_on_view(&h->member, &m->view, &v);
		break;
	}
	daemon_judge(w, h, m, &v);
}

void daemon_on_msg(struct world *w, struct host *h, uint32_t conn, struct msg *m)
{
	struct conn *c = &w->conns[conn];
	bool answer = true;

	switch (m->type) {
	case MSG_OPEN:
		daemon_on_open(w, h, c, m);
		break;
	case MSG_PROMISE:
		answer = daemon_on_promise(w, h, conn, m);
		break;
	case MSG_FLUSH:
		answer = daemon_on_flush(w, h, conn, m);
		break;
	case MSG_PIECE:
		answer = daemon_on_piece(w, h, conn, m);
		break;
	default:
		daemon_on_control(w, h, m);
		break;
	}
	if (answer && !h->stopping)
		conn_answer(w, conn, m);
}

/* ---- the process that maps the copy ---- */

static void daemon_on_end(struct world *w, struct event *e)
{
	struct host *h = &w->host[e->host];
	struct mirror_epoch *epoch = e->data;

	if (!h->daemon_uid || h->daemon_uid != e->uid || !h->meta.super.holder.pid ||
	    (h->lib && h->lib->uid == h->meta.super.holder.pid))
		return;
	daemon_release(w, h, e->arg);
	if (epoch->number)
		register_clear(w, h, *epoch);
	host_settle(w, h);
}

static void lib_free(struct world *w, struct host *h, bool clean, bool abrupt)
{
	struct lib *lib = h->lib;
	struct mirror_epoch *epoch = malloc(sizeof(*epoch));

	if (!epoch)
		abort();
	*epoch = lib->epoch;
	h->lib = NULL;
	medium_on_end(h, lib);
	net_lib_gone(w, lib->uid, abrupt);
	meta_fini(&lib->meta);
	free(lib);
	sched_add(w, sim_between(w, 100, 20 * MS), daemon_on_end, h->id, h->daemon_uid, clean,
		  epoch);
}

void lib_crash(struct world *w, struct host *h)
{
	sim_trace(w, "%u: the primary's process ends", h->id);
	w->count.crashes++;
	lib_free(w, h, false, true);
}

void lib_unmap(struct world *w, struct host *h, bool clean)
{
	sim_trace(w, "%u: unmaps%s", h->id, clean ? " clean" : "");
	lib_free(w, h, clean, false);
}
