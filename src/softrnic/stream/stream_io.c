/* SPDX-License-Identifier: BSD-3-Clause */
/* stream_io.c -- bytes: to and from the start-up frames, and then the QP. */
#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "softrnic/stream/stream_impl.h"

bool cm_rx_needs_buf(const struct cm_stream *s)
{
	return cm_qp_receives(s) && qp_rx_needs_buf(s->qp);
}

bool cm_tx_needs_buf(const struct cm_stream *s)
{
	return cm_qp_sends(s) && qp_tx_needs_buf(s->qp);
}

/* The peer has no right to send now, but may leave. */
static int cm_want_probe(struct cm_stream *s, struct iovec *iov)
{
	*iov = (struct iovec){.iov_base = s->frames->in + MPA_START_MAX, .iov_len = 1};
	return 1;
}

/* Read what nobody wants, so that our last words are not lost in a reset. */
static int cm_want_discard(struct cm_stream *s, struct iovec *iov)
{
	if (s->fin_in)
		return 0;
	if (!s->discard)
		s->discard = malloc(CM_DISCARD_BYTES);
	if (!s->discard)
		return 0; /* the time limit ends it */
	*iov = (struct iovec){.iov_base = s->discard, .iov_len = CM_DISCARD_BYTES};
	return 1;
}

static enum cm_rx_into cm_rx_target(const struct cm_stream *s)
{
	switch (s->state) {
	case CM_REQ_SENT:
	case CM_REQ_WAIT:
		return CM_RX_FRAME;
	case CM_REQ_RCVD:
		return CM_RX_PROBE;
	case CM_REP_SENT:
	case CM_LIVE:
	case CM_DRAINING:
		return cm_qp_receives(s) ? CM_RX_QP : CM_RX_NOTHING;
	case CM_CLOSING:
		return cm_qp_receives(s) ? CM_RX_QP : CM_RX_DISCARD;
	case CM_LINGERING:
		return CM_RX_DISCARD;
	case CM_IDLE:
	case CM_DIALING:
	case CM_CLOSED:
		return CM_RX_NOTHING;
	}
	return CM_RX_NOTHING;
}

int cm_rx_want(struct cm_stream *s, struct iovec iov[QP_RX_IOV])
{
	s->rx_into = cm_rx_target(s);
	switch (s->rx_into) {
	case CM_RX_FRAME:
		return cm_frame_want(s, iov);
	case CM_RX_PROBE:
		return cm_want_probe(s, iov);
	case CM_RX_QP:
		return qp_rx_want(s->qp, iov);
	case CM_RX_DISCARD:
		return cm_want_discard(s, iov);
	case CM_RX_NOTHING:
		break;
	}
	return 0;
}

bool cm_rx_has_moved(const struct cm_stream *s)
{
	return s->rx_into != cm_rx_target(s);
}

void cm_rx_got(struct cm_stream *s, size_t len, uint64_t now)
{
	enum cm_rx_into into = s->rx_into;

	s->rx_into = CM_RX_NOTHING;
	switch (into) {
	case CM_RX_FRAME:
		if (len)
			cm_frame_got(s, len, now);
		break;
	case CM_RX_PROBE:
		if (len)
			cm_startup_failed(s, CM_EV_DEAD, EPROTO, "bytes before the reply");
		break;
	case CM_RX_QP:
		qp_rx_got(s->qp, len);
		cm_liveness_heard(s, now);
		break;
	case CM_RX_NOTHING:
	case CM_RX_DISCARD:
		break;
	}
	cm_settle(s, now);
}

void cm_rx_fault(struct cm_stream *s, uint64_t now)
{
	enum cm_rx_into into = s->rx_into;

	s->rx_into = CM_RX_NOTHING;
	if (into == CM_RX_QP)
		qp_rx_fault(s->qp);
	cm_settle(s, now);
}

static int cm_gather_frame(struct cm_stream *s, struct iovec *iov)
{
	struct cm_frames *f = s->frames;

	*iov = (struct iovec){.iov_base = f->out + f->out_sent,
			      .iov_len = f->out_len - f->out_sent};
	return 1;
}

static int cm_gather_rest(struct cm_stream *s, struct iovec *iov)
{
	*iov = (struct iovec){.iov_base = s->rest + s->rest_sent,
			      .iov_len = s->rest_len - s->rest_sent};
	return 1;
}

bool cm_qp_sends(const struct cm_stream *s)
{
	if (!s->started || !s->qp)
		return false;
	switch (s->state) {
	case CM_LIVE:
	case CM_DRAINING:
		return true;
	case CM_CLOSING: /* only the Terminate */
		return !s->fin_out && qp_is_failed(s->qp);
	case CM_IDLE:
	case CM_DIALING:
	case CM_REQ_SENT:
	case CM_REQ_WAIT:
	case CM_REQ_RCVD:
	case CM_REP_SENT:
	case CM_LINGERING:
	case CM_CLOSED:
		return false;
	}
	return false;
}

int cm_tx_gather(struct cm_stream *s, struct iovec iov[QP_TX_IOV])
{
	int n = 0;

	s->tx_of_qp = false;
	if (s->state == CM_LINGERING)
		return 0;
	if (!cm_frame_is_sent(s))
		return cm_gather_frame(s, iov);
	if (s->rest_sent < s->rest_len)
		return cm_gather_rest(s, iov);
	if (cm_qp_sends(s))
		n = qp_tx_gather(s->qp, iov);
	s->tx_of_qp = n > 0;
	if (n == 0)
		cm_on_tx_empty(s);
	return n;
}

void cm_tx_sent(struct cm_stream *s, size_t len, uint64_t now)
{
	if (s->tx_of_qp)
		qp_tx_sent(s->qp, len);
	else if (s->rest)
		s->rest_sent += len;
	else if (s->frames)
		s->frames->out_sent += len;
	cm_settle(s, now);
}

void cm_tx_fault(struct cm_stream *s, uint64_t now)
{
	if (s->tx_of_qp)
		qp_tx_fault(s->qp);
	cm_settle(s, now);
}
