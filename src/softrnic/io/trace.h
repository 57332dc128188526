/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace.h -- writes the bytes that a connection's link sends and receives to a capture file, as
 * packets (SOFTRNIC_TRACE). No privilege is needed, and the bytes are exactly those on the wire:
 * the link puts received bytes, or the bytes that it has sent, into the trace's buffer.
 *
 * One leaf lock guards everything. It is held from trace_enter() to trace_leave(), around the
 * socket call, too, so that one buffer is enough.
 */
#ifndef IO_TRACE_H
#define IO_TRACE_H

#include <stdbool.h>
#include <sys/types.h>

#include "softrnic/io/link_addr.h"
#include "softrnic/proto/ud.h"

struct trace; /* belongs to one connection, whose lock guards it */

/*
 * Make a trace of a connection between these addresses. Returns NULL if it is not to be traced:
 * SOFTRNIC_TRACE is not set, or the other end of the connection, in this process or another, writes
 * it to the same file.
 */
struct trace *trace_new(const struct link_addr *us, const struct link_addr *peer, bool initiator);
bool trace_is_wanted(void); /* false: trace_new() always returns NULL */
/*
 * To be called before the connection is closed; unread bytes make the close a reset. Accepts NULL.
 */
void trace_delete(struct trace *t, bool unread);
void trace_forget(struct trace *t); /* writes nothing: the trace is the parent's; accepts NULL */

/* Returns the buffer for the next bytes of a traced connection, and its size. NULL, without the
 * lock: the file accepts no more, and the link continues untraced. */
void *trace_enter(struct trace *t, size_t *size);
/* The link's call returned n: the number of bytes in the buffer, 0, or -errno. */
void trace_leave_sent(struct trace *t, ssize_t n);
void trace_leave_received(struct trace *t, ssize_t n); /* 0: the peer has ended its sending */

void trace_shutdown(struct trace *t);       /* our FIN; accepts NULL */
void trace_error(struct trace *t, int err); /* the link failed; accepts NULL */

/*
 * Write packets that a socket with this port has sent or received; `len` of each is at most
 * UD_DATAGRAM_MAX + 1. If both ends write to the same file, a packet is there twice: sent, and
 * received unless lost.
 */
void trace_datagrams(const struct ud_packet *packets, int n, uint16_t own_port, bool outbound);

void trace_atfork_prepare(void);
void trace_atfork_parent(void);
void trace_atfork_child(void);

#endif
