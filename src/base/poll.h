/* SPDX-License-Identifier: BSD-3-Clause */
/* poll.h -- waits until a descriptor is readable. Signals do not move the deadline. */
#ifndef BASE_POLL_H
#define BASE_POLL_H

#include <errno.h>
#include <limits.h>
#include <poll.h>

#include "base/clock.h"

/*
 * Returns the deadline timeout_ms milliseconds from now, or CLOCK_NEVER if timeout_ms is negative.
 */
static inline uint64_t poll_deadline(int timeout_ms)
{
	return timeout_ms < 0 ? CLOCK_NEVER : clock_now_ns() + (uint64_t)timeout_ms * NSEC_PER_MS;
}

/* Returns the timeout for poll(2), rounded up so that poll(2) does not return before the
 * deadline. */
static inline int poll_ms_left(uint64_t deadline)
{
	uint64_t now, ms;

	if (deadline == CLOCK_NEVER)
		return -1;
	now = clock_now_ns();
	if (deadline <= now)
		return 0;
	ms = (deadline - now + NSEC_PER_MS - 1) / NSEC_PER_MS;
	return ms < INT_MAX ? (int)ms : INT_MAX;
}

/* Returns 0 if fd is readable, -ETIMEDOUT, -EBADF if fd is not open, or another -errno of
 * poll(2). */
static inline int poll_readable(int fd, uint64_t deadline)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};

	for (;;) {
		int ms = poll_ms_left(deadline);
		int n = poll(&pfd, 1, ms);

		if (n > 0)
			return pfd.revents & POLLNVAL ? -EBADF : 0;
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0 && ms >= 0 && poll_ms_left(deadline) == 0)
			return -ETIMEDOUT;
	}
}

#endif
