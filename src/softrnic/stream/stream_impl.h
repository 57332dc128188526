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

/* How an initiator introduces itself: each row is tried after a peer hung up on the one before. */
enum stream_attempt {
	STREAM_ATTEMPT_PLAIN, /* revision 2, client-server model, consent offered if we may */
	STREAM_ATTEMPT_P2P,   /* revision 2, peer-to-peer model, no extensions */
	STREAM_ATTEMPT_REV1,
};

/* Whose memory stream_rx_want() returned; stream_rx_got() belongs to it. */
enum stream_rx_into {
	STREAM_RX_NOTHING,
	STREAM_RX_FRAME,
	STREAM_RX_PROBE,
	STREAM_RX_QP,
	STREAM_RX_DISCARD
};

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
	bool started;  /* the QP has the stream */
	bool ended;    /* the last event is out, or the user expects none */
	bool gone;     /* the peer went while its request waited for the user */
	bool fin_in;   /* the peer will send no more */
	bool fin_out;  /* nor will we */
	bool tx_of_qp; /* whose bytes stream_tx_gather() returned */
	enum stream_rx_into rx_into;
	uint32_t mss;
	uint64_t deadline;    /* of the state */
	uint64_t hold_notice; /* when to explain that FPDUs are held back */
	bool hold_explained;
	struct liveness liveness;
	struct stream_params local, remote;
	struct mpa_start request; /* sent or received */
	struct qp_stream agreed;
	struct stream_frames *frames;
	uint8_t *discard;
	uint8_t *rest; /* what a failed QP that is gone by now still had to say */
	size_t rest_len, rest_sent;
};

/* stream.c */
/* The one writer of s->state. */
void stream_set_state(struct stream *s, enum stream_state to, const char *why);
/* The last event; a second one is dropped. */
void stream_end(struct stream *s, enum stream_event event, int status);
/* The last thing the LLP did to us, as an event for an initiator. */
enum stream_event stream_event_of(int err);
uint64_t stream_after(uint64_t now, uint64_t ns);
bool stream_qp_is_failed(const struct stream *s);
/* Does the QP take the bytes that come now? */
bool stream_qp_receives(const struct stream *s);
/* Are the bytes to be sent the QP's? */
bool stream_qp_sends(const struct stream *s);

/* startup.c */
int stream_frames_new(struct stream *s);
void stream_frames_delete(struct stream *s);
int stream_frame_put(struct stream *s, const struct mpa_start *start, const void *pdata);
/* A Terminate instead of the first FPDU, for errors of the negotiation (RFC 6581 s10). */
void stream_frame_put_terminate(struct stream *s, enum term_error error, bool markers);
bool stream_frame_is_sent(const struct stream *s);
int stream_frame_want(struct stream *s, struct iovec *iov);
void stream_frame_got(struct stream *s, size_t len, uint64_t now);
/* Keep the peer's private data for the user: 0, or -EMSGSIZE. */
int stream_keep_pdata(struct stream *s, const struct mpa_start *start, const uint8_t *pdata);
void stream_warn_pdata(const struct stream *s, uint8_t len);
int stream_start_qp(struct stream *s);
uint32_t stream_limit_ms(const struct stream *s);
/* The start-up frames are exchanged: to LIVE, as soon as a consenting peer's HELLO is here. */
void stream_started(struct stream *s, const char *why, uint64_t now);
void stream_settle_hello(struct stream *s, uint64_t now);
/* Before full operation something went wrong: tell who has to know, and close. */
void stream_startup_failed(struct stream *s, enum stream_event event, int err, const char *why);

/* startup_initiator.c */
void stream_initiator_on_reply(struct stream *s, const struct mpa_start *rep, const uint8_t *pdata,
			       uint64_t now);
/* The peer hung up on our request. */
void stream_initiator_on_hangup(struct stream *s);

/* startup_responder.c */
void stream_responder_on_request(struct stream *s, const struct mpa_start *req,
				 const uint8_t *pdata, uint64_t now);
void stream_responder_settle(struct stream *s, uint64_t now);

/* stream_end.c */
/* Look at the QP and at what is out and in: is it time for the next state? */
void stream_settle(struct stream *s, uint64_t now);
/* There is nothing to send at the moment. */
void stream_on_tx_empty(struct stream *s);

/* liveness.c: in full operation only. False: the peer is lost. */
void stream_liveness_begin(struct stream *s, uint64_t now);
void stream_liveness_heard(struct stream *s, uint64_t now);
bool stream_liveness_on_time(struct stream *s, uint64_t now);

#endif
