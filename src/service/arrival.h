/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * arrival.h -- the connections of a server in three states: pending (the client still has to prove
 * that it may connect), refused (the reason is being sent), or admitted.
 *
 * The number of pending connections is limited; one address gets at most a quarter of it. The time
 * until a connection is admitted or has ended is limited, too. When the limit is reached, the
 * oldest pending connection is dropped, so that slow clients cannot keep out others. The owner
 * closes the connections that are dropped.
 */
#ifndef SERVICE_ARRIVAL_H
#define SERVICE_ARRIVAL_H

#include <stdint.h>

#include "base/list.h"

enum arrival_state { ARRIVAL_PENDING, ARRIVAL_REFUSED, ARRIVAL_ADMITTED, ARRIVAL_STATES };

/* A member of the owner's object. */
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
/* The caller has set the members of *one. */
void arrivals_add(struct arrivals *a, struct arrival *one);
void arrivals_enter(struct arrivals *a, struct arrival *one, enum arrival_state state);
void arrivals_remove(struct arrivals *a, struct arrival *one);
/*
 * The connection to drop before another connection from addr becomes pending: the oldest of this
 * address if the address has its share of max, or the oldest of all if max are pending. NULL: there
 * is room.
 */
struct arrival *arrivals_surplus(const struct arrivals *a, const char *addr, unsigned max);
/*
 * A connection whose time is over. NULL: there is no such connection, and *nearest is the next
 * deadline, or UINT64_MAX.
 */
struct arrival *arrivals_overdue(const struct arrivals *a, uint64_t now, uint64_t *nearest);

#endif
