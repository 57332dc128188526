/* SPDX-License-Identifier: BSD-3-Clause */
/* conn_io.c -- bytes between the link and the stream, in turns of bounded length. */
#include <errno.h>

#include "base/clock.h"
#include "softrnic/io/bufs.h"
#include "softrnic/io/conn_parts.h"

/*
 * One turn moves at most so much, or takes so long where small messages or a slow machine make
 * bytes expensive; then others, and the timers, get theirs.
 */
#define CONN_BUDGET  (1u << 20)
#define CONN_TURN_NS (10 * NSEC_PER_MS)

struct turn {
	size_t moved;
	uint64_t begun; /* of its second piece: most turns have one, and need no clock */
};

static bool turn_is_over(struct turn *t)
{
	uint64_t now;

	if (t->moved == 0)
		return false;
	now = clock_now_ns();
	if (!t->begun)
		t->begun = now;
	return t->moved >= CONN_BUDGET || now - t->begun >= CONN_TURN_NS;
}

static bool conn_lend_rx(struct conn *c)
{
	void *buf;

	if (!stream_rx_needs_buf(c->stream))
		return true;
	buf = buf_get(BUF_RX);
	if (buf)
		qp_rx_lend(c->qp, buf);
	return buf != NULL;
}

void conn_reclaim(struct conn *c)
{
	if (!c->qp)
		return;
	if (!c->receive.pending)
		buf_put(BUF_RX, qp_rx_reclaim(c->qp));
	buf_put(BUF_TX, qp_tx_reclaim(c->qp));
}

/*
 * What the link said instead of bytes. The memory that was offered must be let go in any case.
 * After a fault the rest is read all the same: a close with bytes unread is a reset, which may
 * overtake our Terminate.
 */
static void conn_rx_nothing(struct conn *c, int err, uint64_t now)
{
	c->readable = err == EINTR || err == EFAULT || err == ECANCELED;
	if (err == EFAULT) {
		stream_rx_fault(c->stream, now);
		return;
	}
	stream_rx_got(c->stream, 0, now);
	if (err == 0)
		stream_rx_eof(c->stream, now);
	else if (err != EAGAIN && err != EINTR && err != ECANCELED)
		stream_rx_error(c->stream, err, now);
}

/* While nothing can be taken a reset would go unseen, because nobody reads up to it. */
static void conn_rx_stalled(struct conn *c, uint64_t now)
{
	int err = c->hangup ? c->link->ops->error(c->link) : 0;

	if (err)
		stream_rx_error(c->stream, -err, now);
}

/*
 * Fewer bytes than there was room for: the link is empty, and the next byte is reported. But not
 * if they end in registered memory: the kernel stops there as well when the memory has vanished,
 * and says so only to the next call. A link that goes on by itself gets the next receive at once.
 */
static bool conn_rx_is_empty(const struct conn *c, size_t got)
{
	return got < c->receive.room && got >= c->receive.direct && !c->hangup &&
	       !c->link->ops->recv_end;
}

/*
 * The end of a receive, whatever came of it: from here on the link does not write to the memory,
 * and the stream lets go of it. Returns bytes taken; 0: nothing more to do now.
 */
static size_t conn_rx_end(struct conn *c, ssize_t got, uint64_t now)
{
	c->receive.pending = false;
	if (got > 0) {
		if (conn_rx_is_empty(c, (size_t)got))
			c->readable = false;
		stream_rx_got(c->stream, (size_t)got, now);
		return (size_t)got;
	}
	conn_rx_nothing(c, (int)-got, now);
	return c->readable; /* as if it were one byte */
}

/* Begin a receive, which as a rule ends at once. Returns as conn_rx_end(). */
static size_t conn_rx_once(struct conn *c)
{
	struct iovec iov[QP_RX_IOV];
	uint64_t now = clock_now_ns();
	ssize_t got;
	int n;

	if (!conn_lend_rx(c)) {
		stream_rx_error(c->stream, ENOMEM, now);
		return 0;
	}
	n = stream_rx_want(c->stream, iov);
	if (n == 0) {
		conn_rx_stalled(c, now);
		return 0;
	}
	c->receive.direct = c->qp ? qp_rx_direct(c->qp) : 0;
	got = link_recv(c->link, iov, n);
	c->receive.room = link_iov_len(iov, n);
	c->receive.pending = got == -EINPROGRESS;
	return c->receive.pending ? 0 : conn_rx_end(c, got, now);
}

void conn_rx_ended(struct conn *c)
{
	if (c->receive.pending)
		conn_rx_end(c, c->link->ops->recv_end(c->link), clock_now_ns());
}

void conn_cancel_receive(struct conn *c)
{
	if (!c->receive.pending)
		return;
	conn_rx_end(c, c->link->ops->recv_cancel(c->link), clock_now_ns());
	conn_again(c);
}

void conn_rx(struct conn *c)
{
	struct turn t = {0};

	while (c->readable && c->link && !c->dialing && !c->receive.pending) {
		size_t n;

		if (!conn_may_touch(c) || turn_is_over(&t)) {
			conn_again(c);
			return;
		}
		n = conn_rx_once(c);
		if (n == 0)
			return;
		t.moved += n;
	}
}

static ssize_t conn_send(struct conn *c, struct iovec *iov, int n)
{
	if (c->cut_armed && c->cut_left == 0) {
		c->link->ops->cut(c->link);
		return -ECONNRESET;
	}
	if (c->cut_armed)
		link_iov_shorten(iov, n, c->cut_left);
	return c->link->ops->send(c->link, iov, n);
}

static void conn_wait_writable(struct conn *c)
{
	c->writable = false;
	if (c->watching)
		return;
	c->watching = true;
	c->link->ops->watch_write(c->link, true);
}

/* One send. Returns bytes taken; 0: nothing more to do now. */
static size_t conn_tx_once(struct conn *c)
{
	struct iovec iov[QP_TX_IOV];
	uint64_t now;
	ssize_t sent;
	int n;

	if (stream_tx_needs_buf(c->stream)) {
		void *buf = buf_get(BUF_TX);

		if (!buf) {
			stream_tx_error(c->stream, ENOMEM, clock_now_ns());
			return 0;
		}
		qp_tx_lend(c->qp, buf);
	}
	n = stream_tx_gather(c->stream, iov);
	if (n == 0)
		return 0;
	sent = conn_send(c, iov, n);
	now = clock_now_ns();
	if (sent > 0) {
		if (c->cut_armed)
			c->cut_left -= (size_t)sent;
		stream_tx_sent(c->stream, (size_t)sent, now);
		return (size_t)sent;
	}
	if (sent == -EAGAIN)
		conn_wait_writable(c);
	else if (sent == -EFAULT)
		stream_tx_fault(c->stream, now);
	else if (sent != -EINTR)
		stream_tx_error(c->stream, (int)-sent, now);
	return sent == -EINTR;
}

/* To build and send what is due may take loads from memory that waits for a file system. */
static bool conn_tx_must_wait(struct conn *c)
{
	return c->qp && !conn_may_touch(c) && qp_tx_can_stall(c->qp);
}

void conn_tx(struct conn *c)
{
	struct turn t = {0};

	while (c->writable && c->link && !c->dialing) {
		size_t n;

		if (conn_tx_must_wait(c) || turn_is_over(&t)) {
			conn_again(c);
			return;
		}
		n = conn_tx_once(c);
		if (n == 0)
			return;
		t.moved += n;
	}
}
