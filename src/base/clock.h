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

/* Returns a time for pthread_cond_timedwait(3) and the like. */
static inline struct timespec clock_timespec(uint64_t ns)
{
	return (struct timespec){.tv_sec = (time_t)(ns / NSEC_PER_SEC),
				 .tv_nsec = (long)(ns % NSEC_PER_SEC)};
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
