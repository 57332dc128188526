/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * apps.h -- starts applications on the hosts of hosts.h (app_main.c), sends them commands, and
 * checks their answers. A failure fails the test.
 */
#ifndef SYSTEM_MIRROR_APPS_H
#define SYSTEM_MIRROR_APPS_H

#include "hosts.h"

/* Start an application. For envs see proc_start(); at most 5 entries. */
void app_start(struct proc *app, const struct hosts *h, unsigned host, const char *const envs[]);
/* app_tell() sends a command. app_check() then checks the answer. */
void app_tell(struct proc *app, const char *command);
/* Assert that the line begins with `wanted`. */
void app_check(const char *wanted, const char *line);

#define app_expect(app, wanted, ...) app_check(wanted, proc_ask(app, __VA_ARGS__))

/* The applications that the cases of a program use. */
#define APPS_MAX 3
extern struct proc apps[APPS_MAX];
#define ask(i, wanted, ...) app_expect(&apps[i], wanted, __VA_ARGS__)
/* Tear-down of a case: kill the applications that still run, and stop the hosts. */
int apps_teardown(void **state);
#define APPS_TEST(name, ...)                                                                       \
	cmocka_unit_test_prestate_setup_teardown(name, hosts_setup, apps_teardown,                 \
						 HOSTS_OPTS(__VA_ARGS__))

/* Wait until all threads of the process are stopped, by MIRROR_STOP_AT (core/killpoint.h) or
 * SIGSTOP. */
void process_wait_stopped(pid_t pid);

/* Run rpmirror on this host. Returns its exit code; its output is in the file "said" in the hosts'
 * folder. */
int host_run_tool(const struct hosts *h, unsigned host, const char *command);

/* Returns the word at this offset in the host's file, read without the library. */
uint64_t host_read_word(const struct hosts *h, unsigned host, uint64_t offset);

#endif
