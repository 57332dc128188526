/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conn_doorbell.h -- decides when posted requests are sent.
 *
 * A Write without a completion may be deferred until the next post, and is then sent together with
 * the next request. It is sent at the latest in one of these cases: another operation is posted; a
 * CQ of the connection is polled or armed; enough Writes are collected (qp_tx_may_wait()); the
 * engine's alarm expires, after some tens of microseconds; before fork(), exit() (conn_exit.c) and
 * the end of its connection or region. Nothing is copied. The library uses the source until the
 * Write is complete, and sending completes the Write.
 *
 * The peer may poll its memory for the Write while the application makes no further call. So a
 * Write is deferred only if deferring has recently saved sends on this connection.
 *
 * An Ack for bytes that a thread's poll has received may be deferred as well if the poll returns a
 * completion: the thread will probably post an answer now, and the Ack is sent with the answer. The
 * Ack is sent alone after a poll without a completion, when the CQ is armed, and in the cases
 * above. If the program polls its memory, the Ack of a Write that the engine has received may be
 * deferred, too: the program will probably see the Write and post an answer.
 */
#ifndef IO_CONN_DOORBELL_H
#define IO_CONN_DOORBELL_H

#include <stdbool.h>

struct conn;
struct stream_update;

/*
 * Called with the lock after a post to the send queue: calls conn_settle(), now or a little later.
 */
void conn_perform_posted(struct conn *c);
/* Called with the lock, for a polling thread and a link that gathers sends: calls conn_poll(). The
 * Ack may wait for the thread's next post. */
void conn_poll_for_user(struct conn *c, unsigned looks);
/* Called with the lock: does the program poll its memory, and may an Ack wait on this link? */
bool conn_may_hold_acks(const struct conn *c);
/* Called with the lock if conn_may_hold_acks() is true: calls conn_perform_and_read(). The Ack of a
 * Write may wait for the program's next post. */
void conn_read_for_memory(struct conn *c, struct stream_update *u);
/* Called with the lock: send deferred requests now. */
void conn_ring(struct conn *c);
/* Called with the lock: all deferred requests are about to be sent. */
void conn_rung(struct conn *c);
/* Called with the lock after the alarm has expired: must the deferred requests be sent now? */
bool conn_bell_is_due(struct conn *c);

#endif
