/* SPDX-License-Identifier: BSD-3-Clause */
/* link_tcp.c -- TCP as a link: binds, dials, accepts, watches and closes sockets. */
#include "softrnic/io/link_tcp.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "softrnic/io/engine.h"
#include "softrnic/io/link_sockaddr.h"
#include "softrnic/io/trace.h"

static int link_tcp_serves(const struct link_addr *addr)
{
	return addr->family != LINK_NONE;
}

/* --- sockets ------------------------------------------------------------------------------ */

static int link_tcp_socket(const struct link_addr *of)
{
	int family = of->family == LINK_IPV6 ? AF_INET6 : AF_INET;
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	return fd < 0 ? -errno : fd;
}

/* Make a link from the socket. If this fails, the socket is closed. */
static int link_tcp_new(int fd, struct link_tcp **out)
{
	struct link_tcp *t = calloc(1, sizeof(*t));

	if (!t) {
		close(fd);
		return -ENOMEM;
	}
	t->link.ops = &link_tcp;
	t->fd = fd;
	t->inode = ownfd_inode(fd);
	*out = t;
	return 0;
}

static int link_tcp_name(int fd, const struct link_addr *addr)
{
	struct sockaddr_storage ss;
	socklen_t len = link_addr_to(addr, &ss);

	return bind(fd, (struct sockaddr *)&ss, len) ? -errno : 0;
}

/* Make a link from the socket if binding has succeeded (ret is 0); otherwise close the socket. */
static int link_tcp_finish(int fd, int ret, struct link **out)
{
	struct link_tcp *t;

	if (ret) {
		close(fd);
		return ret;
	}
	ret = link_tcp_new(fd, &t);
	if (!ret)
		*out = &t->link;
	return ret;
}

static int link_tcp_bind(const struct link_addr *at, enum link_families families, struct link **out)
{
	int fd = link_tcp_socket(at), one = 1, v6only = families == LINK_FAMILIES_ONE;

	if (fd < 0)
		return fd;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (at->family == LINK_IPV6 && families != LINK_FAMILIES_DEFAULT)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6only, sizeof(v6only));
	return link_tcp_finish(fd, link_tcp_name(fd, at), out);
}

/* Bind to the address only, without the port, because the port of the first dial may be in
 * TIME_WAIT. */
static int link_tcp_create(const struct link_addr *from, const struct link_addr *to,
			   struct link **out)
{
	struct link_addr source = *from;
	int fd = link_tcp_socket(to);

	if (fd < 0)
		return fd;
	source.port = 0;
	return link_tcp_finish(fd, from->family == LINK_NONE ? 0 : link_tcp_name(fd, &source), out);
}

/* Choose whether a close of the socket sends a reset and no further byte. The exit of the process
 * closes the socket in the same way. */
void link_tcp_set_reset(const struct link_tcp *t, bool resets)
{
	struct linger linger = {.l_onoff = resets};

	if (link_tcp_has_socket(t))
		setsockopt(t->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
}

static void link_tcp_free(struct link_tcp *t)
{
	if (link_tcp_has_socket(t))
		close(t->fd);
	free(t);
}

static void link_tcp_close(struct link *l)
{
	struct link_tcp *t = link_tcp_of(l);

	if (t->src)
		engine_remove(t->src, t->fd);
	link_tcp_trace_delete(t->trace, t->fd);
	link_tcp_free(t);
}

static void link_tcp_reset(struct link *l)
{
	link_tcp_set_reset(link_tcp_of(l), true);
	link_tcp_close(l);
}

/* Close the child's copy of the socket. This sends nothing as long as the parent has its copy. If
 * the parent has died, this close ends the connection. */
static void link_tcp_forked(struct link *l)
{
	struct link_tcp *t = link_tcp_of(l);

	trace_forget(t->trace);
	link_tcp_free(t);
}

/* --- addresses ---------------------------------------------------------------------------- */

static int link_tcp_local(struct link *l, struct link_addr *addr)
{
	struct sockaddr_storage ss = {0};
	socklen_t len = sizeof(ss);

	if (getsockname(link_tcp_of(l)->fd, (struct sockaddr *)&ss, &len))
		return -errno;
	*addr = link_addr_from((struct sockaddr *)&ss);
	return 0;
}

static int link_tcp_remote(struct link *l, struct link_addr *addr)
{
	struct link_tcp *t = link_tcp_of(l);
	struct sockaddr_storage ss = {0};
	socklen_t len = sizeof(ss);

	if (t->accepted) {
		*addr = t->peer;
		return 0;
	}
	if (getpeername(t->fd, (struct sockaddr *)&ss, &len))
		return -errno;
	*addr = link_addr_from((struct sockaddr *)&ss);
	return 0;
}

/* Find a source address: connect a datagram socket and read its address. Nothing is sent. */
static int link_tcp_route(const struct link_addr *to, struct link_addr *from)
{
	struct sockaddr_storage dst, src = {0};
	socklen_t dst_len = link_addr_to(to, &dst), len = sizeof(src);
	int fd = socket(dst.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0), ret = 0;

	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&dst, dst_len) ||
	    getsockname(fd, (struct sockaddr *)&src, &len))
		ret = -errno;
	close(fd);
	*from = link_addr_from((struct sockaddr *)&src);
	from->port = 0;
	return ret;
}

