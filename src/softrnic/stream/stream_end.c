/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stream_end.c -- the end of a stream, from full operation to the last byte.
 *
 * An orderly end: posted requests are sent and answered, then both ends send their FINs. A failed
 * QP sends its Terminate first; a broken link ends the stream immediately. Work requests complete
 * before the end of the connection is reported.
 */
#include <errno.h>

#include "base/clock.h"
#include "base/log.h"
#include "softrnic/stream/stream_impl.h"

/* the time for which TCP usually keeps a closed socket */
#define LINGER_NS      (60 * NSEC_PER_SEC)
#define HOLD_NOTICE_NS NSEC_PER_SEC

static bool stream_was_in_use(const struct stream *s)
{
	return s->state >= STREAM_LIVE && stream_was_used(s);
}

/*
 * A queue pair that connects by a meeting survives its stream. Requests that the peer has not
 * acknowledged stay posted: the meeting fails them after the retry time, as a card does.
 */
void stream_end_qp(struct stream *s)
{
	if (!stream_runs_qp(s) || qp_is_failed(s->qp))
		return;
	if (!s->cfg.meets)
		qp_fail(s->qp, IBV_WC_WR_FLUSH_ERR);
	else if (stream_was_in_use(s))
		qp_lose_peer(s->qp);
}

/* Called when the peer has closed its sending direction. */
static void stream_eof_qp(struct stream *s)
{
	if (s->cfg.meets)
		stream_end_qp(s);
	else if (stream_runs_qp(s))
		qp_on_eof(s->qp);
}

