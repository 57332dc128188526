/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * parts.c -- flushes in parts, as src/mirror/flush.c makes them. Each part has a number and an
 * intent. After several parts, each lane gets one flush operation, and this host's file is written
 * back once. Time passes between two parts, and another thread can begin a flush.
 *
 * These runs use separate random numbers, so that all other runs do not change.
 */
#include "sim.h"

void parts_choose(struct world *w)
{
	w->in_parts = prng_below(&w->parts_rng, 1000) < 200 ||
		      (w->mode >= SIM_PART_NOT_COVERED && w->mode <= SIM_PARTS_WAIT);
}

static uint32_t parts_extent(uint32_t words)
{
	return meta_extent_of(word_offset((unsigned)__builtin_ctz(words)));
}

/* Take at least one of these words, from the first on, all in one extent, because only a few
 * extents can be hot at the same time. */
static uint32_t parts_first(struct world *w, uint32_t words)
{
	uint32_t part = 0, extent = parts_extent(words);

	do {
		part |= words & -words;
		words &= words - 1;
	} while (words && parts_extent(words) == extent && prng_below(&w->parts_rng, 1000) < 500);
	return part;
}

void parts_want(struct world *w, struct lib *lib, uint32_t words)
{
	uint32_t first = words;

	/* An extent that becomes cold must be flushed as a whole, not in parts. */
	if (w->in_parts && !direct_wants(lib)) {
		for (unsigned i = (unsigned)prng_below(&w->parts_rng, 8); i; i--)
			words |= 1u << prng_below(&w->parts_rng, lib->words);
		first = parts_first(w, words);
	}
	lib->parts = (struct parts){.later = words & ~first};
	flush_want(lib, first);
}

bool parts_are_early(const struct world *w, const struct lib *lib)
{
	return w->now < lib->parts.not_before;
}

static const struct flight *parts_last(const struct lib *lib)
{
	const struct flight *last = NULL;

	for (unsigned i = 0; i < FLIGHTS; i++)
		if (lib->flights[i].seq && lib->flights[i].round == lib->parts.round &&
		    (!last || lib->flights[i].seq > last->seq))
			last = &lib->flights[i];
	return last;
}

/* The flushing thread has to wait, possibly until the earlier parts are durable, so flush them. */
void parts_on_wait(struct world *w, struct lib *lib)
{
	const struct flight *last = lib->parts.round ? parts_last(lib) : NULL;
	mirror_mask members = flush_members(&lib->flush);

	if (!last || w->mode == SIM_PARTS_WAIT)
		return;
	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++) {
		struct msg m = {
			.type = MSG_FLUSH, .epoch = lib->p.rec.view.epoch, .seq = lib->flush.begun};
		struct mirror_range span = {0, 0};

		if (members & MIRROR_BIT(slot))
			span = flush_cover(&lib->flush, slot);
		m.cover = span.len ? words_in(&span) : 0;
		if (m.cover)
			conn_send(w, lib->peers[slot].conn[MEMBER_LANE] - 1, &m);
	}
	lib->parts.round = 0;
	sched_add(w, prng_between(&w->parts_rng, 10, 3 * MS), flush_written_back, lib->host,
		  lib->uid, last->seq, NULL);
}

void parts_on_begin(struct lib *lib, struct flight *f)
{
	bool is_alone = lib->parts.is_between || (!lib->parts.later && !lib->parts.round);

	if (!is_alone && !lib->parts.round)
		lib->parts.round = f->seq;
	f->round = is_alone ? f->seq : lib->parts.round;
}

uint32_t parts_cover(const struct world *w, struct lib *lib, unsigned slot, const struct flight *f)
{
	bool is_alone = !lib->flush.members[slot].placed_to;
	struct mirror_range span;

	for (uint32_t i = 0; i < f->count; i++)
		flush_on_placed(&lib->flush, slot, f->ranges[i]);
	if (lib->parts.later && !lib->parts.is_between)
		return 0;
	span = flush_cover(&lib->flush, slot);
	return is_alone || w->mode == SIM_PART_NOT_COVERED ? f->mask : words_in(&span);
}

static void parts_due(struct world *w, struct event *e)
{
	struct lib *lib = lib_find(w, e->host, e->uid);

	if (!lib || !lib->served)
		return;
	lib_run(w, lib);
	host_settle(w, &w->host[e->host]);
}

bool parts_go_on(struct world *w, struct lib *lib)
{
	struct parts *p = &lib->parts;
	bool is_between = p->is_between, is_open = p->later && !is_between;

	p->is_between = false;
	if (is_between) {
		flush_want(lib, p->aside);
	} else if (p->later && prng_below(&w->parts_rng, 1000) < 300) {
		p->is_between = true;
		p->aside = parts_first(w, p->later);
		p->later &= ~p->aside;
		flush_want(lib, 1u << prng_below(&w->parts_rng, lib->words));
	} else {
		uint32_t next = p->later ? parts_first(w, p->later) : 0;

		p->later &= ~next;
		flush_want(lib, next);
	}
	if (!lib->wants_flush) {
		p->round = 0;
	} else {
		uint64_t delay = prng_between(&w->parts_rng, 1, 2 * MS);

		p->not_before = w->now + delay;
		sched_add(w, delay, parts_due, lib->host, lib->uid, 0, NULL);
	}
	return is_open;
}

uint32_t parts_own(const struct world *w, const struct lib *lib, const struct flight *f)
{
	uint32_t words = f->mask;

	for (unsigned i = 0; i < FLIGHTS && w->mode != SIM_PART_NOT_WRITTEN_BACK; i++)
		if (lib->flights[i].seq && lib->flights[i].round == f->round)
			words |= lib->flights[i].mask;
	return words;
}
