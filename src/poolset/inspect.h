/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * inspect.h -- what can be known of a pool from outside, for a program that watches it.
 *
 * Nothing is locked and nothing is written, so a process that opens the pool meanwhile is not
 * disturbed. What is found may have changed by the time it is reported.
 */
#ifndef POOLSET_INSPECT_H
#define POOLSET_INSPECT_H

#include "poolset/pool.h"

struct poolset_state {
	uint64_t size; /* size of all parts together, as the set file lists them */
	unsigned parts, missing;
	bool is_in_use;       /* a process has locked a part */
	bool is_usable;       /* either all parts match the set, or none is created yet */
	char why[ERROR_TEXT]; /* the reason, unless is_usable */
};

/* Does the first line say that this is a pool set file? */
bool poolset_is_set(const struct poolset_place *place);
/* ERROR_LOCAL: the set file cannot be read, or is malformed. */
int poolset_inspect(const struct poolset_place *place, struct poolset_state *state,
		    struct error *err);

#endif
