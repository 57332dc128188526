/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib_sync.c -- makes a member equal to the primary's copy, with the product's core/resync.h. (W4,
 * W5 and W9 are rules in doc/mirror-format.md; a lane is the connection that carries flushes.)
 *
 *   EQUALISE   Record the ranges of all reports (W9), copy them, and open the lane. The member is
 *              then equal.
 *   REPAIR     The member is in S, and the primary serves: record the missing blocks, open the
 *              lane, which carries flushes from now on, and copy. The member is then equal.
 *   CATCH_UP   Begin (W4). Choose the member's own ranges and the bitmap, or compare all bytes by
 *              digests. Copy in passes, open the lane, and join. Copy the rest, clear the bitmap,
 *              and end (W5). The member has then joined.
 */
#include <string.h>

#include "mirror/core/ranges.h"
#include "sim.h"

static struct mirror_range whole_file(const struct lib *lib)
{
	return (struct mirror_range){0, lib->size};
}

static void sync_send(struct world *w, struct lib *lib, unsigned slot, struct msg *m)
{
	struct peer *peer = &lib->peers[slot];

	m->epoch = lib->p.rec.view.epoch;
	m->sync = peer->sync_id;
	conn_send(w, peer->conn[m->type == MSG_PIECE ? MEMBER_BULK : MEMBER_CONTROL] - 1, m);
}

static void sync_open(struct world *w, struct lib *lib, unsigned slot, enum member_kind kind)
{
	lib->peers[slot].conn[kind] = conn_open(w, lib, (uint8_t)slot, kind) + 1;
}

static void sync_record(struct world *w, struct lib *lib, unsigned slot,
			const struct mirror_range *ranges, uint32_t n)
{
	struct mirror_range whole = whole_file(lib);
	struct msg m = {.type = MSG_RECORD};

	if (n > MSG_RANGES_MAX) {
		ranges = &whole;
		n = 1;
	}
	m.count = n;
	memcpy(m.ranges, ranges, n * sizeof(*ranges));
	sync_send(w, lib, slot, &m);
}

/* The primary's copy also records the ranges before the first byte is sent, because the target can
 * become a candidate later. */
static void sync_record_here(struct world *w, struct lib *lib, const struct mirror_range *ranges,
			     uint32_t n)
{
	struct host *h = &w->host[lib->host];
	struct member_verdict v;

	if (w->mode == SIM_RANGES_NOT_RECORDED || n == 0)
		return;
	if (!lib_mark_hot(w, lib, ranges, n) && h->daemon_uid && !h->stopping)
		member_set_uncertain(&h->member, &v);
}

static uint32_t sync_missed(const struct peer *peer, struct mirror_range *ranges)
{
	uint32_t n = 0;

	for (uint64_t b = 0; b < BITMAP_WORDS * 64 && n < MSG_RANGES_MAX; b++)
		if (peer->missed[b / 64] && peer->missed[b / 64] >> b % 64 & 1)
			ranges[n++] = (struct mirror_range){b * MIRROR_BLOCK, MIRROR_BLOCK};
	return n;
}

void sync_begin(struct world *w, struct lib *lib, unsigned slot, enum sync_kind kind, bool whole)
{
	struct peer *peer = &lib->peers[slot];
	struct mirror_range missed[MSG_RANGES_MAX], all = whole_file(lib);
	struct msg begin = {.type = MSG_BEGIN, .seq = lib->p.rec.config.members[lib->host].id};

	peer->sync = kind;
	peer->sync_id = ++lib->next_sync;
	peer->whole = whole;
	peer->running = peer->lane_asked = peer->ending = false;
	memset(peer->bits, 0, sizeof(peer->bits));
	memset(peer->unsure, 0, sizeof(peer->unsure));
	sim_trace(w, "%u: sync %d of %u%s", lib->host, kind, slot, whole ? ", whole" : "");
	if (kind == SYNC_EQUALISE) {
		const struct mirror_range *ranges = whole ? &all : lib->all;
		uint32_t n = whole ? 1 : lib->all_count;

		plan_on_equalise(w, lib, slot);
		if (w->mode == SIM_NO_EQUALISE)
			n = 0;
		sync_record_here(w, lib, ranges, n);
		sync_record(w, lib, slot, ranges, n);
	} else if (kind == SYNC_REPAIR) {
		w->count.repairs++;
		sync_record(w, lib, slot, missed, sync_missed(peer, missed));
	} else {
		world_ambush_member(w, lib->host,
				    flush_members(&lib->flush) & (mirror_mask)~MIRROR_BIT(slot),
				    100);
		sync_send(w, lib, slot, &begin);
	}
}

