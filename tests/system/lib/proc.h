/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * proc.h -- other processes of a test. The test starts programs, controls them by lines of text,
 * and kills them by their process ids. They get SIGKILL when the test exits, so that no process is
 * left after a failure.
 */
#ifndef SYSTEM_PROC_H
#define SYSTEM_PROC_H

#include <sys/types.h>

struct proc {
	pid_t pid; /* 0: there is no process */
	int in;    /* standard input of the process */
	int out;   /* standard output of the process */
	char line[1024];
	size_t have; /* number of bytes that arrived after the last line that was returned */
	char more[1024];
};

/* Start a program. envs: "NAME=value" strings for this process only, or NULL. Returns 0 or
 * -errno. */
int proc_start(struct proc *p, const char *const argv[], const char *const envs[]);

/* Returns the process's next line without the newline, or NULL if no line arrives in time, or the
 * process has exited. */
const char *proc_line(struct proc *p, int timeout_ms);

/* Send a line to the process. Returns its answer. */
const char *proc_ask(struct proc *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Send a signal. If the signal is SIGSTOP, all threads of the process have stopped when this call
 * returns. */
void proc_signal(struct proc *p, int sig);
/*
 * Like proc_signal(), for a child that was not started by proc_start(). Does nothing if `child` is
 * not positive.
 */
void proc_signal_child(pid_t child, int sig);

/* Wait until the process exits. Returns its wait status, or -ETIMEDOUT. */
int proc_wait(struct proc *p, int timeout_ms);

/* Send SIGKILL, and reap the process. */
void proc_kill(struct proc *p);

/*
 * Close the standard input of the process, which then exits by itself. If it does not exit in time,
 * kill it. Returns the wait status.
 */
int proc_finish(struct proc *p);

/* The started program calls this, so that it ends together with the process that started it. */
void proc_die_with_parent(void);

#endif
