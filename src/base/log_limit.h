/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * log_limit.h -- limits how often one statement logs if a peer can cause its message: a few lines
 * in a period. The first line of a later period states how many lines were left out.
 *
 * Pure: the caller passes the time. Thread-safe without a lock, so a forked child may continue to
 * use the limit.
 */
#ifndef BASE_LOG_LIMIT_H
#define BASE_LOG_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#define LOG_LIMIT_LINES     5 /* most lines in a period */
#define LOG_LIMIT_PERIOD_MS 10000

/* In a zeroed struct no line was logged yet. */
struct log_limit {
	/* the number of the period, and the number of lines requested in that period */
	uint64_t state;
};

/* Returns true if a line may be written now. *left_out then gets the number of lines refused since
 * the last line. */
bool log_limit_admits(struct log_limit *limit, uint64_t now_ns, uint32_t *left_out);

#endif
