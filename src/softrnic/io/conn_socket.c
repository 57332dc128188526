/* SPDX-License-Identifier: BSD-3-Clause */
/* conn_socket.c -- the socket of a connection: dialed or accepted, registered, closed. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "softrnic/io/config.h"
#include "softrnic/io/conn_parts.h"

/* Ethernet's, less the headers with time stamps: when the kernel does not tell. */
#define MSS_DEFAULT 1448
#define REDIAL_NS   (20 * NSEC_PER_MS)

uint32_t conn_mss(const struct conn *c)
{
	int mss = 0;
	socklen_t len = sizeof(mss);

	if (getsockopt(c->fd, IPPROTO_TCP, TCP_MAXSEG, &mss, &len) || mss <= 0)
		return MSS_DEFAULT;
	return (uint32_t)mss;
}

void conn_set_deadline(void *owner, uint64_t at)
{
	struct conn *c = owner;

	if (c->fd < 0)
		at = CLOCK_NEVER;
	if (c->redial_at < at)
		at = c->redial_at;
	if (at == c->timer_at)
		return;
	c->timer_at = at;
	engine_set_timer(&c->timer, at);
}

/*
 * A peer that takes nothing for a while acknowledges probes all the same, at long intervals; so one
 * of them may be on its way, but not two.
 */
uint64_t conn_unacknowledged_ns(void *owner)
{
	const struct conn *c = owner;
	struct tcp_info info = {0};
	socklen_t len = sizeof(info);

	if (getsockopt(c->fd, IPPROTO_TCP, TCP_INFO, &info, &len))
		return 0;
	if (info.tcpi_retransmits == 0 && info.tcpi_probes < 2)
		return 0;
	return info.tcpi_last_ack_recv * NSEC_PER_MS;
}

/*
 * Some programs tell their peer a port before they listen there, and rdma_cm on hardware is slow
 * enough to hide it. If the time to connect is over before the next try, the refusal is the answer.
 */
static bool conn_redials_later(struct conn *c, int err)
{
	uint64_t now = clock_now_ns();

	if (err != ECONNREFUSED || now >= c->patient_until ||
	    now + REDIAL_NS >= stream_deadline(c->stream))
		return false;
	c->redial_at = now + REDIAL_NS;
	return true;
}

/* An event of the dial before, or of another socket before, may come when this one is under way. */
static bool conn_is_connecting(const struct conn *c)
{
	struct tcp_info info = {0};
	socklen_t len = sizeof(info);

	return !getsockopt(c->fd, IPPROTO_TCP, TCP_INFO, &info, &len) &&
	       info.tcpi_state == TCP_SYN_SENT;
}

/*
 * Where nobody listens on this host, the kernel may give the dialing socket that very port, and
 * TCP connects it to itself (simultaneous open, RFC 9293 s3.5).
 */
static bool conn_has_met_itself(const struct conn *c)
{
	struct sockaddr_storage us = {0}, peer = {0};
	socklen_t us_len = sizeof(us), peer_len = sizeof(peer);

	return !getsockname(c->fd, (struct sockaddr *)&us, &us_len) &&
	       !getpeername(c->fd, (struct sockaddr *)&peer, &peer_len) && us_len == peer_len &&
	       !memcmp(&us, &peer, us_len);
}

void conn_dial_done(struct conn *c, struct stream_update *u)
{
	int err = 0;
	socklen_t len = sizeof(err);

	if (c->redial_at != CLOCK_NEVER || conn_is_connecting(c))
		return;
	if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &err, &len))
		err = errno;
	if (!err && conn_has_met_itself(c))
		err = ECONNREFUSED;
	if (conn_redials_later(c, err))
		return;
	c->dialing = false;
	if (err) {
		stream_on_dial_failed(c->stream, err, clock_now_ns(), u);
		return;
	}
	c->trace = trace_new(c->fd, true);
	stream_on_dialed(c->stream, conn_mss(c), clock_now_ns(), u);
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
	c->timer_at = c->redial_at = CLOCK_NEVER;
	engine_set_timer(&c->timer, CLOCK_NEVER);
	if (c->registered)
		engine_remove(&c->source, c->fd);
	trace_delete(c->trace, c->fd);
	c->trace = NULL;
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

