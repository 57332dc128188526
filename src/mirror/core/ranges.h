/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ranges.h -- lists of ranges: bounds, sorted and merged, rounded to blocks or extents, fewer.
 *
 * A list is *normal* when it is sorted, no two ranges overlap or touch, and none is empty. Lists
 * are changed in place and only shrink. For a union, put one list after the other and call
 * ranges_normalise().
 */
#ifndef MIRROR_CORE_RANGES_H
#define MIRROR_CORE_RANGES_H

#include "mirror/core/types.h"

/* Does every range end at size or before, without overflow? An empty range may begin at size. */
bool ranges_are_inside(const struct mirror_range *v, uint32_t n, uint64_t size);
/* Cut off the part beyond size. Returns the number of ranges left. */
uint32_t ranges_clip(struct mirror_range *v, uint32_t n, uint64_t size);
/* Sort and merge, byte-exact. Returns the number of ranges left. */
uint32_t ranges_normalise(struct mirror_range *v, uint32_t n);
/* Widen each range to whole units (MIRROR_BLOCK, MIRROR_EXTENT), not past size, then normalise. */
uint32_t ranges_round(struct mirror_range *v, uint32_t n, uint64_t unit, uint64_t size);
/* Cover a normal list by at most max ranges (max > 0): widen to whole blocks, then fill the
 * smallest gaps, in the end down to one range. */
uint32_t ranges_coarsen(struct mirror_range *v, uint32_t n, uint32_t max, uint64_t size);
/* Do two normal lists have a byte in common? */
bool ranges_overlap(const struct mirror_range *a, uint32_t an, const struct mirror_range *b,
		    uint32_t bn);
/* Sum of the lengths of a normal list. */
uint64_t ranges_sum(const struct mirror_range *v, uint32_t n);

#endif
