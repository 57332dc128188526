/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conn_plain.h -- the connection of a queue pair without an id. Such a queue pair is called plain.
 *
 * It has one connection from its creation to its destruction, its home. What the peer's number and
 * GID lead to is decided by the meeting (meeting.h): the home dials, or takes the link of an inbound
 * dial over, or has no link. A reset of the queue pair ends the stream and not the home.
 *
 * Every function takes the connection's lock. Results are 0 or an errno value.
 */
#ifndef IO_CONN_PLAIN_H
#define IO_CONN_PLAIN_H

#include "softrnic/io/conn.h"
#include "softrnic/stream/meeting.h"

/* What a move to RTR states. */
struct conn_plain_rtr {
	struct meeting_ends ends;
	struct link_addr from, to; /* the GIDs as addresses, without ports */
	uint32_t rq_psn;
	uint8_t path_mtu;
	uint8_t max_dest_rd_atomic;
};

/* And a move to RTS, or a change in RTS. */
struct conn_plain_rts {
	uint32_t sq_psn;
	uint8_t max_rd_atomic;
	uint8_t timeout, retry_cnt;
};

/*
 * A home, and the number of its queue pair, which is attached to it next (conn_attach_qp()). 0 or
 * -errno. It reports no events: its meeting takes them all.
 */
int conn_plain_new(struct conn **out, uint32_t *qpn);
/* Never waits, and does not fail once the attributes are checked. */
int conn_plain_rtr(struct conn *c, const struct conn_plain_rtr *with);
int conn_plain_rts(struct conn *c, const struct conn_plain_rts *with);
/*
 * To RESET: what is posted is dropped without completions, and the stream ends by a reset. `fresh`
 * is used up: it is made with the queue pair's own configuration, and takes its place.
 */
int conn_plain_reset(struct conn *c, struct qp *fresh);
/* Its user has moved it to ERR: conn_modify_qp() came before this. */
void conn_plain_failed(struct conn *c);
/* It is about to be destroyed: conn_detach_qp() and conn_release() follow. */
void conn_plain_leave(struct conn *c);

#endif
