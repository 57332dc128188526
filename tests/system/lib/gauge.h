/* SPDX-License-Identifier: BSD-3-Clause */
/* gauge.h -- what a process uses, as the kernel and the allocator count it. */
#ifndef SYSTEM_GAUGE_H
#define SYSTEM_GAUGE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct gauge {
	long rss_anon_kib;  /* resident, anonymous: what counts against somebody's own memory */
	long pss_kib;       /* with its share of what is shared */
	long cpu_ticks;     /* user and system */
	long allocated_kib; /* malloc()ed and in use; this process only */
};

struct gauge gauge_self(void);
long gauge_rss_anon_kib(pid_t pid); /* -1: gone */
long gauge_cpu_ticks(pid_t pid);
int gauge_fds(pid_t pid); /* open descriptors; -1: gone */

/* As many descriptors as the system allows; how many that is. */
size_t gauge_raise_nofile(void);

#endif
