/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What this stream placed and has not written back: a few intervals for each region. It is what a
 * Flush of everything has to write back, and, of a peer whose user knows no flush, any Read: the
 * same bytes may be reached through several registrations. Neighbours become one interval, as
 * writing back what is clean costs little.
 *
 * A region stays in the list when it is deregistered, for its bytes may be written back all the
 * same. How many regions there are is up to the local user, so it bounds the list; so that
 * deregistered ones do so too, they are given up when they become many.
 */
#include <stdlib.h>

#include "softrnic/rnic/qp_impl.h"

#define NEAR 65536u /* a gap not worth an interval of its own */
#define MANY 1024u

/* The entry moves to the front: a stream mostly writes where it wrote last. */
static struct dirty_region *find(struct qp_dirty *d, const struct mr *mr)
{
	for (uint32_t i = 0; i < d->count; i++) {
		struct dirty_region found;

		if (d->region[i].mr != mr)
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

static void drop(struct qp_dirty *d, struct dirty_region *r)
{
	mr_unref(r->mr);
	*r = d->region[--d->count];
}

static void lose(struct qp_dirty *d, struct dirty_region *r)
{
	d->lost = true;
	d->lost_durable |= r->mr->backing.durable;
	drop(d, r);
}

static void lose_deregistered(struct qp_dirty *d)
{
	for (uint32_t i = d->count; i-- > 0;)
		if (mr_is_dead(d->region[i].mr))
			lose(d, &d->region[i]);
}

static struct dirty_region *append(struct qp_dirty *d)
{
	if (d->count == d->room) {
		uint32_t room = d->room ? 2 * d->room : 4;
		struct dirty_region *more = realloc(d->region, room * sizeof(*more));

		if (!more)
			return NULL;
		d->region = more;
		d->room = room;
	}
	return &d->region[d->count++];
}

static struct dirty_region *add(struct qp_dirty *d, struct mr *mr)
{
	struct dirty_region *r;

	if (d->count == d->room && d->room >= MANY)
		lose_deregistered(d);
	r = append(d);
	if (!r)
		return NULL;
	*r = (struct dirty_region){.mr = mr};
	mr_ref(mr);
	return r;
}

static void clear(struct qp_dirty *d)
{
	while (d->count > 0)
		drop(d, &d->region[d->count - 1]);
	d->lost = d->lost_durable = d->failed = false;
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
 * Flush; everything else is, also memory that cannot persist, which a strict Flush refuses. To a
 * Read only what can persist matters.
 */
static bool matters(const struct qp *qp, const struct mr *mr)
{
	if (!mr->backing.persist)
		return false;
	if (mr->backing.durable)
		return qp->stream.consent || !qp->stream.peer_flushes;
	return qp->stream.consent && mr->access & RNIC_REMOTE_ACCESS;
}

static struct dirty_range range_of(const struct mr *mr, const void *at, uint64_t len)
{
	uint64_t lo = (uintptr_t)at - (uintptr_t)mr->ibv.addr;

	return (struct dirty_range){.lo = lo, .hi = lo + len};
}

void qp_dirty_note(struct qp *qp, struct mr *mr, const void *at, uint64_t len)
{
	struct dirty_range what = range_of(mr, at, len);
	struct dirty_region *r;

	if (!matters(qp, mr))
		return;
	r = find(&qp->dirty, mr);
	if (!r)
		r = add(&qp->dirty, mr);
	if (r)
		mark(r, &what);
	else if (qp->stream.peer_flushes)
		qp->dirty.lost = true;
	else /* its Reads would have to flush everything */
		qp_refuse(qp, TERM_DDP_LOCAL_CATASTROPHIC, NULL, 0, NULL);
}

void qp_dirty_clean(struct qp *qp, const struct mr *mr, const void *at, uint64_t len)
{
	struct dirty_range what = range_of(mr, at, len);
	struct dirty_region *r = find(&qp->dirty, mr);

	if (!r)
		return;
	unmark(r, &what);
	if (r->count == 0)
		drop(&qp->dirty, r);
}

struct mr *qp_dirty_next(struct qp_dirty *d, struct dirty_range *range)
{
	struct dirty_region *r;
	struct mr *mr;

	if (d->count == 0)
		return NULL;
	r = &d->region[d->count - 1];
	mr = r->mr;
	*range = r->range[--r->count];
	if (r->count == 0)
		d->count--; /* its reference is the caller's now */
	else
		mr_ref(mr);
	return mr;
}

void qp_dirty_move(struct qp_dirty *to, struct qp_dirty *from)
{
	struct qp_dirty empty;

	clear(to);
	empty = *to;
	*to = *from;
	*from = empty;
}

/* All intervals of a region as one: a Read has no use for finer ones. */
static void unite(struct dirty_region *r)
{
	while (r->count > 1)
		merge(r, 0, r->count - 1);
}

bool qp_dirty_move_durable(struct qp_dirty *to, struct qp_dirty *from)
{
	clear(to);
	for (uint32_t i = from->count; i-- > 0;) {
		struct dirty_region *r = &from->region[i], *moved;

		if (!r->mr->backing.durable)
			continue;
		moved = append(to);
		if (!moved)
			return false;
		*moved = *r;
		unite(moved);
		*r = from->region[--from->count];
	}
	return true;
}

void qp_dirty_forget(struct qp_dirty *d, const struct mr *mr)
{
	struct dirty_region *r = find(d, mr);

	if (!r)
		return;
	d->failed |= mr->backing.durable;
	lose(d, r);
}

bool qp_dirty_has_failed(struct qp_dirty *d)
{
	bool failed = d->failed;

	d->failed = false;
	return failed;
}

void qp_dirty_fini(struct qp_dirty *d)
{
	clear(d);
	free(d->region);
	*d = (struct qp_dirty){.region = NULL};
}
