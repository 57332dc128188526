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
#define HOLD_BEGUN     0 /* a moment that has passed: stream_on_time() will know which it was */

/* vendor_err of what was posted will say so. */
static void stream_blame(struct stream *s, int err)
{
	if (s->started && s->qp)
		qp_set_link_cause(s->qp, err);
}

static void stream_fail_qp(struct stream *s)
{
	if (s->started && s->qp && !qp_is_failed(s->qp))
		qp_fail(s->qp, IBV_WC_WR_FLUSH_ERR);
}

int stream_disconnect(struct stream *s, uint64_t now)
{
	if (s->state == STREAM_HELLO && s->cfg.role == STREAM_INITIATOR)
		return -EINVAL; /* not yet established */
	switch (s->state) {
	case STREAM_REP_SENT:
	case STREAM_HELLO:
	case STREAM_LIVE:
		if (s->started && s->qp)
			qp_drain(s->qp);
		s->deadline = stream_after(now, s->cfg.drain_ns);
		stream_set_state(s, STREAM_DRAINING, "disconnect");
		return 0;
	case STREAM_DRAINING:
	case STREAM_CLOSING:
		return 0;
	case STREAM_LINGERING:
	case STREAM_CLOSED: /* the peer was first: who answers that wants no more of its Sends */
		if (s->started && s->qp)
			qp_fail(s->qp, IBV_WC_WR_FLUSH_ERR);
		return 0;
	case STREAM_IDLE:
	case STREAM_DIALING:
	case STREAM_REQ_SENT:
	case STREAM_REQ_WAIT:
	case STREAM_REQ_RCVD:
		break;
	}
	return -EINVAL;
}

void stream_abort(struct stream *s)
{
	if (s->state == STREAM_CLOSED)
		return;
	s->ended = true;
	stream_fail_qp(s);
	stream_set_state(s, STREAM_CLOSED, "abort");
}

int stream_cancel(struct stream *s)
{
	switch (s->state) {
	case STREAM_DIALING:
	case STREAM_REQ_SENT:
	case STREAM_REP_SENT:
	case STREAM_HELLO:
		stream_fail_qp(s);
		stream_set_state(s, STREAM_CLOSED, "cancelled");
		stream_end(s, STREAM_EV_UNREACHABLE, -ECANCELED);
		return 0;
	case STREAM_LIVE:
	case STREAM_DRAINING:
	case STREAM_CLOSING:
	case STREAM_LINGERING:
	case STREAM_CLOSED:
		return 0;
	case STREAM_IDLE:
	case STREAM_REQ_WAIT:
	case STREAM_REQ_RCVD:
		break;
	}
	return -EINVAL;
}

/* The peer's FIN was left alone so far, because what needs no answer could still go out. */
static void stream_on_drained(struct stream *s)
{
	if (s->fin_in) {
		if (s->started && s->qp)
			qp_on_eof(s->qp);
		stream_set_state(s, STREAM_CLOSING, "peer's FIN");
		stream_end(s, STREAM_EV_DISCONNECTED, 0);
	} else if (!s->started || !s->qp || (qp_is_idle(s->qp) && !qp_tx_needs_buf(s->qp))) {
		stream_set_state(s, STREAM_CLOSING, "drained");
	}
}

static bool stream_tx_is_done(const struct stream *s)
{
	if (s->fin_out)
		return true;
	return stream_frame_is_sent(s) && s->rest_sent == s->rest_len &&
	       (!stream_qp_is_failed(s) || qp_tx_is_done(s->qp));
}

/*
 * The user was given his time and is told now. But to close would destroy what is on its way: bytes
 * of the peer that find no socket are answered by a reset, and that discards all that the peer's
 * system has not taken yet, with Sends in it that have completed here. So the FIN is sent, and what
 * comes is dropped until the peer's, for as long as a silent peer is believed to live.
 */
static void stream_linger(struct stream *s, uint64_t now)
{
	uint64_t limit = s->cfg.liveness_ns;

	if (limit == 0 || limit > LINGER_NS)
		limit = LINGER_NS;
	stream_blame(s, ETIMEDOUT);
	stream_fail_qp(s);
	if (s->started) {
		stream_set_state(s, STREAM_LINGERING, "time limit");
		s->deadline = stream_after(now, limit);
	} else { /* a stranger's */
		stream_set_state(s, STREAM_CLOSED, "time limit");
	}
	stream_end(s, STREAM_EV_DISCONNECTED, 0);
}

