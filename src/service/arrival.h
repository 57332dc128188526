/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * arrival.h -- the connections of a server in three states: pending (the client still has to prove
 * that it may connect), refused (the reason is being sent), or admitted.
 *
 * The number of pending connections is limited, and one address gets at most a quarter of that
 * number. A time limit ends each connection that is not admitted yet. When the limit is reached,
 * the oldest pending connection is dropped, so that slow clients cannot block new clients. The
 * owner closes the connections that are dropped.
 */
#ifndef SERVICE_ARRIVAL_H
#define SERVICE_ARRIVAL_H

#include <stdint.h>

#include "base/list.h"

enum arrival_state { ARRIVAL_PENDING, ARRIVAL_REFUSED, ARRIVAL_ADMITTED, ARRIVAL_STATES };

/* The owner embeds this in its object of a connection. */
struct arrival {
	struct list node;
	enum arrival_state state;
	const char *addr;  /* address of the client */
	uint64_t deadline; /* time limit for the admission, by the owner's clock */
};

struct arrivals {
	struct list list; /* all connections that are not admitted yet, the oldest first */
	unsigned count[ARRIVAL_STATES];
};

void arrivals_init(struct arrivals *a);
/* The caller fills in *one before this call. */
void arrivals_add(struct arrivals *a, struct arrival *one);
void arrivals_enter(struct arrivals *a, struct arrival *one, enum arrival_state state);
void arrivals_remove(struct arrivals *a, struct arrival *one);
/*
 * Returns the connection to drop before another connection from addr becomes pending. If the
 * address has a quarter of max, this is its oldest pending connection. If max are pending, this is
 * the oldest of all. NULL: no connection need be dropped.
 */
struct arrival *arrivals_surplus(const struct arrivals *a, const char *addr, unsigned max);
/*
 * Returns a connection whose deadline has passed. NULL: there is no such connection, and *nearest
 * is the next deadline, or UINT64_MAX.
 */
struct arrival *arrivals_overdue(const struct arrivals *a, uint64_t now, uint64_t *nearest);

#endif
