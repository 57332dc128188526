/* SPDX-License-Identifier: BSD-3-Clause */
/* link_tcp.h -- declarations that only the link_tcp*.c files use. */
#ifndef IO_LINK_TCP_H
#define IO_LINK_TCP_H

#include <sys/socket.h>

#include "base/ownfd.h"
#include "softrnic/io/link.h"

struct trace;

struct link_tcp {
	struct link link;
	int fd;
	bool accepted;
	bool dialed; /* connect() was called */
	bool ended;  /* this end's FIN was sent */
	bool unread; /* READY_READ is not reported */
	/* identifies the socket, because the application may have closed the descriptor */
	ino_t inode;
	struct eng_source *src; /* NULL: the socket is not watched */
	/* address of an accepted socket's peer; the peer may close before the address is needed */
	struct link_addr peer;
	bool write;          /* READY_WRITE is to be reported */
	struct trace *trace; /* NULL: not traced */
};

static inline struct link_tcp *link_tcp_of(struct link *l)
{
	return (struct link_tcp *)l;
}

/* Does the descriptor still belong to the socket? If not, its number belongs to another file, or is
 * not in use. */
static inline bool link_tcp_has_socket(const struct link_tcp *t)
{
	return ownfd_is_socket(t->fd, t->inode);
}

extern const struct link_ops link_tcp;

/* in link_tcp.c: */
void link_tcp_set_reset(const struct link_tcp *t, bool resets);

/* Returns NULL if the link is not traced, or is not a TCP link. */
struct trace *link_tcp_trace_of(struct link *l);

/* in link_tcp_io.c: */
ssize_t link_tcp_recv(struct link *l, struct iovec *iov, int n);
bool link_tcp_has_left(struct link *l);
ssize_t link_tcp_send(struct link *l, struct iovec *iov, int n);
void link_tcp_end_sending(struct link *l);
int link_tcp_error(struct link *l);
bool link_tcp_has_ended(const struct link *l);
uint64_t link_tcp_unacknowledged_ns(struct link *l);
uint32_t link_tcp_segment(struct link *l);

/* link_tcp_trace.c: the same calls for a traced socket */
/* Must be called when the socket is connected. Returns NULL if the connection is not to be traced
 * (trace.h). */
struct trace *link_tcp_trace_new(int fd, bool initiator);
/* called just before close(fd); accepts NULL */
void link_tcp_trace_delete(struct trace *t, int fd);
/* Call recvmsg(2) or sendmsg(2) on a non-blocking socket, and trace the bytes. Afterwards the list
 * in `msg` is shortened to the length that was requested of the socket. */
ssize_t link_tcp_trace_recvmsg(struct trace *t, int fd, struct msghdr *msg);
ssize_t link_tcp_trace_sendmsg(struct trace *t, int fd, struct msghdr *msg);

#endif
