/* SPDX-License-Identifier: BSD-3-Clause */
/* stream_impl.h -- the struct of a stream, and functions for the files of this folder only. */
#ifndef STREAM_IMPL_H
#define STREAM_IMPL_H

#include <stddef.h>

#include "softrnic/stream/liveness.h"
#include "softrnic/stream/stream.h"
#include "softrnic/proto/mpa.h"
#include "softrnic/proto/term_code.h"

#define STREAM_DISCARD_BYTES (16u << 10)

/* The initiator's requests, in the order in which they are tried. If the peer closes after a
 * request, the next one is tried. */
enum stream_attempt {
	STREAM_ATTEMPT_PLAIN, /* revision 2, client-server model, consent offered if configured */
	STREAM_ATTEMPT_P2P,   /* revision 2, peer-to-peer model, no extensions */
	STREAM_ATTEMPT_REV1,
};

/* The destination of the bytes between stream_rx_begin() and stream_rx_end(). */
enum stream_rx_into {
	STREAM_RX_NOTHING, /* no receive is in progress */
	STREAM_RX_FRAME,
	STREAM_RX_PROBE,
	STREAM_RX_QP,
	STREAM_RX_DISCARD
};

enum stream_job { STREAM_JOB_NONE, STREAM_JOB_RUNNING, STREAM_JOB_ABANDONED };

/* At most three events can wait at the same time: a request, its outcome, and the end. */
#define STREAM_EVENTS_MAX 3

/* Start-up frames; allocated when TCP is connected, freed in full operation. */
struct stream_frames {
	uint8_t in[MPA_START_MAX + 1]; /* one more byte for the probe in REQ_RCVD */
	size_t in_len, in_need;
	uint8_t out[MPA_START_MAX];
	size_t out_len, out_sent;
};

struct stream {
	struct stream_config cfg;
	enum stream_state state;
	enum stream_attempt attempt;
	struct qp *qp;
	bool started;       /* the QP has taken over the stream */
	bool ended;         /* the last event is queued, or the user expects none */
	bool gone;          /* the peer has closed while its request waited for the user */
	bool fin_in;        /* the peer has sent its FIN */
	bool fin_out;       /* this end's FIN is sent */
	bool closed;        /* the link is closed */
	bool redial;        /* the owner must dial again */
	bool resume_due;    /* receives were posted for which arrived bytes wait */
	bool tx_of_qp;      /* stream_tx_begin() returned bytes of the QP */
	bool lent[2];       /* buffers that the owner lent, by enum stream_buf */
	bool opened;        /* initiator: the last ORIGIN is posted, and the user may send */
	bool identified;    /* responder: the last ORIGIN has arrived */
	bool fencing;       /* responder: the owner cuts former connections */
	bool left;          /* responder: a LEAVE is posted */
	bool over;          /* see stream_is_over() */
	bool leaves_writes; /* qp_leaves_writes() of the detached QP */
	bool job_stopped;   /* the owner has seen that the job is no longer needed */
	enum stream_job job;
	enum stream_rx_into rx_into;
	unsigned n_events;
	struct {
		enum stream_event event;
		int status;
	} events[STREAM_EVENTS_MAX];
	uint32_t mss;
	uint64_t traffic;         /* value of qp_traffic() when the stream began */
	uint64_t deadline;        /* deadline of the state; in LIVE see stream_stall.c */
	uint64_t stall_since;     /* time since which no Send was delivered; 0: no stall */
	uint64_t stall_delivered; /* number of delivered Sends at the last check */
	uint64_t hold_notice;     /* time at which to log a notice that explains held FPDUs */
	bool hold_explained;
	uint64_t rnr_at; /* time at which a Send that waits for a receive of the peer fails */
	struct liveness liveness;
	struct stream_params local, remote;
	struct mpa_start request; /* the request that was sent or received */
	struct qp_stream agreed;
	struct stream_frames *frames;
	struct ext_origin *origin; /* initiator: the ORIGIN that awaits its answer */
	uint8_t *discard;
	uint8_t *rest; /* unsent bytes of a detached QP that failed */
	size_t rest_len, rest_sent;
};

/* stream.c */
/* The only function that sets s->state. */
void stream_set_state(struct stream *s, enum stream_state to, const char *why);
/* Free the buffers of the start-up and of the end, except a buffer that a receive is using. */
void stream_free_buffers(struct stream *s);
/* The event that an initiator gets for the link's last error. */
enum stream_event stream_event_of(int err);
uint64_t stream_after(uint64_t now, uint64_t ns);

/* stream_update.c */
/*
 * Every call that changes the stream ends with stream_report() or stream_report_at(). A call that
 * takes the time as an argument uses stream_report_at().
 */
void stream_report(struct stream *s, struct stream_update *u);
bool stream_settles_at(const struct stream *s); /* does stream_report_at() depend on the time? */
void stream_report_at(struct stream *s, uint64_t now, struct stream_update *u);
void stream_push_event(struct stream *s, enum stream_event event, int status);
enum stream_rx_into stream_rx_target(const struct stream *s);
bool stream_has_bytes(const struct stream *s, unsigned qp_due); /* is there anything to send? */
/* Queue the last event; a second call has no effect. */
void stream_end(struct stream *s, enum stream_event event, int status);

