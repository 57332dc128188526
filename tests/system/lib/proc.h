/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * proc.h -- other processes of a test: started from a program, controlled by lines of text, ended
 * by their id. They get SIGKILL when the test ends, so that a failed test leaves none behind.
 */
#ifndef SYSTEM_PROC_H
#define SYSTEM_PROC_H

#include <sys/types.h>

struct proc {
	pid_t pid; /* 0: none */
	int in;    /* its standard input */
	int out;   /* its standard output */
	char line[1024];
	size_t have; /* bytes behind the line that was returned last */
	char more[1024];
};

/* envs: "NAME=value" strings for it alone, or NULL. 0 or -errno. */
int proc_start(struct proc *p, const char *const argv[], const char *const envs[]);

/* Its next line, without the newline; NULL when none comes in time, or the process has ended. */
const char *proc_line(struct proc *p, int timeout_ms);

/* Send a line, and get the answer. */
const char *proc_ask(struct proc *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* After SIGSTOP none of its threads runs any more when this returns. */
void proc_signal(struct proc *p, int sig);
/* The same of one that was started otherwise; not above 0: nothing. */
void proc_signal_child(pid_t child, int sig);

/* Wait for its end: its wait status, or -ETIMEDOUT. */
int proc_wait(struct proc *p, int timeout_ms);

/* SIGKILL, and reap. */
void proc_kill(struct proc *p);

/* Close its standard input, after which it ends by itself: its wait status. Killed when late. */
int proc_finish(struct proc *p);

/* For the started program: end with the process that started it. */
void proc_die_with_parent(void);

#endif
