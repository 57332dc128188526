/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check.h -- checks that the server's medium holds the sent bytes: compares digests of the data
 * that this end has read with digests of the region that the server reads back.
 */
#ifndef TOOL_CHECK_H
#define TOOL_CHECK_H

#include <sodium.h>
#include <stdbool.h>
#include <stdint.h>

#include "copy.h"

/* The server digests a piece in one operation. Even a slow disk must do so within --timeout. */
#define CHECK_PIECE  (16u << 20)
#define CHECK_DIGEST 32 /* length of BLAKE2b-256 */

enum check_outcome {
	CHECK_DONE,
	CHECK_UNWANTED, /* the user gave --no-verify */
	CHECK_UNABLE,   /* the server does not support digests */
	CHECK_VOLATILE, /* the region has no medium */
};

struct check {
	enum check_outcome outcome;
	struct copy *c;
	crypto_generichash_state state;
	uint8_t (*pieces)[CHECK_DIGEST]; /* digests of the data that this end has read */
	uint64_t count, fed;
	uint64_t skipped; /* number of pieces that the medium already held */
	/* state of the digest of all bytes passed to check_feed() */
	crypto_generichash_state whole;
	enum rpma_digest_source source; /* the weakest source of all pieces */
	struct progress progress;       /* progress of the server's reads */
};

/* Begin a check. c->total is the exact length, or an upper limit. */
int check_init(struct check *check, struct copy *c);
void check_fini(struct check *check);
/* Add the next bytes to the digests. Calls must be in order. */
void check_feed(struct check *check, const uint8_t *data, uint32_t len);
/* Set *same if the server's medium holds len bytes with that digest at offset `at` of the copy. */
int check_range(struct check *check, uint64_t at, uint32_t len, const uint8_t digest[CHECK_DIGEST],
		bool *same);
/* Return the digest of all bytes passed to check_feed(). Call this once. */
void check_whole(struct check *check, uint8_t digest[CHECK_DIGEST]);
/* After the last flush, when c->total is known, check all pieces. Returns CLI_TRANSFER after
 * printing the error line if a piece differs. */
int check_run(struct check *check);
/* Write the end of put's summary: the result of the check. */
void check_describe(const struct check *check, bool json, char *text, size_t size);

#endif
