/* SPDX-License-Identifier: BSD-3-Clause */
/* killpoint.c -- the one impure file of this room; empty but in builds for tests. */
#include "mirror/core/killpoint.h"

#ifdef RPMA_KILLPOINTS
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool killpoint_is_on;

static const char *killpoint_at, *killpoint_log;
static unsigned killpoint_counts[KILLPOINT_COUNT];

static const char *const killpoint_names[KILLPOINT_COUNT] = {
#define KILLPOINT_NAME(name, who, where) #name,
	KILLPOINTS(KILLPOINT_NAME)
#undef KILLPOINT_NAME
};

__attribute__((constructor)) static void killpoint_init(void)
{
	killpoint_at = secure_getenv("MIRROR_KILL_AT");
	killpoint_log = secure_getenv("MIRROR_KILL_LOG");
	killpoint_is_on = killpoint_at || killpoint_log;
}

/* One write, so that lines of several processes do not mix. */
static void killpoint_note(const char *name)
{
	int fd = open(killpoint_log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	size_t len = strlen(name);
	char line[64];

	if (fd < 0 || len >= sizeof(line))
		return;
	memcpy(line, name, len);
	line[len] = '\n';
	if (write(fd, line, len + 1) < 0)
		abort();
	close(fd);
}

void killpoint_reach(enum killpoint point)
{
	const char *name = killpoint_names[point];
	unsigned count = __atomic_add_fetch(&killpoint_counts[point], 1, __ATOMIC_RELAXED);
	size_t len = strlen(name);
	unsigned wanted = 1;

	if (killpoint_log && count == 1)
		killpoint_note(name);
	if (!killpoint_at || strncmp(killpoint_at, name, len) ||
	    (killpoint_at[len] && killpoint_at[len] != ':'))
		return;
	if (killpoint_at[len])
		wanted = (unsigned)strtoul(killpoint_at + len + 1, NULL, 10);
	if (count == wanted)
		kill(getpid(), SIGKILL);
}
#else
typedef int killpoint_nothing; /* a file is not empty */
#endif
