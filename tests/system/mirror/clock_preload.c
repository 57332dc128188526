/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * clock_preload.c -- if this library is preloaded, the time of day jumps forward or back by up to a
 * day each time that it is read. Leases and time limits must not depend on it.
 *
 * CLOCK_JUMPS=FILE: the number of jumps is added to a count in FILE (clock_jumps.h), so that a test
 * can check that its processes have read the clock.
 */
#include "clock_jumps.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static uint64_t clock_nowhere, *clock_count = &clock_nowhere;

/* Do not count sh and setpriv, which only start other programs. */
__attribute__((constructor)) static void clock_count_begin(void)
{
	const char *name = program_invocation_short_name;
	const char *path = getenv("CLOCK_JUMPS");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	struct clock_jumps *p;

	if (fd < 0)
		return;
	p = mmap(NULL, sizeof(*p), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (p == MAP_FAILED)
		return;
	if (!strcmp(name, "rpmirrord"))
		clock_count = &p->daemons;
	if (!strcmp(name, "mirror_registers"))
		clock_count = &p->applications;
}

static time_t clock_jump(void)
{
	static uint64_t state = 1;
	uint64_t z = __atomic_add_fetch(&state, 0x9e3779b97f4a7c15ull, __ATOMIC_RELAXED);

	__atomic_add_fetch(clock_count, 1, __ATOMIC_RELAXED);
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
