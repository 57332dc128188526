/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conn_doorbell.h -- when posted requests are sent.
 *
 * A Write without a completion of its own may wait for the next post, and leaves with it by one
 * send of the link. It leaves at the latest in one of these cases: another operation is posted; a
 * CQ of the connection is polled or armed; enough Writes are collected (qp_tx_may_wait()); the
 * engine's alarm expires, after some tens of microseconds; before fork(), exit() (conn_exit.c) and
 * the end of its connection or region. Nothing is copied. The source is the library's until the
 * Write is complete, and the Write is complete when it was sent.
 *
 * A peer may look at its memory for the Write while the application makes no further call. So a
 * Write waits only where that was worth it on this connection lately.
 *
 * An Ack of what a thread has received in its poll may wait likewise, if the poll returns a
 * completion: the thread may answer now, and the Ack leaves with the answer. It leaves alone when a
 * poll finds nothing, when the CQ is armed, and in the cases above.
 */
#ifndef IO_CONN_DOORBELL_H
#define IO_CONN_DOORBELL_H

#include <stdbool.h>

struct conn;

/* With the lock, after a post to the send queue: conn_settle(), at once or a little later. */
void conn_perform_posted(struct conn *c);
/*
 * With the lock: conn_poll() of a link that gathers sends, for a thread that polls. Its Ack may wait
 * for what it posts next.
 */
void conn_poll_for_user(struct conn *c, unsigned looks);
/* With the lock: send now what waits to be sent. */
void conn_ring(struct conn *c);
/* With the lock: all that waits is about to be sent. */
void conn_rung(struct conn *c);
/* With the lock, after the alarm has expired: is what waits to be sent now? */
bool conn_bell_is_due(struct conn *c);

#endif
