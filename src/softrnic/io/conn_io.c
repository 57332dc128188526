/* SPDX-License-Identifier: BSD-3-Clause */
/* conn_io.c -- bytes between the socket and the stream, in turns of bounded length. */
#include <errno.h>
#include <sys/socket.h>

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

static size_t iov_total(const struct iovec *iov, int n)
{
	size_t total = 0;

	for (int i = 0; i < n; i++)
		total += iov[i].iov_len;
	return total;
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
	buf_put(BUF_RX, qp_rx_reclaim(c->qp));
	buf_put(BUF_TX, qp_tx_reclaim(c->qp));
}

/*
 * What recvmsg said instead of bytes. The memory that was offered must be let go in any case.
 * After a fault the rest is read all the same: a close with bytes unread is a reset, which may
 * overtake our Terminate.
 */
static void conn_rx_nothing(struct conn *c, int err, uint64_t now)
{
	c->readable = err == EINTR || err == EFAULT;
	if (err == EFAULT) {
		stream_rx_fault(c->stream, now);
		return;
	}
	stream_rx_got(c->stream, 0, now);
	if (err == 0)
		stream_rx_eof(c->stream, now);
	else if (err != EAGAIN && err != EINTR)
		stream_rx_error(c->stream, err, now);
}

/* While nothing can be taken a reset would go unseen, because nobody reads up to it. */
static void conn_rx_stalled(struct conn *c, uint64_t now)
{
	int err = 0;
	socklen_t len = sizeof(err);

	if (c->hangup && !getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &err, &len) && err) {
		trace_error(c->trace, err);
		stream_rx_error(c->stream, err, now);
	}
}

/*
 * Fewer bytes than there was room for: the socket is empty, and the next byte a new edge. But not
 * if they end in registered memory: the kernel stops there as well when the memory has vanished,
 * and says so only to the next call.
 */
static bool conn_rx_is_empty(const struct conn *c, size_t got, size_t room, size_t direct)
{
	return got < room && got >= direct && !c->hangup;
}

/* Afterwards msg is as long as what was asked for. */
static ssize_t conn_recvmsg(struct conn *c, struct msghdr *msg)
{
	if (__builtin_expect(c->trace != NULL, 0))
		return trace_recvmsg(c->trace, c->fd, msg);
	return recvmsg(c->fd, msg, MSG_DONTWAIT);
}

/* One recvmsg. Returns bytes taken; 0: nothing more to do now. */
static size_t conn_rx_once(struct conn *c)
{
	struct iovec iov[QP_RX_IOV];
	struct msghdr msg = {.msg_iov = iov};
	uint64_t now = clock_now_ns();
	size_t direct;
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
	msg.msg_iovlen = (size_t)n;
	direct = c->qp ? qp_rx_direct(c->qp) : 0;
	got = conn_recvmsg(c, &msg);
	if (got > 0) {
		if (conn_rx_is_empty(c, (size_t)got, iov_total(iov, n), direct))
			c->readable = false;
		stream_rx_got(c->stream, (size_t)got, now);
		return (size_t)got;
	}
	conn_rx_nothing(c, got == 0 ? 0 : errno, now);
	return c->readable; /* as if it were one byte */
}

void conn_rx(struct conn *c)
{
	struct turn t = {0};

	while (c->readable && c->fd >= 0 && !c->dialing) {
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

static ssize_t conn_sendmsg(struct conn *c, struct msghdr *msg)
{
	if (c->cut_armed && c->cut_left == 0) {
		shutdown(c->fd, SHUT_RDWR);
		errno = ECONNRESET;
		return -1;
	}
	if (c->cut_armed && iov_total(msg->msg_iov, (int)msg->msg_iovlen) > c->cut_left) {
		msg->msg_iovlen = 1;
		if (msg->msg_iov[0].iov_len > c->cut_left)
			msg->msg_iov[0].iov_len = c->cut_left;
	}
	if (__builtin_expect(c->trace != NULL, 0))
		return trace_sendmsg(c->trace, c->fd, msg);
	return sendmsg(c->fd, msg, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void conn_wait_writable(struct conn *c)
{
	c->writable = false;
	if (c->watching)
		return;
	c->watching = true;
	engine_watch_output(&c->source, c->fd, true);
}

/* One sendmsg. Returns bytes taken; 0: nothing more to do now. */
static size_t conn_tx_once(struct conn *c)
{
	struct iovec iov[QP_TX_IOV];
	struct msghdr msg = {.msg_iov = iov};
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
	msg.msg_iovlen = (size_t)n;
	sent = conn_sendmsg(c, &msg);
	now = clock_now_ns();
	if (sent > 0) {
		if (c->cut_armed)
			c->cut_left -= (size_t)sent;
		stream_tx_sent(c->stream, (size_t)sent, now);
		return (size_t)sent;
	}
	if (errno == EAGAIN)
		conn_wait_writable(c);
	else if (errno == EFAULT)
		stream_tx_fault(c->stream, now);
	else if (errno != EINTR)
		stream_tx_error(c->stream, errno, now);
	return errno == EINTR;
}

/* To build and send what is due may take loads from memory that waits for a file system. */
static bool conn_tx_must_wait(struct conn *c)
{
	return c->qp && !conn_may_touch(c) && qp_tx_can_stall(c->qp);
}

void conn_tx(struct conn *c)
{
	struct turn t = {0};

	while (c->writable && c->fd >= 0 && !c->dialing) {
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
