/* SPDX-License-Identifier: BSD-3-Clause */
/* child.h -- the processes of a listening daemon, one for each connection (connection.h). */
#ifndef RPMEMD_CHILD_H
#define RPMEMD_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "rpmemd/options.h"
#include "rpmem/wire/message.h"

#define CHILD_PENDING_MS 10000 /* after which one that has not asked for admission is ended */

enum child_state {
	CHILD_PENDING, /* its initiator has not proved itself */
	CHILD_SERVING,
	CHILD_KILLED, /* it has not been reaped yet */
};

struct child {
	struct child *next; /* an older one */
	pid_t pid;
	int fd; /* to the process; -1: it has closed its end */
	enum child_state state;
	uint64_t deadline;
	char addr[WIRE_ADDR_MAX + 1]; /* the initiator's */
};

struct children {
	struct child *first;
};

/* Start one for the connection, of which it gets a copy. 0 or -errno. */
int children_start(struct children *c, const struct options *opts, int connection,
		   const char *addr);
/* How many, of one address (NULL: of any) and one state. */
unsigned children_count(const struct children *c, const char *addr, enum child_state state);
/* The oldest that is pending, of one address or any; NULL: there is none. */
struct child *children_oldest_pending(const struct children *c, const char *addr);
void child_kill(struct child *child, int sig);
/* Forget those that have ended. */
void children_reap(struct children *c);
/* Milliseconds until the first pending one is overdue, -1: there is none. Ends overdue ones. */
int children_check_time(struct children *c);

#endif
