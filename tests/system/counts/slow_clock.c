/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * slow_clock.c -- if this library is preloaded, the monotonic clock, and waits that use it, are
 * SLOW times slower. A program under valgrind is slower, too. With this library, its timers expire
 * as often in relation to its work as without valgrind.
 */
#include <signal.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define SLOW    200
#define SECOND  INT64_C(1000000000)
#define FOREVER (1000 * SECOND) /* longer waits are not prolonged */

static int64_t began;

static int64_t slow_real_ns(void)
{
	struct timespec ts;

	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * SECOND + ts.tv_nsec;
}

__attribute__((constructor)) static void slow_begin(void)
{
	began = slow_real_ns();
}

static struct timespec slow_timespec(int64_t ns)
{
	return (struct timespec){.tv_sec = ns / SECOND, .tv_nsec = ns % SECOND};
}

static struct timespec slow_wait(const struct timespec *ts)
{
	int64_t ns = ts->tv_sec * SECOND + ts->tv_nsec;

	return slow_timespec(ns > 0 && ns < FOREVER ? ns * SLOW : ns);
}

int clock_gettime(clockid_t clock, struct timespec *ts)
{
	if (clock != CLOCK_MONOTONIC)
		return (int)syscall(SYS_clock_gettime, clock, ts);
	*ts = slow_timespec(began + (slow_real_ns() - began) / SLOW);
	return 0;
}

/* Timers are set to a relative time. */
int timerfd_settime(int fd, int flags, const struct itimerspec *when, struct itimerspec *before)
{
	struct itimerspec later = *when;

	later.it_value = slow_wait(&when->it_value);
	return (int)syscall(SYS_timerfd_settime, fd, flags, &later, before);
}

int epoll_pwait2(int fd, struct epoll_event *events, int max, const struct timespec *timeout,
		 const sigset_t *mask)
{
	struct timespec longer;

	if (timeout)
		longer = slow_wait(timeout);
	return (int)syscall(SYS_epoll_pwait2, fd, events, max, timeout ? &longer : NULL, mask,
			    _NSIG / 8);
}
