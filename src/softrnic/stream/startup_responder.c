/* SPDX-License-Identifier: BSD-3-Clause */
/* startup_responder.c -- the responder's part: waits for a request, waits for the user's decision,
 * and replies. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "softrnic/stream/consent.h"
#include "softrnic/stream/depth.h"
#include "softrnic/stream/stream_impl.h"

void stream_on_incoming(struct stream *s, uint64_t now, struct stream_update *u)
{
	if (s->state == STREAM_IDLE && s->cfg.role == STREAM_RESPONDER) {
		s->deadline = stream_after(now, s->cfg.request_ns);
		stream_set_state(s, STREAM_REQ_WAIT, "incoming");
		if (stream_frames_new(s))
			stream_startup_failed(s, STREAM_EV_DEAD, ENOMEM, "no memory for a request");
	}
	stream_report(s, u);
}

/* Choose one of the offered RTR messages (RFC 6581 s9). The cheapest one comes first. */
static enum qp_rtr stream_accept_rtr(const struct mpa_start *req)
{
	if (!req->enhanced || !req->p2p)
		return QP_RTR_NONE;
	if (req->rtr_write)
		return QP_RTR_WRITE;
	if (req->rtr_read && req->ord > 0)
		return QP_RTR_READ;
	return req->rtr_send ? QP_RTR_SEND : QP_RTR_NONE;
}

/* Make a reply that mirrors the request's fields, as the RFCs require. */
static struct mpa_start stream_reply_to(const struct stream *s, uint8_t pd_len)
{
	return (struct mpa_start){
		.reply = true,
		.crc = s->cfg.crc || s->request.crc,
		.revision = s->request.revision,
		.enhanced = s->request.enhanced,
		.pd_len = pd_len,
		.p2p = s->request.enhanced && s->request.p2p,
	};
}

static int stream_send_reject(struct stream *s, const void *pdata, uint8_t len, uint64_t now)
{
	struct mpa_start rep = stream_reply_to(s, len);
	int ret;

	rep.reject = true;
	ret = stream_frame_put(s, &rep, pdata);
	if (ret)
		return ret;
	s->deadline = stream_after(now, s->cfg.drain_ns);
	stream_set_state(s, STREAM_CLOSING, "reject");
	return 0;
}

/* Reject a request immediately, without asking the user, because the user cannot decide about
 * it. */
static void stream_refuse_request(struct stream *s, const char *why, int err, uint64_t now)
{
	LOG_NOTICE_LIMITED("stream %p: request refused: %s", (void *)s, why);
	if (stream_send_reject(s, NULL, 0, now))
		stream_startup_failed(s, STREAM_EV_DEAD, err, why);
	else
		stream_end(s, STREAM_EV_DEAD, -err);
}

void stream_responder_on_request(struct stream *s, const struct mpa_start *req,
				 const uint8_t *pdata, uint64_t now)
{
	s->request = *req;
	if (req->revision != MPA_REVISION_1 && req->revision != MPA_REVISION_2) {
		stream_startup_failed(s, STREAM_EV_DEAD, EPROTO, "unknown MPA revision");
		return;
	}
	if (stream_keep_pdata(s, req, pdata)) {
		stream_refuse_request(s, "too much private data", EMSGSIZE, now);
		return;
	}
	if (req->enhanced && req->p2p && stream_accept_rtr(req) == QP_RTR_NONE) {
		stream_refuse_request(s, "peer-to-peer model without an RTR", EPROTO, now);
		return;
	}
	stream_depth_offered(&s->remote, req);
	s->deadline = CLOCK_NEVER;
	stream_set_state(s, STREAM_REQ_RCVD, "request");
	stream_push_event(s, STREAM_EV_CONNECT_REQUEST, 0);
}

static void stream_put_rtr(struct mpa_start *rep, enum qp_rtr rtr)
{
	rep->rtr_send = rtr == QP_RTR_SEND;
	rep->rtr_write = rtr == QP_RTR_WRITE;
	rep->rtr_read = rtr == QP_RTR_READ;
}

