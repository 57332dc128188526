/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * startup_initiator.c -- the initiator's part: dials, sends a request, and receives the reply, or
 * tries again with a simpler request.
 */
#include <errno.h>

#include "base/log.h"
#include "softrnic/stream/consent.h"
#include "softrnic/stream/depth.h"
#include "softrnic/stream/stream_impl.h"

int stream_connect(struct stream *s, const struct stream_params *params, uint64_t now,
		   struct stream_update *u)
{
	bool may = s->state == STREAM_IDLE && s->cfg.role == STREAM_INITIATOR;

	if (may) {
		s->local = *params;
		stream_warn_pdata(s, params->pdata_len);
		s->deadline = stream_after(now, s->cfg.connect_ns);
		stream_set_state(s, STREAM_DIALING, "connect");
	}
	stream_report(s, u);
	return may ? 0 : -EINVAL;
}

static void stream_make_request(struct stream *s)
{
	struct mpa_start *req = &s->request;

	*req = (struct mpa_start){
		.crc = s->cfg.crc,
		.revision = s->attempt == STREAM_ATTEMPT_REV1 ? MPA_REVISION_1 : MPA_REVISION_2,
		.enhanced = s->attempt != STREAM_ATTEMPT_REV1,
		.pd_len = s->local.pdata_len,
	};
	stream_depth_ask(req, &s->local);
	if (s->attempt == STREAM_ATTEMPT_P2P) {
		/* Offer a peer-to-peer model's RTR message: a Write without bytes, or a Read if
		 * this end's ORD allows one. */
		req->p2p = true;
		req->rtr_write = true;
		req->rtr_read = req->ord > 0;
	} else if (s->attempt == STREAM_ATTEMPT_PLAIN && s->cfg.offer_consent) {
		stream_consent_put(req, stream_consent_of_user(s->cfg.user_flushes));
	}
}

static void stream_send_request(struct stream *s, uint32_t mss)
{
	int ret = stream_frames_new(s);

	s->mss = mss;
	stream_make_request(s);
	if (!ret)
		ret = stream_frame_put(s, &s->request, s->local.pdata);
	if (ret)
		stream_startup_failed(s, STREAM_EV_CONNECT_ERROR, -ret, "no request");
	else
		stream_set_state(s, STREAM_REQ_SENT, "TCP is up");
	if (s->cfg.meets)
		s->deadline = CLOCK_NEVER;
}

/* If the state is not DIALING, the stream has ended meanwhile. */
void stream_on_dialed(struct stream *s, uint32_t mss, uint64_t now, struct stream_update *u)
{
	if (s->state == STREAM_DIALING)
		stream_send_request(s, mss);
	stream_report(s, u);
}

void stream_on_dial_failed(struct stream *s, int err, uint64_t now, struct stream_update *u)
{
	if (s->state == STREAM_DIALING)
		stream_startup_failed(s, stream_event_of(err), err, "dialing failed");
	stream_report(s, u);
}

/*
 * Try a simpler request after the peer closed the connection without an answer. Intel's drivers
 * drop a request of revision 2 with A clear, and older drivers, which only implement RFC 5044, drop
 * all of revision 2. A peer that has sent even one byte of an answer has understood the request.
 */
void stream_initiator_on_hangup(struct stream *s)
{
	if (s->frames->in_len > 0 || s->attempt == STREAM_ATTEMPT_REV1 || s->cfg.meets) {
		stream_startup_failed(s, STREAM_EV_REJECTED, ECONNRESET,
				      "the peer closed the connection");
		return;
	}
	s->attempt++;
	s->fin_in = false;
	stream_frames_delete(s);
	LOG_NOTICE("stream %p: the peer closed the connection on the MPA request; retrying with %s",
		   (void *)s,
		   s->attempt == STREAM_ATTEMPT_P2P ? "the peer-to-peer model" : "revision 1");
	stream_set_state(s, STREAM_DIALING, "the peer closed the connection");
	s->redial = true;
}