void sync_end(struct world *w, struct lib *lib, unsigned slot)
{
	struct peer *peer = &lib->peers[slot];

	(void)w;
	peer->running = false;
	peer->sync = SYNC_NONE;
	peer->sync_id = ++lib->next_sync;
}

/* Set the bits of the ranges that can differ. */
static void sync_fill(struct lib *lib, unsigned slot)
{
	struct peer *peer = &lib->peers[slot];
	struct mirror_range run, whole = whole_file(lib);

	if (peer->whole) {
		bits_add(peer->bits, &whole, 1);
		bits_add(peer->unsure, &whole, 1);
		return;
	}
	for (unsigned i = 0; i < BITMAP_WORDS; i++)
		peer->bits[i] |= peer->missed[i];
	if (peer->sync == SYNC_EQUALISE)
		bits_add(peer->bits, lib->all, lib->all_count);
	if (peer->sync != SYNC_CATCH_UP)
		return;
	bits_add(peer->bits, peer->ranges, peer->range_count);
	for (uint64_t from = 0; meta_bitmap_next(&lib->meta, (uint8_t)slot, from, lib->size, &run);
	     from = run.offset + run.len)
		bits_add(peer->bits, &run, 1);
}

/*
 * Store the bits of all blocks to send in the bitmap, so that the resync continues after either
 * side restarts.
 */
static void sync_store_bits(struct lib *lib, unsigned slot)
{
	const struct peer *peer = &lib->peers[slot];

	meta_bitmap_start(&lib->meta, (uint8_t)slot, peer->copy_epoch, lib->p.rec.view.epoch,
			  peer->bits);
}

static void sync_run(struct world *w, struct lib *lib, unsigned slot)
{
	struct peer *peer = &lib->peers[slot];
	struct resync_config config = {.size = lib->size,
				       .bits = peer->bits,
				       .unsure = peer->unsure,
				       .piece = RESYNC_PIECE_MIN,
				       .limits = {.min_rate = 1ull << 40}};

	sync_fill(lib, slot);
	if (peer->sync == SYNC_CATCH_UP)
		sync_store_bits(lib, slot);
	if (peer->sync == SYNC_EQUALISE && w->mode == SIM_NO_EQUALISE)
		memset(peer->bits, 0, sizeof(peer->bits));
	if (peer->sync == SYNC_CATCH_UP && w->mode == SIM_EXPAND_UNEQUAL)
		memset(peer->bits, 0, sizeof(peer->bits));
	resync_init(&peer->rs, peer->sync == SYNC_EQUALISE ? RESYNC_EQUALISE : RESYNC_CATCH_UP,
		    &config, host_us(w, &w->host[lib->host]));
	if (peer->sync == SYNC_REPAIR)
		resync_join(&peer->rs, host_us(w, &w->host[lib->host]));
	peer->running = true;
	sync_pump(w, lib, slot);
}

/* Clear the stored bits of blocks that have become equal. */
static void sync_unset(struct lib *lib, unsigned slot, const struct resync_piece *p)
{
	const uint64_t *bits = lib->peers[slot].bits;

	for (unsigned i = 0; i < 64 && (uint64_t)i * MIRROR_BLOCK < p->len; i++) {
		uint64_t b = p->offset / MIRROR_BLOCK + i;

		if (!(bits[b / 64] >> b % 64 & 1))
			meta_bitmap_unset(&lib->meta, (uint8_t)slot,
					  (struct mirror_range){b * MIRROR_BLOCK, MIRROR_BLOCK});
	}
}

