/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * inspect.h -- examines a pool that another process may be using, for a program that watches
 * pools.
 *
 * Nothing is locked and nothing is written, so a process that opens the pool meanwhile is not
 * disturbed. The pool may have changed by the time the result is reported.
 */
#ifndef POOLSET_INSPECT_H
#define POOLSET_INSPECT_H

#include "poolset/pool.h"

struct poolset_state {
	uint64_t size; /* size of all parts together, as the set file lists them */
	unsigned parts, missing;
	bool is_in_use;       /* a process has locked a part */
	bool is_usable;       /* all parts match the set, or no part exists yet */
	char why[ERROR_TEXT]; /* the reason, unless is_usable */
};

/* Returns true if the file's first line is that of a pool set file. */
bool poolset_is_set(const struct poolset_place *place);
/* ERROR_LOCAL: the set file cannot be read, or is malformed. */
int poolset_inspect(const struct poolset_place *place, struct poolset_state *state,
		    struct error *err);

#endif
