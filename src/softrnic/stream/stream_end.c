/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stream_end.c -- from full operation to the last byte.
 *
 * Orderly: what was posted goes out and is answered, then our FIN, then the peer's. A
 * failed QP sends its Terminate first; a broken LLP ends it all at once. Whoever posted
 * gets his completions before he is told that the connection is gone.
 */
#include <errno.h>

#include "base/clock.h"
#include "base/log.h"
#include "softrnic/stream/stream_impl.h"

#define LINGER_NS      (60 * NSEC_PER_SEC) /* as TCP gives a socket that nobody has any more */
#define HOLD_NOTICE_NS NSEC_PER_SEC
#define HOLD_BEGUN     0 /* a moment that has passed: cm_on_time() will know which it was */

/* vendor_err of what was posted will say so. */
static void cm_blame(struct cm_stream *s, int err)
{
	if (s->started && s->qp)
		qp_set_link_cause(s->qp, err);
}

static void cm_fail_qp(struct cm_stream *s)
{
	if (s->started && s->qp && !qp_is_failed(s->qp))
		qp_fail(s->qp, IBV_WC_WR_FLUSH_ERR);
}

int cm_stream_disconnect(struct cm_stream *s, uint64_t now)
{
	switch (s->state) {
	case CM_REP_SENT:
	case CM_LIVE:
		if (s->started && s->qp)
			qp_drain(s->qp);
		s->deadline = cm_after(now, s->cfg.drain_ns);
		cm_set_state(s, CM_DRAINING, "disconnect");
		return 0;
	case CM_DRAINING:
	case CM_CLOSING:
		return 0;
	case CM_LINGERING:
	case CM_CLOSED: /* the peer was first: who answers that wants no more of its Sends */
		if (s->started && s->qp)
			qp_fail(s->qp, IBV_WC_WR_FLUSH_ERR);
		return 0;
	case CM_IDLE:
	case CM_DIALING:
	case CM_REQ_SENT:
	case CM_REQ_WAIT:
	case CM_REQ_RCVD:
		break;
	}
	return -EINVAL;
}

void cm_stream_abort(struct cm_stream *s)
{
	if (s->state == CM_CLOSED)
		return;
	s->ended = true;
	cm_fail_qp(s);
	cm_set_state(s, CM_CLOSED, "abort");
}

int cm_stream_cancel(struct cm_stream *s)
{
	switch (s->state) {
	case CM_DIALING:
	case CM_REQ_SENT:
	case CM_REP_SENT:
		cm_fail_qp(s);
		cm_set_state(s, CM_CLOSED, "cancelled");
		cm_end(s, CM_EV_UNREACHABLE, -ECANCELED);
		return 0;
	case CM_LIVE:
	case CM_DRAINING:
	case CM_CLOSING:
	case CM_LINGERING:
	case CM_CLOSED:
		return 0;
	case CM_IDLE:
	case CM_REQ_WAIT:
	case CM_REQ_RCVD:
		break;
	}
	return -EINVAL;
}

/* The peer's FIN was left alone so far, because what needs no answer could still go out. */
static void cm_on_drained(struct cm_stream *s)
{
	if (s->fin_in) {
		if (s->started && s->qp)
			qp_on_eof(s->qp);
		cm_set_state(s, CM_CLOSING, "peer's FIN");
		cm_end(s, CM_EV_DISCONNECTED, 0);
	} else if (!s->started || !s->qp || (qp_is_idle(s->qp) && !qp_tx_needs_buf(s->qp))) {
		cm_set_state(s, CM_CLOSING, "drained");
	}
}

static bool cm_tx_is_done(const struct cm_stream *s)
{
	if (s->fin_out)
		return true;
	return cm_frame_is_sent(s) && s->rest_sent == s->rest_len &&
	       (!cm_qp_is_failed(s) || qp_tx_is_done(s->qp));
}

/*
 * The user was given his time and is told now. But to close would destroy what is on its way: bytes
 * of the peer that find no socket are answered by a reset, and that discards all that the peer's
 * system has not taken yet, with Sends in it that have completed here. So the FIN is sent, and what
 * comes is dropped until the peer's, for as long as a silent peer is believed to live.
 */
