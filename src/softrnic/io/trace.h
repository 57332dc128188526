/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace.h -- what a connection's socket gives and takes, written to a capture file as packets
 * (SOFTRNIC_TRACE). No privilege is needed, and what is written is what went over the wire, byte
 * for byte: received bytes are peeked at before they go where they belong, and bytes to be sent
 * are copied first and sent from the copy, as an application may change them meanwhile.
 *
 * One lock for all of it, a leaf: also around the socket call, so that one buffer is enough. When
 * the file can take no more the calls do what they do untraced.
 */
#ifndef IO_TRACE_H
#define IO_TRACE_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

struct trace; /* of one connection, whose lock guards it */

/*
 * The socket is connected. NULL if it is not to be traced: nobody asked, or the other end of the
 * connection, in this process or another, writes it to the same file.
 */
struct trace *trace_new(int fd, bool initiator);
void trace_delete(struct trace *t, int fd); /* just before close(fd); accepts NULL */
void trace_forget(struct trace *t);         /* without a word: it is our parent's; accepts NULL */

/* Like recvmsg(2) and sendmsg(2) on a non-blocking socket. Afterwards `msg` is as long as what was
 * asked of the socket. */
ssize_t trace_recvmsg(struct trace *t, int fd, struct msghdr *msg);
ssize_t trace_sendmsg(struct trace *t, int fd, struct msghdr *msg);
void trace_shutdown(struct trace *t);       /* our FIN; accepts NULL */
void trace_error(struct trace *t, int err); /* the socket failed; accepts NULL */

void trace_atfork_prepare(void);
void trace_atfork_parent(void);
void trace_atfork_child(void);

#endif
