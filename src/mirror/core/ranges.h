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

/* Every range ends at size or before, without overflow? An empty one may begin at size. */
bool ranges_are_inside(const struct mirror_range *v, uint32_t n, uint64_t size);
/* Cut off the part beyond size. Returns the number of ranges left. */
uint32_t ranges_clip(struct mirror_range *v, uint32_t n, uint64_t size);
/* Byte-exact. Returns how many are left. */
uint32_t ranges_normalise(struct mirror_range *v, uint32_t n);
/* Widen each to whole units (MIRROR_BLOCK, MIRROR_EXTENT), not past size, and normalise. */
uint32_t ranges_round(struct mirror_range *v, uint32_t n, uint64_t unit, uint64_t size);
/* Cover a normal list by at most max ranges: whole blocks, then without the smallest gaps, at last
 * one range. max > 0. */
uint32_t ranges_coarsen(struct mirror_range *v, uint32_t n, uint32_t max, uint64_t size);
/* Two normal lists: is a byte in both? */
bool ranges_overlap(const struct mirror_range *a, uint32_t an, const struct mirror_range *b,
		    uint32_t bn);
/* All bytes of a normal list. */
uint64_t ranges_sum(const struct mirror_range *v, uint32_t n);

#endif
