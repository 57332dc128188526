/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * life.h -- a set of three hosts with a client that is primary (clients.h): it begins, something
 * fails, all recover, and in the end what clients read and wrote is judged. A failure fails the
 * test.
 */
#ifndef SYSTEM_MIRROR_LIFE_H
#define SYSTEM_MIRROR_LIFE_H

#include "clients.h"
#include "sim/prng.h"

#define LIFE_HOSTS   3
#define LIFE_ALL     7
#define LIFE_NO_HOST LIFE_HOSTS
#define LIFE_GROWTH  (64ull << 10) /* by so many bytes */

struct life {
	struct hosts hosts;
	struct clients all;
	struct client primary; /* pid 0: none */
	struct prng chance;
	struct proc order;          /* of an operator; pid 0: none */
	char size[24];              /* that it asks for */
	bool is_marked[LIFE_HOSTS]; /* a daemon that was started with something that may kill it */
};

void life_begin(struct life *l);
void life_end(struct life *l, struct clients_counts *counts);
/* After a failure: no process is left. */
void life_abort(struct life *l);

/* True: it has ended by SIGKILL, within that time. */
bool life_is_daemon_dead(struct life *l, unsigned host, int timeout_ms);
/* Ended, and started again. False: it has died before it listened. */
bool life_restart(struct life *l, unsigned host, const char *const envs[]);
/* An operator gives the member of a host whose copy has failed a new one; another host has the
 * primary. False: it has not failed, or says so no more when its daemon was started again. */
bool life_replace_failed(struct life *l, unsigned host);
/* Of the in-sync set, by chance. */
unsigned life_some_host(struct life *l, unsigned other_than);
/* The primary dies, and another process follows it on that host. */
struct client life_follow(struct life *l, unsigned host, const char *const envs[]);
/* An operator orders, by that host's daemon, that the set gets larger. It may be refused. */
void life_order_growth(struct life *l, unsigned host);
/* Until it is carried out, or that daemon is dead (true) within that time. */
bool life_grow_until_dead(struct life *l, unsigned host, int timeout_ms);
/* Everybody is there again, and all copies are in-sync. */
void life_recover(struct life *l);

#endif
