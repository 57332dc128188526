/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tally.h -- the counters of connections, and their sums.
 */
#ifndef TOOL_TALLY_H
#define TOOL_TALLY_H

#include <librpma.h>
#include <stdbool.h>
#include <stddef.h>

#define TALLY_MAX 64

struct tally {
	struct rpma_counter counters[TALLY_MAX];
	size_t count;
};

/* Add what a connection counted; a device that counts nothing adds nothing. */
void tally_add(struct tally *sum, const struct rpma_conn *conn);
void tally_add_all(struct tally *sum, const struct tally *more);
/* " name=value ..." or "{"name":value,...}", to stdout. */
void tally_print(const struct tally *sum, bool json);

#endif
