/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pending.h -- connections of a listening daemon whose initiators have not proved themselves yet.
 *
 * They share the listener's process: a host that proves nothing costs a greeting and some memory,
 * and no process, for which sessions of others would wait.
 */
#ifndef RPMEMD_PENDING_H
#define RPMEMD_PENDING_H

#include "rpmemd/direct.h"

struct pending {
	struct pending *next; /* an older one */
	int fd;
	uint64_t deadline;
	char addr[WIRE_ADDR_MAX + 1]; /* the initiator's */
	struct wire_exchange exchange;
	struct wire_stream stream;
};

struct pendings {
	struct pending *first;
	unsigned max; /* in all; a quarter of it of one address */
};

/* Greet it. The descriptor belongs to the list then, and is closed also on failure. Makes room: of
 * too many the oldest goes, so that slow ones keep out nobody. */
void pendings_add(struct pendings *p, int fd, const char *addr);
/* Forget it and close its descriptor. */
void pendings_remove(struct pendings *p, struct pending *pending);
void pendings_remove_all(struct pendings *p);
/* Milliseconds until the first one is overdue, -1: there is none. Forgets overdue ones. */
int pendings_check_time(struct pendings *p);

#endif
