/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ud_port.h -- the datagrams of the queue pairs whose numbers begin with one port: a UDP socket, and
 * the table of these queue pairs. It stays as long as the process.
 *
 * Locks, outer to inner: the port's receive lock, a queue pair's (the owner's), the port's send
 * lock.
 */
#ifndef IO_UD_PORT_H
#define IO_UD_PORT_H

#include "base/list.h"
#include "softrnic/io/link_addr.h"
#include "softrnic/io/link_udp.h"
#include "softrnic/rnic/ud_flow.h"

struct ud_port;

/* One queue pair. The port calls its functions with its receive lock. */
struct ud_end {
	uint32_t qpn;
	void (*received)(struct ud_end *end, const struct ud_header *h, const struct ud_path *path,
			 const uint8_t *payload, size_t len);
	void (*writable)(struct ud_end *end); /* after ud_port_send() returned -EAGAIN */
	struct list waiting;                  /* the port's: for the socket, or for a credit */
};

/* Fills at most `max` packets that `flows` has let through; how many, or -EAGAIN: none of those that
 * are there. */
typedef int ud_gather_fn(void *owner, struct ud_flows *flows, uint64_t now,
			 struct ud_packet *packets, int max);

/* 0, or -EADDRINUSE and the like. */
int ud_port_open(const struct link_addr *at, struct ud_port **out);
void ud_port_join(struct ud_port *p, struct ud_end *end);
/* None of its functions is under way afterwards, and none follows. Without the queue pair's lock. */
void ud_port_leave(struct ud_port *p, struct ud_end *end);
/*
 * Send what the function gives: how many of it were taken, or -EAGAIN: none now, writable()
 * follows. 0: the function gave none. With the queue pair's lock.
 */
int ud_port_send(struct ud_port *p, struct ud_end *end, ud_gather_fn *gather, void *owner);
/* Datagrams so far that were malformed, forged, or for no queue pair. */
uint64_t ud_port_dropped(struct ud_port *p);
/* How often a peer has sent no credit in time. */
unsigned ud_port_silences(struct ud_port *p);
/* Receive what has come, if no other thread does. While these calls come in a loop, only they
 * receive. */
void ud_port_poll(struct ud_port *p);
/*
 * A thread is about to wait until the port's descriptor is readable, instead of a thread of the engine.
 * The descriptor, or -1: another thread is receiving at the moment. Each that was given is followed by
 * ud_port_wait_end(), which receives if it is readable.
 */
int ud_port_wait_begin(struct ud_port *p);
void ud_port_wait_end(struct ud_port *p, bool readable);
/* The caller is about to wait: threads of the engine receive again. */
void ud_port_report(struct ud_port *p);

#endif
