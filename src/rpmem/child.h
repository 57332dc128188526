/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * child.h -- runs ssh as a child process: its three streams, its messages on standard error, and
 * its exit.
 *
 * The application may wait for all its children, or ignore SIGCHLD. Then ssh's exit status is gone,
 * and another process may have its process number. So a descriptor of the process (pidfd_open(2))
 * is used to signal ssh and to wait for its exit.
 */
#ifndef RPMEM_CHILD_H
#define RPMEM_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CHILD_SAID 4096

struct child {
	pid_t pid;
	int pidfd;
	int in, out, err; /* this process's ends of the three sockets; -1: closed */
	bool ended;
	/* exit status; 128 + n: killed by signal n; -1: the application took the status */
	int status;
	char said[CHILD_SAID]; /* the last part of the child's output on standard error */
	size_t said_len;
};

/* Returns 0 or an errno. */
int child_start(struct child *c, char *const argv[]);
/* Read the pending bytes of standard error, so that the child never blocks in writing to it. */
void child_take_said(struct child *c);
/*
 * Wait until c->out has bytes or is at its end. ETIMEDOUT: the deadline has passed. Meanwhile the
 * call reads standard error.
 */
int child_wait_readable(struct child *c, uint64_t deadline);
/* Wait until the child exits. 0: c->status is set. ETIMEDOUT: the deadline has passed. Meanwhile
 * the call reads standard error. */
int child_wait(struct child *c, uint64_t deadline);
/* Close the streams, wait at most grace_ms until the child exits, then kill the child if it still
 * runs. Take its status. */
void child_end(struct child *c, int grace_ms);
/* In a forked process: close the parent's descriptors. */
void child_forget(struct child *c);
/* Write the child's last output to buf as one printable line; "" if there is no output. */
const char *child_words(const struct child *c, char *buf, size_t size);

#endif
