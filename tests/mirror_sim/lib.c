/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib.c -- the part of the library that carries out the actions of core/primary.h and reports their
 * results.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mirror/core/ranges.h"
#include "sim.h"

struct lib *lib_find(struct world *w, uint32_t host, uint32_t uid)
{
	struct lib *lib = w->host[host].lib;

	return lib && lib->uid == uid && !lib->ended ? lib : NULL;
}

void bits_add(uint64_t *bits, const struct mirror_range *ranges, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		for (uint64_t b = ranges[i].offset / MIRROR_BLOCK;
		     b * MIRROR_BLOCK < ranges[i].offset + ranges[i].len; b++)
			bits[b / 64] |= 1ull << b % 64;
}

static void lib_tick(struct world *w, struct event *e)
{
	struct lib *lib = lib_find(w, e->host, e->uid);

	if (!lib)
		return;
	primary_tick(&lib->p, host_ms(w, &w->host[e->host]));
	flush_check_timeouts(w, lib);
	medium_on_daemon(w, lib);
	for (unsigned i = 0; i < MIRROR_MEMBERS_MAX; i++)
		if (lib->peers[i].running)
			sync_pump(w, lib, i);
	if (lib->served && !lib->lease.ended && lib->renew_ms <= host_ms(w, &w->host[e->host]))
		register_renew(w, lib);
	oracle_on_read(w, lib);
	lib_run(w, lib);
	host_settle(w, &w->host[e->host]);
	if (lib_find(w, e->host, e->uid))
		sched_add(w, sim_between(w, 10 * MS, 30 * MS), lib_tick, e->host, e->uid, 0, NULL);
}

void lib_start(struct world *w, struct host *h, const struct register_seen *seen, bool force)
{
	struct meta_store store = {.base = h->disk.meta,
				   .len = h->disk.meta_len,
				   .persist = disk_persist_meta,
				   .arg = h};
	const struct mirror_view *view = &h->meta.promise.seen.view;
	struct lib *lib = calloc(1, sizeof(*lib));
	struct mirror_record rec = *register_record(w, seen->version);
	struct error err;

	if (!lib)
		abort();
	lib->uid = ++w->uids;
	lib->host = h->id;
	/*
	 * after a restore of the register the same epoch number can occur again, with newer stores
	 */
	if (w->restored)
		lib->app_seq = 1 << 20;
	if (meta_load(&lib->meta, &store, &err)) {
		oracle_fail(w, "host %u: metadata cannot be loaded by the library", h->id);
		free(lib);
		return;
	}
	flush_init(&lib->flush);
	lease_init(&lib->lease, rec.config.lease_ms);
	lib->seen = *seen;
	lib->size = lib->meta.super.size;
	lib->words = words_below(lib->size);
	h->lib = lib;
	oracle_on_map(w, lib, &rec);
	if (w->mode == SIM_ANY_CANDIDATE)
		rec.view.insync |= MIRROR_BIT(h->id);
	sim_trace(w, "%u: promotes, lib %u", h->id, lib->uid);
	primary_start(&lib->p, &rec, seen->revision, (uint8_t)h->id,
		      w->mode == SIM_RESTORED_TRUSTED || w->mode == SIM_ANY_CANDIDATE ? NULL : view,
		      force, host_ms(w, h), sim_random, w);
	if (seen->alive_set)
		primary_suspect(&lib->p, rec.view.primary);
	sched_add(w, 10 * MS, lib_tick, h->id, lib->uid, 0, NULL);
	lib_run(w, lib);
}

/* ---- actions ---- */

static void lib_ask(struct world *w, struct lib *lib, unsigned slot, struct msg *m)
{
	struct peer *peer = &lib->peers[slot];

	m->epoch = lib->p.rec.view.epoch;
	if (peer->conn[MEMBER_CONTROL])
		conn_send(w, peer->conn[MEMBER_CONTROL] - 1, m);
}

