/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * recorder.h -- numbered records, several under way. Record n is in slot n of region 0. A
 * persistent flush follows it (or a verify, for every other record), then an atomic write of n + 1
 * to the last word of the region, and a flush of that word. The success of the last flush is the
 * acknowledgement.
 *
 * So the word is never lower than the number of acknowledged records, and no record below the word
 * may be missing: it was persistent before the word was written, whether acknowledged or not.
 */
#ifndef CRASH_RECORDER_H
#define CRASH_RECORDER_H

#include "system/lib/client.h"

#define RECORD_SIZE  128
#define RECORD_DEPTH 4
#define RECORD_WRS   4 /* work requests for each record */

/* Call by call; in batches; or by writes and reads, for a target without flushes. */
enum record_how { RECORD_CALLS, RECORD_BATCH, RECORD_READ };

struct recorder {
	struct client client;
	enum record_how how;
	struct rpma_batch *batch;
	uint64_t next;  /* the number of the next record */
	uint64_t acked; /* all records below this number are acknowledged */
	struct rpma_digest digest[RECORD_DEPTH];
	unsigned long verified;
};

/* The content of record n. No two records are equal, and none is all zeros. */
void record_make(uint8_t record[RECORD_SIZE], uint64_t n);

int recorder_open(struct recorder *r, uint64_t first);
/* Select a way other than call by call; to be called after the connect. */
int recorder_prepare(struct recorder *r, enum record_how how);
/* Post the next record; the ring must have room for it. */
int recorder_post(struct recorder *r);
/*
 * Post records while there is room, and wait for one acknowledgement. Returns 0, or the reason of
 * the end.
 */
int recorder_step(struct recorder *r);
/* Collect the acknowledgements that came before the end. */
void recorder_drain(struct recorder *r);

#endif
