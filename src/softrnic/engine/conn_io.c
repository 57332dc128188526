/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/engine/conn_io.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "softrnic/engine/bufs.h"
#include "softrnic/engine/config.h"

/* One turn moves at most so much, then others get theirs. */
#define CONN_BUDGET (1u << 20)
#define MSS_DEFAULT 1448

unsigned conn_io_bits(uint32_t ev)
{
	unsigned bits = 0;

	if (ev & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		bits |= CONN_READABLE;
	if (ev & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		bits |= CONN_HANGUP;
	if (ev & (EPOLLOUT | EPOLLHUP | EPOLLERR))
		bits |= CONN_WRITABLE;
	return bits;
}

/* Go on in the progress thread. The queued task holds a reference. */
static void conn_again(struct conn *c)
{
	conn_get(c);
	if (!engine_defer(&c->task))
		conn_put(c);
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

	if (!cm_rx_needs_buf(c->stream))
		return true;
	buf = buf_get(BUF_RX);
	if (buf)
		qp_rx_lend(c->qp, buf);
	return buf != NULL;
}

static void conn_reclaim(struct conn *c)
{
	if (!c->qp)
		return;
	buf_put(BUF_RX, qp_rx_reclaim(c->qp));
	buf_put(BUF_TX, qp_tx_reclaim(c->qp));
}

/* What recvmsg said instead of bytes. The memory that was offered must be let go in any case. */
static void conn_rx_nothing(struct conn *c, int err, uint64_t now)
{
	c->readable = err == EINTR;
	if (err == EFAULT) {
		cm_rx_fault(c->stream, now);
		return;
	}
	cm_rx_got(c->stream, 0, now);
	if (err == 0)
		cm_rx_eof(c->stream, now);
	else if (err != EAGAIN && err != EINTR)
		cm_rx_error(c->stream, err, now);
}

/* One recvmsg. Returns bytes taken; 0: nothing more to do now. */
static size_t conn_rx_once(struct conn *c)
{
	struct iovec iov[QP_RX_IOV];
	struct msghdr msg = {.msg_iov = iov};
	uint64_t now = clock_now_ns();
	ssize_t got;
	int n;

	if (!conn_lend_rx(c)) {
		cm_rx_error(c->stream, ENOMEM, now);
		return 0;
	}
	n = cm_rx_want(c->stream, iov);
	if (n == 0)
		return 0;
	msg.msg_iovlen = (size_t)n;
	got = recvmsg(c->fd, &msg, MSG_DONTWAIT);
	if (got > 0) {
		if ((size_t)got < iov_total(iov, n) && !c->hangup)
			c->readable =
				false; /* short: the socket is empty, the next byte is a new edge */
		cm_rx_got(c->stream, (size_t)got, now);
		return (size_t)got;
	}
	conn_rx_nothing(c, got == 0 ? 0 : errno, now);
	return 0;
}

static void conn_rx(struct conn *c)
{
	size_t moved = 0;

	while (c->readable && c->fd >= 0 && !c->dialing && moved < CONN_BUDGET) {
		size_t n = conn_rx_once(c);

		if (n == 0)
			break;
		moved += n;
	}
	if (moved >= CONN_BUDGET)
		conn_again(c);
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

	if (cm_tx_needs_buf(c->stream)) {
		void *buf = buf_get(BUF_TX);

		if (!buf) {
			cm_tx_error(c->stream, ENOMEM, clock_now_ns());
			return 0;
		}
		qp_tx_lend(c->qp, buf);
	}
	n = cm_tx_gather(c->stream, iov);
	if (n == 0)
		return 0;
	msg.msg_iovlen = (size_t)n;
	sent = conn_sendmsg(c, &msg);
	now = clock_now_ns();
	if (sent > 0) {
		if (c->cut_armed)
			c->cut_left -= (size_t)sent;
		cm_tx_sent(c->stream, (size_t)sent, now);
		return (size_t)sent;
	}
	if (errno == EAGAIN)
		conn_wait_writable(c);
	else if (errno == EFAULT)
		cm_tx_fault(c->stream, now);
	else if (errno != EINTR)
		cm_tx_error(c->stream, errno, now);
	return errno == EINTR;
}

static void conn_tx(struct conn *c)
{
	size_t moved = 0;

	while (c->writable && c->fd >= 0 && !c->dialing && moved < CONN_BUDGET) {
		size_t n = conn_tx_once(c);

		if (n == 0)
			return;
		moved += n;
	}
	if (moved >= CONN_BUDGET)
		conn_again(c);
}

/* From a pool thread, without the lock. */
static void conn_job_done(struct persist_job *job, int status)
{
	struct conn *c = container_of(job, struct conn, job);

	atomic_store(&c->job_status, status);
	conn_want(c, CONN_WRITEBACK);
	conn_put(c);
}

static void conn_writeback_done(struct conn *c, int status)
{
	c->job_busy = false;
	if (status)
		LOG_INFO("flush of %zu bytes at %p refused: %s", c->job.len, c->job.addr,
			 strerror(-status));
	if (c->qp)
		qp_on_writeback(c->qp, status);
	cm_stream_poke(c->stream, clock_now_ns());
}

/* At most one at a time: a stream's requests are executed in order. True: one finished inline. */
static bool conn_writeback(struct conn *c)
{
	struct qp_writeback wb;
	int status = 0;

	if (c->job_busy || !c->qp || !qp_next_writeback(c->qp, &wb))
		return false;
	c->job = (struct persist_job){
		.region = wb.mr->persist,
		.addr = wb.addr,
		.len = wb.len,
		.strict = wb.strict,
		.done = conn_job_done,
	};
	c->job_busy = true;
	conn_get(c);
	if (!persist_submit(&c->job, &status))
		return false;
	conn_put(c);
	conn_writeback_done(c, status);
	return true;
}

static void conn_changed(struct conn *c)
{
	if (!atomic_load(&c->waiters))
		return;
	pthread_mutex_lock(&c->wait_lock);
	c->changes++;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->wait_lock);
}

static void conn_update_timer(struct conn *c)
{
	uint64_t at = c->fd >= 0 ? cm_deadline(c->stream) : CLOCK_NEVER;

	if (at != c->timer.at && engine_set_timer(&c->timer, at))
		LOG_ERROR("out of memory: a time limit of connection %p is not watched", (void *)c);
}

/* The end of the stream: FIN when everything is out, close when nothing is expected any more. */
static void conn_finish(struct conn *c)
{
	if (c->fd >= 0 && cm_wants_fin(c->stream)) {
		shutdown(c->fd, SHUT_WR);
		cm_fin_done(c->stream, clock_now_ns());
	}
	if (c->fd >= 0 && cm_wants_close(c->stream) && !c->redial)
		conn_close(c);
}

/* Nobody wants the connection any more. A peer that waits for an answer to its request gets one. */
static void conn_give_up(struct conn *c)
{
	uint64_t now = clock_now_ns();

	if (cm_stream_state(c->stream) == CM_REQ_RCVD)
		cm_stream_reject(c->stream, NULL, 0, now);
	else if (cm_stream_disconnect(c->stream, now))
		cm_stream_abort(c->stream);
}

void conn_pump(struct conn *c)
{
	if (c->doomed) {
		c->doomed = false;
		conn_give_up(c);
	}
	if (c->qp && qp_is_failed(c->qp) && cm_stream_state(c->stream) == CM_LIVE)
		cm_stream_poke(c->stream, clock_now_ns());
	do {
		conn_tx(c);
	} while (conn_writeback(c));
	conn_finish(c);
	if (c->redial) {
		c->redial = false;
		conn_close(c);
		conn_dial(c, -1);
	}
	conn_reclaim(c);
	conn_update_timer(c);
	conn_changed(c);
}

void conn_poll(struct conn *c)
{
	c->readable = true;
	conn_rx(c);
	conn_pump(c);
}

void conn_resume(struct conn *c)
{
	conn_rx(c);
	conn_pump(c);
}

uint32_t conn_mss(const struct conn *c)
{
	int mss = 0;
	socklen_t len = sizeof(mss);

	if (getsockopt(c->fd, IPPROTO_TCP, TCP_MAXSEG, &mss, &len) || mss <= 0)
		return MSS_DEFAULT;
	return (uint32_t)mss;
}

static void conn_dial_done(struct conn *c)
{
	int err = 0;
	socklen_t len = sizeof(err);

	if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &err, &len))
		err = errno;
	c->dialing = false;
	if (err)
		cm_on_dial_failed(c->stream, err, clock_now_ns());
	else
		cm_on_dialed(c->stream, conn_mss(c), clock_now_ns());
}

