/* SPDX-License-Identifier: BSD-3-Clause */
/* gauge.h -- the resources that a process uses, as the kernel and the allocator count them. */
#ifndef SYSTEM_GAUGE_H
#define SYSTEM_GAUGE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct gauge {
	long rss_anon_kib;  /* resident and anonymous memory, which no other process shares */
	long pss_kib;       /* including the process's part of shared memory */
	long cpu_ticks;     /* user and system */
	long allocated_kib; /* allocated by malloc() and in use; this process only */
};

struct gauge gauge_self(void);
long gauge_rss_anon_kib(pid_t pid); /* -1: the process is gone */
long gauge_cpu_ticks(pid_t pid);
long gauge_waits(pid_t pid); /* waits of its threads so far; -1: the process is gone */
int gauge_fds(pid_t pid);    /* number of open descriptors; -1: the process is gone */

/* Raise the limit of descriptors to the highest value that the system allows, and return the
 * value. */
size_t gauge_raise_nofile(void);

#endif