/* 0: it is under way, or will be repeated. */
static int conn_connect_socket(struct conn *c)
{
	int err = connect(c->fd, (struct sockaddr *)&c->dst, sockaddr_len(&c->dst)) ? errno : 0;

	if (err && err != EINPROGRESS && !conn_redials_later(c, err))
		return -err;
	c->dialing = true;
	return 0;
}

/* Registered only after connect(): before it, the socket would report a hang-up. */
int conn_dial(struct conn *c, int bound_fd)
{
	int ret = bound_fd >= 0 ? bound_fd : conn_socket(c);

	if (!c->patient_until)
		c->patient_until = clock_now_ns() + config_get()->refused_ns;
	if (ret >= 0) {
		c->fd = ret;
		ret = conn_connect_socket(c);
	}
	if (ret == 0)
		ret = conn_register(c, true);
	if (ret < 0) {
		struct stream_update u; /* the caller performs */

		conn_close(c);
		stream_on_dial_failed(c->stream, -ret, clock_now_ns(), &u);
		return ret;
	}
	return 0;
}

/* On the same socket, which remains bound to the port that the user chose. */
static void conn_dial_again(struct conn *c, struct stream_update *u)
{
	static const struct sockaddr nowhere = {.sa_family = AF_UNSPEC}; /* connect(2): dissolve */
	int ret;

	c->redial_at = CLOCK_NEVER;
	c->writable = c->hangup = false;
	connect(c->fd, &nowhere, sizeof(nowhere));
	ret = conn_connect_socket(c);
	if (ret) {
		stream_on_dial_failed(c->stream, -ret, clock_now_ns(), u);
		return;
	}
	c->watching = true;
	engine_watch_output(&c->source, c->fd, true);
}

void conn_dial_on_time(struct conn *c, struct stream_update *u)
{
	uint64_t now = clock_now_ns();

	if (c->redial_at == CLOCK_NEVER)
		conn_dial_done(c, u);
	else if (now >= stream_deadline(c->stream))
		stream_on_dial_failed(c->stream, ECONNREFUSED, now, u);
	else if (now >= c->redial_at)
		conn_dial_again(c, u);
}

int conn_adopt(struct conn *c, int fd)
{
	struct stream_update u;
	int ret;

	c->fd = fd;
	ret = conn_register(c, false);
	if (ret) {
		c->fd = -1;
		return ret;
	}
	c->trace = trace_new(fd, false);
	stream_on_incoming(c->stream, clock_now_ns(), &u);
	conn_perform(c, &u);
	return 0;
}

static bool addr_is_loopback(const struct sockaddr *sa)
{
	if (sa->sa_family == AF_INET)
		return (ntohl(((const struct sockaddr_in *)sa)->sin_addr.s_addr) >> 24) == 127;
	return sa->sa_family == AF_INET6 &&
	       IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)sa)->sin6_addr);
}

/* The kernel answers a connection to one of the host's own addresses from that address. */
bool sockaddr_same_host(const struct sockaddr *a, const struct sockaddr *b)
{
	if (a->sa_family != b->sa_family)
		return false;
	if (addr_is_loopback(a) && addr_is_loopback(b))
		return true;
	if (a->sa_family == AF_INET)
		return ((const struct sockaddr_in *)a)->sin_addr.s_addr ==
		       ((const struct sockaddr_in *)b)->sin_addr.s_addr;
	return a->sa_family == AF_INET6 &&
	       IN6_ARE_ADDR_EQUAL(&((const struct sockaddr_in6 *)a)->sin6_addr,
				  &((const struct sockaddr_in6 *)b)->sin6_addr);
}

void conn_abandon(struct conn *c)
{
	c->owner = NULL;
	c->abandoned = true;
}
