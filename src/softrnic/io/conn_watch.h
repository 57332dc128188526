/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conn_watch.h -- the connections with which threads of the application are busy. At one alarm of
 * the process the engine checks whether they still are.
 *
 * A connection is watched while it has a deferred Write, and while it is leased: its link reports
 * no bytes, because threads poll it, or wait for it repeatedly. Such threads put the alarm off. So
 * the alarm wakes the engine only after they have stopped. Then the engine sends deferred requests
 * and has the link report again.
 */
#ifndef IO_CONN_WATCH_H
#define IO_CONN_WATCH_H

#include <stdbool.h>
#include <stdint.h>

struct conn;

/*
 * Called when a connection gets a link: open the alarm now, so that the number of descriptors does
 * not depend on later events. A failure does no harm: the open is repeated later, and without an
 * alarm no Write is deferred.
 */
void watch_prepare(void);

/* Delay of a deferred Write: at least this, at most twice this. */
uint64_t watch_write_ns(void);
/* Called with the connection's lock: have conn_bell_is_due() called between `ns` and 2 * `ns` from
 * now. Returns false if there is no alarm. */
bool watch_write(struct conn *c, uint64_t now, uint64_t ns);

/* Called with the connection's lock: begin a lease, which the engine ends if it is unused. Returns
 * false if there is no alarm. */
bool watch_lease(struct conn *c, uint64_t now);
void watch_lease_end(struct conn *c);

/* Returns the next connection with a deferred Write among the *left watched ones, with a reference;
 * NULL: no more. *left starts with watch_count(). */
unsigned watch_count(void);
struct conn *watch_next_write(unsigned *left);

/* fork.c */
void watch_atfork_prepare(void);
void watch_atfork_parent(void);
void watch_atfork_child(void);

#endif
