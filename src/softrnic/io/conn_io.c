/* SPDX-License-Identifier: BSD-3-Clause */
/* conn_io.c -- moves bytes between the link and the stream, in turns (pieces of work) of bounded
 * length. */
#include <errno.h>

#include "base/clock.h"
#include "softrnic/io/conn_parts.h"

/* The limits of one turn, in bytes and in time. The time limit matters if small messages or a slow
 * machine make each byte expensive. After a turn the thread first serves other connections and
 * timers. */
#define CONN_BUDGET  (1u << 20)
#define CONN_TURN_NS (10 * NSEC_PER_MS)

static bool conn_turn_is_over(struct conn_turn *t)
{
	uint64_t now;

	if (t->moved == 0)
		return false;
	now = clock_now_ns();
	if (!t->begun)
		t->begun = now;
	return t->moved >= CONN_BUDGET || now - t->begun >= CONN_TURN_NS;
}

/* Called when a turn ends with work left. A polling thread continues the work by itself; otherwise
 * the engine continues it. */
static void conn_end_turn(struct conn *c)
{
	c->policy.unfinished = conn_is_polled(c);
	if (!c->policy.unfinished)
		conn_again(c);
}

/* Returns the error that ended the link. The link returns its error only once, so the connection
 * remembers it. */
static int conn_error(struct conn *c)
{
	if (!c->reset)
		c->reset = c->link->ops->error(c->link);
	return c->reset;
}

bool conn_find_reset(struct conn *c, struct stream_update *u)
{
	int err;

	if (!c->readable || !c->link || c->dialing || u->todo & STREAM_DO_RECEIVE)
		return false;
	err = conn_error(c);
	if (err)
		stream_rx_end(c->stream, err, clock_now_ns(), u);
	return err;
}

/*
 * After a reset the peer has given up the connection or has died, and can connect again
 * immediately. The unread bytes of this connection must not be placed after bytes of the peer's
 * next connection, so they are dropped, except a Terminate. Linux reports a reset after the peer's
 * FIN as EPIPE. In that case the peer has disconnected in good order, and all its bytes are
 * executed.
 */
bool conn_is_over(struct conn *c)
{
	int err;

	if (!c->link || c->dialing)
		return false;
	/* cleared before the link is checked, so that a later alarm is not lost */
	atomic_store_explicit(&c->alarm, 0, memory_order_relaxed);
	err = conn_error(c);
	if (err != -ECONNRESET && err != -ETIMEDOUT)
		return false;
	atomic_store_explicit(&c->alarm, 1, memory_order_relaxed);
	return true;
}

/*
 * Search for a Terminate after a reset. A peer that closes its socket with unread bytes, as siw
 * does, sends the reset directly after its Terminate. The Terminate is still in this end's socket.
 * No byte follows the reset, so the loop ends.
 */
static void conn_find_terminate(struct conn *c, struct stream_update *u)
{
	struct stream_rx rx;
	ssize_t got = 1;

	/* on a link in memory the peer reads all bytes before it closes, so there is no such
	 * Terminate */
	if (c->link->ops->in_place)
		return;
	while (got > 0 && stream_rx_give_up(c->stream) && stream_rx_begin(c->stream, &rx, u)) {
		got = c->link->ops->recv(c->link, rx.iov, rx.n);
		stream_rx_end(c->stream, got > 0 ? got : -EAGAIN, clock_now_ns(), u);
	}
}

/*
 * Is the link empty after this receive? If fewer bytes arrived than were requested, the link is
 * empty, and reports the next byte. This is not certain if the last byte was placed in registered
 * memory: if the rest of this memory has vanished, the kernel also returns fewer bytes, and only
 * the next call returns the error.
 */
static bool conn_rx_is_empty(const struct conn *c, size_t got)
{
	const struct link_ops *ops = c->link->ops;

	return got < c->receive.room && got >= c->receive.direct && !c->hangup &&
	       (!ops->in_place || !ops->in_place->pending(c->link, 1));
}

