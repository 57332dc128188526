/* SPDX-License-Identifier: BSD-3-Clause */
/* killpoint.c -- the only file of this folder that does I/O; empty except in builds for tests. */
#include "mirror/core/killpoint.h"

#ifdef RPMA_KILLPOINTS
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool killpoint_is_on;

#define KILLPOINT_ORDERS 2

static const char *killpoint_log;
static struct killpoint_order {
	const char *variable, *at;
	int signal;
} killpoint_orders[KILLPOINT_ORDERS] = {{.variable = "MIRROR_KILL_AT", .signal = SIGKILL},
					{.variable = "MIRROR_STOP_AT", .signal = SIGSTOP}};
static unsigned killpoint_counts[KILLPOINT_COUNT];

static const char *const killpoint_names[KILLPOINT_COUNT] = {
#define KILLPOINT_NAME(name, who, where) #name,
	KILLPOINTS(KILLPOINT_NAME)
#undef KILLPOINT_NAME
};

__attribute__((constructor)) static void killpoint_init(void)
{
	killpoint_log = secure_getenv("MIRROR_KILL_LOG");
	killpoint_is_on = killpoint_log;
	for (unsigned i = 0; i < KILLPOINT_ORDERS; i++) {
		killpoint_orders[i].at = secure_getenv(killpoint_orders[i].variable);
		killpoint_is_on |= killpoint_orders[i].at != NULL;
	}
}

/* Use one write(), which keeps the lines of several processes apart. */
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

/* at: name[:n]; without n: the first time */
static bool killpoint_is_meant(const char *at, const char *name, unsigned count)
{
	size_t len = strlen(name);

	if (strncmp(at, name, len) || (at[len] && at[len] != ':'))
		return false;
	return count == (at[len] ? (unsigned)strtoul(at + len + 1, NULL, 10) : 1);
}

void killpoint_reach(enum killpoint point)
{
	const char *name = killpoint_names[point];
	unsigned count = __atomic_add_fetch(&killpoint_counts[point], 1, __ATOMIC_RELAXED);

	if (killpoint_log && count == 1)
		killpoint_note(name);
	for (unsigned i = 0; i < KILLPOINT_ORDERS; i++)
		if (killpoint_orders[i].at &&
		    killpoint_is_meant(killpoint_orders[i].at, name, count))
			kill(getpid(), killpoint_orders[i].signal);
}
#else
typedef int killpoint_nothing; /* ISO C forbids an empty file */
#endif
