/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conn_plain_impl.h -- the additional state of a home connection, and functions for the files of
 * this folder.
 *
 * The home is the connection of a plain queue pair (conn_plain.h). A dial is a request of the
 * peer's queue pair for a connection. It arrives on a connection of its own, the carrier. The dial
 * is parked in a table until the home takes over the carrier's link, or the dial is rejected.
 */
#ifndef IO_CONN_PLAIN_IMPL_H
#define IO_CONN_PLAIN_IMPL_H

#include "softrnic/io/conn_impl.h"
#include "softrnic/io/conn_plain.h"
#include "softrnic/io/qp_port.h"

/* Events of the present stream that are not reported to the meeting yet. They are reported in this
 * order. */
enum {
	PLAIN_ESTABLISHED = 1, /* the TCP connection is established */
	PLAIN_REPLIED = 2,
	PLAIN_LIVE = 4,
	PLAIN_ENDED = 8,
	PLAIN_TIME = 16,
};

struct conn_plain {
	struct meeting meeting;
	struct qp_place place;
	struct conn_plain_rtr rtr;
	struct conn_plain_rts rts;
	bool has_rts;
	/* Has a warning come since the last move to RTR? */
	bool warned_rejected;  /* the warning that the peer expects another queue pair */
	bool warned_rejects;   /* the warning that a queue pair dials that is not the peer */
	bool shut;             /* the queue pair is being destroyed */
	unsigned news;         /* set of PLAIN_* events */
	uint32_t attempt;      /* number of the attempt that the stream belongs to */
	enum meeting_use use;  /* valid with PLAIN_ENDED */
	uint64_t deadline;     /* deadline of the meeting */
	struct meet_data peer; /* the peer's private data, valid after both ends have met */
};

/* conn_plain.c */
void conn_plain_free(struct conn *c);

/* conn_plain_do.c. All functions except the first are called with the home's lock. */
/* Make the home handle new events and dials. Called from any thread, without the lock. */
void conn_plain_ask(struct conn *c);
/*
 * Report recorded events to the meeting. Called for CONN_PLAIN, outside of all calls on the stream.
 */
void conn_plain_run(struct conn *c);
/* Record an event of the stream. Called within this event. */
void conn_plain_on_event(struct conn *c, enum stream_event event, int status);
void conn_plain_on_dialed(struct conn *c); /* called before the request is sent */
void conn_plain_on_time(struct conn *c);
void conn_plain_on_post(struct conn *c);
/* Perform the tasks of the todo. Called outside of all calls on the stream. */
void conn_plain_do(struct conn *c, const struct meeting_todo *todo);
/* If the present stream was used, end it, and attach the queue pair to a new one. Returns 0 or
 * -errno. */
int conn_plain_renew_stream(struct conn *c, bool same_host);
/* Called after the queue pair has moved to RTS: end the stream if the peer must be refused because
 * of the sequence numbers. */
void conn_plain_compare_psns(struct conn *c);
/* Limit outstanding requests to the number that both users permit. */
void conn_plain_limit_requests(struct conn *c, struct stream_update *u);

/* conn_plain_carrier.c: `carrier` is the connection of an inbound dial. */
/* Decode the 64 bytes of the request. Returns false if they are malformed; *data then contains the
 * names as far as they were decoded. The caller holds the carrier's lock. */
bool conn_plain_request(struct conn *carrier, struct meet_data *data);
void conn_plain_reject(struct conn *carrier, const struct meet_data *data, enum meet_reason reason);
/* Reject a parked dial, and free it. The caller does not hold the carrier's lock. */
void conn_plain_drop(struct qp_dial *dial, enum meet_reason reason);
/* Let the home take over the carrier's link and stream. Returns 0 or -errno. The dial is freed in
 * any case. The caller holds the home's lock. */
int conn_plain_take_over(struct conn *home, struct qp_dial *dial);

#endif