void conn_serve(struct conn *c)
{
	unsigned want = atomic_exchange(&c->want, 0);
	bool idle_output = false;

	if ((want & CONN_DOOM) && c->owner)
		c->event(c->owner, CM_EV_DEAD, -ECONNABORTED);
	if (want & CONN_WRITEBACK)
		conn_writeback_done(c, atomic_load(&c->job_status));
	if (want & CONN_READABLE)
		c->readable = true;
	if (want & CONN_HANGUP)
		c->hangup = true;
	if (want & CONN_WRITABLE) {
		c->writable = true;
		if (c->dialing && c->fd >= 0)
			conn_dial_done(c);
		idle_output = c->watching;
	}
	if ((want & CONN_KICK) && c->qp)
		qp_rx_resume(c->qp);
	if (want & CONN_TIME)
		cm_on_time(c->stream, clock_now_ns());
	if (want & CONN_KICK)
		cm_stream_poke(c->stream, clock_now_ns());
	conn_rx(c);
	conn_pump(c);
	/* Nothing filled the socket again, so the next acknowledgements are no news. */
	if (idle_output && c->writable && c->fd >= 0) {
		c->watching = false;
		engine_watch_output(&c->source, c->fd, false);
	}
}

static int conn_set_options(int fd)
{
	int one = 1, idle_s = 10, interval_s = 5, count = 3;

	if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)))
		return -errno;
	/* A vanished peer that does not speak our heartbeat is noticed all the same. */
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof(interval_s));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
	return 0;
}

