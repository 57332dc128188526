/* SPDX-License-Identifier: BSD-3-Clause */
/* lib_flush.c -- the application stores and flushes (isolated mapping), and the library sends each
 * flush to the members. */
#include <string.h>

#include "mirror/core/ranges.h"
#include "sim.h"

static bool flush_is_busy(void *arg, uint32_t extent)
{
	const struct lib *lib = arg;
	struct mirror_range range = {extent * (uint64_t)MIRROR_EXTENT, MIRROR_EXTENT};

	for (unsigned i = 0; i < FLIGHTS; i++)
		if (lib->flights[i].seq && words_in(&range) & lib->flights[i].mask)
			return true;
	return false;
}

/* Give the extents hot slots (rule W2 of doc/mirror-format.md). If no slot is free, make other
 * extents cold first (W3). */
static bool flush_activate(struct world *w, struct lib *lib, const struct mirror_range *ranges,
			   uint32_t n)
{
	uint32_t victims[EXTENTS];

	if (w->mode == SIM_HOT_LATE || w->direct || lib->failed_seq)
		return true;
	for (unsigned tries = 0; tries < EXTENTS; tries++) {
		if (lib_mark_hot(w, lib, ranges, n))
			return true;
		uint32_t count = meta_hot_victims(&lib->meta, victims, 1, flush_is_busy, lib);

		if (count == 0 || w->host[lib->host].stopping ||
		    meta_hot_cool(&lib->meta, victims, count))
			return false;
	}
	return false;
}

static void flush_miss_ranges(struct lib *lib, unsigned slot, const struct mirror_range *ranges,
			      uint32_t n)
{
	bits_add(lib->peers[slot].missed, ranges, n);
	for (uint32_t i = 0; i < n; i++)
		meta_bitmap_set(&lib->meta, (uint8_t)slot, ranges[i]);
}

/* The member is lost. It possibly lacks every flush that is not acknowledged yet. */
void flush_miss(struct world *w, struct lib *lib, unsigned slot)
{
	if (w->mode == SIM_OLD_BITS)
		return;
	for (unsigned i = 0; i < FLIGHTS; i++)
		if (lib->flights[i].seq)
			flush_miss_ranges(lib, slot, lib->flights[i].ranges, lib->flights[i].count);
}

/* The write-back covers all parts of the round. */
static void flush_on_written_back(struct world *w, struct lib *lib, uint64_t round)
{
	for (unsigned i = 0; i < FLIGHTS; i++) {
		const struct flight *f = &lib->flights[i];

		if (!f->seq || f->round != round)
			continue;
		if (w->mode == SIM_HOT_LATE)
			lib_mark_hot(w, lib, f->ranges, f->count);
		flush_on_local(&lib->flush, f->seq, true);
	}
}

void flush_written_back(struct world *w, struct event *e)
{
	struct lib *lib = lib_find(w, e->host, e->uid);

	if (!lib || !lib->served)
		return;
	for (unsigned i = 0; i < FLIGHTS; i++) {
		struct flight *f = &lib->flights[i];

		if (f->seq != e->arg)
			continue;
		struct disk *d = &w->host[e->host].disk;
		uint32_t words = words_of_block(parts_own(w, lib, f));

		if (!disk_write_back(d, medium_extent(d, words)))
			medium_failed(w, lib, lib->flush.local + 1);
		flush_on_written_back(w, lib, f->round);
		lib_run(w, lib);
		host_settle(w, &w->host[e->host]);
		return;
	}
}

static void flush_send(struct world *w, struct lib *lib, const struct flight *f)
{
	struct msg m = {.type = MSG_FLUSH,
			.epoch = lib->p.rec.view.epoch,
			.seq = f->seq,
			.acked = lib->flush.retired,
			.mask = f->mask,
			.count = f->count};
	mirror_mask members = flush_members(&lib->flush);

	memcpy(m.words, f->words, sizeof(m.words));
	memcpy(m.ranges, f->ranges, f->count * sizeof(f->ranges[0]));
	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++) {
		struct peer *peer = &lib->peers[slot];

		if (slot == lib->host || !lib->p.rec.config.members[slot].id)
			continue;
		if (members & MIRROR_BIT(slot)) {
			m.cover = parts_cover(w, lib, slot, f);
			conn_send(w, peer->conn[MEMBER_LANE] - 1, &m);
			continue;
		}
		flush_miss_ranges(lib, slot, f->ranges, f->count);
		if (peer->running)
			resync_on_flush(&peer->rs, f->ranges, f->count);
	}
}

