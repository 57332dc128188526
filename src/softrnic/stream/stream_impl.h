/* SPDX-License-Identifier: BSD-3-Clause */
/* stream_impl.h -- the inside of a stream, for the files of this room only. */
#ifndef CM_STREAM_IMPL_H
#define CM_STREAM_IMPL_H

#include <stddef.h>

#include "softrnic/stream/liveness.h"
#include "softrnic/stream/stream.h"
#include "softrnic/proto/mpa.h"
#include "softrnic/proto/term_code.h"

#define CM_DISCARD_BYTES (16u << 10)

/* How an initiator introduces itself: each row is tried after a peer hung up on the one before. */
enum cm_attempt {
	CM_ATTEMPT_PLAIN, /* revision 2, client-server model, consent offered if we may */
	CM_ATTEMPT_P2P,   /* revision 2, peer-to-peer model, no extensions */
	CM_ATTEMPT_REV1,
};

/* Whose memory cm_rx_want() returned; cm_rx_got() belongs to it. */
enum cm_rx_into { CM_RX_NOTHING, CM_RX_FRAME, CM_RX_PROBE, CM_RX_QP, CM_RX_DISCARD };

/* Start-up frames; allocated when TCP is up, gone in full operation. */
struct cm_frames {
	uint8_t in[MPA_START_MAX + 1]; /* one more: the probe of REQ_RCVD */
	size_t in_len, in_need;
	uint8_t out[MPA_START_MAX];
	size_t out_len, out_sent;
};

struct cm_stream {
	struct cm_config cfg;
	enum cm_state state;
	enum cm_attempt attempt;
	struct qp *qp;
	bool started;  /* the QP has the stream */
	bool ended;    /* the last event is out, or the user expects none */
	bool gone;     /* the peer went while its request waited for the user */
	bool fin_in;   /* the peer will send no more */
	bool fin_out;  /* nor will we */
	bool tx_of_qp; /* whose bytes cm_tx_gather() returned */
	enum cm_rx_into rx_into;
	uint32_t mss;
	uint64_t deadline;    /* of the state */
	uint64_t hold_notice; /* when to explain that FPDUs are held back */
	bool hold_explained;
	struct liveness liveness;
	struct cm_params local, remote;
	struct mpa_start request; /* sent or received */
	struct qp_stream agreed;
	struct cm_frames *frames;
	uint8_t *discard;
	uint8_t *rest; /* what a failed QP that is gone by now still had to say */
	size_t rest_len, rest_sent;
};

/* stream.c */
/* The one writer of s->state. */
void cm_set_state(struct cm_stream *s, enum cm_state to, const char *why);
/* The last event; a second one is dropped. */
void cm_end(struct cm_stream *s, enum cm_stream_event event, int status);
/* The last thing the LLP did to us, as an event for an initiator. */
enum cm_stream_event cm_event_of(int err);
uint64_t cm_after(uint64_t now, uint64_t ns);
bool cm_qp_is_failed(const struct cm_stream *s);
/* Does the QP take the bytes that come now? */
bool cm_qp_receives(const struct cm_stream *s);
/* Are the bytes to be sent the QP's? */
bool cm_qp_sends(const struct cm_stream *s);

/* startup.c */
int cm_frames_new(struct cm_stream *s);
void cm_frames_delete(struct cm_stream *s);
int cm_frame_put(struct cm_stream *s, const struct mpa_start *start, const void *pdata);
/* A Terminate instead of the first FPDU, for errors of the negotiation (RFC 6581 s10). */
void cm_frame_put_terminate(struct cm_stream *s, enum term_error error, bool markers);
bool cm_frame_is_sent(const struct cm_stream *s);
int cm_frame_want(struct cm_stream *s, struct iovec *iov);
void cm_frame_got(struct cm_stream *s, size_t len, uint64_t now);
/* Keep the peer's private data for the user: 0, or -EMSGSIZE. */
int cm_keep_pdata(struct cm_stream *s, const struct mpa_start *start, const uint8_t *pdata);
void cm_warn_pdata(const struct cm_stream *s, uint8_t len);
int cm_start_qp(struct cm_stream *s);
/* Before full operation something went wrong: tell who has to know, and close. */
void cm_startup_failed(struct cm_stream *s, enum cm_stream_event event, int err, const char *why);

/* startup_initiator.c */
void cm_initiator_on_reply(struct cm_stream *s, const struct mpa_start *rep, const uint8_t *pdata,
			   uint64_t now);
/* The peer hung up on our request. */
void cm_initiator_on_hangup(struct cm_stream *s);

/* startup_responder.c */
void cm_responder_on_request(struct cm_stream *s, const struct mpa_start *req, const uint8_t *pdata,
			     uint64_t now);
void cm_responder_settle(struct cm_stream *s, uint64_t now);

/* stream_end.c */
/* Look at the QP and at what is out and in: is it time for the next state? */
void cm_settle(struct cm_stream *s, uint64_t now);
/* There is nothing to send at the moment. */
void cm_on_tx_empty(struct cm_stream *s);

/* liveness.c: in full operation only. False: the peer is lost. */
void cm_liveness_begin(struct cm_stream *s, uint64_t now);
void cm_liveness_heard(struct cm_stream *s, uint64_t now);
bool cm_liveness_on_time(struct cm_stream *s, uint64_t now);

#endif
