/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stream_qp.c -- the stream's queue pair: attaches it, posts to it, runs its jobs, and detaches it.
 */
#include <assert.h>
#include <errno.h>

#include "softrnic/stream/stream_impl.h"

void stream_set_cause(struct stream *s, int err)
{
	if (stream_runs_qp(s))
		qp_set_link_cause(s->qp, err);
}

/* --- buffers -------------------------------------------------------------------------------- */

bool stream_lend(struct stream *s, enum stream_buf kind)
{
	bool rx = kind == STREAM_BUF_RX;
	void *buf;

	if (s->lent[kind] || (rx && !qp_rx_needs_buf(s->qp)))
		return true;
	buf = s->cfg.host->get_buf(s->cfg.owner, kind);
	if (!buf)
		return false;
	if (rx)
		qp_rx_lend(s->qp, buf);
	else
		qp_tx_lend(s->qp, buf);
	s->lent[kind] = true;
	return true;
}

static void stream_put_buf(struct stream *s, enum stream_buf kind)
{
	void *buf;

	if (!s->lent[kind])
		return;
	buf = kind == STREAM_BUF_RX ? qp_rx_reclaim(s->qp) : qp_tx_reclaim(s->qp);
	if (!buf)
		return;
	s->lent[kind] = false;
	s->cfg.host->put_buf(s->cfg.owner, kind, buf);
}

void stream_put_bufs(struct stream *s)
{
	stream_put_buf(s, STREAM_BUF_RX);
	stream_put_buf(s, STREAM_BUF_TX);
}

/* --- attach and detach ---------------------------------------------------------------------- */

void stream_attach_qp(struct stream *s, struct qp *qp)
{
	assert(!s->qp);
	s->qp = qp;
}

struct qp *stream_qp(const struct stream *s)
{
	return s->qp;
}

/* Without its QP the stream cannot continue, because the QP may have stopped inside an FPDU. */
static void stream_on_detached(struct stream *s)
{
	switch (s->state) {
	case STREAM_REP_SENT:
	case STREAM_HELLO:
		stream_startup_failed(s, STREAM_EV_CONNECT_ERROR, ECONNABORTED, "QP detached");
		break;
	case STREAM_LIVE:
		stream_set_state(s, STREAM_CLOSED, "QP detached");
		stream_end(s, STREAM_EV_DISCONNECTED, 0);
		break;
	case STREAM_DRAINING:
		stream_set_state(s, STREAM_CLOSING, "QP detached");
		break;
	case STREAM_IDLE:
	case STREAM_DIALING:
	case STREAM_REQ_SENT:
	case STREAM_REQ_WAIT:
	case STREAM_REQ_RCVD:
	case STREAM_CLOSING:
	case STREAM_LINGERING:
	case STREAM_CLOSED:
		break;
	}
}

struct qp *stream_detach_qp(struct stream *s, struct stream_update *u)
{
	struct qp *qp = s->qp;

	assert(s->rx_into != STREAM_RX_QP && s->job != STREAM_JOB_RUNNING);
	if (qp) {
		stream_note_over(s);
		/* Keep the unsent bytes of a failed QP: the user may destroy the QP as soon as its
		 * end is reported, and the peer still gets the Terminate. */
		if (s->state == STREAM_CLOSING && stream_qp_is_failed(s) && !s->fin_out &&
		    stream_frame_is_sent(s))
			s->rest_len = qp_tx_take_rest(qp, &s->rest);
		if (s->started) {
			s->leaves_writes = qp_leaves_writes(qp);
			qp_fail(qp, IBV_WC_WR_FLUSH_ERR);
		}
		stream_put_bufs(s);
		qp_set_taker(qp, NULL);
		s->qp = NULL;
		s->tx_of_qp = s->resume_due = false;
		stream_on_detached(s);
	}
	stream_report(s, u);
	return qp;
}

/* Either no message of the user was sent on the stream, or a move to RESET drops the posted
 * requests. */
struct qp *stream_take_back_qp(struct stream *s, struct stream_update *u)
{
	struct qp *qp = s->qp;

	if (!qp || !stream_runs_qp(s) || qp_is_failed(qp))
		return stream_detach_qp(s, u);
	assert(s->rx_into != STREAM_RX_QP && s->job != STREAM_JOB_RUNNING);
	stream_note_over(s);
	qp_quiet(qp);
	stream_put_bufs(s);
	qp_set_taker(qp, NULL);
	qp_rewind(qp);
	s->qp = NULL;
	s->tx_of_qp = s->resume_due = false;
	stream_on_detached(s);
	stream_report(s, u);
	return qp;
}

/* --- the user's calls ----------------------------------------------------------------------- */

int stream_post_send(struct stream *s, struct ibv_send_wr *wr, struct ibv_send_wr **bad,
		     struct stream_update *u)
{
	int ret = qp_post_send(s->qp, wr, bad);

