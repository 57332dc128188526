/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link_tcp_trace.c -- socket calls that also write the bytes to the trace. A receive first peeks at
 * the bytes, and then receives them to their destination. A send copies the bytes first and sends
 * the copy, because an application may change its memory meanwhile.
 */
#include <errno.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>

#include "softrnic/io/link_sockaddr.h"
#include "softrnic/io/link_tcp.h"
#include "softrnic/io/trace.h"

struct trace *link_tcp_trace_new(int fd, bool initiator)
{
	struct sockaddr_storage us = {0}, peer = {0};
	socklen_t us_len = sizeof(us), peer_len = sizeof(peer);
	struct link_addr us_addr, peer_addr;

	if (!trace_is_wanted() || getsockname(fd, (struct sockaddr *)&us, &us_len) ||
	    getpeername(fd, (struct sockaddr *)&peer, &peer_len))
		return NULL;
	us_addr = link_addr_from((struct sockaddr *)&us);
	peer_addr = link_addr_from((struct sockaddr *)&peer);
	return trace_new(&us_addr, &peer_addr, initiator);
}

void link_tcp_trace_delete(struct trace *t, int fd)
{
	int unread = 0;

	if (t)
		trace_delete(t, !ioctl(fd, SIOCINQ, &unread) && unread > 0);
}

ssize_t link_tcp_trace_recvmsg(struct trace *t, int fd, struct msghdr *msg)
{
	size_t size, room = link_iov_len(msg->msg_iov, (int)msg->msg_iovlen);
	void *buf = trace_enter(t, &size);
	ssize_t n;
	int err;

	if (!buf)
		return recvmsg(fd, msg, MSG_DONTWAIT);
	n = recv(fd, buf, room < size ? room : size, MSG_DONTWAIT | MSG_PEEK);
	if (n > 0) {
		link_iov_shorten(msg->msg_iov, (int)msg->msg_iovlen, (size_t)n);
		n = recvmsg(fd, msg, MSG_DONTWAIT);
	}
	err = errno;
	trace_leave_received(t, n < 0 ? -err : n);
	errno = err;
	return n;
}

ssize_t link_tcp_trace_sendmsg(struct trace *t, int fd, struct msghdr *msg)
{
	size_t size;
	void *buf = trace_enter(t, &size);
	ssize_t n;
	int err;

	if (!buf)
		return sendmsg(fd, msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	/* If memory has vanished, the bytes before it are sent first. */
	n = link_iov_get(msg->msg_iov, (int)msg->msg_iovlen, buf, size);
	if (n < 0) {
		errno = (int)-n;
		n = -1;
	}
	if (n > 0) {
		link_iov_shorten(msg->msg_iov, (int)msg->msg_iovlen, (size_t)n);
		n = send(fd, buf, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL);
	}
	err = errno;
	trace_leave_sent(t, n < 0 ? -err : n);
	errno = err;
	return n;
}
