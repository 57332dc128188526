/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * qp_port.h -- the numbers of queue pairs without an id, and inbound dials (stream/meeting.h) for
 * these numbers.
 *
 * A queue pair's number is port << 8 | index. The port is a TCP port of this process, at which a
 * listener accepts connections for up to 256 queue pairs. A number stays in use until its queue
 * pair is destroyed and the stream is closed. Numbers are assigned in ascending order, so that a
 * number is reused as late as possible.
 *
 * An inbound dial whose request is well-formed and names a queue pair of this process is kept
 * without an answer until the home connection (conn_plain.h) of this queue pair has handled the
 * dial. One lock guards all tables here. It may be taken inside the locks of connections and
 * listeners.
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

#define QP_PORT_MIN 1024u /* lower ports belong to other services, so they are never dialed */
/* greatest number of dials that one process keeps; one more causes the oldest to be rejected */
#define QP_DIALS_MAX    1024
#define QP_PORT_OF(qpn) ((qpn) >> 8)

/* The number of one queue pair, and the inbound dials for it. */
struct qp_place {
	uint32_t qpn;
	struct qp_port *port; /* NULL: no number is assigned */
	struct conn *home;    /* the queue pair's home connection; NULL: dials are rejected */
	struct list dials;
};

struct qp_dial {
	struct meeting_inbound in;
	struct conn *carrier; /* the connection of the dial, with a reference */
	struct qp_place *place;
	struct list link, everyone;
	bool known; /* the dial was reported to the meeting */
	bool gone;  /* the dial is closed, or must be closed */
};

static inline struct qp_dial *qp_dial_of(struct meeting_inbound *in)
{
	return container_of(in, struct qp_dial, in);
}

/*
 * Assign a number. Returns 0 or -errno; -EMFILE and the like if no further listener can be opened.
 */
int qp_port_take(struct qp_place *place, struct conn *home);
/* Assign a number to a queue pair for datagrams. Dials for this number are rejected. *udp is the
 * port for its datagrams. */
int qp_port_take_ud(struct qp_place *place, struct ud_port **udp);
/* Called when the queue pair is being destroyed: from now on reject dials for it. */
void qp_port_shut(struct qp_place *place);
/* Free the number. There must be no dials left. */
void qp_port_give(struct qp_place *place);
/* Returns the next dial that has arrived or has ended since the last call, or NULL. A dial that has
 * ended is already removed from the list. */
struct qp_dial *qp_port_news(struct qp_place *place);
/* Remove a handled dial from the list, or any dial if `dial` is NULL. Returns the dial, or NULL if
 * the list is empty. */
struct qp_dial *qp_port_remove(struct qp_place *place, struct qp_dial *dial);

void qp_port_atfork_prepare(void);
void qp_port_atfork_parent(void);
void qp_port_atfork_child(void);

#endif
