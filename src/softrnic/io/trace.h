/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace.h -- what a connection's link gives and takes, written to a capture file as packets
 * (SOFTRNIC_TRACE). No privilege is needed, and what is written is what went over the wire, byte
 * for byte: the link puts received bytes, or those that it has sent, into the trace's buffer.
 *
 * One lock for all of it, a leaf: held from trace_enter() to trace_leave(), around the socket call
 * too, so that one buffer is enough.
 */
#ifndef IO_TRACE_H
#define IO_TRACE_H

#include <stdbool.h>
#include <sys/types.h>

#include "softrnic/io/link_addr.h"
#include "softrnic/proto/ud.h"

struct trace; /* of one connection, whose lock guards it */

/*
 * A connection between these addresses. NULL if it is not to be traced: SOFTRNIC_TRACE is not set,
 * or the other end of the connection, in this process or another, writes it to the same file.
 */
struct trace *trace_new(const struct link_addr *us, const struct link_addr *peer, bool initiator);
bool trace_is_wanted(void); /* else trace_new() gives NULL, whatever the addresses */
/* The connection is about to be closed; unread bytes make that a reset. Accepts NULL. */
void trace_delete(struct trace *t, bool unread);
void trace_forget(struct trace *t); /* writes nothing: it is our parent's; accepts NULL */

/* The buffer for the next bytes of a traced connection, and its size; or NULL, without the lock:
 * the file can take no more, and the link does what it does untraced. */
void *trace_enter(struct trace *t, size_t *size);
/* The link's call returned n: the number of bytes in the buffer, 0, or -errno. */
void trace_leave_sent(struct trace *t, ssize_t n);
void trace_leave_received(struct trace *t, ssize_t n); /* 0: the peer has ended its sending */

void trace_shutdown(struct trace *t);       /* our FIN; accepts NULL */
void trace_error(struct trace *t, int err); /* the link failed; accepts NULL */

/*
 * Packets that a socket with that port has sent or received; `len` of each is at most UD_DATAGRAM_MAX + 1.
 * Where both ends write to the same file, it has a packet twice: sent, and received unless it was lost.
 */
void trace_datagrams(const struct ud_packet *packets, int n, uint16_t own_port, bool outbound);

void trace_atfork_prepare(void);
void trace_atfork_parent(void);
void trace_atfork_child(void);

#endif