/* Before a member leaves S, begin to record the blocks that it misses. */
static void lib_begin_bitmaps(struct world *w, struct lib *lib, const struct primary_action *a)
{
	const struct mirror_record *next = a->record;
	mirror_mask leave = lib->p.rec.view.insync & (mirror_mask)~next->view.insync;
	bool serving = lib->p.rec.view.phase == MIRROR_PHASE_SERVING;
	struct mirror_epoch now = next->view.epoch, base = now;

	if (!serving)
		base = next->history_count ? next->history[0].epoch : (struct mirror_epoch){0, 0};
	for (uint8_t slot = 0; slot < MIRROR_MEMBERS_MAX; slot++) {
		if (!(leave & MIRROR_BIT(slot)) || slot == lib->host)
			continue;
		if ((a->whole && w->mode != SIM_LOST_RECORDS_TRUSTED) ||
		    (!serving && next->view.forced)) {
			meta_bitmap_drop(&lib->meta, slot);
			continue;
		}
		meta_bitmap_start(&lib->meta, slot, base, now, NULL);
		for (uint64_t b = 0; b < lib->size / MIRROR_BLOCK; b++)
			if (lib->peers[slot].missed[b / 64] &&
			    lib->peers[slot].missed[b / 64] >> b % 64 & 1)
				meta_bitmap_set(
					&lib->meta, slot,
					(struct mirror_range){b * MIRROR_BLOCK, MIRROR_BLOCK});
		meta_bitmap_persist(&lib->meta, slot);
	}
}

static void lib_promise(struct world *w, struct lib *lib, unsigned slot)
{
	struct msg m = {.type = MSG_PROMISE};

	lib_drop(w, lib, slot);
	lib->peers[slot].conn[MEMBER_CONTROL] =
		conn_open(w, lib, (uint8_t)slot, MEMBER_CONTROL) + 1;
	lib_ask(w, lib, slot, &m);
}

bool lib_mark_hot(struct world *w, struct lib *lib, const struct mirror_range *ranges, uint32_t n)
{
	uint32_t extents[EXTENTS], count = 0;

	(void)w;
	for (unsigned word = 0; word < lib->words; word += 2 * BLOCK_WORDS) {
		uint32_t e = meta_extent_of(word_offset(word));
		struct mirror_range extent = {e * (uint64_t)MIRROR_EXTENT, MIRROR_EXTENT};

		if (ranges_overlap(&extent, 1, ranges, n))
			extents[count++] = e;
	}
	return meta_hot_mark(&lib->meta, extents, count) == 0;
}

static void lib_retire(struct world *w, struct lib *lib, unsigned slot, bool keeps)
{
	struct msg m = {.type = MSG_RETIRE};

	if (slot == lib->host && !lib->served) {
		/* Record the ranges that can differ at members outside S. If the ranges are
		 * unknown, any byte can differ. */
		if (lib->p.members[slot].uncertain)
			meta_bitmap_drop(&lib->meta, MIRROR_NO_SLOT);
		for (uint32_t i = 0; i < lib->all_count; i++)
			meta_bitmap_set_all(&lib->meta, lib->all[i]);
		for (uint8_t s = 0; s < MIRROR_MEMBERS_MAX; s++)
			if (lib->meta.members.members[s].has_bitmap)
				meta_bitmap_persist(&lib->meta, s);
		meta_hot_retire(&lib->meta);
	} else if (slot != lib->host) {
		/* The member is in S again, so stop recording the blocks that it misses. */
		memset(lib->peers[slot].missed, 0, sizeof(lib->peers[slot].missed));
		if (lib->meta.members.members[slot].has_bitmap)
			meta_bitmap_drop(&lib->meta, (uint8_t)slot);
		if (!keeps)
			sync_retire(w, lib, slot);
		return;
	}
	lib_ask(w, lib, slot, &m);
}

static void lib_serve(struct world *w, struct lib *lib)
{
	struct host *h = &w->host[lib->host];
	struct member_verdict v;

	if (!h->daemon_uid) {
		h->stopping = 1; /* the process cannot inform the daemon, so it gives up */
		return;
	}
	member_serve(&h->member, lib->p.rec.view.epoch, lib->p.force, &v);
	if (v.answer != MEMBER_YES && w->mode == SIM_HONEST) {
		sim_trace(w, "%u: may not serve: %s", h->id, v.text);
		h->stopping = 1;
		return;
	}
	w->count.serves++;
	memcpy(lib->app, h->disk.cache, sizeof(lib->app));
	lib->served = lib->app_runs = true;
	for (unsigned i = 0; i < MIRROR_MEMBERS_MAX; i++)
		if (primary_sends_to(&lib->p) & MIRROR_BIT(i))
			flush_member_begin(&lib->flush, i, false);
	register_renew(w, lib);
	sched_add(w, sim_between(w, 0, 5 * MS), app_step, lib->host, lib->uid, 0, NULL);
}

static void lib_end(struct world *w, struct event *e)
{
	struct host *h = &w->host[e->host];

	if (h->lib && h->lib->uid == e->uid)
		lib_unmap(w, h, e->arg);
}

