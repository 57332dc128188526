/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * proc.h -- other processes of a test: started from a program, controlled by lines of text, ended
 * by their id. They get SIGKILL when the test ends, so that a failed test leaves none.
 */
#ifndef SYSTEM_PROC_H
#define SYSTEM_PROC_H

#include <sys/types.h>

struct proc {
	pid_t pid; /* 0: no process */
	int in;    /* standard input of the process */
	int out;   /* standard output of the process */
	char line[1024];
	size_t have; /* bytes after the last line that was returned */
	char more[1024];
};

/* envs: "NAME=value" strings for this process alone, or NULL. 0 or -errno. */
int proc_start(struct proc *p, const char *const argv[], const char *const envs[]);

/*
 * Returns the next line of the process without the newline, or NULL if no line comes in time or the
 * process has ended.
 */
const char *proc_line(struct proc *p, int timeout_ms);

/* Send a line, and return the answer. */
const char *proc_ask(struct proc *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Send a signal. After SIGSTOP, all threads of the process have stopped when this returns. */
void proc_signal(struct proc *p, int sig);
/*
 * The same as proc_signal() for a process that was started in another way; does nothing unless
 * child is positive.
 */
void proc_signal_child(pid_t child, int sig);

/* Wait for the end of the process. Returns the wait status, or -ETIMEDOUT. */
int proc_wait(struct proc *p, int timeout_ms);

/* Send SIGKILL, and reap the process. */
void proc_kill(struct proc *p);

/*
 * Close the standard input of the process, after which the process ends by itself. Returns the wait
 * status; kills a process that is late.
 */
int proc_finish(struct proc *p);

/* For the started program: the program ends together with the process that started it. */
void proc_die_with_parent(void);

#endif
