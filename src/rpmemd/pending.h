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
#include "service/arrival.h"

struct pending {
	struct arrival arrival;
	int fd;
	char addr[WIRE_ADDR_MAX + 1]; /* the initiator's */
	struct wire_exchange exchange;
	struct wire_stream stream;
};

/* Greet it. The descriptor belongs to the list then, and is closed also on failure. Drops others if
 * there are too many. */
void pendings_add(struct arrivals *pendings, unsigned max, int fd, const char *addr);
/* Forget it and close its descriptor. */
void pendings_remove(struct arrivals *pendings, struct pending *pending);
void pendings_remove_all(struct arrivals *pendings);
/* Milliseconds until the first one is overdue, -1: there is none. Forgets overdue ones. */
int pendings_check_time(struct arrivals *pendings);

#endif
