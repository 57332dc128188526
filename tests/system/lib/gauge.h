/* SPDX-License-Identifier: BSD-3-Clause */
/* gauge.h -- query how much memory, time and descriptors a process uses, as the kernel and the
 * allocator count them. */
#ifndef SYSTEM_GAUGE_H
#define SYSTEM_GAUGE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct gauge {
	long rss_anon_kib;  /* resident anonymous memory, which belongs to this process alone */
	long pss_kib;       /* resident memory, including the process's part of shared memory */
	long cpu_ticks;     /* user and system time */
	long allocated_kib; /* memory from malloc() that is in use; only for the calling process */
};

struct gauge gauge_self(void);
long gauge_rss_anon_kib(pid_t pid); /* returns -1 if the process has exited */
long gauge_cpu_ticks(pid_t pid);
/* returns how often the threads of the process have waited so far; -1: the process has exited */
long gauge_waits(pid_t pid);
int gauge_fds(pid_t pid); /* returns the number of open descriptors; -1: the process has exited */

/* Raise this process's limit of descriptors to the highest value that the system allows. Returns
 * the value. */
size_t gauge_raise_nofile(void);

#endif
