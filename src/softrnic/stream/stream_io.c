/* SPDX-License-Identifier: BSD-3-Clause */
/* stream_io.c -- receives and sends bytes: first start-up frames, then the QP's bytes. */
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <stdlib.h>

#include "base/log.h"
#include "softrnic/stream/stream_impl.h"

/* --- receive -------------------------------------------------------------------------------- */

/* Memory for a probe. In REQ_RCVD the peer must not send, but it may close the connection. */
static int stream_probe_room(struct stream *s, struct iovec *iov)
{
	*iov = (struct iovec){.iov_base = s->frames->in + MPA_START_MAX, .iov_len = 1};
	return 1;
}

/*
 * Closing a socket with unread bytes causes a reset, which may overtake the Terminate. So bytes are
 * read and dropped up to the peer's FIN. If there is no buffer for them, they overwrite this end's
 * private data, which only the start-up needs. Waiting for a buffer is no alternative: no event
 * reports free memory, so the FIN would never be found.
 */
static int stream_discard_room(struct stream *s, struct iovec *iov)
{
	if (!s->discard)
		s->discard = malloc(STREAM_DISCARD_BYTES);
	if (s->discard)
		*iov = (struct iovec){.iov_base = s->discard, .iov_len = STREAM_DISCARD_BYTES};
	else
		*iov = (struct iovec){.iov_base = s->local.pdata,
				      .iov_len = sizeof(s->local.pdata)};
	return 1;
}

static int stream_qp_room(struct stream *s, struct stream_rx *rx)
{
	if (!stream_lend(s, STREAM_BUF_RX)) {
		stream_on_lost(s, ENOMEM);
		return 0;
	}
	rx->n = qp_rx_want(s->qp, rx->iov);
	rx->direct = qp_rx_direct(s->qp);
	return rx->n;
}

bool stream_rx_begin(struct stream *s, struct stream_rx *rx, struct stream_update *u)
{
	enum stream_rx_into into = stream_rx_target(s);

	assert(s->rx_into == STREAM_RX_NOTHING);
	rx->n = 0;
	rx->direct = 0;
	switch (into) {
	case STREAM_RX_FRAME:
		rx->iov[0] = stream_frame_room(s);
		rx->n = 1;
		break;
	case STREAM_RX_PROBE:
		rx->n = stream_probe_room(s, rx->iov);
		break;
	case STREAM_RX_QP:
		rx->n = stream_qp_room(s, rx);
		break;
	case STREAM_RX_DISCARD:
		rx->n = stream_discard_room(s, rx->iov);
		break;
	case STREAM_RX_NOTHING:
		break;
	}
	if (rx->n == 0) {
		stream_report(s, u);
		return false;
	}
	s->rx_into = into;
	return true;
}

static void stream_rx_got(struct stream *s, enum stream_rx_into into, size_t len, uint64_t now)
{
	switch (into) {
	case STREAM_RX_FRAME:
		stream_frame_got(s, len, now);
		break;
	case STREAM_RX_PROBE:
		stream_startup_failed(s, STREAM_EV_DEAD, EPROTO, "bytes before the reply");
		break;
	case STREAM_RX_QP:
		qp_rx_got(s->qp, len);
		stream_liveness_on_bytes(s, now);
		break;
	case STREAM_RX_NOTHING:
	case STREAM_RX_DISCARD:
		break;
	}
}

/* Called when a receive has failed: release the destination, then handle the error. */
static void stream_rx_failed(struct stream *s, enum stream_rx_into into, int err, uint64_t now)
{
	if (into == STREAM_RX_QP && err == EFAULT)
		qp_rx_fault(s->qp);
	else if (into == STREAM_RX_QP)
		qp_rx_got(s->qp, 0);
	if (err == 0)
		stream_on_peer_fin(s, now);
	else if (err != EFAULT && err != EAGAIN && err != EINTR)
		stream_on_lost(s, err);
}

void stream_rx_end(struct stream *s, ssize_t got, uint64_t now, struct stream_update *u)
{
	enum stream_rx_into into = s->rx_into;

	s->rx_into = STREAM_RX_NOTHING;
	if (got > 0)
		stream_rx_got(s, into, (size_t)got, now);
	else
		stream_rx_failed(s, into, (int)-got, now);
	if (into != STREAM_RX_QP && (s->state == STREAM_LIVE || s->state == STREAM_CLOSED))
		stream_free_buffers(s);
	stream_report_at(s, now, u);
}

bool stream_rx_give_up(struct stream *s)
{
	if (stream_rx_target(s) == STREAM_RX_QP)
		qp_rx_give_up(s->qp);
	return stream_rx_target(s) == STREAM_RX_QP;
}

/* --- in place ------------------------------------------------------------------------------- */

bool stream_needs_nothing(const struct stream *s)
{
	return !s->resume_due && !stream_settles_at(s);
}

/* Is the stream in full operation, with no FIN received and no output held back? All bytes then
 * belong to the queue pair. */
