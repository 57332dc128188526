/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check.h -- does the server's medium hold the sent bytes? Compares digests of the data that this
 * end has read with digests of the region that the server reads back.
 */
#ifndef TOOL_CHECK_H
#define TOOL_CHECK_H

#include <sodium.h>
#include <stdbool.h>
#include <stdint.h>

#include "copy.h"

/* The server digests a piece in one operation. Even a slow disk must do so within --timeout. */
#define CHECK_PIECE  (16u << 20)
#define CHECK_DIGEST 32 /* BLAKE2b-256 */

enum check_outcome {
	CHECK_DONE,
	CHECK_UNWANTED, /* --no-verify */
	CHECK_UNABLE,   /* the server cannot */
	CHECK_VOLATILE, /* the region has no medium */
};

struct check {
	enum check_outcome outcome;
	struct copy *c;
	crypto_generichash_state state;
	uint8_t (*pieces)[CHECK_DIGEST]; /* digests of the data that this end has read */
	uint64_t count, fed;
	uint64_t skipped;               /* pieces that the medium already held */
	crypto_generichash_state whole; /* state of the digest of all fed bytes */
	enum rpma_digest_source source; /* the weakest source of all pieces */
	struct progress progress;       /* progress of the server's reads */
};

/* Begin a check. c->total is the exact length, or an upper limit. */
int check_init(struct check *check, struct copy *c);
void check_fini(struct check *check);
/* The next bytes, in order. */
void check_feed(struct check *check, const uint8_t *data, uint32_t len);
/* Does the server's medium hold len bytes with that digest at offset `at` of the copy? */
int check_range(struct check *check, uint64_t at, uint32_t len, const uint8_t digest[CHECK_DIGEST],
		bool *same);
/* Return the digest of all fed bytes. Call this once. */
void check_whole(struct check *check, uint8_t digest[CHECK_DIGEST]);
/* Check everything after the last flush, when c->total is known. CLI_TRANSFER, after printing the
 * line: a piece differs. */
int check_run(struct check *check);
/* The end of put's summary. */
void check_describe(const struct check *check, bool json, char *text, size_t size);

#endif
