/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * counters.h -- the counters of connections as text and as a sum, for operators and measurements.
 */
#ifndef SERVICE_COUNTERS_H
#define SERVICE_COUNTERS_H

#include <librpma.h>
#include <stddef.h>

#define COUNTERS_MAX  64
#define COUNTERS_TEXT 1024

/* " NAME=VALUE" for each counter that is not 0; "" if the device counts nothing. */
void counters_text(const struct rpma_conn *conn, char *text, size_t size);

/* Zeroed: nothing was counted. */
struct counters {
	struct rpma_counter counters[COUNTERS_MAX];
	size_t count;
};

/* Add the counters of a connection. A device without counters adds nothing. */
void counters_add_conn(struct counters *sum, const struct rpma_conn *conn);
void counters_add(struct counters *sum, const struct counters *more);

#endif
