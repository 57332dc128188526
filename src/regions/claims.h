/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * claims.h -- records which writer claimed which range of a region last. Pure.
 *
 * Each claim of a new writer has the next number, its *generation*, and a random key. A writer
 * whose connection was lost sends the generation and the key when it connects again. The writer's
 * claim still holds if no newer claim has a byte of the claim's range. The key distinguishes claims
 * with the same number that were made before and after a loss of the record, and stops a program
 * that guesses numbers.
 *
 * A claim that a newer claim covers is forgotten, and so does not hold. If there are too many
 * claims, the two oldest are joined into one claim, with the range of both and the newer number.
 * The older claim then no longer holds, although perhaps no other client has written in its range.
 * So a claim can be lost without need, but a claim is never kept wrongly.
 */
#ifndef REGIONS_CLAIMS_H
#define REGIONS_CLAIMS_H

#include <stdbool.h>
#include <stdint.h>

#define CLAIMS_MAX 64

/* All zero: no claim. */
struct claim_id {
	uint64_t generation, key;
};

struct claim {
	uint64_t from, to;
	struct claim_id id;
	uint64_t made_ns; /* time of the claim, in ns since 1970 */
};

/* Zeroed: no claim was made. */
struct claims {
	uint64_t newest; /* generation of the newest claim */
	unsigned count;
	struct claim list[CLAIMS_MAX]; /* sorted by generation, the oldest first */
};

/* Add the claim of a new writer. */
struct claim_id claims_add(struct claims *c, uint64_t from, uint64_t to, uint64_t key,
			   uint64_t now_ns);
bool claims_hold(const struct claims *c, uint64_t from, uint64_t to, struct claim_id id);
/* Returns the newest claim that has a byte of the range, or NULL. */
const struct claim *claims_last(const struct claims *c, uint64_t from, uint64_t to);
/* Returns true if claims_add() can have made these claims. */
bool claims_are_sound(const struct claims *c);

#endif
