/* SPDX-License-Identifier: BSD-3-Clause */
/* child.h -- the processes of a listening daemon: each serves one connection (connection.h). */
#ifndef RPMEMD_CHILD_H
#define RPMEMD_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "rpmemd/direct.h"
#include "rpmemd/options.h"

struct child {
	struct child *next; /* the next older process */
	pid_t pid;
	bool is_killed;               /* the process was killed, but is not reaped yet */
	char addr[WIRE_ADDR_MAX + 1]; /* address of the initiator */
};

struct children {
	struct child *first;
};

/*
 * Start a process for the connection, and give it a copy of the connection and the keys of the
 * proof. Returns 0 or -errno.
 */
int children_start(struct children *c, const struct options *opts, int connection, const char *addr,
		   const struct direct_start *start);
/* Returns the number of processes that serve one address (NULL: any address). */
unsigned children_count(const struct children *c, const char *addr);
void child_kill(struct child *child, int sig);
/* Remove the processes that have ended from the list. */
void children_reap(struct children *c);

#endif
