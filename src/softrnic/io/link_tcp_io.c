/* SPDX-License-Identifier: BSD-3-Clause */
/* link_tcp_io.c -- moves bytes on a connected socket, and reads the kernel's information about the
 * path. */
#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>

#include "base/clock.h"
#include "softrnic/io/link_tcp.h"
#include "softrnic/io/trace.h"

/*
 * Segment length in bytes if the kernel does not report one: the 1500 of Ethernet, less 52 of
 * headers with time stamps.
 */
#define MSS_DEFAULT 1448

/* Time for which the peer may leave sent bytes unread after the FIN. No stream waits longer than
 * this for its close. */
#define FIN_WAITS_MS 60000u

ssize_t link_tcp_recv(struct link *l, struct iovec *iov, int n)
{
	struct link_tcp *t = link_tcp_of(l);
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = (size_t)n};
	ssize_t got;

	if (__builtin_expect(t->trace != NULL, 0))
		got = link_tcp_trace_recvmsg(t->trace, t->fd, &msg);
	else if (n == 1) /* most lists have one entry; the kernel is faster without a list */
		got = recv(t->fd, iov->iov_base, iov->iov_len, MSG_DONTWAIT);
	else
		got = recvmsg(t->fd, &msg, MSG_DONTWAIT);
	return got < 0 ? -errno : got;
}

ssize_t link_tcp_send(struct link *l, struct iovec *iov, int n)
{
	struct link_tcp *t = link_tcp_of(l);
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = (size_t)n};
	ssize_t sent;

	if (__builtin_expect(t->trace != NULL, 0))
		sent = link_tcp_trace_sendmsg(t->trace, t->fd, &msg);
	else if (n == 1) /* faster without a list, as in link_tcp_recv() */
		sent = send(t->fd, iov->iov_base, iov->iov_len, MSG_DONTWAIT | MSG_NOSIGNAL);
	else
		sent = sendmsg(t->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	return sent < 0 ? -errno : sent;
}

/* Has the peer's host received the FIN? After a process has closed its socket, the kernel answers
 * bytes of the peer by a reset. Over loopback, where each CPU has its own queue, this reset can
 * overtake a FIN that was sent before. */
static bool link_tcp_fin_has_arrived(int fd)
{
	struct tcp_info info = {0};
	socklen_t len = sizeof(info);

	return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) ||
	       (info.tcpi_state != TCP_FIN_WAIT1 && info.tcpi_state != TCP_CLOSING &&
		info.tcpi_state != TCP_LAST_ACK);
}

/* The kernel keeps bytes back while many segments are unacknowledged, or while the peer's buffer is
 * full. Unread bytes of the peer count as well, because a close would then cause a reset. */
bool link_tcp_has_left(struct link *l)
{
	int fd = link_tcp_of(l)->fd, unsent = 0;
	char unread;

	if (link_tcp_of(l)->ended)
		return link_tcp_fin_has_arrived(fd);
	if (recv(fd, &unread, 1, MSG_PEEK | MSG_DONTWAIT) > 0)
		return false;
	return ioctl(fd, SIOCOUTQNSD, &unsent) || unsent == 0;
}

/*
 * Send the FIN, and limit the time for which the kernel keeps it. A peer that never reads the bytes
 * before the FIN does not receive the FIN either. The kernel keeps these bytes and the FIN as long
 * as the peer's host answers, even after this process has exited. With a limit the kernel gives up
 * after this time, and then answers the peer's next keepalive by a reset, which reaches even such a
 * peer.
 */
void link_tcp_end_sending(struct link *l)
{
	struct link_tcp *t = link_tcp_of(l);
	unsigned ms = FIN_WAITS_MS;

	t->ended = true;
	link_tcp_set_reset(t, false);
	setsockopt(t->fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof(ms));
	shutdown(t->fd, SHUT_WR);
	trace_shutdown(t->trace);
}

int link_tcp_error(struct link *l)
{
	struct link_tcp *t = link_tcp_of(l);
	int err = 0;
	socklen_t len = sizeof(err);

	if (getsockopt(t->fd, SOL_SOCKET, SO_ERROR, &err, &len) || !err)
		return 0;
	trace_error(t->trace, err);
	return -err;
}

bool link_tcp_has_ended(const struct link *l)
{
	struct pollfd fd = {.fd = ((const struct link_tcp *)l)->fd, .events = POLLRDHUP};

	return poll(&fd, 1, 0) > 0;
}

/* Returns the time for which the peer has acknowledged nothing. A peer that does not read for some
 * time still acknowledges probes, at long intervals. So one probe may be unacknowledged, but not
 * two. */
uint64_t link_tcp_unacknowledged_ns(struct link *l)
{
	struct tcp_info info = {0};
	socklen_t len = sizeof(info);

	if (getsockopt(link_tcp_of(l)->fd, IPPROTO_TCP, TCP_INFO, &info, &len))
		return 0;
	if (info.tcpi_retransmits == 0 && info.tcpi_probes < 2)
		return 0;
	return info.tcpi_last_ack_recv * NSEC_PER_MS;
}

uint32_t link_tcp_segment(struct link *l)
{
	int mss = 0;
	socklen_t len = sizeof(mss);

	if (getsockopt(link_tcp_of(l)->fd, IPPROTO_TCP, TCP_MAXSEG, &mss, &len) || mss <= 0)
		return MSS_DEFAULT;
	return (uint32_t)mss;
}
