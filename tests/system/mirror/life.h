/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * life.h -- the life of a set: three hosts, and a client that is primary (clients.h). The set
 * starts, a part fails, and the set recovers. At the end the histories of the clients are checked.
 * A failure fails the test.
 */
#ifndef SYSTEM_MIRROR_LIFE_H
#define SYSTEM_MIRROR_LIFE_H

#include "clients.h"
#include "sim/prng.h"

#define LIFE_HOSTS   3
#define LIFE_ALL     7
#define LIFE_NO_HOST LIFE_HOSTS
#define LIFE_GROWTH  (64ull << 10) /* bytes that one order adds to the set */

struct life {
	struct hosts hosts;
	struct clients all;
	struct client primary; /* pid 0: there is no process */
	struct prng chance;
	struct proc order; /* the operator's command that is running; pid 0: none */
	char size[24];     /* the size that this command requests */
	/* is_marked: the daemon was started with a setting that can kill it */
	bool is_marked[LIFE_HOSTS];
};

void life_begin(struct life *l);
void life_end(struct life *l, struct clients_counts *counts);
/* End all processes after a failure. */
void life_abort(struct life *l);

/* Returns true if SIGKILL has ended the daemon within this time. */
bool life_is_daemon_dead(struct life *l, unsigned host, int timeout_ms);
/* End the daemon, and start it again. Returns false if the new daemon dies before it listens. */
bool life_restart(struct life *l, unsigned host, const char *const envs[]);
/*
 * Act as an operator who replaces the failed copy of a host; the primary is on another host.
 * Returns false if the copy has not failed, or if its restarted daemon no longer reports the
 * failure.
 */
bool life_replace_failed(struct life *l, unsigned host);
/* Returns a random host of the in-sync set, other than `other_than`. */
unsigned life_some_host(struct life *l, unsigned other_than);
/* Kill the primary, and start another process on this host, which takes over the role. */
struct client life_follow(struct life *l, unsigned host, const char *const envs[]);
/* Order the set's growth through the daemon of this host, like an operator. The daemon can refuse
 * the order. */
void life_order_growth(struct life *l, unsigned host);
/* Wait until the order is carried out. Returns true if the daemon died within this time. */
bool life_grow_until_dead(struct life *l, unsigned host, int timeout_ms);
/* Start all processes again, and wait until all copies are in-sync. */
void life_recover(struct life *l);

#endif
