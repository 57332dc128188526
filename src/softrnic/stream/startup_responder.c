/* SPDX-License-Identifier: BSD-3-Clause */
/* startup_responder.c -- wait for a request, let the user decide, answer. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "softrnic/stream/consent.h"
#include "softrnic/stream/depth.h"
#include "softrnic/stream/stream_impl.h"

static void cm_await_request(struct cm_stream *s, uint64_t now)
{
	s->deadline = cm_after(now, s->cfg.request_ns);
	cm_set_state(s, CM_REQ_WAIT, "incoming");
	if (cm_frames_new(s))
		cm_startup_failed(s, CM_EV_DEAD, ENOMEM, "no memory for a request");
}

void cm_on_incoming(struct cm_stream *s, uint64_t now)
{
	switch (s->state) {
	case CM_IDLE:
		if (s->cfg.role == CM_RESPONDER)
			cm_await_request(s, now);
		break;
	case CM_DIALING:
	case CM_REQ_SENT:
	case CM_REQ_WAIT:
	case CM_REQ_RCVD:
	case CM_REP_SENT:
	case CM_LIVE:
	case CM_DRAINING:
	case CM_CLOSING:
	case CM_LINGERING:
	case CM_CLOSED:
		break;
	}
}

static bool cm_request_is_known(const struct mpa_start *req)
{
	return req->revision == MPA_REVISION_1 || req->revision == MPA_REVISION_2;
}

/* The one RTR that we accept of those offered (RFC 6581 s9): the cheapest first. */
static enum qp_rtr cm_accept_rtr(const struct mpa_start *req)
{
	if (!req->enhanced || !req->p2p)
		return QP_RTR_NONE;
	if (req->rtr_write)
		return QP_RTR_WRITE;
	if (req->rtr_read && req->ord > 0)
		return QP_RTR_READ;
	return req->rtr_send ? QP_RTR_SEND : QP_RTR_NONE;
}

/* A reply that mirrors what has to be mirrored. */
static struct mpa_start cm_reply_to(const struct cm_stream *s, uint8_t pd_len)
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

static int cm_send_reject(struct cm_stream *s, const void *pdata, uint8_t len, uint64_t now)
{
	struct mpa_start rep = cm_reply_to(s, len);
	int ret;

	rep.reject = true;
	ret = cm_frame_put(s, &rep, pdata);
	if (ret)
		return ret;
	s->deadline = cm_after(now, s->cfg.drain_ns);
	cm_set_state(s, CM_CLOSING, "reject");
	return 0;
}

/* Nothing that a user could decide about: answer for him. */
static void cm_refuse_request(struct cm_stream *s, const char *why, int err, uint64_t now)
{
	LOG_NOTICE_LIMITED("stream %p: request refused: %s", (void *)s, why);
	if (cm_send_reject(s, NULL, 0, now))
		cm_startup_failed(s, CM_EV_DEAD, err, why);
	else
		cm_end(s, CM_EV_DEAD, -err);
}

void cm_responder_on_request(struct cm_stream *s, const struct mpa_start *req, const uint8_t *pdata,
			     uint64_t now)
{
	s->request = *req;
	if (!cm_request_is_known(req)) {
		cm_startup_failed(s, CM_EV_DEAD, EPROTO, "unknown MPA revision");
		return;
	}
	if (cm_keep_pdata(s, req, pdata)) {
		cm_refuse_request(s, "too much private data", EMSGSIZE, now);
		return;
	}
	if (req->enhanced && req->p2p && cm_accept_rtr(req) == QP_RTR_NONE) {
		cm_refuse_request(s, "peer-to-peer model without an RTR", EPROTO, now);
		return;
	}
	cm_depth_offered(&s->remote, req);
	s->deadline = CLOCK_NEVER;
	cm_set_state(s, CM_REQ_RCVD, "request");
	s->cfg.event(s->cfg.owner, CM_EV_CONNECT_REQUEST, 0);
}

static void cm_put_rtr(struct mpa_start *rep, enum qp_rtr rtr)
{
	rep->rtr_send = rtr == QP_RTR_SEND;
	rep->rtr_write = rtr == QP_RTR_WRITE;
	rep->rtr_read = rtr == QP_RTR_READ;
}

/* What the reply says and what the QP gets are decided together. */
static void cm_answer(struct cm_stream *s, struct mpa_start *rep, const struct cm_params *user,
		      uint32_t mss)
{
	const struct mpa_start *req = &s->request;
	enum cm_consent offered = s->cfg.offer_consent ? cm_consent_get(req) : CM_CONSENT_NONE;

	s->agreed = (struct qp_stream){
		.crc = rep->crc,
		.markers = req->markers,
		.consent = offered != CM_CONSENT_NONE,
		.peer_flushes = offered == CM_CONSENT_FLUSHES,
		/* RFC 5044 s7.1.2 rule 4. A consenting initiator takes FPDUs behind the reply. */
		.hold_tx = offered == CM_CONSENT_NONE,
		.rtr_in = cm_accept_rtr(req),
		.mss = mss,
	};
	if (s->agreed.consent)
		cm_consent_put(rep, cm_consent_of_user(s->cfg.user_flushes));
	else
		cm_put_rtr(rep, s->agreed.rtr_in);
	cm_depth_answer(&s->agreed, rep, req, user);
}

int cm_stream_accept(struct cm_stream *s, const struct cm_params *params, uint32_t mss,
		     uint64_t now)
{
	struct mpa_start rep;
	int ret;

	if (s->state != CM_REQ_RCVD)
		return s->gone ? -ECONNRESET : -EINVAL;
	rep = cm_reply_to(s, params->pdata_len);
	cm_answer(s, &rep, params, mss);
	cm_warn_pdata(s, params->pdata_len);
	ret = cm_start_qp(s);
	if (!ret)
		ret = cm_frame_put(s, &rep, params->pdata);
	if (ret)
		return ret;
	s->deadline = cm_after(now, s->cfg.request_ns);
	cm_set_state(s, CM_REP_SENT, s->agreed.consent ? "accept, with consent" : "accept");
	return 0;
}

/* To reject a request whose peer has left is what the user wanted. */
int cm_stream_reject(struct cm_stream *s, const void *pdata, uint8_t len, uint64_t now)
{
	int ret;

	if (s->state != CM_REQ_RCVD)
		return s->gone ? 0 : -EINVAL;
	cm_warn_pdata(s, len);
	ret = cm_send_reject(s, pdata, len, now);
	if (!ret)
		s->ended = true;
	return ret;
}

void cm_responder_settle(struct cm_stream *s, uint64_t now)
{
	if (cm_qp_is_failed(s)) {
		s->deadline = cm_after(now, s->cfg.drain_ns);
		cm_set_state(s, CM_CLOSING, "QP failed");
		cm_end(s, CM_EV_CONNECT_ERROR, -EPROTO);
		return;
	}
	if (!cm_frame_is_sent(s))
		return;
	if (s->agreed.rtr_in != QP_RTR_NONE && s->qp && !qp_has_received(s->qp))
		return;
	cm_set_state(s, CM_LIVE, s->agreed.rtr_in == QP_RTR_NONE ? "reply is out" : "RTR is in");
	cm_liveness_begin(s, now);
	s->cfg.event(s->cfg.owner, CM_EV_ESTABLISHED, 0);
}
