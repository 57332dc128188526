/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uses.h -- the resources of daemons, programs and the folders of a set's hosts: descriptors,
 * threads, memory, files. They are stored, and compared later to find leaks.
 */
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

/* Call this before the processes start: it makes the allocator's memory comparable. */
void uses_prepare(void);
/* Include that process from now on. */
void uses_add(struct uses *u, const char *what, unsigned host, pid_t pid);
/* Store the maximum over a while in which nothing happens. */
void uses_remember(struct uses *u);
/*
 * Wait until no resource is above its stored value, except for some slack, and growth_kib of memory
 * for each process. Prints the resources. If one stays above, the test fails.
 */
void uses_compare(struct uses *u, long growth_kib);

#endif
