/* SPDX-License-Identifier: BSD-3-Clause */
/* clock.h -- monotonic time in nanoseconds, and "never". */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define CLOCK_NEVER  UINT64_MAX
#define NSEC_PER_US  1000ull
#define NSEC_PER_MS  1000000ull
#define NSEC_PER_SEC 1000000000ull

static inline uint64_t clock_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

#endif
