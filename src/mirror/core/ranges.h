/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ranges.h -- lists of ranges: checks bounds, sorts and merges, rounds to blocks or extents,
 * reduces the number.
 *
 * A list is *normal* when it is sorted, no two ranges overlap or touch, and no range is empty. The
 * functions change a list in place and never make it longer. For a union, append one list to the
 * other and call ranges_normalise().
 */
#ifndef MIRROR_CORE_RANGES_H
#define MIRROR_CORE_RANGES_H

#include "mirror/core/types.h"

/* Cut off the parts of ranges beyond size. Returns the number of ranges left. */
uint32_t ranges_clip(struct mirror_range *v, uint32_t n, uint64_t size);
/* Sort and merge the ranges, exact to the byte. Returns the number of ranges left. */
uint32_t ranges_normalise(struct mirror_range *v, uint32_t n);
/* Widen each range to whole units (MIRROR_BLOCK, MIRROR_EXTENT), not past size, then normalise. */
uint32_t ranges_round(struct mirror_range *v, uint32_t n, uint64_t unit, uint64_t size);
/* Cover a normal list by at most max ranges (max > 0): widen ranges to whole blocks, then fill the
 * smallest gaps, if necessary until one range is left. */
uint32_t ranges_coarsen(struct mirror_range *v, uint32_t n, uint32_t max, uint64_t size);
/* Returns true if two normal lists have a byte in common. */
bool ranges_overlap(const struct mirror_range *a, uint32_t an, const struct mirror_range *b,
		    uint32_t bn);

#endif
