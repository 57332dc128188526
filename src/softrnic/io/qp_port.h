/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * qp_port.h -- the numbers of queue pairs without an id, and inbound dials for these numbers.
 *
 * A number is a TCP port of this process, where a listener accepts connections for 256 queue pairs,
 * and an index: port << 8 | index. A number stays taken until the queue pair is destroyed and its
 * stream closed. Numbers are assigned in turn, so that each is reused late.
 *
 * A dial whose request is well-formed and names a queue pair of this process is kept, unanswered,
 * until the connection of that queue pair has judged it. One lock guards all tables here. It is
 * inner to the locks of connections and listeners.
 */
#ifndef IO_QP_PORT_H
#define IO_QP_PORT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "softrnic/stream/meeting.h"

struct conn;
struct qp_port;
struct ud_port;

#define QP_PORT_MIN     1024u /* ports below belong to other services, and are never dialed */
#define QP_DIALS_MAX    1024  /* that one process keeps; one more rejects the oldest */
#define QP_PORT_OF(qpn) ((qpn) >> 8)

/* The number of one queue pair. */
struct qp_place {
	uint32_t qpn;
	struct qp_port *port; /* NULL: no number is taken */
	struct conn *home;    /* the queue pair's connection; NULL: no more dials are kept */
	struct list dials;
};

struct qp_dial {
	struct meeting_inbound in;
	struct conn *carrier; /* the list holds a reference */
	struct qp_place *place;
	struct list link, everyone;
	bool known; /* the meeting has the dial */
	bool gone;  /* the dial has ended, or must end */
};

static inline struct qp_dial *qp_dial_of(struct meeting_inbound *in)
{
	return container_of(in, struct qp_dial, in);
}

/* Take a number. Returns 0, or -errno: -EMFILE and the like if no further listener can be made. */
int qp_port_take(struct qp_place *place, struct conn *home);
/* As qp_port_take(), for a queue pair of datagrams: dials for its number are rejected. *udp: the
 * port of its datagrams. */
int qp_port_take_ud(struct qp_place *place, struct ud_port **udp);
/* The queue pair is being destroyed: from now on a dial for it is rejected. */
void qp_port_shut(struct qp_place *place);
/* Free the number. No dials are left. */
void qp_port_give(struct qp_place *place);
/* Returns the next dial with news: it has arrived, or it has ended; NULL: none. A dial that has
 * ended is no longer in the list. */
struct qp_dial *qp_port_news(struct qp_place *place);
/* Remove a judged dial, or any (NULL), from the list. Returns NULL if there is none. */
struct qp_dial *qp_port_remove(struct qp_place *place, struct qp_dial *dial);

void qp_port_atfork_prepare(void);
void qp_port_atfork_parent(void);
void qp_port_atfork_child(void);

#endif
