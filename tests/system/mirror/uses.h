/* SPDX-License-Identifier: BSD-3-Clause */
/* uses.h -- finds leaks. It records the descriptors, threads, memory and files that the daemons and
 * programs of a set's hosts use, and compares these numbers later. */
#ifndef SYSTEM_MIRROR_USES_H
#define SYSTEM_MIRROR_USES_H

#include "hosts.h"

#define USES_MAX (2 * MIRROR_MEMBERS_MAX)

struct use {
	const char *what;
	unsigned host;
	pid_t pid;
	int fds, threads;
	long rss_kib;
};

struct uses {
	const struct hosts *hosts;
	struct use all[USES_MAX];
	unsigned count;
	unsigned files;
};

/* Call this before the processes start: it sets the allocator so that numbers can be compared. */
void uses_prepare(void);
/* Include this process from now on. */
void uses_add(struct uses *u, const char *what, unsigned host, pid_t pid);
/* Record the largest numbers during an idle time. */
void uses_remember(struct uses *u);
/* Wait until no number is above the recorded number plus some slack, and plus growth_kib of memory
 * for each process. Prints the numbers. The test fails if a number stays above this limit. */
void uses_compare(struct uses *u, long growth_kib);

#endif
