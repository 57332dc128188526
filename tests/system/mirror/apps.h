/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * apps.h -- processes that execute commands on the set on the hosts of hosts.h (app_main.c), and
 * the answers that they must give. A failure fails the test.
 */
#ifndef SYSTEM_MIRROR_APPS_H
#define SYSTEM_MIRROR_APPS_H

#include "hosts.h"

/* envs as for proc_start(), at most 5. */
void app_start(struct proc *app, const struct hosts *h, unsigned host, const char *const envs[]);
/* Sends a command; the answer comes later. */
void app_tell(struct proc *app, const char *command);
/* Assert that the line begins with `wanted`. */
void app_check(const char *wanted, const char *line);

#define app_expect(app, wanted, ...) app_check(wanted, proc_ask(app, __VA_ARGS__))

/* The applications of a program's cases. */
#define APPS_MAX 3
extern struct proc apps[APPS_MAX];
#define ask(i, wanted, ...) app_expect(&apps[i], wanted, __VA_ARGS__)
/* End a case: kill the living applications, and end the hosts. */
int apps_teardown(void **state);
#define APPS_TEST(name, ...)                                                                       \
	cmocka_unit_test_prestate_setup_teardown(name, hosts_setup, apps_teardown,                 \
						 HOSTS_OPTS(__VA_ARGS__))

/* Wait until all threads of the process are stopped (MIRROR_STOP_AT of core/killpoint.h, or
 * SIGSTOP). */
void process_wait_stopped(pid_t pid);

/*
 * Returns the tool's exit code on that host; its output is in the file "said" of the hosts' folder.
 */
int host_run_tool(const struct hosts *h, unsigned host, const char *command);

/* The word at that offset in the host's file, read without the library. */
uint64_t host_read_word(const struct hosts *h, unsigned host, uint64_t offset);

#endif