static void lib_on_end(struct world *w, struct lib *lib, const struct primary_action *a)
{
	bool clean = a->type == PRIMARY_DO_DEMOTED && lib->p.clean;

	sim_trace(w, "%u: %s %s", lib->host, primary_action_2str(a->type), a->why ? a->why : "");
	w->count.fenced += a->type == PRIMARY_DO_FENCED;
	if (a->type == PRIMARY_DO_FAILED && a->error == -ENOTUNIQ && !w->restored && !w->forced)
		oracle_fail(w, "host %u: %s, but it was never restored", lib->host, a->why);
	w->count.demotes += clean;
	lib->app_runs = false;
	lib->ended = true;
	lease_end(&lib->lease);
	net_lib_gone(w, lib->uid, false);
	/* The application can notice the end of its role after a delay. */
	sched_add(w, sim_between(w, 0, clean ? MS : 300 * MS), lib_end, lib->host, lib->uid, clean,
		  NULL);
}

static void lib_resync(struct world *w, struct lib *lib, unsigned slot, bool whole)
{
	struct peer *peer = &lib->peers[slot];

	if (w->mode == SIM_FILL_BY_BITMAP && lib->p.state == PRIMARY_RECOVERING)
		whole = false;
	whole |= !meta_bitmap_is_usable(&lib->meta, (uint8_t)slot, peer->copy_epoch);
	w->count.wholes += whole;
	sync_begin(w, lib, slot, SYNC_CATCH_UP, whole);
}

static void lib_act(struct world *w, struct lib *lib, const struct primary_action *a)
{
	struct msg m = {.type = MSG_VIEW, .view = lib->p.rec.view};

	if (lib->p.state == PRIMARY_RECOVERING)
		lib->epoch = lib->p.rec.view.epoch;

	switch (a->type) {
	case PRIMARY_DO_SWAP:
		lib_begin_bitmaps(w, lib, a);
		register_swap(w, lib, a);
		break;
	case PRIMARY_DO_READ:
		register_read(w, lib);
		break;
	case PRIMARY_DO_PROMISE:
		lib_promise(w, lib, a->slot);
		break;
	case PRIMARY_DO_RANGES:
		m.type = MSG_RANGES;
		lib_ask(w, lib, a->slot, &m);
		break;
	case PRIMARY_DO_EQUALISE:
		if (a->nothing)
			lib->all_count = 0;
		world_ambush_process(w, lib->host, lib->served ? 20 : 150, 5 * MS);
		sync_begin(w, lib, a->slot, lib->served ? SYNC_REPAIR : SYNC_EQUALISE, a->whole);
		break;
	case PRIMARY_DO_RESYNC:
		lib_resync(w, lib, a->slot, a->whole);
		break;
	case PRIMARY_DO_DROP:
		lib_drop(w, lib, a->slot);
		break;
	case PRIMARY_DO_RETIRE:
		lib_retire(w, lib, a->slot, a->keeps);
		break;
	case PRIMARY_DO_VIEW:
		lib_ask(w, lib, a->slot, &m);
		break;
	case PRIMARY_DO_SERVE:
		lib_serve(w, lib);
		break;
	case PRIMARY_DO_QUIESCE:
		lib->app_runs = false;
		lib->quiescing = true;
		break;
	case PRIMARY_DO_BLOCKED:
	case PRIMARY_DO_UNBLOCKED:
		sim_trace(w, "%u: %s %s", lib->host, primary_action_2str(a->type),
			  a->why ? a->why : "");
		break;
	case PRIMARY_DO_DEMOTED:
	case PRIMARY_DO_FENCED:
	case PRIMARY_DO_FAILED:
		lib_on_end(w, lib, a);
		break;
	case PRIMARY_DO_COUNT:
		break;
	}
}

void lib_run(struct world *w, struct lib *lib)
{
	struct primary_action a;
	struct host *h = &w->host[lib->host];

	do {
		while (!lib->ended && !h->stopping && primary_next(&lib->p, &a)) {
			if (w->trace && a.type != PRIMARY_DO_VIEW)
				sim_trace(w, "%u: does %s %u", lib->host,
					  primary_action_2str(a.type), a.slot);
			lib_act(w, lib, &a);
		}
		if (!lib->ended && !h->stopping)
			flush_settle(w, lib);
	} while (!lib->ended && !h->stopping && lib->p.pending);
}

/* ---- members ---- */

