/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * resync_plan.h -- decides which ranges of a member's copy a resync makes equal to the primary's.
 *
 * A resync always comes from the primary of the register's view, which is in-sync. Ids and epochs
 * of the copies reveal cases that the register does not show: a copy of another set, or a copy
 * that was changed outside of the set's history.
 */
#ifndef MIRROR_CORE_RESYNC_PLAN_H
#define MIRROR_CORE_RESYNC_PLAN_H

#include <stddef.h>

#include "mirror/core/state.h"
#include "mirror/core/types.h"

enum resync_verdict {
	RESYNC_PLAN_REFUSE, /* no byte of that copy may be written */
	/* the copy was changed outside of the history: an operator decides which copy is
	 * discarded */
	RESYNC_PLAN_SPLIT,
	RESYNC_PLAN_NOTHING, /* the copy is equal */
	/* the ranges in the records of both sides, compared by digests first */
	RESYNC_PLAN_RECORDS,
	/* the blocks in the primary's bitmap for the member, and the ranges of the member's own
	 * records */
	RESYNC_PLAN_BITMAP,
	RESYNC_PLAN_DIGESTS, /* the whole file, compared by digests first */
	RESYNC_PLAN_FULL,    /* the whole file except holes; the member is empty */
	RESYNC_PLAN_COUNT
};

struct resync_facts {
	const struct mirror_record *rec; /* the register's record */
	uint8_t self;                    /* the primary's slot, as in the view */
	bool own_uncertain;              /* the primary's records may lack ranges */
	/* size of the primary's mapping; the set may have grown since */
	uint64_t own_size;
	/* number of ranges that may differ: hot extents, and ranges of equalisations */
	uint32_t own_records;
	bool unacknowledged;   /* the member may lack flushes of this epoch */
	bool bitmap_is_usable; /* the bitmap is complete for the state of the member's copy */
	bool is_discarded;     /* an operator resolved a split against the member */
	/* The report of the member. */
	uint8_t slot;
	struct mirror_uuid uuid;
	uint64_t copy_id, size;
	enum mirror_copy copy;
	bool held, uncertain;
	uint32_t records;          /* number of hot extents and intents */
	struct mirror_epoch epoch; /* the last epoch whose flushes the copy may hold; 0: none */
	/* id of the copy that sends a resync that has not ended; 0: none */
	uint64_t source_id;
};

/* Decide about a member. why: one line for people, with the values that contradict each other; the
 * array has `size` bytes. */
enum resync_verdict resync_plan(const struct resync_facts *f, char *why, size_t size);
const char *resync_verdict_2str(enum resync_verdict verdict);

#endif
