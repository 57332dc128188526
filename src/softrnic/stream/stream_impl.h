/* SPDX-License-Identifier: BSD-3-Clause */
/* stream_impl.h -- the inside of a stream, for the files of this room only. */
#ifndef STREAM_IMPL_H
#define STREAM_IMPL_H

#include <stddef.h>

#include "softrnic/stream/liveness.h"
#include "softrnic/stream/stream.h"
#include "softrnic/proto/mpa.h"
#include "softrnic/proto/term_code.h"

#define STREAM_DISCARD_BYTES (16u << 10)

/* What an initiator requests: each row is tried after the peer closed on the one before. */
enum stream_attempt {
	STREAM_ATTEMPT_PLAIN, /* revision 2, client-server model, consent offered if configured */
	STREAM_ATTEMPT_P2P,   /* revision 2, peer-to-peer model, no extensions */
	STREAM_ATTEMPT_REV1,
};

/* Whose memory stream_rx_begin() returned; stream_rx_end() belongs to it. */
enum stream_rx_into {
	STREAM_RX_NOTHING, /* no receive is under way */
	STREAM_RX_FRAME,
	STREAM_RX_PROBE,
	STREAM_RX_QP,
	STREAM_RX_DISCARD
};

enum stream_job { STREAM_JOB_NONE, STREAM_JOB_RUNNING, STREAM_JOB_ABANDONED };

/* A request, its outcome, and the end: no more can wait to be taken. */
#define STREAM_EVENTS_MAX 3

/* Start-up frames; allocated when TCP is up, gone in full operation. */
struct stream_frames {
	uint8_t in[MPA_START_MAX + 1]; /* one more: the probe of REQ_RCVD */
	size_t in_len, in_need;
	uint8_t out[MPA_START_MAX];
	size_t out_len, out_sent;
};

struct stream {
	struct stream_config cfg;
	enum stream_state state;
	enum stream_attempt attempt;
	struct qp *qp;
	bool started;       /* the QP has the stream */
	bool ended;         /* the last event is queued, or the user expects none */
	bool gone;          /* the peer closed while its request waited for the user */
	bool fin_in;        /* the peer has sent its FIN */
	bool fin_out;       /* our FIN is sent */
	bool closed;        /* the link is */
	bool redial;        /* the owner has to dial again */
	bool resume_due;    /* receives were posted for what is here already */
	bool tx_of_qp;      /* whose bytes stream_tx_begin() returned */
	bool lent[2];       /* buffers of the owner, by enum stream_buf */
	bool opened;        /* initiator: the last ORIGIN is posted, and the user may send */
	bool identified;    /* responder: the last ORIGIN has come */
	bool fencing;       /* responder: the owner cuts former connections */
	bool left;          /* responder: a LEAVE is posted */
	bool over;          /* see stream_is_over() */
	bool leaves_writes; /* of the QP that was detached: qp_leaves_writes() */
	bool job_stopped;   /* the owner knows that it is not needed any more */
	enum stream_job job;
	enum stream_rx_into rx_into;
	unsigned n_events;
	struct {
		enum stream_event event;
		int status;
	} events[STREAM_EVENTS_MAX];
	uint32_t mss;
	uint64_t traffic;         /* of the QP, when it was started */
	uint64_t deadline;        /* of the state; LIVE: stream_stall.c */
	uint64_t stall_since;     /* since then no Send was delivered; 0: no stall */
	uint64_t stall_delivered; /* Sends, at the last look */
	uint64_t hold_notice;     /* when to explain that FPDUs are held back */
	bool hold_explained;
	struct liveness liveness;
	struct stream_params local, remote;
	struct mpa_start request; /* sent or received */
	struct qp_stream agreed;
	struct stream_frames *frames;
	struct ext_origin *origin; /* initiator: the one that waits for its answer */
	uint8_t *discard;
	uint8_t *rest; /* unsent bytes of a failed QP that was detached */
	size_t rest_len, rest_sent;
};

/* stream.c */
/* The one writer of s->state. */
void stream_set_state(struct stream *s, enum stream_state to, const char *why);
/* Buffers of the start-up and of the end, but for the one that a receive is under way into. */
void stream_free_buffers(struct stream *s);
/* The last thing that happened to the link, as an event for an initiator. */
enum stream_event stream_event_of(int err);
uint64_t stream_after(uint64_t now, uint64_t ns);

