/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pending.h -- connections of a listening daemon whose initiators have not proved themselves yet.
 *
 * These connections share the listener's process. So a host without a proof costs a greeting and
 * some memory, but none of the processes that serve sessions.
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
 * even on failure. If max connections are pending, the list drops others.
 */
void pendings_add(struct arrivals *pendings, unsigned max, int fd, const char *addr);
/* Remove the connection from the list and close its descriptor. */
void pendings_remove(struct arrivals *pendings, struct pending *pending);
void pendings_remove_all(struct arrivals *pendings);
/*
 * Drop the connections whose deadline has passed. Returns the milliseconds until the next
 * deadline, or -1 without a deadline.
 */
int pendings_check_time(struct arrivals *pendings);

#endif
