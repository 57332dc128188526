/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conn_plain.h -- the connection of a queue pair without an id. Such a queue pair is called plain.
 *
 * It has one connection from its creation to its destruction, which is called its home. The meeting
 * (meeting.h) decides how the home gets a link to the peer with the given number and GID: the home
 * dials the peer, or takes over the link of an inbound dial. A move to RESET ends the stream, but
 * not the home.
 *
 * Every function takes the connection's lock. Results are 0 or an errno value.
 */
#ifndef IO_CONN_PLAIN_H
#define IO_CONN_PLAIN_H

#include "softrnic/io/conn.h"
#include "softrnic/stream/meeting.h"

/* The attributes that a move to RTR states. */
struct conn_plain_rtr {
	struct meeting_ends ends;
	struct link_addr from, to; /* the GIDs converted to addresses, without ports */
	uint32_t rq_psn;
	uint8_t path_mtu;
	uint8_t max_dest_rd_atomic;
	uint8_t min_rnr_timer;
};

/* The attributes that a move to RTS, or a change in RTS, states. */
struct conn_plain_rts {
	uint32_t sq_psn;
	uint8_t max_rd_atomic;
	uint8_t timeout, retry_cnt;
	uint8_t min_rnr_timer, rnr_retry;
};

/*
 * Make a home and the number of its queue pair. The caller then attaches the queue pair by
 * conn_attach_qp(). The home reports no events to the caller, because its meeting handles all of
 * them. Returns 0 or -errno.
 */
int conn_plain_new(struct conn **out, uint32_t *qpn);
/* Called when the user moves the queue pair to RTR or RTS. These functions never wait for the peer.
 * They do not fail if the caller has checked the attributes. */
int conn_plain_rtr(struct conn *c, const struct conn_plain_rtr *with);
int conn_plain_rts(struct conn *c, const struct conn_plain_rts *with);
/*
 * Move to RESET: posted requests are dropped without completions, and the stream ends by a reset.
 * The caller made `fresh`, a new queue pair with the same configuration; its contents replace those
 * of the old one, and the caller must not use `fresh` afterwards.
 */
int conn_plain_reset(struct conn *c, struct qp *fresh);
/* End the meeting. Called after the user has moved the queue pair to ERR by conn_modify_qp(). */
void conn_plain_failed(struct conn *c);
/* End the meeting and reject all dials. Called before the queue pair is destroyed; the caller calls
 * conn_detach_qp() and conn_release() next. */
void conn_plain_leave(struct conn *c);

#endif
