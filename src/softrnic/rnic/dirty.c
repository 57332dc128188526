/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lists the bytes that this stream placed and has not written back, as a few intervals for each
 * region. A Flush of everything writes back all these bytes. If the peer's user has no native
 * flush, any Read also writes back all of them, because several registrations may map the same
 * bytes. Intervals that are close to each other are merged, because writing back clean bytes costs
 * little.
 *
 * A deregistered region stays in the list, because its bytes may still be written back. The number
 * of registered regions, which the local user chooses, limits the length of the list; deregistered
 * regions are dropped when there are many of them.
 */
#include "softrnic/rnic/dirty.h"

#include <errno.h>
#include <stdlib.h>

#define DIRTY_MANY 1024u

/* Find the region's entry and move it to the front, because a stream usually writes to the region
 * of its last write. */
static struct dirty_region *dirty_find(struct dirty *d, const struct mr *mr)
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

static void dirty_drop(struct dirty *d, struct dirty_region *r)
{
	mr_unref(r->mr);
	*r = d->region[--d->count];
}

static void dirty_lose(struct dirty *d, struct dirty_region *r)
{
	d->lost = true;
	d->lost_durable |= r->mr->backing.durable;
	dirty_drop(d, r);
}

static void dirty_lose_deregistered(struct dirty *d)
{
	for (uint32_t i = d->count; i-- > 0;)
		if (mr_is_killed(d->region[i].mr))
			dirty_lose(d, &d->region[i]);
}

static struct dirty_region *dirty_append(struct dirty *d)
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

static struct dirty_region *dirty_add(struct dirty *d, struct mr *mr)
{
	struct dirty_region *r;

	if (d->count == d->room && d->room >= DIRTY_MANY)
		dirty_lose_deregistered(d);
	r = dirty_append(d);
	if (!r)
		return NULL;
	*r = (struct dirty_region){.mr = mr};
	mr_ref(mr);
	return r;
}

static void dirty_clear(struct dirty *d)
{
	while (d->count > 0)
		dirty_drop(d, &d->region[d->count - 1]);
	d->lost = d->lost_durable = d->failed = false;
}

/* --- intervals of one region -------------------------------------------------------------- */

static uint64_t dirty_gap(const struct dirty_range *a, const struct dirty_range *b)
{
	if (a->hi < b->lo)
		return b->lo - a->hi;
	return b->hi < a->lo ? a->lo - b->hi : 0;
}

static struct dirty_range dirty_hull(const struct dirty_range *a, const struct dirty_range *b)
{
	return (struct dirty_range){
		.lo = a->lo < b->lo ? a->lo : b->lo,
		.hi = a->hi > b->hi ? a->hi : b->hi,
	};
}

static void dirty_merge(struct dirty_region *r, uint32_t a, uint32_t b)
{
	r->range[a] = dirty_hull(&r->range[a], &r->range[b]);
	r->range[b] = r->range[--r->count];
}

/* Move the interval near these bytes to the front and return it. Returns NULL if no interval is
 * near. */
static struct dirty_range *dirty_near(struct dirty_region *r, const struct dirty_range *what)
{
	for (uint32_t i = 0; i < r->count; i++) {
		struct dirty_range found = r->range[i];

		if (dirty_gap(&found, what) > DIRTY_NEAR)
			continue;
		r->range[i] = r->range[0];
		r->range[0] = found;
		return &r->range[0];
	}
	return NULL;
}

/* All intervals of the region are in use: merge the two that are closest to each other. */
static void dirty_make_room(struct dirty_region *r)
{
	uint64_t least = UINT64_MAX;
	uint32_t a = 0, b = 1;

	for (uint32_t i = 0; i < r->count; i++) {
		for (uint32_t j = i + 1; j < r->count; j++) {
			uint64_t g = dirty_gap(&r->range[i], &r->range[j]);

			if (g >= least)
				continue;
			least = g;
			a = i;
			b = j;
		}
	}
	dirty_merge(r, a, b);
}

static void dirty_mark(struct dirty_region *r, const struct dirty_range *what)
{
	struct dirty_range *there = dirty_near(r, what);

	if (there) {
		*there = dirty_hull(there, what);
		return;
	}
	if (r->count == DIRTY_RANGES)
		dirty_make_room(r);
	r->range[r->count++] = *what;
}

/* Remove a range from an interval. A range in the middle of an interval is not removed, because two
 * intervals would remain. */
static void dirty_unmark(struct dirty_region *r, const struct dirty_range *what)
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

/* --- all regions -------------------------------------------------------------------------- */

int dirty_note_elsewhere(struct dirty *d, struct mr *mr, uint64_t lo, uint64_t hi)
{
	struct dirty_range what = {.lo = lo, .hi = hi};
	struct dirty_region *r = dirty_find(d, mr);

	if (!r)
		r = dirty_add(d, mr);
	if (!r)
		return -ENOMEM;
	dirty_mark(r, &what);
	return 0;
}

void dirty_clean(struct dirty *d, const struct mr *mr, const void *at, uint64_t len)
{
	uint64_t lo = (uintptr_t)at - (uintptr_t)mr->start;
	struct dirty_range what = {.lo = lo, .hi = lo + len};
	struct dirty_region *r = dirty_find(d, mr);

	if (!r)
		return;
	dirty_unmark(r, &what);
	if (r->count == 0)
		dirty_drop(d, r);
}

struct mr *dirty_next(struct dirty *d, struct dirty_range *range)
{
	struct dirty_region *r;
	struct mr *mr;

	if (d->count == 0)
		return NULL;
	r = &d->region[d->count - 1];
	mr = r->mr;
	*range = r->range[--r->count];
	if (r->count == 0)
		d->count--; /* the caller gets the list's reference */
	else
		mr_ref(mr);
	return mr;
}

void dirty_move(struct dirty *to, struct dirty *from)
{
	struct dirty empty;

	dirty_clear(to);
	empty = *to;
	*to = *from;
	*from = empty;
}

bool dirty_move_durable(struct dirty *to, struct dirty *from)
{
	dirty_clear(to);
	for (uint32_t i = from->count; i-- > 0;) {
		struct dirty_region *r = &from->region[i], *moved;

		if (!r->mr->backing.durable)
			continue;
		moved = dirty_append(to);
		if (!moved)
			return false;
		*moved = *r;
		/*
		 * Merge all intervals of the region into one, because a Read writes back the whole
		 * region.
		 */
		while (moved->count > 1)
			dirty_merge(moved, 0, moved->count - 1);
		*r = from->region[--from->count];
	}
	return true;
}

void dirty_forget(struct dirty *d, const struct mr *mr)
{
	struct dirty_region *r = dirty_find(d, mr);

	if (!r)
		return;
	d->failed |= mr->backing.durable;
	dirty_lose(d, r);
}

bool dirty_has_failed(struct dirty *d)
{
	bool failed = d->failed;

	d->failed = false;
	return failed;
}

void dirty_fini(struct dirty *d)
{
	dirty_clear(d);
	free(d->region);
	*d = (struct dirty){.region = NULL};
}
