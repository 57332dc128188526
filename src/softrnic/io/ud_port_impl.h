/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ud_port_impl.h -- inside a port of datagrams: ud_port.c (open, receive), ud_port_send.c (send,
 * and wait for the socket or a credit), ud_port_lease.c (which thread receives).
 */
#ifndef IO_UD_PORT_IMPL_H
#define IO_UD_PORT_IMPL_H

#include <stdatomic.h>

#include "base/lock.h"
#include "softrnic/io/engine.h"
#include "softrnic/io/ud_port.h"

#define UD_ENDS 256u
#define UD_ROOM (UD_DATAGRAM_MAX + 1) /* one more byte reveals a longer datagram */

/* Packets and their memory. */
struct ud_batch {
	struct ud_packet packets[LINK_UDP_BATCH];
	uint8_t bytes[LINK_UDP_BATCH][UD_ROOM];
};

struct ud_credits {
	struct ud_packet packets[LINK_UDP_BATCH];
	uint8_t bytes[LINK_UDP_BATCH][UD_HEADER_LEN];
	int n;
};

struct ud_port {
	struct eng_source source;
	struct link_udp link;
	uint16_t number;
	struct lock rx_lock; /* guards these members: */
	struct ud_end *ends[UD_ENDS];
	struct ud_batch rx;
	struct ud_credits credits; /* requested by the present batch */
	bool made_room;            /* the present batch contained a credit */
	uint64_t dropped;          /* ud_port_dropped() */
	unsigned polls;
	unsigned polled;        /* packets since the last poll of UD_POLLS */
	uint64_t polled_at;     /* time of that poll */
	unsigned waiters;       /* threads that wait for the descriptor */
	uint64_t leased_at;     /* time of a thread's last loop of polls, or last wait */
	struct eng_timer again; /* the engine checks whether other threads still read */
	bool again_is_set;
	atomic_bool left_to_users; /* the engine does not read; written under the receive lock */
	struct lock tx_lock;       /* guards these members: */
	struct ud_batch tx;
	struct ud_flows flows;
	struct list waiting;       /* ends that wait until the socket takes packets */
	struct list held;          /* ends that wait for a credit */
	struct eng_timer patience; /* limit of the wait for a credit */
	uint64_t patience_at;      /* time of that limit; 0: not set */
};

/* --- ud_port.c: called with the receive lock ------------------------------------------------- */

/* Receive one batch. Returns the number of packets; LINK_UDP_BATCH: there may be more. */
int ud_port_receive(struct ud_port *p);
/* Receive as many batches as one turn permits. Returns true if there may be more. */
bool ud_port_receive_all(struct ud_port *p);

/* --- ud_port_send.c -------------------------------------------------------------------------- */

void ud_port_send_init(struct ud_port *p);
/* Called with the receive lock, so that no end leaves. Each end of the list gets one turn;
 * afterwards the list has the ends that must wait again. */
void ud_port_resume(struct ud_port *p, struct list *waiting);
/* The socket's present readiness is reported again. */
void ud_port_rewatch(struct ud_port *p);

/* --- ud_port_lease.c ------------------------------------------------------------------------- */

void ud_port_lease_init(struct ud_port *p);

#endif