static void cm_linger(struct cm_stream *s, uint64_t now)
{
	uint64_t limit = s->cfg.liveness_ns;

	if (limit == 0 || limit > LINGER_NS)
		limit = LINGER_NS;
	cm_blame(s, ETIMEDOUT);
	cm_fail_qp(s);
	if (s->started) {
		cm_set_state(s, CM_LINGERING, "time limit");
		s->deadline = cm_after(now, limit);
	} else { /* a stranger's */
		cm_set_state(s, CM_CLOSED, "time limit");
	}
	cm_end(s, CM_EV_DISCONNECTED, 0);
}

static void cm_settle_lingering(struct cm_stream *s)
{
	if (s->fin_in && s->fin_out)
		cm_set_state(s, CM_CLOSED, "both FINs");
}

static void cm_settle_closing(struct cm_stream *s)
{
	if (cm_qp_is_failed(s))
		cm_end(s, CM_EV_DISCONNECTED, 0);
	if (!s->fin_in || !s->fin_out)
		return;
	cm_set_state(s, CM_CLOSED, "both FINs");
	cm_end(s, CM_EV_DISCONNECTED, 0);
}

static bool cm_is_held(const struct cm_stream *s)
{
	return s->agreed.hold_tx && !s->hold_explained && s->qp && !qp_has_received(s->qp) &&
	       !qp_is_idle(s->qp);
}

/* A server that speaks first to a peer that must not be spoken to first: explain the silence. */
static void cm_watch_hold(struct cm_stream *s, uint64_t now)
{
	if (!cm_is_held(s))
		s->hold_notice = CLOCK_NEVER;
	else if (s->hold_notice == CLOCK_NEVER || s->hold_notice == HOLD_BEGUN)
		s->hold_notice = cm_after(now, HOLD_NOTICE_NS);
}

void cm_on_tx_empty(struct cm_stream *s)
{
	if (s->state == CM_DRAINING)
		cm_on_drained(s);
	else if (s->state == CM_LIVE && s->hold_notice == CLOCK_NEVER && cm_is_held(s))
		s->hold_notice = HOLD_BEGUN;
}

static void cm_settle_live(struct cm_stream *s, uint64_t now)
{
	if (!cm_qp_is_failed(s)) {
		cm_watch_hold(s, now);
		return;
	}
	s->deadline = cm_after(now, s->cfg.drain_ns);
	cm_set_state(s, CM_CLOSING, "QP failed");
	cm_end(s, CM_EV_DISCONNECTED, 0);
}

void cm_settle(struct cm_stream *s, uint64_t now)
{
	switch (s->state) {
	case CM_REP_SENT:
		cm_responder_settle(s, now);
		break;
	case CM_LIVE:
	case CM_DRAINING:
		cm_settle_live(s, now);
		break;
	case CM_CLOSING:
		cm_settle_closing(s);
		break;
	case CM_LINGERING:
		cm_settle_lingering(s);
		break;
	case CM_IDLE:
	case CM_DIALING:
	case CM_REQ_SENT:
	case CM_REQ_WAIT:
	case CM_REQ_RCVD:
	case CM_CLOSED:
		break;
	}
}

void cm_stream_poke(struct cm_stream *s, uint64_t now)
{
	cm_settle(s, now);
}

void cm_rx_eof(struct cm_stream *s, uint64_t now)
{
	s->fin_in = true;
	switch (s->state) {
	case CM_REQ_SENT:
		cm_initiator_on_hangup(s);
		break;
	case CM_REQ_WAIT:
	case CM_REQ_RCVD:
	case CM_REP_SENT:
		cm_startup_failed(s, CM_EV_DEAD, ECONNRESET, "peer hung up");
		break;
	case CM_LIVE:
		if (s->started && s->qp)
			qp_on_eof(s->qp);
		s->deadline = cm_after(now, s->cfg.drain_ns);
		cm_set_state(s, CM_CLOSING, "peer's FIN");
		cm_end(s, CM_EV_DISCONNECTED, 0);
		break;
	case CM_CLOSING:
		cm_fail_qp(s);
		cm_end(s, CM_EV_DISCONNECTED, 0);
		cm_settle_closing(s);
		break;
	case CM_LINGERING:
		cm_settle_lingering(s);
		break;
	case CM_DRAINING: /* cm_on_tx_empty() looks at it */
	case CM_IDLE:
	case CM_DIALING:
	case CM_CLOSED:
		break;
	}
}

