/* SPDX-License-Identifier: BSD-3-Clause */
/* flush_part.h -- one part of a flush: ranges that have a number and an intent of their own. */
#ifndef MIRROR_FLUSH_PART_H
#define MIRROR_FLUSH_PART_H

#include "mirror/set.h"

struct flush_part {
	/* a normal list of at most SET_PART_RANGES ranges and SET_PART_BYTES bytes */
	const struct mirror_range *v;
	uint32_t n;
	/* a flush of the library itself, which is also made while the set is being given up */
	bool is_own;
	/* the call may wait for space, for a piece of a resync, or for a page that is restored */
	bool may_wait;
	bool is_last; /* a flush operation follows this part on each lane */
};

/* Copy the ranges and post them; *seq gets the part's number. Called with the set's lock, which is
 * released if the part may wait. Returns 0; 1: the part would have to wait; or an RPMIRROR_E_*
 * with the text. */
int flush_part_begin(struct rpmirror *m, const struct flush_part *part, uint64_t *seq);
/* Post a flush operation on each lane for the parts that no flush operation covers yet. Called
 * with the set's lock. */
void flush_part_cover(struct rpmirror *m);
/* Record that a flush operation is posted, or due, for all parts that were begun: from now on the
 * members' time limit runs for these parts. Called with the set's lock. */
void flush_note_covered(struct rpmirror *m);

#endif