static struct flight *flush_free_flight(struct lib *lib)
{
	for (unsigned i = 0; i < FLIGHTS; i++)
		if (!lib->flights[i].seq)
			return &lib->flights[i];
	return NULL;
}

/* Returns true if no resync delays the flush. Call every resync, even after one delays the flush,
 * so that none of them begins to send a block of this flush. */
static bool flush_may_pass(struct lib *lib)
{
	bool pass = true;

	for (unsigned i = 0; i < MIRROR_MEMBERS_MAX; i++) {
		lib->holds[i].ranges = lib->held_ranges;
		lib->holds[i].count = lib->held_count;
		if (lib->peers[i].running)
			pass &= resync_flush_enter(&lib->peers[i].rs, &lib->holds[i]);
	}
	return pass;
}

void flush_try(struct world *w, struct lib *lib)
{
	struct host *h = &w->host[lib->host];
	struct flight *f = flush_free_flight(lib);

	if (!lib->wants_flush || lib->ended || h->stopping || parts_are_early(w, lib))
		return;
	/* If the flush waits for anything other than pieces of resyncs, it must not delay the
	 * resyncs, because it possibly waits for their end. */
	if (!f || !flush_activate(w, lib, lib->held_ranges, lib->held_count) || h->stopping ||
	    !flush_may_pass(lib)) {
		parts_on_wait(w, lib);
		return;
	}
	uint64_t seq = flush_begin(&lib->flush);

	if (!seq) {
		parts_on_wait(w, lib);
		return;
	}
	*f = (struct flight){.seq = seq, .began = w->now, .mask = lib->wanted};
	parts_on_begin(lib, f);
	f->count = lib->held_count;
	memcpy(f->ranges, lib->held_ranges, sizeof(f->ranges));
	memcpy(f->words, w->direct ? h->disk.cache : lib->app, sizeof(f->words));
	for (unsigned i = 0; i < WORDS; i++)
		if (f->mask >> i & 1)
			disk_store(&h->disk, i, f->words[i]);
	w->count.flushes++;
	sim_trace(w, "%u: flush %llu of words %#x to %#x", h->id, (unsigned long long)seq, f->mask,
		  flush_members(&lib->flush));
	direct_on_flush(lib, f);
	flush_send(w, lib, f);
	world_ambush_flush(w, lib->host, 4);
	/* the process can end before other members have the flush */
	world_ambush_process(w, lib->host, 8, 600);
	plan_on_flush(w, lib);
	for (unsigned i = 0; i < MIRROR_MEMBERS_MAX; i++)
		if (lib->peers[i].running)
			resync_flush_leave(&lib->peers[i].rs, &lib->holds[i]);
	if (parts_go_on(w, lib))
		return;
	sched_add(w, sim_between(w, 10, 3 * MS), flush_written_back, lib->host, lib->uid, seq,
		  NULL);
}

void flush_on_answer(struct world *w, struct lib *lib, unsigned slot, uint64_t seq)
{
	(void)w;
	flush_on_done(&lib->flush, slot, seq);
}

static mirror_mask flush_must_have(const struct world *w, const struct lib *lib)
{
	mirror_mask mask = primary_must_have(&lib->p) & (mirror_mask)~MIRROR_BIT(lib->host);

	if (w->mode == SIM_ACK_BEFORE_SHRINK)
		for (unsigned i = 0; i < MIRROR_MEMBERS_MAX; i++)
			if (lib->p.members[i].lost)
				mask &= (mirror_mask)~MIRROR_BIT(i);
	return mask;
}