static int stream_begin_drain(struct stream *s, uint64_t now)
{
	if (s->state == STREAM_HELLO && s->cfg.role == STREAM_INITIATOR)
		/* the initiator is not connected yet, so refuse; the error is the same as before
		 * the reply */
		return -EINVAL;
	switch (s->state) {
	case STREAM_REP_SENT:
	case STREAM_HELLO:
	case STREAM_LIVE:
		if (stream_runs_qp(s))
			qp_drain(s->qp);
		s->deadline = stream_after(now, s->cfg.drain_ns);
		stream_set_state(s, STREAM_DRAINING, "disconnect");
		return 0;
	case STREAM_DRAINING:
	case STREAM_CLOSING:
		return 0;
	case STREAM_LINGERING:
	/* the peer closed first; the user accepts no further Sends of the peer */
	case STREAM_CLOSED:
		if (stream_runs_qp(s))
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

int stream_disconnect(struct stream *s, uint64_t now, struct stream_update *u)
{
	int ret = stream_begin_drain(s, now);

	stream_report(s, u);
	return ret;
}

void stream_abort(struct stream *s, struct stream_update *u)
{
	if (s->state != STREAM_CLOSED) {
		s->ended = true;
		s->n_events = 0;
		stream_end_qp(s);
		stream_set_state(s, STREAM_CLOSED, "abort");
	}
	stream_report(s, u);
}

static int stream_give_up_connect(struct stream *s)
{
	switch (s->state) {
	case STREAM_DIALING:
	case STREAM_REQ_SENT:
	case STREAM_REP_SENT:
	case STREAM_HELLO:
		stream_end_qp(s);
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

int stream_cancel(struct stream *s, struct stream_update *u)
{
	int ret = stream_give_up_connect(s);

	stream_report(s, u);
	return ret;
}

/* Called when all posted work is sent. The peer's FIN is processed only here and not earlier,
 * because requests without an answer could still be sent until now. */
static void stream_on_drained(struct stream *s)
{
	if (s->fin_in) {
		stream_eof_qp(s);
		stream_set_state(s, STREAM_CLOSING, "peer's FIN");
		stream_end(s, STREAM_EV_DISCONNECTED, 0);
	} else if ((!stream_runs_qp(s) || qp_is_idle(s->qp)) && !stream_leaves_first(s)) {
		if (s->ended) /* the peer's FIN follows Sends that the user no longer accepts */
			stream_end_qp(s);
		stream_set_state(s, STREAM_CLOSING, "drained");
	}
}

bool stream_leaves_writes(const struct stream *s)
{
	return s->leaves_writes || (stream_runs_qp(s) && qp_leaves_writes(s->qp));
}

/*
 * Called when the time limit is over: report the end, and keep the link for some time. If the link
 * were closed immediately, data on their way could be lost: the kernel would answer later bytes of
 * the peer by a reset, and the reset would discard all bytes that the peer has not read yet,
 * including Sends that have completed here. So the FIN is sent, and incoming bytes are dropped
 * until the peer's FIN, for as long as a silent peer counts as alive. A Write, however, must not
 * arrive after the report. If a Write is on its way, the link is reset immediately.
 */
static void stream_linger(struct stream *s, uint64_t now)
{
	uint64_t limit = s->cfg.liveness_ns;

	if (limit == 0 || limit > LINGER_NS)
		limit = LINGER_NS;
	stream_set_cause(s, ETIMEDOUT);
	stream_end_qp(s);
	if (s->started && !stream_leaves_writes(s)) {
		stream_set_state(s, STREAM_LINGERING, "time limit");
		s->deadline = stream_after(now, limit);
	} else { /* at most a reject is unread at the peer, or a Write must not arrive any more */
		stream_set_state(s, STREAM_CLOSED, "time limit");
	}
	stream_end(s, STREAM_EV_DISCONNECTED, 0);
}

bool stream_is_orderly(const struct stream *s)
{
	return s->fin_in && s->fin_out;
}

static void stream_settle_closing(struct stream *s)
{
	if (stream_qp_is_failed(s))
		stream_end(s, STREAM_EV_DISCONNECTED, 0);
	if (!stream_is_orderly(s))
		return;
	stream_set_state(s, STREAM_CLOSED, "both FINs");
	stream_end(s, STREAM_EV_DISCONNECTED, 0);
}

static bool stream_is_held(const struct stream *s)
{
	return s->agreed.hold_tx && !s->hold_explained && s->qp && !qp_has_received(s->qp) &&
	       !qp_is_idle(s->qp);
}

/*
 * A responder without consent may only send after the initiator's first FPDU. If output is held
 * back for some time, log a notice that explains the wait.
 */
static void stream_watch_hold(struct stream *s, uint64_t now)
{
	if (!stream_is_held(s))
		s->hold_notice = CLOCK_NEVER;
	else if (s->hold_notice == CLOCK_NEVER)
		s->hold_notice = stream_after(now, HOLD_NOTICE_NS);
}

bool stream_needs_time(const struct stream *s, unsigned due, bool has_bytes)
{
	if (due & QP_DUE_FAILED)
		return s->state >= STREAM_REP_SENT && s->state <= STREAM_DRAINING;
	if (s->state == STREAM_HELLO)
		return qp_peer_hello(s->qp);
	return s->agreed.hold_tx && s->state == STREAM_LIVE && !has_bytes &&
	       s->hold_notice == CLOCK_NEVER && stream_is_held(s);
}

static void stream_settle_live(struct stream *s, uint64_t now)
{
	if (!stream_qp_is_failed(s)) {
		stream_watch_hold(s, now);
		stream_stall_watch(s, now);
		return;
	}
	s->deadline = stream_after(now, s->cfg.drain_ns);
	stream_set_state(s, STREAM_CLOSING, "QP failed");
	stream_end(s, STREAM_EV_DISCONNECTED, 0);
}

void stream_settle(struct stream *s, uint64_t now)
{
	if (s->state == STREAM_LIVE || s->state == STREAM_DRAINING)
		stream_settle_live(s, now);
	else if (s->state == STREAM_REP_SENT)
		stream_responder_settle(s, now);
	else if (s->state == STREAM_HELLO)
		stream_settle_hello(s, now);
	if (s->state == STREAM_DRAINING || s->state == STREAM_CLOSING)
		stream_origin_late(s);
}

void stream_settle_end(struct stream *s)
{
	if (s->state == STREAM_DRAINING && !stream_has_bytes(s, stream_qp_due(s)))
		stream_on_drained(s);
	if (s->state == STREAM_CLOSING)
		stream_settle_closing(s);
	else if (s->state == STREAM_LINGERING && stream_is_orderly(s))
		stream_set_state(s, STREAM_CLOSED, "both FINs");
}

void stream_on_peer_fin(struct stream *s, uint64_t now)
{
	s->fin_in = true;
	stream_note_over(s);
	switch (s->state) {
	case STREAM_REQ_SENT:
		stream_initiator_on_hangup(s);
		break;
	case STREAM_REQ_WAIT:
	case STREAM_REQ_RCVD:
	case STREAM_REP_SENT:
		stream_startup_failed(s, STREAM_EV_DEAD, ECONNRESET,
				      "the peer closed the connection");
		break;
	case STREAM_HELLO:
		stream_startup_failed(s, STREAM_EV_CONNECT_ERROR, ECONNRESET,
				      "the peer closed the connection before its HELLO");
		break;
	case STREAM_LIVE:
		stream_eof_qp(s);
		s->deadline = stream_after(now, s->cfg.drain_ns);
		stream_set_state(s, STREAM_CLOSING, "peer's FIN");
		stream_end(s, STREAM_EV_DISCONNECTED, 0);
		break;
	case STREAM_CLOSING:
		stream_end_qp(s);
		stream_end(s, STREAM_EV_DISCONNECTED, 0);
		break;
	case STREAM_DRAINING: /* stream_on_drained() handles the FIN */
	case STREAM_LINGERING:
	case STREAM_IDLE:
	case STREAM_DIALING:
	case STREAM_CLOSED:
		break;
	}
}

/* Called when the peer, or the path to it, is gone. If the peer was silent, the time for its
 * answers is already over. */
static void stream_lose_qp(struct stream *s, bool silent)
{
	if (!stream_runs_qp(s) || qp_is_failed(s->qp))
		return;
	if (!s->cfg.meets)
		qp_fail_lost(s->qp);
	else if (silent && stream_was_in_use(s) && qp_has_posted(s->qp) &&
		 /* sent requests got no Ack or answer, so they fail */
		 !qp_config(s->qp)->unreliable)
		qp_fail(s->qp, IBV_WC_RETRY_EXC_ERR);
	else
		stream_end_qp(s);
}

static void stream_cut(struct stream *s, int err, enum stream_event event, int status)
{
	LOG_INFO("stream %p: link broke: error %d", (void *)s, err);
	stream_set_cause(s, err);
	stream_lose_qp(s, event == STREAM_EV_LOST);
	stream_set_state(s, STREAM_CLOSED, "link broke");
	stream_end(s, event, status);
}

void stream_on_lost(struct stream *s, int err)
{
	switch (s->state) {
	case STREAM_REQ_SENT:
		if (err == ECONNRESET || err == EPIPE)
			stream_initiator_on_hangup(s);
		else
			stream_startup_failed(s, stream_event_of(err), err, "link broke");
		break;
	case STREAM_DIALING:
	case STREAM_REQ_WAIT:
	case STREAM_REQ_RCVD:
	case STREAM_REP_SENT:
		stream_startup_failed(s, stream_event_of(err), err, "link broke");
		break;
	case STREAM_HELLO: /* the peer has accepted, so this is not a rejection */
		stream_startup_failed(s,
				      stream_event_of(err) == STREAM_EV_UNREACHABLE
					      ? STREAM_EV_UNREACHABLE
					      : STREAM_EV_CONNECT_ERROR,
				      err, "link broke");
		break;
	case STREAM_LIVE:
		/* A reset is the peer's decision, so it is reported as DISCONNECTED. For other
		 * errors the cause is unknown. */
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
		stream_set_state(s, STREAM_CLOSED, "link broke");
		break;
	case STREAM_IDLE:
	case STREAM_CLOSED:
		break;
	}
}

/* Check whether the peer's host is silent. A host acknowledges bytes even while its process does
 * not read them, so its silence means that the peer is lost. */
static void stream_watch_link(struct stream *s)
{
	if (!stream_is_stalled(s) ||
	    s->cfg.host->unacknowledged_ns(s->cfg.owner) < s->liveness.limit_ns)
		return;
	LOG_NOTICE_LIMITED("stream %p: the peer is lost: its host does not answer", (void *)s);
	stream_on_lost(s, ETIMEDOUT);
}

static void stream_on_deadline(struct stream *s, uint64_t now)
{
	switch (s->state) {
	case STREAM_DIALING:
		stream_startup_failed(s, STREAM_EV_UNREACHABLE, ETIMEDOUT, "time limit");
		break;
	/* the TCP connection exists, so neither the address nor a firewall is the cause */
	case STREAM_REQ_SENT:
		stream_startup_failed(s, STREAM_EV_UNREACHABLE, ETIME, "time limit");
		break;
	case STREAM_HELLO:
		stream_origin_on_deadline(s, now);
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
	case STREAM_LIVE:
		stream_stall_on_time(s, now);
		break;
	case STREAM_IDLE:
	case STREAM_REQ_RCVD:
	case STREAM_CLOSED:
		break;
	}
}

/* Check the time limit of a Send of this end that waits for a receive of the peer. */
static void stream_rnr_on_time(struct stream *s, uint64_t now)
{
	uint64_t ns;

	if (!stream_runs_qp(s) || qp_is_failed(s->qp))
		return;
	if (qp_rnr_changed(s->qp, &ns))
		s->rnr_at = stream_after(now, ns);
	if (s->rnr_at > now)
		return;
	s->rnr_at = CLOCK_NEVER;
	if (s->state == STREAM_LIVE || s->state == STREAM_DRAINING)
		qp_rnr_fail(s->qp);
}

void stream_on_time(struct stream *s, uint64_t now, struct stream_update *u)
{
	stream_watch_link(s);
	if (s->deadline <= now)
		stream_on_deadline(s, now);
	if (!stream_liveness_on_time(s, now)) {
		LOG_NOTICE_LIMITED("stream %p: the peer is lost: it was silent for %llu ms",
				   (void *)s,
				   (unsigned long long)(s->cfg.liveness_ns / NSEC_PER_MS));
		stream_on_lost(s, ETIMEDOUT);
	}
	stream_rnr_on_time(s, now);
	stream_settle(s, now);
	if (s->hold_notice <= now) {
		LOG_NOTICE_LIMITED(
			"stream %p: work has waited for one second: the peer does not run this "
			"software, and MPA (RFC 5044 s7.1.2) forbids the accepting side to send "
			"before the connecting side has sent; let the connecting side send first",
			(void *)s);
		s->hold_explained = true;
		s->hold_notice = CLOCK_NEVER;
	}
	stream_report(s, u);
}
