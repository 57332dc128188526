/* SPDX-License-Identifier: BSD-3-Clause */
/* dirty.h -- the bytes that a stream placed and has not written back: see dirty.c. */
#ifndef RNIC_DIRTY_H
#define RNIC_DIRTY_H

#include <stdbool.h>
#include <stdint.h>

#include "softrnic/rnic/mr.h"

#define DIRTY_RANGES 4
struct dirty_range {
	uint64_t lo, hi; /* offsets from the region's first byte */
};
struct dirty_region {
	struct mr *mr; /* the list holds a reference */
	uint32_t count;
	struct dirty_range range[DIRTY_RANGES];
};
struct dirty {
	struct dirty_region *region;
	uint32_t count, room;
	/* some bytes cannot be written back, because their region was deregistered */
	bool lost;
	bool lost_durable; /* some of the lost bytes must be written to a medium */
	/* the file of some lost bytes has failed, and no answer to this stream has reported this
	 * yet */
	bool failed;
};

/* Bytes closer than this to an interval are merged into the interval. Writing back a gap of this
 * size, even a dirty one, takes no longer than another write-back. */
#define DIRTY_NEAR 65536u

int dirty_note_elsewhere(struct dirty *d, struct mr *mr, uint64_t lo, uint64_t hi);

/* Add bytes to the list. Returns 0 or -ENOMEM. A stream usually writes close to its last write, in
 * or after the first interval. */
static inline int dirty_note(struct dirty *d, struct mr *mr, const void *at, uint64_t len)
{
	uint64_t lo = (uintptr_t)at - (uintptr_t)mr->start, hi = lo + len;
	struct dirty_range *first;

	if (d->count == 0 || d->region[0].mr != mr)
		return dirty_note_elsewhere(d, mr, lo, hi);
	first = &d->region[0].range[0];
	if (lo < first->lo || lo > first->hi)
		return dirty_note_elsewhere(d, mr, lo, hi);
	if (hi > first->hi)
		first->hi = hi;
	return 0;
}

/*
 * Remove a range that is about to be written back. The list does not get the range back if the
 * write-back fails; the caller remembers the failure.
 */
void dirty_clean(struct dirty *d, const struct mr *mr, const void *at, uint64_t len);
/*
 * Remove and return one interval. Returns NULL if the list is empty. The caller gets the reference
 * on the interval's region.
 */
struct mr *dirty_next(struct dirty *d, struct dirty_range *range);
void dirty_move(struct dirty *to, struct dirty *from);
/* Move the bytes that can persist to another list, with one interval for each region. Returns false
 * if out of memory. */
bool dirty_move_durable(struct dirty *to, struct dirty *from);
/* Called when the region was deregistered and its bytes can no longer be written back: record them
 * as lost. */
void dirty_forget(struct dirty *d, const struct mr *mr);
/* Were bytes lost in a file whose write-back failed? Returns true only once for each failure,
 * because the file may work again later. */
bool dirty_has_failed(struct dirty *d);
void dirty_fini(struct dirty *d);

#endif