/* stream_qp.c */
/* Is the QP attached, and has it taken over the stream? */
static inline bool stream_runs_qp(const struct stream *s)
{
	return s->started && s->qp;
}
/* QP_DUE_* flags; 0: the QP does not run the stream */
static inline unsigned stream_qp_due(const struct stream *s)
{
	return stream_runs_qp(s) ? qp_due(s->qp) : 0;
}
bool stream_lend(struct stream *s, enum stream_buf kind);
void stream_put_bufs(struct stream *s); /* return buffers that are empty */
/* set the vendor_err with which posted requests fail */
void stream_set_cause(struct stream *s, int err);

/* startup.c */
int stream_frames_new(struct stream *s);
void stream_frames_delete(struct stream *s);
int stream_frame_put(struct stream *s, const struct mpa_start *start, const void *pdata);
/* Send a Terminate instead of the first FPDU, for errors of the negotiation (RFC 6581 s10). */
void stream_frame_put_terminate(struct stream *s, enum term_error error, bool markers);
static inline bool stream_frame_is_sent(const struct stream *s)
{
	return !s->frames || s->frames->out_sent == s->frames->out_len;
}
struct iovec stream_frame_room(struct stream *s);
void stream_frame_got(struct stream *s, size_t len, uint64_t now);
/* Keep the peer's private data for the user. Returns 0 or -EMSGSIZE. */
int stream_keep_pdata(struct stream *s, const struct mpa_start *start, const uint8_t *pdata);
void stream_warn_pdata(const struct stream *s, uint8_t len);
int stream_start_qp(struct stream *s);
uint32_t stream_limit_ms(const struct stream *s); /* the limit that this end's HELLO states */
/* Called when the start-up frames are exchanged: enter LIVE; if the peer consents, wait for its
 * HELLO first. */
void stream_on_frames_done(struct stream *s, const char *why, uint64_t now);
void stream_settle_hello(struct stream *s, uint64_t now);
/* Report an error that occurred before full operation, and close the link. */
void stream_startup_failed(struct stream *s, enum stream_event event, int err, const char *why);

/* startup_origin.c */
/* Must be called when the HELLOs are exchanged. The initiator posts its next ORIGIN; the responder
 * handles the ORIGINs that have arrived. Returns true if full operation may begin. */
bool stream_origin_settles(struct stream *s, uint64_t now);
/* Responder: handle an ORIGIN that arrives after this end has begun to leave. */
void stream_origin_late(struct stream *s);
void stream_origin_on_deadline(struct stream *s, uint64_t now);
/* Called at a responder with nothing left to send. If a LEAVE must precede the FIN, post the LEAVE
 * and return true. */
bool stream_leaves_first(struct stream *s);
void stream_note_over(struct stream *s); /* called before the queue pair ends or is detached */

/* startup_initiator.c */
void stream_initiator_on_reply(struct stream *s, const struct mpa_start *rep, const uint8_t *pdata,
			       uint64_t now);
/* Called when the peer has closed the connection after this end's request. */
void stream_initiator_on_hangup(struct stream *s);

/* startup_responder.c */
void stream_responder_on_request(struct stream *s, const struct mpa_start *req,
				 const uint8_t *pdata, uint64_t now);
void stream_responder_settle(struct stream *s, uint64_t now);

/* stream_end.c */
/* Fail the queue pair, unless it connects by a meeting (meeting.h). */
void stream_end_qp(struct stream *s);
/*
 * Enter the next state if possible. This function takes the time as an argument, and handles
 * REP_SENT, HELLO, LIVE and DRAINING. In DRAINING and CLOSING it also calls stream_origin_late().
 */
void stream_settle(struct stream *s, uint64_t now);
/* Enter the next state if possible, for transitions that do not need the time: in DRAINING after
 * the last byte was sent, in CLOSING and in LINGERING. */
void stream_settle_end(struct stream *s);
/* Must stream_settle() be called soon? An update then requests stream_on_time(). */
bool stream_needs_time(const struct stream *s, unsigned qp_due, bool has_bytes);
void stream_on_peer_fin(struct stream *s, uint64_t now);
void stream_on_lost(struct stream *s, int err); /* called when the link broke */

/* stream_stall.c: in full operation only. */
/* Has a stall begun whose deadline is not set yet? */
bool stream_stall_is_new(const struct stream *s);
void stream_stall_watch(struct stream *s, uint64_t now);
void stream_stall_on_time(struct stream *s, uint64_t now);

/* liveness.c: these are called in full operation only. A function that returns false means that the
 * peer is lost. */
void stream_liveness_begin(struct stream *s, uint64_t now);
void stream_liveness_on_bytes(struct stream *s, uint64_t now);
bool stream_liveness_on_time(struct stream *s, uint64_t now);

#endif
