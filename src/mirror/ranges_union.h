/* SPDX-License-Identifier: BSD-3-Clause */
/* ranges_union.h -- a list of ranges that can grow, and is normal (core/ranges.h) after each
 * addition. */
#ifndef MIRROR_RANGES_UNION_H
#define MIRROR_RANGES_UNION_H

#include "mirror/core/types.h"

struct ranges_union {
	struct mirror_range *v;
	uint32_t count, room;
};

/* Add ranges. Returns false if memory is missing; then nothing is added. */
bool ranges_union_add(struct ranges_union *u, const struct mirror_range *v, uint32_t n);
void ranges_union_clear(struct ranges_union *u);

#endif
