/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * qp_port.h -- the numbers of queue pairs without an id, and the dials that come for them.
 *
 * A number is a TCP port of this process, where a listener accepts connections for 256 queue pairs,
 * and an index: port << 8 | index. It stays taken until the queue pair is destroyed and its stream
 * closed, and numbers are given out in turn, so that each returns late.
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
#define QP_DIALS_MAX    1024  /* that one process keeps; above it the oldest is rejected */
#define QP_PORT_OF(qpn) ((qpn) >> 8)

/* Of one queue pair. */
struct qp_place {
	uint32_t qpn;
	struct qp_port *port; /* NULL: none is taken */
	struct conn *home;    /* the queue pair's connection; NULL: no more dials are kept */
	struct list dials;
};

struct qp_dial {
	struct meeting_inbound in;
	struct conn *carrier; /* with a reference */
	struct qp_place *place;
	struct list link, everyone;
	bool known; /* the meeting has it */
	bool gone;  /* it has ended, or has to */
};

static inline struct qp_dial *qp_dial_of(struct meeting_inbound *in)
{
	return container_of(in, struct qp_dial, in);
}

/* Take a number. 0, or -errno: -EMFILE and the like if a further listener cannot be made. */
int qp_port_take(struct qp_place *place, struct conn *home);
/* The same for a queue pair of datagrams: dials for its number are rejected. *udp: where its
 * datagrams come and go. */
int qp_port_take_ud(struct qp_place *place, struct ud_port **udp);
/* Its queue pair is being destroyed: a dial for it is rejected from now on. */
void qp_port_shut(struct qp_place *place);
/* The number is free again. No dials are left. */
void qp_port_give(struct qp_place *place);
/*
 * The next dial of which something is new: it has come, or it has ended; NULL: none. One that has
 * ended is not in the list any more.
 */
struct qp_dial *qp_port_news(struct qp_place *place);
/* Take one that is judged, or any (NULL), out of the list. NULL: there is none. */
struct qp_dial *qp_port_remove(struct qp_place *place, struct qp_dial *dial);

void qp_port_atfork_prepare(void);
void qp_port_atfork_parent(void);
void qp_port_atfork_child(void);

#endif
