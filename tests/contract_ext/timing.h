/* SPDX-License-Identifier: BSD-3-Clause */
/* timing.h -- helpers to measure waits with a limit. */
#ifndef CONTRACT_EXT_TIMING_H
#define CONTRACT_EXT_TIMING_H

#include <stdint.h>
#include <time.h>

/* The slack is large, because the machine can be busy. A wait that ends later than this has ignored
 * its limit. */
enum { SLACK_MS = 10000 };

static inline uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* Check that the call returns `want`, not before `ms` have passed, and not much later. */
#define TAKES(ms, want, call)                                                                      \
	do {                                                                                       \
		uint64_t takes_begin_ = now_ms(), takes_ms_;                                       \
		assert_int_equal(call, want);                                                      \
		takes_ms_ = now_ms() - takes_begin_;                                               \
		assert_in_range(takes_ms_ + 1, ms, (ms) + SLACK_MS);                               \
	} while (0)

#endif