void lib_drop(struct world *w, struct lib *lib, unsigned slot)
{
	struct peer *peer = &lib->peers[slot];

	sync_end(w, lib, slot);
	if (lib->flush.members[slot].from)
		flush_miss(w, lib, slot);
	flush_member_end(&lib->flush, slot);
	for (unsigned kind = 0; kind < 3; kind++) {
		if (peer->conn[kind])
			conn_close(w, peer->conn[kind] - 1);
		peer->conn[kind] = 0;
	}
	peer->lane_asked = peer->retires = false;
}

void lib_on_conn_lost(struct world *w, struct lib *lib, uint32_t conn)
{
	unsigned slot = w->conns[conn].to;

	if (lib->ended || lib->peers[slot].conn[w->conns[conn].kind] != conn + 1)
		return;
	sim_trace(w, "%u: loses %u", lib->host, slot);
	primary_tick(&lib->p, host_ms(w, &w->host[lib->host]));
	if (slot == lib->host)
		lib->peers[slot].conn[MEMBER_CONTROL] = 0;
	primary_on_lost(&lib->p, (uint8_t)slot);
}

static void lib_on_ranges(struct world *w, struct lib *lib, unsigned slot, const struct msg *m)
{
	struct peer *peer = &lib->peers[slot];

	/* From now on readers can see unflushed bytes that were placed in this copy, so write these
	 * bytes back. */
	if (slot == lib->host && w->mode != SIM_OWN_COPY_NOT_DURABLE &&
	    !disk_write_back(&w->host[slot].disk, UINT32_MAX)) {
		medium_failed(w, lib, 1);
		return;
	}
	memcpy(peer->ranges, m->ranges, m->count * sizeof(m->ranges[0]));
	peer->range_count = ranges_clip(peer->ranges, m->count, lib->size);
	if (lib->all_count + peer->range_count <= sizeof(lib->all) / sizeof(lib->all[0])) {
		memcpy(lib->all + lib->all_count, peer->ranges,
		       peer->range_count * sizeof(m->ranges[0]));
		lib->all_count = ranges_normalise(lib->all, lib->all_count + peer->range_count);
	}
	primary_on_ranges(&lib->p, (uint8_t)slot);
}

static void lib_on_promised(struct world *w, struct lib *lib, unsigned slot, struct msg *m)
{
	if (slot == lib->host)
		/* this process itself maps the copy, so the report must not name another process
		 * as the holder */
		m->report.held = false;
	m->report.tail_unknown =
		m->size > lib->size && m->unknown && w->mode != SIM_GROW_TAIL_TRUSTED;
	lib->peers[slot].copy_epoch = m->copy_epoch;
	if (slot != lib->host && m->size < lib->size && w->mode != SIM_GROW_SMALLER) {
		sim_trace(w, "%u: %u has %llu bytes", lib->host, slot, (unsigned long long)m->size);
		primary_on_refused(&lib->p, (uint8_t)slot, PRIMARY_REFUSED_BUSY, m->epoch);
		return;
	}
	sim_trace(w, "%u: %u promised, copy %d held %d uncertain %d%s", lib->host, slot,
		  m->report.copy, m->report.held, m->report.uncertain,
		  m->report.tail_unknown ? ", also behind the mapping" : "");
	primary_on_promised(&lib->p, (uint8_t)slot, &m->report);
}

void lib_on_msg(struct world *w, struct lib *lib, uint32_t conn, struct msg *m)
{
	struct conn *c = &w->conns[conn];
	unsigned slot = c->to;

	if (lib->peers[slot].conn[c->kind] != conn + 1)
		return;
	primary_tick(&lib->p, host_ms(w, &w->host[lib->host]));
	if (m->refused) {
		if (m->type != MSG_VIEW && m->type != MSG_RETIRE)
			primary_on_refused(&lib->p, (uint8_t)slot, m->refusal, m->epoch);
		return;
	}
	switch (m->type) {
	case MSG_OPEN:
		if (c->kind != MEMBER_CONTROL)
			sync_on_open(w, lib, slot, c->kind);
		break;
	case MSG_PROMISE:
		lib_on_promised(w, lib, slot, m);
		break;
	case MSG_RANGES:
		if (lib->peers[slot].sync == SYNC_NONE)
			lib_on_ranges(w, lib, slot, m);
		else
			sync_on_msg(w, lib, slot, m);
		break;
	case MSG_FLUSH:
		flush_on_answer(w, lib, slot, m->seq);
		break;
	default:
		sync_on_msg(w, lib, slot, m);
		break;
	}
}
