/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * recorder.h -- numbered records, several under way. Record n is in slot n of region 0; behind it
 * comes a flush to persistence (every other one a verify), behind that an atomic write of n + 1 to
 * the last word of the region, and a flush of that, whose success is the acknowledgement.
 *
 * So the word is never below what was acknowledged, and no record below the word may be missing:
 * acknowledged or not, it was persistent before the word was written.
 */
#ifndef CRASH_RECORDER_H
#define CRASH_RECORDER_H

#include "system/lib/client.h"

#define RECORD_SIZE  128
#define RECORD_DEPTH 4
#define RECORD_WRS   4 /* work requests each */

/* How: call by call; in batches; or, towards a target that takes no flush, by writes and reads. */
enum record_how { RECORD_CALLS, RECORD_BATCH, RECORD_READ };

struct recorder {
	struct client client;
	enum record_how how;
	struct rpma_batch *batch;
	uint64_t next;  /* the number of the next record */
	uint64_t acked; /* all below are acknowledged */
	struct rpma_digest digest[RECORD_DEPTH];
	unsigned long verified;
};

/* The contents of record n; no two are alike, and none is zeros. */
void record_make(uint8_t record[RECORD_SIZE], uint64_t n);

int recorder_open(struct recorder *r, uint64_t first);
/* Selects another way than call by call; once connected. */
int recorder_prepare(struct recorder *r, enum record_how how);
/* Post the next; there must be room for it. */
int recorder_post(struct recorder *r);
/* Post what fits, and wait for one acknowledgement. 0, or how it ended. */
int recorder_step(struct recorder *r);
/* Collect the acknowledgements that came before the end. */
void recorder_drain(struct recorder *r);

#endif
