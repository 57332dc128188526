/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * child.h -- ssh as a child process: its three streams, what it says on standard error, its end.
 *
 * The application may wait for all its children, or ignore SIGCHLD, so ssh's exit status may be
 * gone, and its number may be another process's by then. It is therefore signalled and waited for
 * through a descriptor.
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
	int in, out, err; /* ends of sockets whose others are the child's; -1: closed */
	bool ended;
	int status;            /* exit status; 128 + n: signal n; -1: somebody else took it */
	char said[CHILD_SAID]; /* the end of what it wrote on standard error */
	size_t said_len;
};

/* 0 or an errno. */
int child_start(struct child *c, char *const argv[]);
/* Take what is there of standard error, so that the child never waits for room. */
void child_take_said(struct child *c);
/* Wait until there is something to read in c->out (or its end), or until the deadline: ETIMEDOUT.
 * Standard error is taken meanwhile. */
int child_wait_readable(struct child *c, uint64_t deadline);
/* Wait for its end: 0, c->status is set; ETIMEDOUT. Standard error is taken meanwhile. */
int child_wait(struct child *c, uint64_t deadline);
/* Close its streams, give it that long to end, then kill it; take its status. */
void child_end(struct child *c, int grace_ms);
/* In a forked process: close what is its parent's. */
void child_forget(struct child *c);
/* What it said, in one line for people; "" if nothing. */
const char *child_words(const struct child *c, char *buf, size_t size);

#endif
