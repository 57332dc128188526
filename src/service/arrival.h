/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * arrival.h -- the connections of a server in three states: pending (the client still has to prove
 * that it may connect), refused (the reason is being sent), or admitted.
 *
 * The number of pending connections is limited, for one address to a quarter of it. The time until
 * a connection is admitted or has ended is limited, too. When the limit is reached, the oldest
 * pending connection is dropped, so that slow clients cannot keep out others. The owner of the
 * connections drops them.
 */
#ifndef SERVICE_ARRIVAL_H
#define SERVICE_ARRIVAL_H

#include <stdint.h>

#include "base/list.h"

enum arrival_state { ARRIVAL_PENDING, ARRIVAL_REFUSED, ARRIVAL_ADMITTED, ARRIVAL_STATES };

/* In the owner's object. */
struct arrival {
	struct list node;
	enum arrival_state state;
	const char *addr;  /* the client's */
	uint64_t deadline; /* until it is admitted, by the owner's clock */
};

struct arrivals {
	struct list list; /* all that are not admitted, the oldest first */
	unsigned count[ARRIVAL_STATES];
};

void arrivals_init(struct arrivals *a);
/* Its members are set. */
void arrivals_add(struct arrivals *a, struct arrival *one);
void arrivals_enter(struct arrivals *a, struct arrival *one, enum arrival_state state);
void arrivals_remove(struct arrivals *a, struct arrival *one);
/* The one to drop before another one from addr becomes pending: the oldest pending one from that
 * address if it has its share of max, or of all if there are max. NULL: there is room. */
struct arrival *arrivals_surplus(const struct arrivals *a, const char *addr, unsigned max);
/* One whose time is over. NULL: there is none, and the next deadline is *nearest, or UINT64_MAX. */
struct arrival *arrivals_overdue(const struct arrivals *a, uint64_t now, uint64_t *nearest);

#endif