	if (u)
		stream_report(s, u);
	return ret;
}

int stream_post_recv(struct stream *s, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad,
		     struct stream_update *u)
{
	int ret = qp_post_recv(s->qp, wr, bad);

	if (qp_rx_waits_for_receive(s->qp))
		s->resume_due = true;
	if (u)
		stream_report(s, u);
	return ret;
}

int stream_post_list(struct stream *s, const struct vext_wr *wrs, int n, int *posted,
		     struct stream_update *u)
{
	int ret = qp_post_list(s->qp, wrs, n, posted);

	if (u)
		stream_report(s, u);
	return ret;
}

enum qp_patience stream_may_wait(const struct stream *s)
{
	return s->state == STREAM_LIVE && !s->agreed.hold_tx ? qp_tx_may_wait(s->qp) : QP_AWAITED;
}

bool stream_owes_ack_only(const struct stream *s)
{
	return s->state == STREAM_LIVE && s->qp && !s->agreed.hold_tx && qp_owes_ack_only(s->qp);
}

void stream_resume(struct stream *s, struct stream_update *u)
{
	s->resume_due = false;
	if (s->qp)
		qp_rx_resume(s->qp);
	stream_report(s, u);
}

void stream_fail_qp(struct stream *s, struct stream_update *u)
{
	qp_fail(s->qp, IBV_WC_WR_FLUSH_ERR);
	stream_report(s, u);
}

void stream_limit_requests(struct stream *s, uint32_t ord, struct stream_update *u)
{
	if (s->qp)
		qp_limit_requests(s->qp, ord);
	stream_report(s, u);
}

void stream_give_up_qp(struct stream *s, struct stream_update *u)
{
	if (!qp_is_failed(s->qp))
		qp_fail(s->qp, IBV_WC_RETRY_EXC_ERR);
	stream_report(s, u);
}

void stream_give_away(struct stream *s, struct stream_update *u)
{
	if (s->qp)
		qp_give_away(s->qp);
	stream_report(s, u);
}

void stream_detach_mr(struct stream *s, struct mr *mr, bool forget, struct stream_update *u)
{
	if (s->qp)
		qp_detach_mr(s->qp, mr, forget);
	stream_report(s, u);
}

void stream_set_taker(struct stream *s, struct cq_taker *taker)
{
	if (s->qp)
		qp_set_taker(s->qp, taker);
}

/* --- questions ------------------------------------------------------------------------------ */

bool stream_qp_is_failed(const struct stream *s)
{
	return stream_runs_qp(s) && qp_is_failed(s->qp);
}

enum ibv_qp_state stream_qp_state(const struct stream *s)
{
	return qp_state(s->qp);
}

const struct qp_counters *stream_counters(const struct stream *s)
{
	return qp_counters(s->qp);
}

struct qp_news stream_news(const struct stream *s)
{
	return s->qp ? qp_news(s->qp) : (struct qp_news){0};
}

uint32_t stream_caps(const struct stream *s)
{
	return qp_caps(s->qp);
}

uint32_t stream_requests(const struct stream *s)
{
	return s->qp ? qp_requests(s->qp) : 0;
}

bool stream_is_local_fault(const struct stream *s)
{
	return qp_cause_is_local(s->qp);
}

bool stream_send_can_stall(struct stream *s)
{
	return s->qp && qp_tx_can_stall(s->qp);
}

/* --- jobs ----------------------------------------------------------------------------------- */

bool stream_job_begin(struct stream *s, struct qp_job *job, struct stream_update *u)
{
	bool begun = s->job == STREAM_JOB_NONE && s->qp && qp_next_job(s->qp, job);

	if (begun) {
		s->job = STREAM_JOB_RUNNING;
		s->job_stopped = false;
	}
	u->todo &= ~(unsigned)STREAM_DO_JOB; /* the other tasks stay the same */
	return begun;
}

void stream_job_end(struct stream *s, int status, uint64_t now, struct stream_update *u)
{
	enum stream_job job = s->job;

	s->job = STREAM_JOB_NONE;
	if (job == STREAM_JOB_RUNNING)
		qp_on_job(s->qp, status);
	stream_report_at(s, now, u);
}

void stream_job_abandon(struct stream *s, uint64_t now, struct stream_update *u)
{
	if (s->job == STREAM_JOB_RUNNING) {
		s->job = STREAM_JOB_ABANDONED;
		qp_on_job(s->qp, -ECANCELED);
	}
	stream_report_at(s, now, u);
}

void stream_job_stopped(struct stream *s, struct stream_update *u)
{
	s->job_stopped = true;
	stream_report(s, u);
}

bool stream_awaits_job(const struct stream *s)
{
	return s->job == STREAM_JOB_RUNNING;
}