static void cm_cut(struct cm_stream *s, int err, enum cm_stream_event event, int status)
{
	LOG_INFO("stream %p: LLP broke: error %d", (void *)s, err);
	cm_blame(s, err);
	cm_fail_qp(s);
	cm_set_state(s, CM_CLOSED, "LLP broke");
	cm_end(s, event, status);
}

/* The LLP broke. */
static void cm_on_lost(struct cm_stream *s, int err)
{
	switch (s->state) {
	case CM_REQ_SENT:
		if (err == ECONNRESET || err == EPIPE)
			cm_initiator_on_hangup(s);
		else
			cm_startup_failed(s, cm_event_of(err), err, "LLP broke");
		break;
	case CM_DIALING:
	case CM_REQ_WAIT:
	case CM_REQ_RCVD:
	case CM_REP_SENT:
		cm_startup_failed(s, cm_event_of(err), err, "LLP broke");
		break;
	case CM_LIVE:
		/* A peer that was reset has told us so; of one out of reach nobody knows. */
		if (cm_event_of(err) == CM_EV_UNREACHABLE)
			cm_cut(s, err, CM_EV_LOST, -err);
		else
			cm_cut(s, err, CM_EV_DISCONNECTED, 0);
		break;
	case CM_DRAINING:
	case CM_CLOSING:
		cm_cut(s, err, CM_EV_DISCONNECTED, 0);
		break;
	case CM_LINGERING:
		cm_set_state(s, CM_CLOSED, "LLP broke");
		break;
	case CM_IDLE:
	case CM_CLOSED:
		break;
	}
}

void cm_rx_error(struct cm_stream *s, int err, uint64_t now)
{
	cm_on_lost(s, err);
}

void cm_tx_error(struct cm_stream *s, int err, uint64_t now)
{
	cm_on_lost(s, err);
}

void cm_on_unacknowledged(struct cm_stream *s, uint64_t since_ns, uint64_t now)
{
	if (!cm_is_deaf(s) || since_ns < s->liveness.limit_ns)
		return;
	LOG_NOTICE_LIMITED("stream %p: the peer is lost: its host does not answer", (void *)s);
	cm_on_lost(s, ETIMEDOUT);
}

static void cm_on_deadline(struct cm_stream *s, uint64_t now)
{
	switch (s->state) {
	case CM_DIALING:
	case CM_REQ_SENT:
		cm_startup_failed(s, CM_EV_UNREACHABLE, ETIMEDOUT, "time limit");
		break;
	case CM_REQ_WAIT:
	case CM_REP_SENT:
		cm_startup_failed(s, CM_EV_CONNECT_ERROR, ETIMEDOUT, "time limit");
		break;
	case CM_DRAINING:
	case CM_CLOSING:
		cm_linger(s, now);
		break;
	case CM_LINGERING:
		cm_set_state(s, CM_CLOSED, "time limit");
		break;
	case CM_IDLE:
	case CM_REQ_RCVD:
	case CM_LIVE:
	case CM_CLOSED:
		break;
	}
}

void cm_on_time(struct cm_stream *s, uint64_t now)
{
	if (s->deadline <= now)
		cm_on_deadline(s, now);
	if (!cm_liveness_on_time(s, now)) {
		LOG_NOTICE_LIMITED("stream %p: the peer is lost: it was silent for %llu ms",
				   (void *)s,
				   (unsigned long long)(s->cfg.liveness_ns / NSEC_PER_MS));
		cm_on_lost(s, ETIMEDOUT);
	}
	if (s->hold_notice > now)
		return;
	cm_watch_hold(s, now);
	if (s->hold_notice <= now) {
		LOG_NOTICE_LIMITED(
			"stream %p: work is held back since a second: the peer is not of our kind, and "
			"MPA (RFC 5044 s7.1.2) forbids the accepting side to send before the "
			"connecting side has; let the connecting side send first",
			(void *)s);
		s->hold_explained = true;
		s->hold_notice = CLOCK_NEVER;
	}
}

bool cm_wants_fin(const struct cm_stream *s)
{
	if (s->fin_out)
		return false;
	return s->state == CM_LINGERING || (s->state == CM_CLOSING && cm_tx_is_done(s));
}

void cm_fin_done(struct cm_stream *s, uint64_t now)
{
	s->fin_out = true;
	cm_settle(s, now);
}

bool cm_wants_close(const struct cm_stream *s)
{
	return s->state == CM_CLOSED;
}
