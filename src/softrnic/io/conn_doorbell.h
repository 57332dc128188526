/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conn_doorbell.h -- when what was posted is sent.
 *
 * A Write without a completion of its own may wait for what is posted next, and leaves with it by
 * one send of the link. It leaves at the latest when something else is posted, when a CQ of the
 * connection is polled or armed, when enough is collected (qp_tx_may_wait()), after some
 * tens of microseconds by the engine, and before fork(), exit() (conn_exit.c) and the end of its
 * connection or region. Nothing is copied: the source is the library's until the Write is complete,
 * and it is complete when it was sent.
 *
 * A peer may look at its memory for the Write, and no further call may come here. So it waits only
 * where that was worth it on this connection lately.
 */
#ifndef IO_CONN_DOORBELL_H
#define IO_CONN_DOORBELL_H

#include <stdbool.h>

struct conn;

/* With the lock, behind a post to the send queue: conn_settle(), at once or a little later. */
void conn_perform_posted(struct conn *c);
/* With the lock: what waits is sent now. */
void conn_ring(struct conn *c);
/* With the lock: what waits is about to be sent, together with all else. */
void conn_rung(struct conn *c);
/* With the lock, when the alarm has expired: is what waits to be sent? */
bool conn_bell_is_due(struct conn *c);

#endif
