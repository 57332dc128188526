/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * recorder.h -- numbered records, several of them outstanding. Record n is in slot n of region 0.
 * After the write of the record there is a persistent flush (or a verify, for every other record),
 * then an atomic write of n + 1 to the last word of the region, and a flush of this word. The
 * record is acknowledged when the last flush succeeds.
 *
 * So the word is at least the number of acknowledged records. No record with a number below the
 * word is allowed to be missing: each such record was persistent before the word was written, even
 * if it was never acknowledged.
 */
#ifndef CRASH_RECORDER_H
#define CRASH_RECORDER_H

#include "system/lib/client.h"

#define RECORD_SIZE  128
#define RECORD_DEPTH 4
#define RECORD_WRS   4 /* work requests for each record */

/* How a record is posted: one call for each request, in a batch, or with Reads for a target that
 * has no flushes. */
enum record_how { RECORD_CALLS, RECORD_BATCH, RECORD_READ };

struct recorder {
	struct client client;
	enum record_how how;
	struct rpma_batch *batch;
	uint64_t next;  /* number of the next record */
	uint64_t acked; /* all records with a lower number are acknowledged */
	struct rpma_digest digest[RECORD_DEPTH];
	unsigned long verified;
};

/* Make the content of record n. No two records are equal, and no record is all zeros. */
void record_make(uint8_t record[RECORD_SIZE], uint64_t n);

int recorder_open(struct recorder *r, uint64_t first);
/* Call this after the connect if records are not posted by one call for each request. */
int recorder_prepare(struct recorder *r, enum record_how how);
/* Post the next record; the ring must have a free slot. */
int recorder_post(struct recorder *r);
/*
 * Post records while slots are free, and wait for one acknowledgement. Returns 0, or the reason why
 * the connection ended.
 */
int recorder_step(struct recorder *r);
/* Take the acknowledgements that arrived before the end of the connection. */
void recorder_drain(struct recorder *r);

#endif
