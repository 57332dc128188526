/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * resync_plan.h -- which ranges of a member's copy are to be made equal to the primary's, if any.
 *
 * The register's view decides who is the source: always the primary, which is in sync. Ids and
 * epochs of the copies serve to notice what the register does not know: a copy of another set, or
 * one that went on by itself.
 */
#ifndef MIRROR_CORE_RESYNC_PLAN_H
#define MIRROR_CORE_RESYNC_PLAN_H

#include <stddef.h>

#include "mirror/core/state.h"
#include "mirror/core/types.h"

enum resync_verdict {
	RESYNC_PLAN_REFUSE,  /* nothing is to be written to that copy */
	RESYNC_PLAN_SPLIT,   /* it went on by itself: an operator decides which one is discarded */
	RESYNC_PLAN_NOTHING, /* it is equal */
	RESYNC_PLAN_RECORDS, /* what both sides' records name, digests first */
	RESYNC_PLAN_BITMAP,  /* the primary's bitmap for it, and the member's own records */
	RESYNC_PLAN_DIGESTS, /* everything, digests first */
	RESYNC_PLAN_FULL,    /* everything but holes; the member is empty */
	RESYNC_PLAN_COUNT
};

struct resync_facts {
	const struct mirror_record *rec; /* the register's */
	uint8_t self;                    /* the primary's slot; the view names it */
	bool own_uncertain;              /* its records may lack something */
	uint64_t own_size;               /* that is mapped; the set may have grown since */
	uint32_t own_records;            /* ranges that may differ: hot extents, equalisations */
	bool unacknowledged;             /* flushes of this epoch that the member may lack */
	bool bitmap_is_usable;           /* it counts from what the member has */
	bool is_discarded;               /* an operator resolved a split against the member */
	/* What the member reported. */
	uint8_t slot;
	struct mirror_uuid uuid;
	uint64_t copy_id, size;
	enum mirror_copy copy;
	bool held, uncertain;
	uint32_t records;          /* hot extents and intents */
	struct mirror_epoch epoch; /* the last one whose flushes it may hold; 0: none */
	uint64_t source_id;        /* of a resync that has not ended; 0: none */
};

/* why: one line for people, with the values that contradict each other; size bytes. */
enum resync_verdict resync_plan(const struct resync_facts *f, char *why, size_t size);
const char *resync_verdict_2str(enum resync_verdict verdict);

#endif
