/* SPDX-License-Identifier: BSD-3-Clause */
/* startup_initiator.c -- dial, ask, understand the answer; and ask again more plainly. */
#include <assert.h>
#include <errno.h>

#include "base/log.h"
#include "softrnic/stream/consent.h"
#include "softrnic/stream/depth.h"
#include "softrnic/stream/stream_impl.h"

int cm_stream_connect(struct cm_stream *s, const struct cm_params *params, uint64_t now)
{
	if (s->state != CM_IDLE || s->cfg.role != CM_INITIATOR)
		return -EINVAL;
	s->local = *params;
	cm_warn_pdata(s, params->pdata_len);
	s->deadline = cm_after(now, s->cfg.connect_ns);
	cm_set_state(s, CM_DIALING, "connect");
	return 0;
}

/* What of the peer-to-peer model we offer: a zero-length Write, or a Read if we may read. */
static void cm_offer_rtr(struct mpa_start *req)
{
	req->p2p = true;
	req->rtr_write = true;
	req->rtr_read = req->ord > 0;
}

static void cm_make_request(struct cm_stream *s)
{
	struct mpa_start *req = &s->request;

	*req = (struct mpa_start){
		.crc = s->cfg.crc,
		.revision = s->attempt == CM_ATTEMPT_REV1 ? MPA_REVISION_1 : MPA_REVISION_2,
		.enhanced = s->attempt != CM_ATTEMPT_REV1,
		.pd_len = s->local.pdata_len,
	};
	cm_depth_ask(req, &s->local);
	if (s->attempt == CM_ATTEMPT_P2P)
		cm_offer_rtr(req);
	else if (s->attempt == CM_ATTEMPT_PLAIN && s->cfg.offer_consent)
		cm_consent_put(req, cm_consent_of_user(s->cfg.user_flushes));
}

static void cm_send_request(struct cm_stream *s, uint32_t mss)
{
	int ret = cm_frames_new(s);

	s->mss = mss;
	cm_make_request(s);
	if (!ret)
		ret = cm_frame_put(s, &s->request, s->local.pdata);
	if (ret)
		cm_startup_failed(s, CM_EV_CONNECT_ERROR, -ret, "no request");
	else
		cm_set_state(s, CM_REQ_SENT, "TCP is up");
}

void cm_on_dialed(struct cm_stream *s, uint32_t mss, uint64_t now)
{
	switch (s->state) {
	case CM_DIALING:
		cm_send_request(s, mss);
		break;
	case CM_IDLE:
	case CM_REQ_SENT:
	case CM_REQ_WAIT:
	case CM_REQ_RCVD:
	case CM_REP_SENT:
	case CM_LIVE:
	case CM_DRAINING:
	case CM_CLOSING:
	case CM_LINGERING:
	case CM_CLOSED: /* given up meanwhile */
		break;
	}
}