static void sync_send_piece(struct world *w, struct lib *lib, unsigned slot,
			    const struct resync_piece *p)
{
	const struct disk *disk = &w->host[lib->host].disk;
	struct msg m = {.type = MSG_PIECE, .piece = *p};

	for (unsigned i = 0; i < 64 && (uint64_t)i * MIRROR_BLOCK < p->len; i++) {
		struct mirror_range block = {p->offset + i * (uint64_t)MIRROR_BLOCK, MIRROR_BLOCK};

		if (p->blocks >> i & 1 || p->op == RESYNC_OP_COMPARE)
			m.mask |= words_in(&block);
	}
	memcpy(m.words, disk->cache, sizeof(m.words));
	sync_send(w, lib, slot, &m);
}

/*
 * The resync can have copied parts of unacknowledged flushes, for which the member has no intent.
 * Record these flushes at the member before it is allowed to enter S, and keep the records until
 * the flushes are acknowledged.
 */
static void sync_record_carried(struct world *w, struct lib *lib, unsigned slot)
{
	struct mirror_range ranges[(FLIGHTS + 1) * BLOCKS];
	uint32_t n = 0;

	for (unsigned i = 0; i < FLIGHTS && w->mode != SIM_JOIN_UNSETTLED; i++) {
		const struct flight *f = &lib->flights[i];

		if (!f->seq)
			continue;
		memcpy(ranges + n, f->ranges, f->count * sizeof(*ranges));
		n += f->count;
	}
	n += direct_carried(w, lib, ranges + n);
	lib->peers[slot].settled = lib->flush.begun;
	direct_settle(w, lib, slot);
	sync_record(w, lib, slot, ranges, ranges_normalise(ranges, n));
}

static bool sync_has_settled(const struct world *w, const struct lib *lib, unsigned slot)
{
	return lib->flush.retired >= lib->peers[slot].settled || w->mode == SIM_JOIN_UNSETTLED;
}

void sync_retire(struct world *w, struct lib *lib, unsigned slot)
{
	lib->peers[slot].retires = true;
	sync_on_acked(w, lib);
}

void sync_on_acked(struct world *w, struct lib *lib)
{
	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++) {
		struct peer *peer = &lib->peers[slot];
		struct msg m = {.type = MSG_RETIRE, .epoch = lib->p.rec.view.epoch};

		if (!peer->retires || !sync_has_settled(w, lib, slot))
			continue;
		peer->retires = false;
		if (peer->conn[MEMBER_CONTROL])
			conn_send(w, peer->conn[MEMBER_CONTROL] - 1, &m);
	}
}

static void sync_equal(struct world *w, struct lib *lib, unsigned slot)
{
	struct peer *peer = &lib->peers[slot];
	struct msg end = {.type = MSG_END};

	if (peer->sync == SYNC_REPAIR) {
		memset(peer->missed, 0, sizeof(peer->missed));
		flush_member_paid(&lib->flush, slot);
		peer->settled = lib->flush.begun;
		direct_settle(w, lib, slot);
		sync_end(w, lib, slot);
		primary_on_equal(&lib->p, (uint8_t)slot);
	} else if (peer->sync == SYNC_EQUALISE && !peer->lane_asked) {
		peer->lane_asked = true;
		sync_open(w, lib, slot, MEMBER_LANE);
	} else if (peer->sync == SYNC_CATCH_UP && !peer->ending) {
		peer->ending = true;
		memset(peer->missed, 0, sizeof(peer->missed));
		meta_bitmap_clear(&lib->meta, (uint8_t)slot, lib->p.rec.view.epoch);
		sync_send(w, lib, slot, &end);
	}
}

/* Sometimes delay flushes at the other members, so that for some time only this member has them. */
static void sync_stall_others(struct world *w, struct lib *lib, unsigned slot)
{
	uint64_t delay = sim_between(w, 20 * MS, 250 * MS);

	if (w->healing || !sim_chance(w, 200))
		return;
	for (unsigned i = 0; i < MIRROR_MEMBERS_MAX; i++)
		if (i != slot && lib->peers[i].conn[MEMBER_LANE])
			conn_stall(w, lib->peers[i].conn[MEMBER_LANE] - 1, delay);
}