/* Handle the result of a receive. Returns the number of bytes, or 0 if there is nothing more to do
 * now. */
static size_t conn_rx_end(struct conn *c, ssize_t got, uint64_t now, struct stream_update *u)
{
	if (got == 0 && c->reset)
		got = c->reset;
	if (got > 0 && conn_rx_is_empty(c, (size_t)got))
		c->readable = false;
	/* After a fault continue to read: closing with unread bytes causes a reset, which can
	 * overtake this end's Terminate. */
	if (got <= 0)
		c->readable = got == -EINTR || got == -EFAULT;
	stream_rx_end(c->stream, got, now, u);
	return got > 0 ? (size_t)got : c->readable; /* the end of the stream counts as one byte */
}

/* --- over a link in memory ------------------------------------------------------------------ */

/*
 * Build short messages in the link's own memory. Returns their length, or 0 if the caller must use
 * send().
 */
static size_t conn_tx_in_place(struct conn *c)
{
	const struct link_in_place *ops = c->link->ops->in_place;
	size_t room, len;
	void *to;

	if (!ops || !c->writable)
		return 0;
	room = ops->lend(c->link, &to);
	len = room > 0 ? stream_tx_in_place(c->stream, to, room) : 0;
	if (len > 0) {
		ops->commit(c->link, len);
		stream_tx_in_place_end(c->stream, len);
	}
	return len;
}

/* Is an Ack the only message that is due, and does conn_doorbell.c decide when the Ack is sent? */
static bool conn_holds_ack(struct conn *c)
{
	return __builtin_expect(c->policy.holds_ack, 0) && stream_owes_ack_only(c->stream);
}

/*
 * Parse the link's bytes in place. Returns the number of processed bytes, or 0 if none can be
 * processed now. *calm is set to stream_is_calm(). The answer is sent before the bytes are
 * released, because the peer waits for the answer. Only an Ack may have to wait (conn_doorbell.h).
 */
static size_t conn_rx_in_place(struct conn *c, bool *calm)
{
	const struct link_in_place *ops = c->link->ops->in_place;
	const void *bytes;
	size_t taken;
	ssize_t len;

	if (!ops)
		return 0;
	len = ops->look(c->link, &bytes);
	if (len <= 0)
		return 0;
	len = len < CONN_BUDGET ? len : CONN_BUDGET;
	taken = stream_rx_in_place(c->stream, bytes, (size_t)len);
	if (taken == 0)
		return 0;
	*calm = stream_is_calm(c->stream) ||
		(!conn_holds_ack(c) && conn_tx_in_place(c) > 0 && stream_is_calm(c->stream));
	ops->consume(c->link, taken);
	c->readable = c->hangup || ops->pending(c->link, 1);
	return taken;
}

/* Is moving bytes the only work of the connection and its link? */
static bool conn_is_plain(struct conn *c)
{
	return c->link && c->link->ops->in_place && c->writable &&
	       !(c->may_meet | c->policy.unfinished | c->hangup | c->abandoned) && !c->meet &&
	       !c->reset && !conn_can_stall(c) &&
	       !atomic_load_explicit(&c->waiters, memory_order_seq_cst);
}

bool conn_send_directly(struct conn *c)
{
	if (!conn_is_plain(c))
		return false;
	conn_rung(c);
	conn_tx_in_place(c);
	return stream_is_calm(c->stream);
}

bool conn_receive_directly(struct conn *c)
{
	struct stream_update u;
	bool calm;

	if (!conn_is_plain(c))
		return false;
	c->rx_turn = c->tx_turn = (struct conn_turn){0};
	conn_rung(c);
	c->rx_turn.moved = conn_rx_in_place(c, &calm);
	if (c->rx_turn.moved == 0)
		return false;
	if (c->readable || !calm) {
		stream_in_place_end(c->stream, &u);
		conn_perform_and_read(c, &u);
	}
	return true;
}

/* --- turns ---------------------------------------------------------------------------------- */