/* stream_update.c */
/* The end of every call that changes something; and of one that has the time. */
void stream_report(struct stream *s, struct stream_update *u);
bool stream_settles_at(const struct stream *s); /* does stream_report_at() depend on the time? */
void stream_report_at(struct stream *s, uint64_t now, struct stream_update *u);
void stream_push_event(struct stream *s, enum stream_event event, int status);
enum stream_rx_into stream_rx_target(const struct stream *s);
bool stream_has_bytes(const struct stream *s, unsigned qp_due); /* to be sent */
/* The last event; a second one is dropped. */
void stream_end(struct stream *s, enum stream_event event, int status);

/* stream_qp.c */
/* It is attached and has the stream. */
static inline bool stream_runs_qp(const struct stream *s)
{
	return s->started && s->qp;
}
static inline unsigned stream_qp_due(const struct stream *s) /* QP_DUE_*; 0: it does not run */
{
	return stream_runs_qp(s) ? qp_due(s->qp) : 0;
}
bool stream_lend(struct stream *s, enum stream_buf kind);
void stream_put_bufs(struct stream *s);           /* those that nothing is left in */
void stream_set_cause(struct stream *s, int err); /* vendor_err of what was posted will be this */

/* startup.c */
int stream_frames_new(struct stream *s);
void stream_frames_delete(struct stream *s);
int stream_frame_put(struct stream *s, const struct mpa_start *start, const void *pdata);
/* A Terminate instead of the first FPDU, for errors of the negotiation (RFC 6581 s10). */
void stream_frame_put_terminate(struct stream *s, enum term_error error, bool markers);
static inline bool stream_frame_is_sent(const struct stream *s)
{
	return !s->frames || s->frames->out_sent == s->frames->out_len;
}
struct iovec stream_frame_room(struct stream *s);
void stream_frame_got(struct stream *s, size_t len, uint64_t now);
/* Keep the peer's private data for the user: 0, or -EMSGSIZE. */
int stream_keep_pdata(struct stream *s, const struct mpa_start *start, const uint8_t *pdata);
void stream_warn_pdata(const struct stream *s, uint8_t len);
int stream_start_qp(struct stream *s);
uint32_t stream_limit_ms(const struct stream *s); /* what our HELLO states */
/* The start-up frames are exchanged: to LIVE, as soon as a consenting peer's HELLO is here. */
void stream_on_frames_done(struct stream *s, const char *why, uint64_t now);
void stream_settle_hello(struct stream *s, uint64_t now);
/* Before full operation something went wrong: report it and close. */
void stream_startup_failed(struct stream *s, enum stream_event event, int err, const char *why);

/* startup_origin.c */
/* The HELLOs are exchanged: may full operation begin, or what is still to be done for that? */
bool stream_origin_settles(struct stream *s, uint64_t now);
/* Responder: an ORIGIN that comes after this end has begun to leave. */
void stream_origin_late(struct stream *s);
void stream_origin_on_deadline(struct stream *s, uint64_t now);
/* Responder, all is sent: does its FIN need a LEAVE before it? Then it is posted. */
bool stream_leaves_first(struct stream *s);
void stream_note_over(struct stream *s); /* before its queue pair is detached, or ends */

/* startup_initiator.c */
void stream_initiator_on_reply(struct stream *s, const struct mpa_start *rep, const uint8_t *pdata,
			       uint64_t now);
/* The peer closed the connection on our request. */
void stream_initiator_on_hangup(struct stream *s);

/* startup_responder.c */
void stream_responder_on_request(struct stream *s, const struct mpa_start *req,
				 const uint8_t *pdata, uint64_t now);
void stream_responder_settle(struct stream *s, uint64_t now);

/* stream_end.c */
/* Its queue pair fails, unless it is to be spared. */
void stream_end_qp(struct stream *s);
/* May the next state be entered? With the time: REP_SENT, HELLO, LIVE and DRAINING. */
void stream_settle(struct stream *s, uint64_t now);
/* Without it: DRAINING, CLOSING and LINGERING. */
void stream_settle_end(struct stream *s);
/* stream_settle() has something to do, but the call at hand has no time. */
bool stream_needs_time(const struct stream *s, unsigned qp_due, bool has_bytes);
void stream_on_peer_fin(struct stream *s, uint64_t now);
void stream_on_lost(struct stream *s, int err); /* the link broke */

/* stream_stall.c: in full operation only. */
/* A stall has begun, and its deadline is not set. */
bool stream_stall_is_new(const struct stream *s);
void stream_stall_watch(struct stream *s, uint64_t now);
void stream_stall_on_time(struct stream *s, uint64_t now);

/* liveness.c: in full operation only. False: the peer is lost. */
void stream_liveness_begin(struct stream *s, uint64_t now);
void stream_liveness_on_bytes(struct stream *s, uint64_t now);
bool stream_liveness_on_time(struct stream *s, uint64_t now);

#endif
