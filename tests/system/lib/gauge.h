/* SPDX-License-Identifier: BSD-3-Clause */
/* gauge.h -- the resources that a process uses, as the kernel and the allocator count them. */
#ifndef SYSTEM_GAUGE_H
#define SYSTEM_GAUGE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct gauge {
	long rss_anon_kib;  /* resident and anonymous: what no other process shares */
	long pss_kib;       /* with its share of what is shared */
	long cpu_ticks;     /* user and system */
	long allocated_kib; /* malloc()ed and in use; this process only */
};

struct gauge gauge_self(void);
long gauge_rss_anon_kib(pid_t pid); /* -1: gone */
long gauge_cpu_ticks(pid_t pid);
long gauge_waits(pid_t pid); /* how often its threads have waited so far; -1: gone */
int gauge_fds(pid_t pid);    /* open descriptors; -1: gone */

/* Raise the limit of descriptors to what the system allows, and return it. */
size_t gauge_raise_nofile(void);

#endif
