/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ud_port.h -- the datagrams of all queue pairs whose numbers begin with one port: a UDP socket,
 * and a table of these queue pairs. A port stays as long as the process.
 *
 * Locks, outer to inner: the port's receive lock, a queue pair's lock (the owner's), the port's
 * send lock.
 */
#ifndef IO_UD_PORT_H
#define IO_UD_PORT_H

#include "base/list.h"
#include "softrnic/io/link_addr.h"
#include "softrnic/io/link_udp.h"
#include "softrnic/rnic/ud_flow.h"

struct ud_port;

/* One queue pair. The port calls these functions with its receive lock. */
struct ud_end {
	uint32_t qpn;
	void (*received)(struct ud_end *end, const struct ud_header *h, const struct ud_path *path,
			 const uint8_t *payload, size_t len);
	void (*writable)(struct ud_end *end); /* after ud_port_send() returned -EAGAIN */
	struct list waiting;                  /* of the port: waits for the socket or a credit */
};

/* Fill in at most `max` packets that `flows` permits. Returns their number, or -EAGAIN: none of the
 * posted ones may be sent. */
typedef int ud_gather_fn(void *owner, struct ud_flows *flows, uint64_t now,
			 struct ud_packet *packets, int max);

/* Returns 0, or -EADDRINUSE and the like. */
int ud_port_open(const struct link_addr *at, struct ud_port **out);
void ud_port_join(struct ud_port *p, struct ud_end *end);
/* Afterwards no function of the end is in progress, and none follows. Called without the queue
 * pair's lock. */
void ud_port_leave(struct ud_port *p, struct ud_end *end);
/* Send the packets of `gather`. Returns the number of sent packets, or -EAGAIN: none can be sent
 * now, and writable() follows. 0: gather() gave none. Called with the queue pair's lock. */
int ud_port_send(struct ud_port *p, struct ud_end *end, ud_gather_fn *gather, void *owner);
/* Number of datagrams that were malformed, forged, or for no queue pair. */
uint64_t ud_port_dropped(struct ud_port *p);
/* Number of times that a peer sent no credit in time. */
unsigned ud_port_silences(struct ud_port *p);
/* Receive arrived packets, unless another thread does. While these calls form a loop, no other
 * thread receives. */
void ud_port_poll(struct ud_port *p);
/*
 * This thread, instead of the engine's, is about to wait until the port's descriptor is readable.
 * Returns the descriptor, or -1: another thread is receiving now. After a descriptor
 * ud_port_wait_end() must follow, which receives if the descriptor is readable.
 */
int ud_port_wait_begin(struct ud_port *p);
void ud_port_wait_end(struct ud_port *p, bool readable);
/* The caller is about to wait: threads of the engine receive again. */
void ud_port_report(struct ud_port *p);

#endif
