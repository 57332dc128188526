/* SPDX-License-Identifier: BSD-3-Clause */
/* counters.h -- what connections have counted, and sums of it. */
#ifndef EXPORT_COUNTERS_H
#define EXPORT_COUNTERS_H

#include <librpma.h>
#include <stddef.h>

#define COUNTERS_MAX 64

/* Zeroed: nothing was counted. */
struct counters {
	struct rpma_counter counters[COUNTERS_MAX];
	size_t count;
};

/* Add what a connection counted; a device that counts nothing adds nothing. */
void counters_add_conn(struct counters *sum, const struct rpma_conn *conn);
void counters_add(struct counters *sum, const struct counters *more);

#endif