/* Fill in the reply and the QP's configuration together, so that the two agree. */
static void stream_answer(struct stream *s, struct mpa_start *rep, const struct stream_params *user,
			  uint32_t mss)
{
	const struct mpa_start *req = &s->request;
	enum stream_consent offered =
		s->cfg.offer_consent ? stream_consent_get(req) : STREAM_CONSENT_NONE;

	s->agreed = (struct qp_stream){
		.crc = rep->crc,
		.markers = req->markers,
		.consent = offered != STREAM_CONSENT_NONE,
		.peer_flushes = offered == STREAM_CONSENT_FLUSHES,
		.limit_ms = stream_limit_ms(s),
		.rings = s->cfg.rings,
		.takes_part = s->cfg.takes_part,
		/* An initiator without consent must send the first FPDU (RFC 5044 s7.1.2 rule 4).
		 * One that consents accepts FPDUs directly after the reply. */
		.hold_tx = offered == STREAM_CONSENT_NONE,
		.rtr_in = stream_accept_rtr(req),
		.mss = mss,
	};
	memcpy(s->agreed.instance, s->cfg.instance, sizeof(s->agreed.instance));
	if (s->agreed.consent)
		stream_consent_put(rep, stream_consent_of_user(s->cfg.user_flushes));
	else
		stream_put_rtr(rep, s->agreed.rtr_in);
	stream_depth_answer(&s->agreed, rep, req, user);
}

static int stream_send_accept(struct stream *s, const struct stream_params *params, uint32_t mss,
			      uint64_t now)
{
	struct mpa_start rep;
	int ret;

	if (s->state != STREAM_REQ_RCVD)
		return s->gone ? -ECONNRESET : -EINVAL;
	rep = stream_reply_to(s, params->pdata_len);
	stream_answer(s, &rep, params, mss);
	stream_warn_pdata(s, params->pdata_len);
	ret = stream_start_qp(s);
	if (!ret)
		ret = stream_frame_put(s, &rep, params->pdata);
	if (ret)
		return ret;
	s->deadline = stream_after(now, s->cfg.request_ns);
	stream_set_state(s, STREAM_REP_SENT, s->agreed.consent ? "accept, with consent" : "accept");
	return 0;
}

int stream_accept(struct stream *s, const struct stream_params *params, uint32_t mss, uint64_t now,
		  struct stream_update *u)
{
	int ret = stream_send_accept(s, params, mss, now);

	stream_report(s, u);
	return ret;
}

/* Reject the request. If the peer has already closed the connection, return success, because
 * nothing is left to do. */
static int stream_user_rejects(struct stream *s, const void *pdata, uint8_t len, uint64_t now)
{
	int ret;

	if (s->state != STREAM_REQ_RCVD)
		return s->gone ? 0 : -EINVAL;
	stream_warn_pdata(s, len);
	ret = stream_send_reject(s, pdata, len, now);
	if (!ret)
		s->ended = true;
	return ret;
}

int stream_reject(struct stream *s, const void *pdata, uint8_t len, uint64_t now,
		  struct stream_update *u)
{
	int ret = stream_user_rejects(s, pdata, len, now);

	stream_report(s, u);
	return ret;
}

void stream_responder_settle(struct stream *s, uint64_t now)
{
	if (stream_qp_is_failed(s)) {
		s->deadline = stream_after(now, s->cfg.drain_ns);
		stream_set_state(s, STREAM_CLOSING, "QP failed");
		stream_end(s, STREAM_EV_CONNECT_ERROR, -EPROTO);
		return;
	}
	if (!stream_frame_is_sent(s))
		return;
	if (s->agreed.rtr_in != QP_RTR_NONE && s->qp && !qp_has_received(s->qp))
		return;
	stream_on_frames_done(s, s->agreed.rtr_in == QP_RTR_NONE ? "reply is out" : "RTR is in",
			      now);
}
