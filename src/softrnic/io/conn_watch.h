/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conn_watch.h -- the connections that threads of the application are busy with, and the one alarm
 * of the process at which the engine looks whether they still are.
 *
 * A connection is watched while a Write of it waits for the next post, and while it is leased: its
 * link reports no bytes, as threads poll it, or wait for it again and again. Such threads put the
 * alarm off. So the engine is woken only when they have stopped, and then it sends what waits and
 * has the link report again.
 */
#ifndef IO_CONN_WATCH_H
#define IO_CONN_WATCH_H

#include <stdbool.h>
#include <stdint.h>

struct conn;

/*
 * Called when a connection has a link: open the alarm, so that the number of descriptors does not
 * depend on what threads do later. A failure does no harm: it is tried again, or no Write waits.
 */
void watch_prepare(void);

/* The time that a Write waits: at least this, at most twice this. */
uint64_t watch_write_ns(void);
/* With the connection's lock: conn_bell_is_due() is to be asked between `ns` and 2 * `ns` from now.
 * False: there is no alarm. */
bool watch_write(struct conn *c, uint64_t now, uint64_t ns);

/* With the connection's lock: a lease begins, which the engine ends if it is not used. False: there
 * is no alarm. */
bool watch_lease(struct conn *c, uint64_t now);
void watch_lease_end(struct conn *c);

/* The next connection, of *left that were watched, with a Write that waits; NULL: no more. The
 * reference is the caller's. At first *left is watch_count(). */
unsigned watch_count(void);
struct conn *watch_next_write(unsigned *left);

/* fork.c */
void watch_atfork_prepare(void);
void watch_atfork_parent(void);
void watch_atfork_child(void);

#endif