/* Returns true if this reply is a valid answer to this end's request (RFC 6581 s9). */
static bool stream_reply_fits(const struct stream *s, const struct mpa_start *rep)
{
	return rep->revision == s->request.revision && rep->enhanced == s->request.enhanced &&
	       stream_frame_is_sent(s);
}

/* Choose an RTR message that this end offered and that the responder accepts. */
static enum qp_rtr stream_choose_rtr(const struct mpa_start *req, const struct mpa_start *rep)
{
	if (req->rtr_write && rep->rtr_write)
		return QP_RTR_WRITE;
	if (req->rtr_read && rep->rtr_read && rep->ird > 0)
		return QP_RTR_READ;
	return QP_RTR_NONE;
}

/*
 * Set the connection's parameters according to the reply. Returns 0, or the error for a Terminate.
 */
static unsigned stream_agree(struct stream *s, const struct mpa_start *rep)
{
	const struct mpa_start *req = &s->request;
	enum stream_consent consent = STREAM_CONSENT_NONE;

	if (stream_consent_get(req) != STREAM_CONSENT_NONE)
		consent = stream_consent_get(rep);
	s->agreed = (struct qp_stream){
		.crc = req->crc || rep->crc,
		.markers = rep->markers,
		.consent = consent != STREAM_CONSENT_NONE,
		.peer_flushes = consent == STREAM_CONSENT_FLUSHES,
		.limit_ms = stream_limit_ms(s),
		.rings = s->cfg.rings,
		.takes_part = s->cfg.takes_part,
		.initiates = true,
		.mss = s->mss,
	};
	if (stream_depth_settle(&s->agreed, req, rep))
		return TERM_MPA_INSUFFICIENT_IRD;
	/* A responder that clears A rejects the peer-to-peer model and waits for no RTR. */
	if (req->p2p && rep->p2p) {
		s->agreed.rtr_out = stream_choose_rtr(req, rep);
		if (s->agreed.rtr_out == QP_RTR_NONE)
			return TERM_MPA_NO_RTR;
	}
	return 0;
}

static void stream_refuse_reply(struct stream *s, unsigned error, bool markers, uint64_t now)
{
	LOG_ERROR("stream %p: the reply cannot be used: %s", (void *)s, term_str(error));
	stream_frame_put_terminate(s, error, markers);
	s->deadline = stream_after(now, s->cfg.drain_ns);
	stream_set_state(s, STREAM_CLOSING, "negotiation failed");
	stream_end(s, STREAM_EV_CONNECT_ERROR, -EPROTO);
}

static void stream_start(struct stream *s, uint64_t now)
{
	int ret;

	s->remote.ird = s->agreed.ird;
	s->remote.ord = s->agreed.ord;
	if (s->cfg.meets) {
		s->deadline = stream_after(now, s->cfg.connect_ns);
		stream_push_event(s, STREAM_EV_REPLIED, 0);
	}
	ret = stream_start_qp(s);
	if (ret) {
		stream_startup_failed(s, STREAM_EV_CONNECT_ERROR, -ret, "QP cannot start");
		return;
	}
	stream_on_frames_done(s, s->agreed.consent ? "reply, with consent" : "reply", now);
}

void stream_initiator_on_reply(struct stream *s, const struct mpa_start *rep, const uint8_t *pdata,
			       uint64_t now)
{
	unsigned error;

	if (stream_keep_pdata(s, rep, pdata)) {
		stream_startup_failed(s, STREAM_EV_CONNECT_ERROR, EMSGSIZE,
				      "too much private data");
		return;
	}
	if (rep->reject) {
		stream_startup_failed(s, STREAM_EV_REJECTED, EACCES, "rejected");
		return;
	}
	if (!stream_reply_fits(s, rep)) {
		stream_startup_failed(s, STREAM_EV_CONNECT_ERROR, EPROTO,
				      "reply to another request");
		return;
	}
	error = stream_agree(s, rep);
	if (s->cfg.meets && !s->agreed.consent)
		stream_startup_failed(s, STREAM_EV_CONNECT_ERROR, EPROTO, "no consent");
	else if (error)
		stream_refuse_reply(s, error, rep->markers, now);
	else
		stream_start(s, now);
}
