/* SPDX-License-Identifier: BSD-3-Clause */
/* stream_io.c -- bytes: to and from the start-up frames, and then the QP. */
#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "softrnic/stream/stream_impl.h"

bool stream_rx_needs_buf(const struct stream *s)
{
	return stream_qp_receives(s) && qp_rx_needs_buf(s->qp);
}

bool stream_tx_needs_buf(const struct stream *s)
{
	return stream_qp_sends(s) && qp_tx_needs_buf(s->qp);
}

/* The peer has no right to send now, but may leave. */
static int stream_want_probe(struct stream *s, struct iovec *iov)
{
	*iov = (struct iovec){.iov_base = s->frames->in + MPA_START_MAX, .iov_len = 1};
	return 1;
}

/* Read what nobody wants, so that our last words are not lost in a reset. */
static int stream_want_discard(struct stream *s, struct iovec *iov)
{
	if (s->fin_in)
		return 0;
	if (!s->discard)
		s->discard = malloc(STREAM_DISCARD_BYTES);
	if (!s->discard)
		return 0; /* the time limit ends it */
	*iov = (struct iovec){.iov_base = s->discard, .iov_len = STREAM_DISCARD_BYTES};
	return 1;
}

static enum stream_rx_into stream_rx_target(const struct stream *s)
{
	switch (s->state) {
	case STREAM_REQ_SENT:
	case STREAM_REQ_WAIT:
		return STREAM_RX_FRAME;
	case STREAM_REQ_RCVD:
		return STREAM_RX_PROBE;
	case STREAM_REP_SENT:
	case STREAM_HELLO:
	case STREAM_LIVE:
	case STREAM_DRAINING:
		return stream_qp_receives(s) ? STREAM_RX_QP : STREAM_RX_NOTHING;
	case STREAM_CLOSING:
		return stream_qp_receives(s) ? STREAM_RX_QP : STREAM_RX_DISCARD;
	case STREAM_LINGERING:
		return STREAM_RX_DISCARD;
	case STREAM_IDLE:
	case STREAM_DIALING:
	case STREAM_CLOSED:
		return STREAM_RX_NOTHING;
	}
	return STREAM_RX_NOTHING;
}

int stream_rx_want(struct stream *s, struct iovec iov[QP_RX_IOV])
{
	s->rx_into = stream_rx_target(s);
	switch (s->rx_into) {
	case STREAM_RX_FRAME:
		return stream_frame_want(s, iov);
	case STREAM_RX_PROBE:
		return stream_want_probe(s, iov);
	case STREAM_RX_QP:
		return qp_rx_want(s->qp, iov);
	case STREAM_RX_DISCARD:
		return stream_want_discard(s, iov);
	case STREAM_RX_NOTHING:
		break;
	}
	return 0;
}

bool stream_rx_has_moved(const struct stream *s)
{
	return s->rx_into != stream_rx_target(s);
}

void stream_rx_got(struct stream *s, size_t len, uint64_t now)
{
	enum stream_rx_into into = s->rx_into;

	s->rx_into = STREAM_RX_NOTHING;
	switch (into) {
	case STREAM_RX_FRAME:
		if (len)
			stream_frame_got(s, len, now);
		break;
	case STREAM_RX_PROBE:
		if (len)
			stream_startup_failed(s, STREAM_EV_DEAD, EPROTO, "bytes before the reply");
		break;
	case STREAM_RX_QP:
		qp_rx_got(s->qp, len);
		stream_liveness_heard(s, now);
		break;
	case STREAM_RX_NOTHING:
	case STREAM_RX_DISCARD:
		break;
	}
	stream_settle(s, now);
}

void stream_rx_fault(struct stream *s, uint64_t now)
{
	enum stream_rx_into into = s->rx_into;

	s->rx_into = STREAM_RX_NOTHING;
	if (into == STREAM_RX_QP)
		qp_rx_fault(s->qp);
	stream_settle(s, now);
}

static int stream_gather_frame(struct stream *s, struct iovec *iov)
{
	struct stream_frames *f = s->frames;

	*iov = (struct iovec){.iov_base = f->out + f->out_sent,
			      .iov_len = f->out_len - f->out_sent};
	return 1;
}

static int stream_gather_rest(struct stream *s, struct iovec *iov)
{
	*iov = (struct iovec){.iov_base = s->rest + s->rest_sent,
			      .iov_len = s->rest_len - s->rest_sent};
	return 1;
}

bool stream_qp_sends(const struct stream *s)
{
	if (!s->started || !s->qp)
		return false;
	switch (s->state) {
	case STREAM_HELLO:
	case STREAM_LIVE:
	case STREAM_DRAINING:
		return true;
	case STREAM_CLOSING: /* only the Terminate */
		return !s->fin_out && qp_is_failed(s->qp);
	case STREAM_IDLE:
	case STREAM_DIALING:
	case STREAM_REQ_SENT:
	case STREAM_REQ_WAIT:
	case STREAM_REQ_RCVD:
	case STREAM_REP_SENT:
	case STREAM_LINGERING:
	case STREAM_CLOSED:
		return false;
	}
	return false;
}

int stream_tx_gather(struct stream *s, struct iovec iov[QP_TX_IOV])
{
	int n = 0;

	s->tx_of_qp = false;
	if (s->state == STREAM_LINGERING)
		return 0;
	if (!stream_frame_is_sent(s))
		return stream_gather_frame(s, iov);
	if (s->rest_sent < s->rest_len)
		return stream_gather_rest(s, iov);
	if (stream_qp_sends(s))
		n = qp_tx_gather(s->qp, iov);
	s->tx_of_qp = n > 0;
	if (n == 0)
		stream_on_tx_empty(s);
	return n;
}

void stream_tx_sent(struct stream *s, size_t len, uint64_t now)
{
	if (s->tx_of_qp)
		qp_tx_sent(s->qp, len);
	else if (s->rest)
		s->rest_sent += len;
	else if (s->frames)
		s->frames->out_sent += len;
	stream_settle(s, now);
}

void stream_tx_fault(struct stream *s, uint64_t now)
{
	if (s->tx_of_qp)
		qp_tx_fault(s->qp);
	stream_settle(s, now);
}
