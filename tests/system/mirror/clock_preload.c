/* SPDX-License-Identifier: BSD-3-Clause */
/* clock_preload.c -- LD_PRELOAD: the time of day jumps by up to a day, forth and back, at each
 * look. Leases and time limits are of other clocks. */
#include <dlfcn.h>
#include <stdint.h>
#include <sys/time.h>
#include <time.h>

static time_t clock_jump(void)
{
	static uint64_t state = 1;
	uint64_t z = __atomic_add_fetch(&state, 0x9e3779b97f4a7c15ull, __ATOMIC_RELAXED);

	return (time_t)(((z ^ z >> 30) * 0xbf58476d1ce4e5b9ull >> 32) % 172800) - 86400;
}

int clock_gettime(clockid_t clock, struct timespec *ts)
{
	static int (*next)(clockid_t, struct timespec *);
	int rc;

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "clock_gettime");
	rc = next(clock, ts);
	if (!rc && clock == CLOCK_REALTIME)
		ts->tv_sec += clock_jump();
	return rc;
}

int gettimeofday(struct timeval *tv, void *zone)
{
	struct timespec ts;

	(void)zone;
	clock_gettime(CLOCK_REALTIME, &ts);
	*tv = (struct timeval){ts.tv_sec, ts.tv_nsec / 1000};
	return 0;
}

time_t time(time_t *out)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	if (out)
		*out = ts.tv_sec;
	return ts.tv_sec;
}
