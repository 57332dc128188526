/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ud_port.h -- sends and receives the datagrams of all queue pairs whose numbers contain the same
 * port. The port owns a UDP socket and a table of these queue pairs, and exists until the process
 * exits.
 *
 * Locks, outer to inner: the port's receive lock, the lock of a queue pair's owner, the port's send
 * lock.
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
	/* called after ud_port_send() returned -EAGAIN, when sending may be possible */
	void (*writable)(struct ud_end *end);
	/* for the port: link in a list of ends that wait for the socket or for a credit */
	struct list waiting;
};

/* Fill in at most `max` packets that `flows` permits. Returns their number, or -EAGAIN if no posted
 * packet may be sent now. */
typedef int ud_gather_fn(void *owner, struct ud_flows *flows, uint64_t now,
			 struct ud_packet *packets, int max);

/* Returns 0 or -errno, for example -EADDRINUSE. */
int ud_port_open(const struct link_addr *at, struct ud_port **out);
void ud_port_join(struct ud_port *p, struct ud_end *end);
/* Remove the end from the port. After the call none of the end's functions is running, and none is
 * called any more. Called without the queue pair's lock. */
void ud_port_leave(struct ud_port *p, struct ud_end *end);
/* Send the packets that gather() returns. Returns the number of sent packets, 0 if gather()
 * returned none, or -EAGAIN if none can be sent now; writable() is called later then. Called with
 * the queue pair's lock. */
int ud_port_send(struct ud_port *p, struct ud_end *end, ud_gather_fn *gather, void *owner);
/* Number of datagrams that were malformed, forged, or for no queue pair. */
uint64_t ud_port_dropped(struct ud_port *p);
/* Number of times that a peer sent no credit within the time limit. */
unsigned ud_port_silences(struct ud_port *p);
/* Receive the packets that have arrived, unless another thread is receiving. As long as these calls
 * follow each other quickly, no thread of the engine receives. */
void ud_port_poll(struct ud_port *p);
/*
 * Called when this thread is about to wait until the port's descriptor is readable; threads of the
 * engine do not wait for the descriptor meanwhile. Returns the descriptor, or -1 if another thread
 * is receiving now. With a descriptor, the thread must call ud_port_wait_end() after its wait. That
 * call receives if the descriptor is readable.
 */
int ud_port_wait_begin(struct ud_port *p);
void ud_port_wait_end(struct ud_port *p, bool readable);
/* Called before a wait that does not include this descriptor: from now on threads of the engine
 * receive again. */
void ud_port_report(struct ud_port *p);

#endif
