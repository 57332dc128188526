/* SPDX-License-Identifier: BSD-3-Clause */
/* conn_io.c -- bytes between the socket and the stream, in turns of bounded length. */
#include <errno.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "softrnic/io/conn_parts.h"

/*
 * One turn moves at most so much, or takes so long where small messages or a slow machine make
 * bytes expensive; then other connections, and the timers, have theirs.
 */
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

static size_t conn_iov_total(const struct iovec *iov, int n)
{
	size_t total = 0;

	for (int i = 0; i < n; i++)
		total += iov[i].iov_len;
	return total;
}

bool conn_find_reset(struct conn *c, struct stream_update *u)
{
	int err = 0;
	socklen_t len = sizeof(err);

	if (!c->readable || c->fd < 0 || c->dialing || u->todo & STREAM_DO_RECEIVE)
		return false;
	if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &err, &len) || !err)
		return false;
	trace_error(c->trace, err);
	stream_rx_end(c->stream, -err, clock_now_ns(), u);
	return true;
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
static size_t conn_rx_once(struct conn *c, struct stream_update *u)
{
	struct stream_rx rx;
	struct msghdr msg = {.msg_iov = rx.iov};
	uint64_t now = clock_now_ns();
	ssize_t got;

	if (!stream_rx_begin(c->stream, &rx, u))
		return 0;
	msg.msg_iovlen = (size_t)rx.n;
	got = conn_recvmsg(c, &msg);
	if (got > 0) {
		if (conn_rx_is_empty(c, (size_t)got, conn_iov_total(rx.iov, rx.n), rx.direct))
			c->readable = false;
	} else {
		got = got < 0 ? -errno : 0;
		/* After a fault the rest is read all the same: a close with bytes unread is a
		 * reset, which may overtake our Terminate. */
		c->readable = got == -EINTR || got == -EFAULT;
	}
	stream_rx_end(c->stream, got, now, u);
	return got > 0 ? (size_t)got : c->readable; /* as if it were one byte */
}

bool conn_receive(void *owner, struct stream_update *u)
{
	struct conn *c = owner;
	size_t n;

	if (!c->reading || !c->readable || c->fd < 0 || c->dialing)
		return false;
	if (!conn_may_touch(c) || conn_turn_is_over(&c->rx_turn)) {
		conn_again(c);
		return false;
	}
	n = conn_rx_once(c, u);
	c->rx_turn.moved += n;
	return n > 0;
}

static ssize_t conn_sendmsg(struct conn *c, struct msghdr *msg)
{
	if (c->cut_armed && c->cut_left == 0) {
		shutdown(c->fd, SHUT_RDWR);
		errno = ECONNRESET;
		return -1;
	}
	if (c->cut_armed && conn_iov_total(msg->msg_iov, (int)msg->msg_iovlen) > c->cut_left) {
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
static size_t conn_tx_once(struct conn *c, struct stream_update *u)
{
	struct iovec iov[QP_TX_IOV];
	struct msghdr msg = {.msg_iov = iov};
	int n = stream_tx_begin(c->stream, iov, u);
	ssize_t sent;

	if (n == 0)
		return 0;
	msg.msg_iovlen = (size_t)n;
	sent = conn_sendmsg(c, &msg);
	if (sent < 0)
		sent = -errno;
	if (sent > 0 && c->cut_armed)
		c->cut_left -= (size_t)sent;
	if (sent == -EAGAIN)
		conn_wait_writable(c);
	stream_tx_end(c->stream, sent, clock_now_ns(), u);
	return sent > 0 ? (size_t)sent : sent == -EINTR;
}

/* To build and send what is due may take loads from memory that waits for a file system. */
static bool conn_tx_must_wait(struct conn *c)
{
	return !conn_may_touch(c) && stream_send_can_stall(c->stream);
}

bool conn_send(void *owner, struct stream_update *u)
{
	struct conn *c = owner;
	size_t n;

	if (!c->writable || c->fd < 0 || c->dialing)
		return false;
	if (conn_tx_must_wait(c) || conn_turn_is_over(&c->tx_turn)) {
		conn_again(c);
		return false;
	}
	n = conn_tx_once(c, u);
	c->tx_turn.moved += n;
	return n > 0;
}