/* --- connecting --------------------------------------------------------------------------- */

static int link_tcp_set_options(int fd)
{
	int one = 1, idle_s = 10, interval_s = 5, count = 3;
	struct linger reset = {.l_onoff = 1};

	if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)))
		return -errno;
	/*
	 * By default a close sends a reset, also when the process dies: bytes of an ended
	 * connection must not arrive after bytes of a later connection.
	 */
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	/* Detect a vanished peer that sends no heartbeat. */
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof(interval_s));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
	return 0;
}

/* Accepted sockets inherit the options set here. */
static int link_tcp_listen(struct link *l)
{
	int fd = link_tcp_of(l)->fd, ret = link_tcp_set_options(fd);

	if (ret)
		return ret;
	return listen(fd, SOMAXCONN) ? -errno : 0;
}

static int link_tcp_accept(struct link *l, struct link **out)
{
	struct sockaddr_storage peer = {0};
	socklen_t len = sizeof(peer);
	int fd = accept4(link_tcp_of(l)->fd, (struct sockaddr *)&peer, &len,
			 SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct link_tcp *t;
	int ret;

	/* After these errors the network ended the connection before it was accepted. */
	if (fd < 0 && (errno == ECONNABORTED || errno == EINTR || errno == EPROTO))
		return -ECONNABORTED;
	if (fd < 0)
		return -errno;
	ret = link_tcp_new(fd, &t);
	if (ret)
		return ret;
	t->accepted = true;
	t->peer = link_addr_from((struct sockaddr *)&peer);
	*out = &t->link;
	return 0;
}

static void link_tcp_stop_listening(struct link *l)
{
	struct link_tcp *t = link_tcp_of(l);

	if (t->src)
		engine_remove(t->src, t->fd);
	t->src = NULL;
	shutdown(t->fd, SHUT_RDWR);
}

/* Dial again on the same socket, which stays bound to the port that the user chose. */
static int link_tcp_dial(struct link *l, const struct link_addr *to)
{
	/* for connect(2): dissolve the association */
	static const struct sockaddr nowhere = {.sa_family = AF_UNSPEC};
	struct link_tcp *t = link_tcp_of(l);
	struct sockaddr_storage ss;
	socklen_t len = link_addr_to(to, &ss);

	if (t->dialed)
		connect(t->fd, &nowhere, sizeof(nowhere));
	t->dialed = true;
	if (!connect(t->fd, (struct sockaddr *)&ss, len) || errno == EINPROGRESS)
		return 0;
	return -errno;
}

/*
 * Is a dial in progress? An event may be late: it may belong to the previous dial or to a previous
 * socket.
 */
static bool link_tcp_is_dialing(const struct link_tcp *t)
{
	struct tcp_info info = {0};
	socklen_t len = sizeof(info);

	return !getsockopt(t->fd, IPPROTO_TCP, TCP_INFO, &info, &len) &&
	       info.tcpi_state == TCP_SYN_SENT;
}

/*
 * Is the socket connected to itself? This can happen if the destination is a port of this host
 * without a listener: the kernel may choose this port for the dialing socket, and TCP connects the
 * socket to itself (simultaneous open, RFC 9293 s3.5).
 */
static bool link_tcp_has_met_itself(struct link *l)
{
	struct link_addr us, peer;

	return !link_tcp_local(l, &us) && !link_tcp_remote(l, &peer) &&
	       !memcmp(&us, &peer, sizeof(us));
}

static int link_tcp_dialed(struct link *l)
{
	struct link_tcp *t = link_tcp_of(l);
	int err = 0;
	socklen_t len = sizeof(err);

	if (link_tcp_is_dialing(t))
		return -EINPROGRESS;
	if (getsockopt(t->fd, SOL_SOCKET, SO_ERROR, &err, &len))
		err = errno;
	if (!err && link_tcp_has_met_itself(l))
		err = ECONNREFUSED;
	if (!err)
		t->trace = link_tcp_trace_new(t->fd, true);
	return -err;
}

/* --- readiness ------------------------------------------------------------------------------ */

/*
 * Must only be called after connect() or listen(), because before them a socket reports a hang-up.
 */
static int link_tcp_watch(struct link *l, struct eng_source *src, bool write)
{
	struct link_tcp *t = link_tcp_of(l);
	int ret = t->dialed ? link_tcp_set_options(t->fd) : 0;

	if (t->src) /* another connection watched the link before */
		engine_remove(t->src, t->fd);
	t->src = NULL;
	if (!ret)
		ret = engine_add(src, t->fd, write);
	if (ret)
		return ret;
	t->src = src;
	t->unread = false;
	t->write = write;
	if (t->accepted && !t->trace)
		t->trace = link_tcp_trace_new(t->fd, false);
	return 0;
}

static void link_tcp_watch_write(struct link *l, bool write)
{
	struct link_tcp *t = link_tcp_of(l);

	t->write = write;
	engine_watch(t->src, t->fd, !t->unread, t->write);
}

/* Bytes that have arrived are reported after the socket is watched again. */
static bool link_tcp_report_read(struct link *l, bool report)
{
	struct link_tcp *t = link_tcp_of(l);

	t->unread = !report;
	engine_watch(t->src, t->fd, !t->unread, t->write);
	return false;
}

static unsigned link_tcp_ready(struct link *l, unsigned polled)
{
	return polled;
}

/* The thread waits for the socket's own descriptor, so the socket needs no change. */
static int link_tcp_wait_begin(struct link *l)
{
	return link_tcp_of(l)->fd;
}

static void link_tcp_wait_end(struct link *l)
{
}

struct trace *link_tcp_trace_of(struct link *l)
{
	return l->ops == &link_tcp ? link_tcp_of(l)->trace : NULL;
}

static const struct link_connecting link_tcp_connecting = {
	.serves = link_tcp_serves,
	.route = link_tcp_route,
	.same_host = link_addr_same_host,
	.bind = link_tcp_bind,
	.create = link_tcp_create,
	.listen = link_tcp_listen,
	.accept = link_tcp_accept,
	.stop_listening = link_tcp_stop_listening,
	.dial = link_tcp_dial,
	.dialed = link_tcp_dialed,
	.watch = link_tcp_watch,
};

static const struct link_polling link_tcp_polling = {
	.report_read = link_tcp_report_read,
	.wait_begin = link_tcp_wait_begin,
	.wait_end = link_tcp_wait_end,
};

const struct link_ops link_tcp = {
	.name = "tcp",
	.gathers_sends = true,
	.connecting = &link_tcp_connecting,
	.polling = &link_tcp_polling,
	.watch_write = link_tcp_watch_write,
	.ready = link_tcp_ready,
	.recv = link_tcp_recv,
	.send = link_tcp_send,
	.has_left = link_tcp_has_left,
	.end_sending = link_tcp_end_sending,
	.error = link_tcp_error,
	.has_ended = link_tcp_has_ended,
	.unacknowledged_ns = link_tcp_unacknowledged_ns,
	.local = link_tcp_local,
	.remote = link_tcp_remote,
	.segment = link_tcp_segment,
	.close = link_tcp_close,
	.reset = link_tcp_reset,
	.forked = link_tcp_forked,
};
