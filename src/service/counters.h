/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * counters.h -- prints and adds up the counters of connections, for operators and measurements.
 */
#ifndef SERVICE_COUNTERS_H
#define SERVICE_COUNTERS_H

#include <librpma.h>
#include <stddef.h>

#define COUNTERS_MAX  64
#define COUNTERS_TEXT 1024

/* Write " NAME=VALUE" for each counter that is not 0. The text is "" if the device counts
 * nothing. */
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
