/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pending.h -- connections of a listening daemon whose initiators have not proved themselves yet.
 *
 * They share the listener's process. So a host without a proof costs a greeting and some memory,
 * but no process that sessions of other hosts need.
 */
#ifndef RPMEMD_PENDING_H
#define RPMEMD_PENDING_H

#include "rpmemd/direct.h"
#include "service/arrival.h"

struct pending {
	struct arrival arrival;
	int fd;
	char addr[WIRE_ADDR_MAX + 1]; /* address of the initiator */
	struct wire_exchange exchange;
	struct wire_stream stream;
};

/*
 * Add a connection and send its greeting. The list owns the descriptor from now on, and closes it
 * even on failure. If the list has too many connections, it drops others.
 */
void pendings_add(struct arrivals *pendings, unsigned max, int fd, const char *addr);
/* Forget the connection and close its descriptor. */
void pendings_remove(struct arrivals *pendings, struct pending *pending);
void pendings_remove_all(struct arrivals *pendings);
/*
 * Drop overdue connections. Returns the milliseconds until the next deadline, or -1: there is none.
 */
int pendings_check_time(struct arrivals *pendings);

#endif
