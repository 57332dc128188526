/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uses.h -- what daemons, programs and the folders of a set's hosts have in use: descriptors,
 * threads, memory, files. It is remembered, and compared later: nothing has leaked.
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

/* Before the processes are started: settings of the allocator by which memory can be compared. */
void uses_prepare(void);
/* That process from now on. */
void uses_add(struct uses *u, const char *what, unsigned host, pid_t pid);
/* The most of a while, in which nothing happens. */
void uses_remember(struct uses *u);
/* Waits until nothing is more than before but for some slack, and that memory of each process;
 * prints it. Else the test fails. */
void uses_compare(struct uses *u, long growth_kib);

#endif
