/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ud_port_impl.h -- the struct of a port for datagrams, shared by ud_port.c (open, receive),
 * ud_port_send.c (send, and wait for the socket or a credit) and ud_port_lease.c (choose the thread
 * that receives).
 */
#ifndef IO_UD_PORT_IMPL_H
#define IO_UD_PORT_IMPL_H

#include <stdatomic.h>

#include "base/lock.h"
#include "softrnic/io/engine.h"
#include "softrnic/io/ud_port.h"

#define UD_ENDS 256u
#define UD_ROOM (UD_DATAGRAM_MAX + 1) /* the additional byte shows that a datagram is too long */

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
	struct lock rx_lock; /* guards the following members */
	struct ud_end *ends[UD_ENDS];
	struct ud_batch rx;
	struct ud_credits credits; /* credits that packets of the present batch asked for */
	bool made_room;            /* a credit in the present batch permits more packets */
	uint64_t dropped;          /* see ud_port_dropped() */
	unsigned polls;
	unsigned polled;    /* number of packets received since polled_at */
	uint64_t polled_at; /* time at which the polls were judged last */
	unsigned waiters;   /* threads that wait for the descriptor */
	uint64_t leased_at; /* time of a thread's last loop of polls, or of its last wait */
	/* at this time the engine checks whether threads of the program still receive */
	struct eng_timer again;
	bool again_is_set;
	atomic_bool left_to_users; /* the engine does not receive; written under the receive lock */
	struct lock tx_lock;       /* guards the following members */
	struct ud_batch tx;
	struct ud_flows flows;
	struct list waiting;       /* ends that wait until the socket takes packets */
	struct list held;          /* ends that wait for a credit */
	struct eng_timer patience; /* expires when the wait for a credit has reached its limit */
	uint64_t patience_at;      /* time to which `patience` is set; 0: not set */
};

/* --- ud_port.c: called with the receive lock ------------------------------------------------- */

/*
 * Receive one batch. Returns the number of packets. If it is LINK_UDP_BATCH, more packets may wait.
 */
int ud_port_receive(struct ud_port *p);
/* Receive as many batches as the engine receives at a time (UD_TURN_MAX). Returns true if more
 * packets may wait. */
bool ud_port_receive_all(struct ud_port *p);

/* --- ud_port_send.c -------------------------------------------------------------------------- */

void ud_port_send_init(struct ud_port *p);
/* Let each end of the list send again. Afterwards the list contains the ends that must wait again.
 * Called with the receive lock, so that no end leaves meanwhile. */
void ud_port_resume(struct ud_port *p, struct list *waiting);
/*
 * Watch the socket as the state requires. Its readiness at the time of the call is reported again.
 */
void ud_port_rewatch(struct ud_port *p);

/* --- ud_port_lease.c ------------------------------------------------------------------------- */

void ud_port_lease_init(struct ud_port *p);

#endif