static void stream_settle_lingering(struct stream *s)
{
	if (s->fin_in && s->fin_out)
		stream_set_state(s, STREAM_CLOSED, "both FINs");
}

static void stream_settle_closing(struct stream *s)
{
	if (stream_qp_is_failed(s))
		stream_end(s, STREAM_EV_DISCONNECTED, 0);
	if (!s->fin_in || !s->fin_out)
		return;
	stream_set_state(s, STREAM_CLOSED, "both FINs");
	stream_end(s, STREAM_EV_DISCONNECTED, 0);
}

static bool stream_is_held(const struct stream *s)
{
	return s->agreed.hold_tx && !s->hold_explained && s->qp && !qp_has_received(s->qp) &&
	       !qp_is_idle(s->qp);
}

/* A server that speaks first to a peer that must not be spoken to first: explain the silence. */
static void stream_watch_hold(struct stream *s, uint64_t now)
{
	if (!stream_is_held(s))
		s->hold_notice = CLOCK_NEVER;
	else if (s->hold_notice == CLOCK_NEVER || s->hold_notice == HOLD_BEGUN)
		s->hold_notice = stream_after(now, HOLD_NOTICE_NS);
}

void stream_on_tx_empty(struct stream *s)
{
	if (s->state == STREAM_DRAINING)
		stream_on_drained(s);
	else if (s->state == STREAM_LIVE && s->hold_notice == CLOCK_NEVER && stream_is_held(s))
		s->hold_notice = HOLD_BEGUN;
}

static void stream_settle_live(struct stream *s, uint64_t now)
{
	if (!stream_qp_is_failed(s)) {
		stream_watch_hold(s, now);
		return;
	}
	s->deadline = stream_after(now, s->cfg.drain_ns);
	stream_set_state(s, STREAM_CLOSING, "QP failed");
	stream_end(s, STREAM_EV_DISCONNECTED, 0);
}

void stream_settle(struct stream *s, uint64_t now)
{
	switch (s->state) {
	case STREAM_REP_SENT:
		stream_responder_settle(s, now);
		break;
	case STREAM_HELLO:
		stream_settle_hello(s, now);
		break;
	case STREAM_LIVE:
	case STREAM_DRAINING:
		stream_settle_live(s, now);
		break;
	case STREAM_CLOSING:
		stream_settle_closing(s);
		break;
	case STREAM_LINGERING:
		stream_settle_lingering(s);
		break;
	case STREAM_IDLE:
	case STREAM_DIALING:
	case STREAM_REQ_SENT:
	case STREAM_REQ_WAIT:
	case STREAM_REQ_RCVD:
	case STREAM_CLOSED:
		break;
	}
}

void stream_poke(struct stream *s, uint64_t now)
{
	stream_settle(s, now);
}

void stream_rx_eof(struct stream *s, uint64_t now)
{
	s->fin_in = true;
	switch (s->state) {
	case STREAM_REQ_SENT:
		stream_initiator_on_hangup(s);
		break;
	case STREAM_REQ_WAIT:
	case STREAM_REQ_RCVD:
	case STREAM_REP_SENT:
		stream_startup_failed(s, STREAM_EV_DEAD, ECONNRESET, "peer hung up");
		break;
	case STREAM_HELLO:
		stream_startup_failed(s, STREAM_EV_CONNECT_ERROR, ECONNRESET,
				      "peer hung up before its HELLO");
		break;
	case STREAM_LIVE:
		if (s->started && s->qp)
			qp_on_eof(s->qp);
		s->deadline = stream_after(now, s->cfg.drain_ns);
		stream_set_state(s, STREAM_CLOSING, "peer's FIN");
		stream_end(s, STREAM_EV_DISCONNECTED, 0);
		break;
	case STREAM_CLOSING:
		stream_fail_qp(s);
		stream_end(s, STREAM_EV_DISCONNECTED, 0);
		stream_settle_closing(s);
		break;
	case STREAM_LINGERING:
		stream_settle_lingering(s);
		break;
	case STREAM_DRAINING: /* stream_on_tx_empty() looks at it */
	case STREAM_IDLE:
	case STREAM_DIALING:
	case STREAM_CLOSED:
		break;
	}
}

