/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace.h -- writes the bytes that a connection's link sends and receives to a capture file, as
 * packets (SOFTRNIC_TRACE). No privilege is needed, and the bytes are exactly those on the wire,
 * because the link puts received bytes and sent bytes into the trace's buffer.
 *
 * One leaf lock guards all state. It is held from trace_enter() to trace_leave_sent() or
 * trace_leave_received(), also during the socket call, so that one buffer is enough.
 */
#ifndef IO_TRACE_H
#define IO_TRACE_H

#include <stdbool.h>
#include <sys/types.h>

#include "softrnic/io/link_addr.h"
#include "softrnic/proto/ud.h"

struct trace; /* belongs to one connection; this connection's lock guards it */

/*
 * Make a trace of a connection between these addresses. Returns NULL if the connection is not to be
 * traced, because SOFTRNIC_TRACE is not set, or because the other end of the connection, in this
 * process or another one, writes it to the same file.
 */
struct trace *trace_new(const struct link_addr *us, const struct link_addr *peer, bool initiator);
bool trace_is_wanted(void); /* false: trace_new() always returns NULL */
/*
 * Must be called before the connection is closed. `unread`: the peer's bytes are unread, so the
 * close is a reset. Accepts NULL.
 */
void trace_delete(struct trace *t, bool unread);
/* writes nothing, because the trace belongs to the parent; accepts NULL */
void trace_forget(struct trace *t);

/* Returns the buffer for the next bytes of a traced connection, and its size, with the lock held.
 * Returns NULL, without the lock, if the file must not grow any more; the link then continues
 * untraced. */
void *trace_enter(struct trace *t, size_t *size);
/* The link's call returned n: the number of bytes in the buffer, 0, or -errno. These functions
 * release the lock. */
void trace_leave_sent(struct trace *t, ssize_t n);
/* 0: the peer has closed its sending direction */
void trace_leave_received(struct trace *t, ssize_t n);

void trace_shutdown(struct trace *t);       /* this end has sent its FIN; accepts NULL */
void trace_error(struct trace *t, int err); /* record a failed link; accepts NULL */

/*
 * Write packets that a socket with this port has sent or received; `len` of each is at most
 * UD_DATAGRAM_MAX + 1. If both ends write to the same file, it contains a packet twice, as sent and
 * as received, unless the packet was lost.
 */
void trace_datagrams(const struct ud_packet *packets, int n, uint16_t own_port, bool outbound);

void trace_atfork_prepare(void);
void trace_atfork_parent(void);
void trace_atfork_child(void);

#endif