void sync_pump(struct world *w, struct lib *lib, unsigned slot)
{
	struct peer *peer = &lib->peers[slot];
	struct resync_piece piece;
	uint64_t wake;

	while (peer->running && !w->host[lib->host].stopping) {
		enum resync_step step =
			resync_next(&peer->rs, host_us(w, &w->host[lib->host]), &piece, &wake);

		if (step == RESYNC_WAITS)
			return;
		if (step == RESYNC_HAS_PIECE) {
			sync_send_piece(w, lib, slot, &piece);
			if (w->mode == SIM_BITS_CLEARED_EARLY)
				meta_bitmap_unset(&lib->meta, (uint8_t)slot,
						  (struct mirror_range){piece.offset, piece.len});
			continue;
		}
		if (step == RESYNC_MAY_JOIN && !peer->lane_asked) {
			peer->lane_asked = true;
			sync_stall_others(w, lib, slot);
			plan_on_join(w, lib, slot);
			sync_open(w, lib, slot, MEMBER_LANE);
		} else if (step == RESYNC_ENDED) {
			sync_equal(w, lib, slot);
		}
		return;
	}
}

void sync_on_open(struct world *w, struct lib *lib, unsigned slot, enum member_kind kind)
{
	struct peer *peer = &lib->peers[slot];

	if (kind == MEMBER_BULK) {
		if (peer->sync == SYNC_REPAIR) {
			peer->lane_asked = true;
			sync_open(w, lib, slot, MEMBER_LANE);
		} else if (peer->sync != SYNC_NONE) {
			sync_run(w, lib, slot);
			if (peer->sync == SYNC_EQUALISE && w->mode == SIM_SERVE_UNEQUAL)
				sync_equal(w, lib, slot);
		}
	} else if (peer->sync == SYNC_EQUALISE) {
		struct msg retire = {.type = MSG_RETIRE};

		if (w->mode == SIM_RETIRE_EARLY)
			sync_send(w, lib, slot, &retire);
		sync_end(w, lib, slot);
		primary_on_equal(&lib->p, (uint8_t)slot);
		plan_on_equal(w, lib);
	} else if (peer->sync == SYNC_REPAIR) {
		flush_member_begin(&lib->flush, slot, true);
		sync_run(w, lib, slot);
	} else if (peer->sync == SYNC_CATCH_UP) {
		w->count.joins++;
		primary_on_joining(&lib->p, (uint8_t)slot);
		flush_member_begin(&lib->flush, slot, false);
		resync_join(&peer->rs, host_us(w, &w->host[lib->host]));
		sync_pump(w, lib, slot);
	}
}

static void sync_on_piece(struct world *w, struct lib *lib, unsigned slot, struct msg *m)
{
	struct peer *peer = &lib->peers[slot];
	uint64_t now = host_us(w, &w->host[lib->host]);
	struct resync_piece done = m->piece;

	if (!peer->running)
		return;
	primary_on_progress(&lib->p, (uint8_t)slot);
	if (m->piece.op == RESYNC_OP_COPY) {
		resync_done(&peer->rs, &m->piece, true, now);
	} else if (resync_compared(&peer->rs, &m->piece, m->differing, now)) {
		sync_send_piece(w, lib, slot, &m->piece);
		return;
	}
	if (peer->sync == SYNC_CATCH_UP)
		sync_unset(lib, slot, &done);
	sync_pump(w, lib, slot);
	flush_try(w, lib);
}

void sync_on_msg(struct world *w, struct lib *lib, unsigned slot, struct msg *m)
{
	struct peer *peer = &lib->peers[slot];
	struct msg ranges = {.type = MSG_RANGES};

	if (peer->sync == SYNC_NONE || m->sync != peer->sync_id)
		return;
	if (m->type == MSG_BEGIN) {
		sync_send(w, lib, slot, &ranges);
	} else if (m->type == MSG_RECORD && peer->ending) {
		sync_end(w, lib, slot);
		primary_on_joined(&lib->p, (uint8_t)slot);
	} else if (m->type == MSG_RECORD) {
		sync_open(w, lib, slot, MEMBER_BULK);
	} else if (m->type == MSG_RANGES) {
		memcpy(peer->ranges, m->ranges, m->count * sizeof(m->ranges[0]));
		peer->range_count = ranges_clip(peer->ranges, m->count, lib->size);
		sync_open(w, lib, slot, MEMBER_BULK);
	} else if (m->type == MSG_END) {
		peer->running = false;
		sync_record_carried(w, lib, slot);
	} else if (m->type == MSG_PIECE) {
		sync_on_piece(w, lib, slot, m);
	}
}
