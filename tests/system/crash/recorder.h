/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * recorder.h -- numbered records, each written and flushed to persistence, several under way.
 * Record n is in slot n of region 0; a record that was acknowledged must never be missing there.
 */
#ifndef CRASH_RECORDER_H
#define CRASH_RECORDER_H

#include "system/lib/client.h"

#define RECORD_SIZE  128
#define RECORD_DEPTH 4 /* two work requests each, in queues of 10 */

struct recorder {
	struct client client;
	uint64_t next;  /* the number of the next record */
	uint64_t acked; /* all below are acknowledged */
};

/* What record n looks like; no two are alike, and none is zeros. */
void record_make(uint8_t record[RECORD_SIZE], uint64_t n);

int recorder_open(struct recorder *r, uint64_t first);
/* Post the next; there must be room for it. */
int recorder_post(struct recorder *r);
/* Post what fits, and wait for one acknowledgement. 0, or how it ended. */
int recorder_step(struct recorder *r);
/* Collect the acknowledgements that came before the end. */
void recorder_drain(struct recorder *r);

#endif