void flush_want(struct lib *lib, uint32_t words)
{
	lib->wanted = words;
	lib->held_count = ranges_of_words(words, lib->held_ranges);
	lib->held_count = ranges_normalise(lib->held_ranges, lib->held_count);
	lib->wants_flush = words;
}

static void app_want(struct world *w, struct lib *lib)
{
	uint32_t words = 0;
	unsigned from = (unsigned)prng_below(&w->rng, lib->words),
		 n = 1 + (unsigned)prng_below(&w->rng, 4);

	for (unsigned i = from; i < from + n; i++)
		words |= 1u << i % lib->words;
	words |= direct_wants(lib);
	parts_want(w, lib, words);
}

static void flush_quiesced(struct world *w, struct lib *lib)
{
	uint32_t extents[EXTENTS], n;

	(void)w;
	lib->quiescing = false;
	n = meta_hot_list(&lib->meta, extents, EXTENTS);
	bool clean = !lib->failed_seq && meta_hot_cool(&lib->meta, extents, n) == 0;

	primary_on_quiesced(&lib->p, clean);
}

void flush_settle(struct world *w, struct lib *lib)
{
	bool busy = lib->wants_flush;

	if (!lib->served)
		return;
	if (primary_may_ack(&lib->p) || w->mode == SIM_ACK_BEFORE_SHRINK) {
		uint64_t acked =
			medium_acked(w, lib, flush_acked(&lib->flush, flush_must_have(w, lib)));

		for (unsigned i = 0; i < FLIGHTS; i++) {
			struct flight *f = &lib->flights[i];

			if (!f->seq || f->seq > acked)
				continue;
			if (medium_is_durable(w, lib, f->seq))
				oracle_on_ack(w, f);
			f->seq = 0;
		}
		flush_retire(&lib->flush, acked);
		direct_on_acked(lib);
	}
	sync_on_acked(w, lib);
	flush_try(w, lib);
	for (unsigned i = 0; i < FLIGHTS; i++)
		busy |= lib->flights[i].seq != 0;
	if (lib->quiescing && !busy && w->direct && direct_end(lib))
		app_want(w, lib);
	else if (lib->quiescing && (!busy || w->mode == SIM_CLEAN_TOO_EARLY))
		flush_quiesced(w, lib);
}

void flush_check_timeouts(struct world *w, struct lib *lib)
{
	uint64_t limit = lib->p.rec.config.replica_timeout_ms * MS;
	mirror_mask lacking = 0;

	for (unsigned i = 0; i < FLIGHTS; i++) {
		const struct flight *f = &lib->flights[i];

		if (f->seq && w->now - f->began > limit)
			lacking |= flush_lacking(&lib->flush, f->seq, flush_must_have(w, lib));
	}
	for (uint8_t slot = 0; slot < MIRROR_MEMBERS_MAX; slot++)
		if (lacking & MIRROR_BIT(slot) && lib->flush.members[slot].from &&
		    !lib->flush.members[slot].owes)
			primary_on_lost(&lib->p, slot);
}

/* ---- the application ---- */

void app_hurry(struct world *w, struct lib *lib)
{
	if (lib->app_runs && !lib->wants_flush) {
		app_want(w, lib);
		flush_try(w, lib);
	}
}

void app_step(struct world *w, struct event *e)
{
	struct lib *lib = lib_find(w, e->host, e->uid);
	unsigned stores = 1 + (unsigned)prng_below(&w->rng, 4);

	if (!lib || !lib->app_runs)
		return;
	for (unsigned i = 0; i < stores; i++) {
		unsigned word = (unsigned)prng_below(&w->rng, lib->words);

		uint64_t value = value_make(word, lib->p.rec.view.epoch.number, ++lib->app_seq);

		if (w->direct)
			direct_store(w, lib, word, value);
		else
			lib->app[word] = value;
	}
	if (!lib->wants_flush) {
		app_want(w, lib);
		lib_run(w, lib);
	}
	host_settle(w, &w->host[e->host]);
	sched_add(w, sim_between(w, 100, sim_chance(w, 300) ? 60 * MS : 6 * MS), app_step, e->host,
		  e->uid, 0, NULL);
}