static inline bool stream_is_plain(const struct stream *s)
{
	return s->state == STREAM_LIVE && stream_runs_qp(s) && !(s->fin_in | s->agreed.hold_tx);
}

size_t stream_rx_in_place(struct stream *s, const void *bytes, size_t len)
{
	if (!stream_is_plain(s) && stream_rx_target(s) != STREAM_RX_QP)
		return 0;
	return qp_rx_in_place(s->qp, bytes, len);
}

size_t stream_tx_in_place(struct stream *s, void *to, size_t room)
{
	return stream_is_plain(s) ? qp_tx_in_place(s->qp, to, room) : 0;
}

void stream_tx_in_place_end(struct stream *s, size_t len)
{
	qp_tx_sent(s->qp, len);
}

bool stream_is_calm(const struct stream *s)
{
	return stream_is_plain(s) && qp_is_calm(s->qp) && !(s->n_events | s->resume_due) &&
	       liveness_knows_peer_limit(&s->liveness, qp_peer_limit_ms(s->qp));
}

/* Most calls here do not need the time, and reading the clock would cost more than parsing. */
void stream_in_place_end(struct stream *s, struct stream_update *u)
{
	uint64_t now;

	if (!stream_settles_at(s) &&
	    liveness_knows_peer_limit(&s->liveness, qp_peer_limit_ms(s->qp))) {
		stream_report(s, u);
		return;
	}
	now = s->cfg.host->now(s->cfg.owner);
	stream_liveness_on_bytes(s, now);
	stream_report_at(s, now, u);
}

/* --- send ----------------------------------------------------------------------------------- */

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

static int stream_gather_qp(struct stream *s, struct iovec iov[QP_TX_IOV])
{
	int n;

	if (!stream_runs_qp(s))
		return 0;
	/* In full operation all bytes belong to the queue pair, which returns 0 entries if it has
	 * nothing to send. */
	if (s->state != STREAM_LIVE && !stream_has_bytes(s, stream_qp_due(s)))
		return 0;
	if (!stream_lend(s, STREAM_BUF_TX)) {
		stream_on_lost(s, ENOMEM);
		return 0;
	}
	n = qp_tx_gather(s->qp, iov);
	s->tx_of_qp = n > 0;
	return n;
}

/* Send the HELLO together with the reply, so that both take one packet and wake the peer once. The
 * queue pair sends nothing else before the peer's HELLO arrives. If there is no memory for this,
 * the HELLO follows separately. */
static int stream_gather_reply(struct stream *s, struct iovec iov[QP_TX_IOV])
{
	int n = 0;

	if (s->state == STREAM_REP_SENT && s->agreed.consent && stream_qp_due(s) & QP_DUE_SEND &&
	    stream_lend(s, STREAM_BUF_TX))
		n = qp_tx_gather(s->qp, iov);
	s->tx_of_qp = n > 0 && n < QP_TX_IOV;
	if (!s->tx_of_qp)
		return stream_gather_frame(s, iov);
	memmove(iov + 1, iov, (size_t)n * sizeof(*iov));
	return n + stream_gather_frame(s, iov);
}

int stream_tx_begin(struct stream *s, struct iovec iov[QP_TX_IOV], struct stream_update *u)
{
	int n = 0;

	s->tx_of_qp = false;
	if (s->state >= STREAM_LINGERING)
		n = 0;
	else if (!stream_frame_is_sent(s))
		n = stream_gather_reply(s, iov);
	else if (s->rest_sent < s->rest_len)
		n = stream_gather_rest(s, iov);
	else
		n = stream_gather_qp(s, iov);
	if (n == 0)
		stream_report(s, u);
	return n;
}

static void stream_tx_took(struct stream *s, size_t len)
{
	struct stream_frames *f = s->frames;
	size_t part;

	if (!stream_frame_is_sent(s)) {
		/* the start-up frame comes before other bytes */
		part = f->out_len - f->out_sent;
		part = len < part ? len : part;
		f->out_sent += part;
		len -= part;
	}
	if (s->tx_of_qp)
		qp_tx_sent(s->qp, len);
	else if (s->rest)
		s->rest_sent += len;
}

void stream_tx_end(struct stream *s, ssize_t sent, struct stream_update *u)
{
	if (sent >= 0)
		stream_tx_took(s, (size_t)sent);
	else if (sent == -EFAULT && s->tx_of_qp)
		qp_tx_fault(s->qp);
	else if (sent != -EFAULT && sent != -EAGAIN && sent != -EINTR)
		stream_on_lost(s, (int)-sent);
	stream_report(s, u);
	if (s->state != STREAM_LIVE) /* the sent bytes may have completed the start-up */
		u->deadline = 0;
}

void stream_fin_sent(struct stream *s, struct stream_update *u)
{
	s->fin_out = true;
	stream_report(s, u);
}

void stream_link_closed(struct stream *s, struct stream_update *u)
{
	s->closed = true;
	stream_report(s, u);
}

void stream_redial(struct stream *s, struct stream_update *u)
{
	s->redial = false;
	stream_report(s, u);
}
