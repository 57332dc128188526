/* SPDX-License-Identifier: BSD-3-Clause */
/* apps.h -- processes that do with the set on the hosts of hosts.h what they are told (app_main.c),
 * and what they must answer. A failure fails the test. */
#ifndef SYSTEM_MIRROR_APPS_H
#define SYSTEM_MIRROR_APPS_H

#include "hosts.h"

/* envs as for proc_start(), at most 5. */
void app_start(struct proc *app, const struct hosts *h, unsigned host, const char *const envs[]);
/* The answer comes later. */
void app_tell(struct proc *app, const char *command);
/* The line begins so. */
void app_check(const char *wanted, const char *line);

#define app_expect(app, wanted, ...) app_check(wanted, proc_ask(app, __VA_ARGS__))

/* The end of a case: kill what lives of so many, and of the hosts. */
void apps_end(struct hosts *h, struct proc *apps, unsigned count);

/* All its threads are stopped (MIRROR_STOP_AT of core/killpoint.h, or SIGSTOP). */
void process_wait_stopped(pid_t pid);

/* The tool's exit code there; what it says is in the file "said" of the hosts' folder. */
int host_run_tool(const struct hosts *h, unsigned host, const char *command);

/* The word there in the host's file, without the library. */
uint64_t host_read_word(const struct hosts *h, unsigned host, uint64_t offset);

#endif
