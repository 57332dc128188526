/* SPDX-License-Identifier: BSD-3-Clause */
/* conn_plain_impl.h -- what a home connection has beyond others, and its calls for this room. */
#ifndef IO_CONN_PLAIN_IMPL_H
#define IO_CONN_PLAIN_IMPL_H

#include "softrnic/io/conn_impl.h"
#include "softrnic/io/conn_plain.h"
#include "softrnic/io/qp_port.h"

/* What has happened to the present stream and was not reported to the meeting yet, in this order. */
enum {
	PLAIN_ESTABLISHED = 1, /* TCP is */
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
	bool shut;             /* the queue pair is being destroyed */
	unsigned news;         /* PLAIN_* */
	uint32_t attempt;      /* which the stream is */
	enum meeting_use use;  /* with PLAIN_ENDED */
	uint64_t deadline;     /* of the meeting */
	struct meet_data peer; /* the peer's words, once both ends have met */
};

/* conn_plain.c */
void conn_plain_free(struct conn *c);

/* conn_plain_do.c; all but the first with the lock */
/* Ask the home to look at what is new. From any thread, without the lock. */
void conn_plain_ask(struct conn *c);
/* With the lock, out of all calls on the stream: CONN_PLAIN. */
void conn_plain_run(struct conn *c);
/* With the lock, from an event of the stream. */
void conn_plain_on_event(struct conn *c, enum stream_event event, int status);
void conn_plain_on_dialed(struct conn *c); /* TCP is established, and the request is sent next */
void conn_plain_on_time(struct conn *c);
void conn_plain_on_post(struct conn *c);
/* Out of all calls on the stream. */
void conn_plain_do(struct conn *c, const struct meeting_todo *todo);
/* End the present stream, if it was used, and put the queue pair on a fresh one. 0 or -errno. */
int conn_plain_renew_stream(struct conn *c, bool same_host);
/* The queue pair has moved to RTS. If its peer is refused for the sequence numbers, the stream ends. */
void conn_plain_compare_psns(struct conn *c);
/* Not more requests than both users permit. */
void conn_plain_limit_requests(struct conn *c, struct stream_update *u);

/* conn_plain_carrier.c: the connection that an inbound dial comes with */
/* With its lock: the 64 bytes of its request. False: they are malformed; *data has what they name. */
bool conn_plain_request(struct conn *carrier, struct meet_data *data);
void conn_plain_reject(struct conn *carrier, const struct meet_data *data, enum meet_reason reason);
/* Without its lock: the same to a dial that is kept, which ends with that. */
void conn_plain_drop(struct qp_dial *dial, enum meet_reason reason);
/* With the home's lock: its link and its stream are the home's, if the result is 0. The dial ends. */
int conn_plain_take_over(struct conn *home, struct qp_dial *dial);

#endif