void cm_on_dial_failed(struct cm_stream *s, int err, uint64_t now)
{
	switch (s->state) {
	case CM_DIALING:
		cm_startup_failed(s, cm_event_of(err), err, "dialing failed");
		break;
	case CM_IDLE:
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

/*
 * Intel's drivers drop a revision 2 request with A clear, drivers of RFC 5044's time drop
 * revision 2. Whoever has answered, be it with one byte, understood the question.
 */
void cm_initiator_on_hangup(struct cm_stream *s)
{
	if (s->frames->in_len > 0 || s->attempt == CM_ATTEMPT_REV1) {
		cm_startup_failed(s, CM_EV_REJECTED, ECONNRESET, "peer hung up");
		return;
	}
	s->attempt++;
	s->fin_in = false;
	cm_frames_delete(s);
	LOG_NOTICE("stream %p: the peer hung up on the MPA request; once more with %s", (void *)s,
		   s->attempt == CM_ATTEMPT_P2P ? "the peer-to-peer model" : "revision 1");
	cm_set_state(s, CM_DIALING, "peer hung up");
	s->cfg.event(s->cfg.owner, CM_EV_REDIAL, 0);
}

/* Can this be an answer to what we asked (RFC 6581 s9)? */
static bool cm_reply_fits(const struct cm_stream *s, const struct mpa_start *rep)
{
	return rep->revision == s->request.revision && rep->enhanced == s->request.enhanced &&
	       cm_frame_is_sent(s);
}

/* One of those offered, and one that the responder can take. */
static enum qp_rtr cm_choose_rtr(const struct mpa_start *req, const struct mpa_start *rep)
{
	if (req->rtr_write && rep->rtr_write)
		return QP_RTR_WRITE;
	if (req->rtr_read && rep->rtr_read && rep->ird > 0)
		return QP_RTR_READ;
	return QP_RTR_NONE;
}

/* What the reply makes of the connection: 0, or the error for a Terminate. */
static unsigned cm_agree(struct cm_stream *s, const struct mpa_start *rep)
{
	const struct mpa_start *req = &s->request;
	enum cm_consent consent = CM_CONSENT_NONE;

	if (cm_consent_get(req) != CM_CONSENT_NONE)
		consent = cm_consent_get(rep);
	s->agreed = (struct qp_stream){
		.crc = req->crc || rep->crc,
		.markers = rep->markers,
		.consent = consent != CM_CONSENT_NONE,
		.peer_flushes = consent == CM_CONSENT_FLUSHES,
		.mss = s->mss,
	};
	if (cm_depth_settle(&s->agreed, req, rep))
		return TERM_MPA_INSUFFICIENT_IRD;
	/* A responder that clears A has dropped the peer-to-peer model and waits for no RTR. */
	if (req->p2p && rep->p2p) {
		s->agreed.rtr_out = cm_choose_rtr(req, rep);
		if (s->agreed.rtr_out == QP_RTR_NONE)
			return TERM_MPA_NO_RTR;
	}
	return 0;
}

static void cm_refuse_reply(struct cm_stream *s, unsigned error, bool markers, uint64_t now)
{
	LOG_ERROR("stream %p: the reply is of no use: %s", (void *)s, term_str(error));
	cm_frame_put_terminate(s, error, markers);
	s->deadline = cm_after(now, s->cfg.drain_ns);
	cm_set_state(s, CM_CLOSING, "negotiation failed");
	cm_end(s, CM_EV_CONNECT_ERROR, -EPROTO);
}

static void cm_go_live(struct cm_stream *s, uint64_t now)
{
	int ret;

	s->remote.ird = s->agreed.ird;
	s->remote.ord = s->agreed.ord;
	ret = cm_start_qp(s);
	if (ret) {
		cm_startup_failed(s, CM_EV_CONNECT_ERROR, -ret, "QP cannot start");
		return;
	}
	cm_set_state(s, CM_LIVE, s->agreed.consent ? "reply, with consent" : "reply");
	cm_liveness_begin(s, now);
	s->cfg.event(s->cfg.owner, CM_EV_ESTABLISHED, 0);
}

void cm_initiator_on_reply(struct cm_stream *s, const struct mpa_start *rep, const uint8_t *pdata,
			   uint64_t now)
{
	unsigned error;

	if (cm_keep_pdata(s, rep, pdata)) {
		cm_startup_failed(s, CM_EV_CONNECT_ERROR, EMSGSIZE, "too much private data");
		return;
	}
	if (rep->reject) {
		cm_startup_failed(s, CM_EV_REJECTED, ECONNREFUSED, "rejected");
		return;
	}
	if (!cm_reply_fits(s, rep)) {
		cm_startup_failed(s, CM_EV_CONNECT_ERROR, EPROTO, "reply to another request");
		return;
	}
	error = cm_agree(s, rep);
	if (error)
		cm_refuse_reply(s, error, rep->markers, now);
	else
		cm_go_live(s, now);
}
