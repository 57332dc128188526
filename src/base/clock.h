/* SPDX-License-Identifier: BSD-3-Clause */
/* clock.h -- reads the monotonic clocks in nanoseconds: one stops while the machine is suspended,
 * the other one continues. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define CLOCK_NEVER  UINT64_MAX
#define NSEC_PER_US  1000ull
#define NSEC_PER_MS  1000000ull
#define NSEC_PER_SEC 1000000000ull

static inline uint64_t clock_read_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

static inline uint64_t clock_now_ns(void)
{
	return clock_read_ns(CLOCK_MONOTONIC);
}

/* Leases need a clock that continues while the machine is suspended. */
static inline uint64_t clock_boot_ns(void)
{
	return clock_read_ns(CLOCK_BOOTTIME);
}

static inline uint64_t clock_boot_ms(void)
{
	return clock_boot_ns() / NSEC_PER_MS;
}

#endif
