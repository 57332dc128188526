/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * resync_plan.h -- which ranges of a member's copy are to be made equal to the primary's, if any.
 *
 * The register's view decides the source: always the primary, which is in sync. Ids and epochs of
 * the copies show what the register lacks: a copy of another set, or one that was changed outside
 * of the set's history.
 */
#ifndef MIRROR_CORE_RESYNC_PLAN_H
#define MIRROR_CORE_RESYNC_PLAN_H

#include <stddef.h>

#include "mirror/core/state.h"
#include "mirror/core/types.h"

enum resync_verdict {
	RESYNC_PLAN_REFUSE, /* no byte of that copy may be written */
	/* it was changed outside of the history: an operator decides which copy is discarded */
	RESYNC_PLAN_SPLIT,
	RESYNC_PLAN_NOTHING, /* it is equal */
	RESYNC_PLAN_RECORDS, /* the ranges in both sides' records, digests first */
	RESYNC_PLAN_BITMAP,  /* the primary's bitmap for it, and the member's own records */
	RESYNC_PLAN_DIGESTS, /* everything, digests first */
	RESYNC_PLAN_FULL,    /* everything but holes; the member is empty */
	RESYNC_PLAN_COUNT
};

struct resync_facts {
	const struct mirror_record *rec; /* the register's */
	uint8_t self;                    /* the primary's slot; the view names it */
	bool own_uncertain;              /* its records may lack something */
	uint64_t own_size;               /* of the mapping; the set may have grown since */
	/* number of ranges that may differ: hot extents, equalisations */
	uint32_t own_records;
	bool unacknowledged;   /* flushes of this epoch that the member may lack */
	bool bitmap_is_usable; /* it counts from the state of the member's copy */
	bool is_discarded;     /* an operator resolved a split against the member */
	/* The member's report. */
	uint8_t slot;
	struct mirror_uuid uuid;
	uint64_t copy_id, size;
	enum mirror_copy copy;
	bool held, uncertain;
	uint32_t records;          /* hot extents and intents */
	struct mirror_epoch epoch; /* the last epoch whose flushes it may hold; 0: none */
	uint64_t source_id;        /* of a resync that has not ended; 0: none */
};

/* why: one line for people, with the values that contradict each other; its room is `size`
 * bytes. */
enum resync_verdict resync_plan(const struct resync_facts *f, char *why, size_t size);
const char *resync_verdict_2str(enum resync_verdict verdict);

#endif
