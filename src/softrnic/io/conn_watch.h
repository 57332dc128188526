/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conn_watch.h -- lists the connections with which threads of the application are busy. The process
 * has one alarm for them. When it expires, the engine checks whether the threads are still busy.
 *
 * A connection is watched while it has a deferred Write, and while it is leased, that is, while its
 * link reports no bytes because threads poll it or wait for it repeatedly. Such threads put off the
 * alarm, so the alarm wakes the engine only after they have stopped. The engine then sends deferred
 * requests and makes the link report bytes again.
 */
#ifndef IO_CONN_WATCH_H
#define IO_CONN_WATCH_H

#include <stdbool.h>
#include <stdint.h>

struct conn;

/*
 * Called when a connection gets a link: open the alarm now, so that the process does not need a
 * descriptor for it at an arbitrary later time. A failure does no harm: the open is repeated later,
 * and no Write is deferred without an alarm.
 */
void watch_prepare(void);

/* Delay of a deferred Write: at least the returned time, and at most twice this time. */
uint64_t watch_write_ns(void);
/* Cause a call of conn_bell_is_due() between `ns` and 2 * `ns` from now. Returns false if there is
 * no alarm. The caller holds the connection's lock. */
bool watch_write(struct conn *c, uint64_t now, uint64_t ns);

/* Begin a lease. The engine ends the lease if it is not used. Returns false if there is no alarm.
 * The caller holds the connection's lock. */
bool watch_lease(struct conn *c, uint64_t now);
void watch_lease_end(struct conn *c);

/* Returns the next connection with a deferred Write among the *left remaining ones, with a
 * reference, or NULL if there is none. Before the first call *left is watch_count(). */
unsigned watch_count(void);
struct conn *watch_next_write(unsigned *left);

/* Called by fork.c. */
void watch_atfork_prepare(void);
void watch_atfork_parent(void);
void watch_atfork_child(void);

#endif