static void stream_cut(struct stream *s, int err, enum stream_event event, int status)
{
	LOG_INFO("stream %p: LLP broke: error %d", (void *)s, err);
	stream_blame(s, err);
	stream_fail_qp(s);
	stream_set_state(s, STREAM_CLOSED, "LLP broke");
	stream_end(s, event, status);
}

/* The LLP broke. */
static void stream_on_lost(struct stream *s, int err)
{
	switch (s->state) {
	case STREAM_REQ_SENT:
		if (err == ECONNRESET || err == EPIPE)
			stream_initiator_on_hangup(s);
		else
			stream_startup_failed(s, stream_event_of(err), err, "LLP broke");
		break;
	case STREAM_DIALING:
	case STREAM_REQ_WAIT:
	case STREAM_REQ_RCVD:
	case STREAM_REP_SENT:
		stream_startup_failed(s, stream_event_of(err), err, "LLP broke");
		break;
	case STREAM_HELLO: /* it has accepted, so this is no rejection */
		stream_startup_failed(s,
				      stream_event_of(err) == STREAM_EV_UNREACHABLE
					      ? STREAM_EV_UNREACHABLE
					      : STREAM_EV_CONNECT_ERROR,
				      err, "LLP broke");
		break;
	case STREAM_LIVE:
		/* A peer that was reset has told us so; of one out of reach nobody knows. */
		if (stream_event_of(err) == STREAM_EV_UNREACHABLE)
			stream_cut(s, err, STREAM_EV_LOST, -err);
		else
			stream_cut(s, err, STREAM_EV_DISCONNECTED, 0);
		break;
	case STREAM_DRAINING:
	case STREAM_CLOSING:
		stream_cut(s, err, STREAM_EV_DISCONNECTED, 0);
		break;
	case STREAM_LINGERING:
		stream_set_state(s, STREAM_CLOSED, "LLP broke");
		break;
	case STREAM_IDLE:
	case STREAM_CLOSED:
		break;
	}
}

void stream_rx_error(struct stream *s, int err, uint64_t now)
{
	stream_on_lost(s, err);
}

void stream_tx_error(struct stream *s, int err, uint64_t now)
{
	stream_on_lost(s, err);
}

void stream_on_unacknowledged(struct stream *s, uint64_t since_ns, uint64_t now)
{
	if (!stream_is_deaf(s) || since_ns < s->liveness.limit_ns)
		return;
	LOG_NOTICE_LIMITED("stream %p: the peer is lost: its host does not answer", (void *)s);
	stream_on_lost(s, ETIMEDOUT);
}

static void stream_on_deadline(struct stream *s, uint64_t now)
{
	switch (s->state) {
	case STREAM_DIALING:
	case STREAM_REQ_SENT:
	case STREAM_HELLO:
		stream_startup_failed(s, STREAM_EV_UNREACHABLE, ETIMEDOUT, "time limit");
		break;
	case STREAM_REQ_WAIT:
	case STREAM_REP_SENT:
		stream_startup_failed(s, STREAM_EV_CONNECT_ERROR, ETIMEDOUT, "time limit");
		break;
	case STREAM_DRAINING:
	case STREAM_CLOSING:
		stream_linger(s, now);
		break;
	case STREAM_LINGERING:
		stream_set_state(s, STREAM_CLOSED, "time limit");
		break;
	case STREAM_IDLE:
	case STREAM_REQ_RCVD:
	case STREAM_LIVE:
	case STREAM_CLOSED:
		break;
	}
}

void stream_on_time(struct stream *s, uint64_t now)
{
	if (s->deadline <= now)
		stream_on_deadline(s, now);
	if (!stream_liveness_on_time(s, now)) {
		LOG_NOTICE_LIMITED("stream %p: the peer is lost: it was silent for %llu ms",
				   (void *)s,
				   (unsigned long long)(s->cfg.liveness_ns / NSEC_PER_MS));
		stream_on_lost(s, ETIMEDOUT);
	}
	if (s->hold_notice > now)
		return;
	stream_watch_hold(s, now);
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

bool stream_wants_fin(const struct stream *s)
{
	if (s->fin_out)
		return false;
	return s->state == STREAM_LINGERING || (s->state == STREAM_CLOSING && stream_tx_is_done(s));
}

void stream_fin_done(struct stream *s, uint64_t now)
{
	s->fin_out = true;
	stream_settle(s, now);
}

bool stream_wants_close(const struct stream *s)
{
	return s->state == STREAM_CLOSED;
}