static int conn_register(struct conn *c, bool output)
{
	int ret = conn_set_options(c->fd);

	if (!ret)
		ret = engine_add(&c->source, c->fd, output);
	if (ret)
		return ret;
	c->registered = true;
	c->watching = output;
	c->writable = !output;
	conn_get(c);
	return 0;
}

void conn_close(struct conn *c)
{
	if (c->fd < 0)
		return;
	engine_set_timer(&c->timer, CLOCK_NEVER);
	if (c->registered)
		engine_remove(&c->source, c->fd);
	close(c->fd);
	c->fd = -1;
	c->readable = c->writable = c->hangup = c->dialing = c->watching = false;
	if (c->registered) {
		c->registered = false;
		conn_put(c);
	}
}

static socklen_t sockaddr_len(const struct sockaddr_storage *ss)
{
	return ss->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

/* A socket of the right family, bound to the asked source address if there is one. */
static int conn_socket(struct conn *c)
{
	int fd = socket(c->dst.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_storage src = c->src;

	if (fd < 0)
		return -errno;
	if (src.ss_family == 0)
		return fd;
	/* Port and all of the first dial may be in TIME_WAIT: only the address matters now. */
	if (src.ss_family == AF_INET6)
		((struct sockaddr_in6 *)&src)->sin6_port = 0;
	else
		((struct sockaddr_in *)&src)->sin_port = 0;
	if (bind(fd, (struct sockaddr *)&src, sockaddr_len(&src))) {
		int ret = -errno;

		close(fd);
		return ret;
	}
	return fd;
}

/* Registered only after connect(): before it, the socket would report a hang-up. */
static int conn_connect_socket(struct conn *c)
{
	if (connect(c->fd, (struct sockaddr *)&c->dst, sockaddr_len(&c->dst)) &&
	    errno != EINPROGRESS)
		return -errno;
	c->dialing = true;
	return conn_register(c, true);
}

int conn_dial(struct conn *c, int bound_fd)
{
	int ret = bound_fd >= 0 ? bound_fd : conn_socket(c);

	if (ret >= 0) {
		c->fd = ret;
		ret = conn_connect_socket(c);
	}
	if (ret < 0) {
		conn_close(c);
		cm_on_dial_failed(c->stream, -ret, clock_now_ns());
		return ret;
	}
	conn_update_timer(c);
	return 0;
}

int conn_adopt(struct conn *c, int fd)
{
	int ret;

	c->fd = fd;
	ret = conn_register(c, false);
	if (ret) {
		c->fd = -1;
		return ret;
	}
	cm_on_incoming(c->stream, clock_now_ns());
	conn_update_timer(c);
	return 0;
}