/* Receive once. The result is that of conn_rx_end(). */
static size_t conn_rx_once(struct conn *c, struct stream_update *u)
{
	struct stream_rx rx;
	size_t taken;
	uint64_t now;
	ssize_t got;
	bool calm;

	if (atomic_load_explicit(&c->alarm, memory_order_relaxed) && conn_is_over(c)) {
		conn_find_terminate(c, u);
		stream_rx_end(c->stream, c->reset, clock_now_ns(), u);
		return 0;
	}
	taken = conn_rx_in_place(c, &calm);
	if (taken > 0) {
		stream_in_place_end(c->stream, u);
		return taken;
	}
	if (!stream_rx_begin(c->stream, &rx, u))
		return 0;
	now = clock_now_ns();
	c->receive.direct = rx.direct;
	got = c->link->ops->recv(c->link, rx.iov, rx.n);
	c->receive.room = link_iov_len(rx.iov, rx.n);
	return conn_rx_end(c, got, now, u);
}

bool conn_receive(void *owner, struct stream_update *u)
{
	struct conn *c = owner;
	size_t n;

	if (!c->reading || !c->readable || !c->link || c->dialing)
		return false;
	if (!conn_may_touch(c)) {
		conn_again(c);
		return false;
	}
	if (conn_turn_is_over(&c->rx_turn)) {
		conn_end_turn(c);
		return false;
	}
	n = conn_rx_once(c, u);
	c->rx_turn.moved += n;
	return n > 0;
}

static void conn_wait_writable(struct conn *c)
{
	c->writable = false;
	if (c->watching)
		return;
	c->watching = true;
	c->link->ops->watch_write(c->link, true);
}

/*
 * A send may be the first call that detects a reset. Bytes that came before the reset are still in
 * the socket. If these bytes must be executed, the engine reads them and then finds the end
 * (conn_rx_end(), conn_find_reset()). Nothing more is sent.
 */
static ssize_t conn_tx_was_reset(struct conn *c, ssize_t err)
{
	if (!c->registered)
		return err;
	if (!c->reset)
		c->reset = (int)err;
	atomic_store_explicit(&c->alarm, 1, memory_order_relaxed);
	c->writable = false;
	c->hangup = c->readable = true;
	conn_again(c);
	return -EAGAIN;
}

/* Send once. Returns the number of sent bytes, or 0 if there is nothing more to do now. */
static size_t conn_tx_once(struct conn *c, struct stream_update *u)
{
	struct iovec iov[QP_TX_IOV];
	size_t in_place = conn_tx_in_place(c);
	ssize_t sent;
	int n;

	if (in_place > 0) {
		stream_look(c->stream, u);
		return in_place;
	}
	n = stream_tx_begin(c->stream, iov, u);
	if (n == 0)
		return 0;
	atomic_store_explicit(&c->policy.sends, true, memory_order_relaxed);
	sent = c->link->ops->send(c->link, iov, n);
	atomic_store_explicit(&c->policy.sends, false, memory_order_relaxed);
	if (sent == -EAGAIN)
		conn_wait_writable(c);
	else if (__builtin_expect(sent == -ECONNRESET || sent == -EPIPE, 0))
		sent = conn_tx_was_reset(c, sent);
	stream_tx_end(c->stream, sent, u);
	return sent > 0 ? (size_t)sent : sent == -EINTR;
}

bool conn_send(void *owner, struct stream_update *u)
{
	struct conn *c = owner;
	size_t n;

	if (conn_holds_ack(c))
		return false;
	conn_rung(c);
	if (!c->writable || !c->link || c->dialing)
		return false;
	if (!conn_may_touch(c) && stream_send_can_stall(c->stream)) {
		/* another thread must send: a load of the due bytes may wait for a file system */
		conn_again(c);
		return false;
	}
	if (conn_turn_is_over(&c->tx_turn)) {
		conn_end_turn(c);
		return false;
	}
	n = conn_tx_once(c, u);
	c->tx_turn.moved += n;
	return n > 0;
}
