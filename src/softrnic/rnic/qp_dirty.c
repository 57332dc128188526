/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What this stream placed and has not written back: a few intervals for each region. It is what a
 * Flush of everything has to write back, and, of a peer whose user knows no flush, a Read. The
 * number of regions is up to the local user, so it bounds the list. Neighbours become one
 * interval, as writing back what is clean costs little.
 */
#include <stdlib.h>

#include "softrnic/rnic/qp_impl.h"

#define NEAR 65536u /* a gap not worth an interval of its own */

/* The entry moves to the front: a stream mostly writes where it wrote last. */
static struct dirty_region *find(struct qp_dirty *d, uint32_t stag)
{
	for (uint32_t i = 0; i < d->count; i++) {
		struct dirty_region found;

		if (d->region[i].stag != stag)
			continue;
		if (i == 0)
			return &d->region[0];
		found = d->region[i];
		d->region[i] = d->region[0];
		d->region[0] = found;
		return &d->region[0];
	}
	return NULL;
}

static struct dirty_region *add(struct qp_dirty *d, uint32_t stag)
{
	if (d->count == d->room) {
		uint32_t room = d->room ? 2 * d->room : 4;
		struct dirty_region *more = realloc(d->region, room * sizeof(*more));

		if (!more)
			return NULL;
		d->region = more;
		d->room = room;
	}
	d->region[d->count] = (struct dirty_region){.stag = stag};
	return &d->region[d->count++];
}

static void drop(struct qp_dirty *d, struct dirty_region *r)
{
	*r = d->region[--d->count];
}

/* --- intervals of one region -------------------------------------------------------------- */

static uint64_t gap(const struct dirty_range *a, const struct dirty_range *b)
{
	if (a->hi < b->lo)
		return b->lo - a->hi;
	return b->hi < a->lo ? a->lo - b->hi : 0;
}

static struct dirty_range hull(const struct dirty_range *a, const struct dirty_range *b)
{
	return (struct dirty_range){
		.lo = a->lo < b->lo ? a->lo : b->lo,
		.hi = a->hi > b->hi ? a->hi : b->hi,
	};
}

static void merge(struct dirty_region *r, uint32_t a, uint32_t b)
{
	r->range[a] = hull(&r->range[a], &r->range[b]);
	r->range[b] = r->range[--r->count];
}

/* What is already there and near, or NULL. */
static struct dirty_range *near(struct dirty_region *r, const struct dirty_range *what)
{
	for (uint32_t i = 0; i < r->count; i++)
		if (gap(&r->range[i], what) <= NEAR)
			return &r->range[i];
	return NULL;
}

/* All places are taken: the two that are nearest to each other become one. */
static void make_room(struct dirty_region *r)
{
	uint64_t least = UINT64_MAX;
	uint32_t a = 0, b = 1;

	for (uint32_t i = 0; i < r->count; i++) {
		for (uint32_t j = i + 1; j < r->count; j++) {
			uint64_t g = gap(&r->range[i], &r->range[j]);

			if (g >= least)
				continue;
			least = g;
			a = i;
			b = j;
		}
	}
	merge(r, a, b);
}

static void mark(struct dirty_region *r, const struct dirty_range *what)
{
	struct dirty_range *there = near(r, what);

	if (there) {
		*there = hull(there, what);
		return;
	}
	if (r->count == DIRTY_RANGES)
		make_room(r);
	r->range[r->count++] = *what;
}

/* What is taken out of the middle of an interval stays in it. */
static void unmark(struct dirty_region *r, const struct dirty_range *what)
{
	for (uint32_t i = r->count; i-- > 0;) {
		struct dirty_range *have = &r->range[i];

		if (what->lo <= have->lo && what->hi >= have->hi)
			*have = r->range[--r->count];
		else if (what->lo <= have->lo && what->hi > have->lo)
			have->lo = what->hi;
		else if (what->hi >= have->hi && what->lo < have->hi)
			have->hi = what->lo;
	}
}

/* --- for the queue pair ------------------------------------------------------------------- */

/*
 * A receive buffer that nobody can reach from afar and that cannot persist is no concern of a
 * Flush; everything else is, also memory that cannot persist, which a strict Flush refuses.
 */
static bool matters(const struct qp *qp, const struct mr *mr)
{
	if (!mr->persist)
		return false;
	if (qp->stream.consent && (mr->durable || mr->access & RNIC_REMOTE_ACCESS))
		return true;
	return !qp->stream.peer_flushes && mr->access & IBV_ACCESS_REMOTE_READ;
}

void qp_dirty_note(struct qp *qp, const struct mr *mr, const void *at, uint64_t len)
{
	uint64_t lo = (uintptr_t)at - (uintptr_t)mr->ibv.addr;
	struct dirty_range what = {.lo = lo, .hi = lo + len};
	struct dirty_region *r;

	if (!matters(qp, mr))
		return;
	r = find(&qp->dirty, mr->ibv.rkey);
	if (!r)
		r = add(&qp->dirty, mr->ibv.rkey);
	if (r)
		mark(r, &what);
	else if (qp->stream.peer_flushes)
		qp->dirty.lost = true;
	else /* its Reads would have to flush everything */
		qp_refuse(qp, TERM_DDP_LOCAL_CATASTROPHIC, NULL, 0, NULL);
}

void qp_dirty_clean(struct qp *qp, const struct mr *mr, const void *at, uint64_t len)
{
	uint64_t lo = (uintptr_t)at - (uintptr_t)mr->ibv.addr;
	struct dirty_range what = {.lo = lo, .hi = lo + len};
	struct dirty_region *r = find(&qp->dirty, mr->ibv.rkey);

	if (!r)
		return;
	unmark(r, &what);
	if (r->count == 0)
		drop(&qp->dirty, r);
}

bool qp_dirty_take(struct qp *qp, uint32_t stag, struct dirty_range *all)
{
	struct dirty_region *r = find(&qp->dirty, stag);

	if (!r)
		return false;
	*all = r->range[0];
	for (uint32_t i = 1; i < r->count; i++)
		*all = hull(all, &r->range[i]);
	drop(&qp->dirty, r);
	return true;
}

bool qp_dirty_next(struct qp_dirty *d, uint32_t *stag, struct dirty_range *range)
{
	struct dirty_region *r;

	if (d->count == 0)
		return false;
	r = &d->region[d->count - 1];
	*stag = r->stag;
	*range = r->range[--r->count];
	if (r->count == 0)
		d->count--;
	return true;
}

void qp_dirty_move(struct qp_dirty *to, struct qp_dirty *from)
{
	struct qp_dirty empty = *to;

	empty.count = 0;
	empty.lost = false;
	*to = *from;
	*from = empty;
}

void qp_dirty_forget(struct qp_dirty *d, uint32_t stag)
{
	struct dirty_region *r = find(d, stag);

	if (!r)
		return;
	drop(d, r);
	d->lost = true;
}

void qp_dirty_fini(struct qp_dirty *d)
{
	free(d->region);
	*d = (struct qp_dirty){.region = NULL};
}
