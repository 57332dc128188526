/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * log_limit.h -- how often one place may log if a peer can cause the message: a few lines in a
 * period, and the first line of a later period states how many were left out.
 *
 * Pure: the time goes in. Thread-safe without a lock, so a forked child may go on with it.
 */
#ifndef BASE_LOG_LIMIT_H
#define BASE_LOG_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#define LOG_LIMIT_LINES     5 /* most lines in a period */
#define LOG_LIMIT_PERIOD_MS 10000

/* Zeroed: no line was logged yet. */
struct log_limit {
	uint64_t state; /* the number of the period, and the number of lines requested in it */
};

/* Returns whether a line may be written now. If so, *left_out is the number of lines refused since
 * the last line. */
bool log_limit_admits(struct log_limit *limit, uint64_t now_ns, uint32_t *left_out);

#endif
