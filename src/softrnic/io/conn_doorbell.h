/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conn_doorbell.h -- decides when posted requests are sent.
 *
 * A Write without a completion may be deferred until the next post, and is then sent together with
 * the next request. It is sent at the latest in one of these cases: another operation is posted; a
 * CQ of the connection is polled or armed; enough Writes are collected (qp_tx_may_wait()); the
 * engine's alarm expires, after some tens of microseconds; fork() or exit() is called
 * (conn_exit.c); its connection is closed; its region is deregistered. Nothing is copied. The
 * library reads the Write's source memory until the Write is complete, and sending completes the
 * Write.
 *
 * The peer may poll its memory for the Write while the application makes no further call. So a
 * Write is deferred only if deferring has recently saved sends on this connection.
 *
 * An Ack for bytes that a thread's poll has received may be deferred as well if the poll returns a
 * completion: the thread will probably post an answer now, and the Ack is sent with the answer. The
 * same holds for bytes that a waiting thread has received. The Ack is sent alone after a poll
 * without a completion, when a CQ without completions is armed, when a wait begins, and in the cases
 * above. If the program polls its memory, the Ack of a Write that the engine has received may be
 * deferred, too: the program will probably see the Write and post an answer.
 */
#ifndef IO_CONN_DOORBELL_H
#define IO_CONN_DOORBELL_H

#include <stdbool.h>

struct conn;
struct stream_update;

/*
 * Performs the tasks that are due after a post to the send queue, like conn_settle(), or defers the
 * posted requests. The caller holds the lock.
 */
void conn_perform_posted(struct conn *c);
/* Calls conn_poll() for a polling thread, and defers the Ack if it is all that the connection has
 * to send and the poll has added a completion: the thread's next post then takes the Ack along. The
 * caller holds the lock, and calls this only for a link whose `gathers_sends` is true. */
void conn_poll_for_user(struct conn *c, unsigned looks);
/* Calls conn_poll() for a thread that has waited for the link, and defers the Ack as
 * conn_poll_for_user() does, if the link gathers sends. The caller holds the lock. */
void conn_poll_for_wait(struct conn *c);
/* Sends the deferred Ack, if there is one, because the program arms a CQ without completions, or
 * waits. The caller holds the lock. */
void conn_ack_in_vain(struct conn *c);
/* Does the same for a caller that does not hold the lock. If another thread holds the lock, that
 * thread sends the Ack, and the Ack does not count as deferred in vain. */
void conn_ack_in_vain_soon(struct conn *c);
/* Does the program poll its memory, and does the link gather sends, so that an Ack may be deferred?
 * The caller holds the lock. */
bool conn_may_hold_acks(const struct conn *c);
/* Calls conn_perform_and_read(), and defers the Ack of a Write if it is all that the connection has
 * to send: the program's next post then takes the Ack along. The caller holds the lock, and calls
 * this only if conn_may_hold_acks() is true. */
void conn_read_for_memory(struct conn *c, struct stream_update *u);
/* Sends deferred requests now. The caller holds the lock. */
void conn_ring(struct conn *c);
/* Records that no request is deferred any more. The caller holds the lock, and sends the deferred
 * requests next. */
void conn_rung(struct conn *c);
/* Must the deferred requests be sent now? Called after the alarm has expired; the caller holds the
 * lock. If the result is false and requests are deferred, the alarm is set again. */
bool conn_bell_is_due(struct conn *c);

#endif
