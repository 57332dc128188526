/* SPDX-License-Identifier: BSD-3-Clause */
/* flush_part.h -- one part of a flush: ranges with a number and an intent of their own. */
#ifndef MIRROR_FLUSH_PART_H
#define MIRROR_FLUSH_PART_H

#include "mirror/set.h"

struct flush_part {
	const struct mirror_range *v; /* normal, at most SET_PART_RANGES and SET_PART_BYTES */
	uint32_t n;
	bool is_own;   /* a flush of the library's own: also while the set is given up */
	bool may_wait; /* for room, a piece of a resync, a page that is restored */
	bool is_last;  /* a flush operation follows it on each lane */
};

/* Locked, with gaps if it may wait. Snapshot and post; *seq is its number then. 0; 1: it would
 * have to wait; or an RPMIRROR_E_* with the text. */
int flush_part_begin(struct rpmirror *m, const struct flush_part *part, uint64_t *seq);
/* Locked. Post a flush operation on each lane for parts that have none after them yet. */
void flush_part_cover(struct rpmirror *m);
/* Locked. A flush operation is posted, or due, for all that was begun: from now on the members'
 * time limit runs for these parts. */
void flush_note_covered(struct rpmirror *m);

#endif
