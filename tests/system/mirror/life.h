/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * life.h -- a set of three hosts with a client that is primary (clients.h): it begins, a part
 * fails, everything recovers, and at the end the operations of the clients are judged. A failure
 * fails the test.
 */
#ifndef SYSTEM_MIRROR_LIFE_H
#define SYSTEM_MIRROR_LIFE_H

#include "clients.h"
#include "sim/prng.h"

#define LIFE_HOSTS   3
#define LIFE_ALL     7
#define LIFE_NO_HOST LIFE_HOSTS
#define LIFE_GROWTH  (64ull << 10) /* growth in one order, in bytes */

struct life {
	struct hosts hosts;
	struct clients all;
	struct client primary; /* pid 0: none */
	struct prng chance;
	struct proc order; /* an operator's command under way; pid 0: none */
	char size[24];     /* size that the order asks for */
	/* whether the daemon was started with a setting that may kill it */
	bool is_marked[LIFE_HOSTS];
};

void life_begin(struct life *l);
void life_end(struct life *l, struct clients_counts *counts);
/* After a failure: end all processes. */
void life_abort(struct life *l);

/* True: the daemon has ended by SIGKILL within that time. */
bool life_is_daemon_dead(struct life *l, unsigned host, int timeout_ms);
/* End the daemon, and start it again. False: the new daemon died before it listened. */
bool life_restart(struct life *l, unsigned host, const char *const envs[]);
/*
 * An operator replaces the failed copy of a host; another host has the primary. False: the copy has
 * not failed, or does not report that any more after its daemon was restarted.
 */
bool life_replace_failed(struct life *l, unsigned host);
/* A random host of the in-sync set. */
unsigned life_some_host(struct life *l, unsigned other_than);
/* Kill the primary, and let another process follow on that host. */
struct client life_follow(struct life *l, unsigned host, const char *const envs[]);
/* An operator orders the set to grow, through that host's daemon. The order may be refused. */
void life_order_growth(struct life *l, unsigned host);
/* Wait until the order is carried out, or that daemon is dead (true) within that time. */
bool life_grow_until_dead(struct life *l, unsigned host, int timeout_ms);
/* Start all processes again, and wait until all copies are in-sync. */
void life_recover(struct life *l);

#endif
