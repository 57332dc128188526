/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flush (doc/wire.md s6): of a range, and of everything this stream placed. Verify and Query travel
 * in the same messages.
 */
#include <errno.h>
#include <string.h>

#include "softrnic/rnic/op_flush.h"

/* --- ours: the request -------------------------------------------------------------------- */

static bool flush_check(const struct ibv_send_wr *wr)
{
	enum vext_flush_type type = op_vext(wr)->type;

	return type >= VEXT_FLUSH_VISIBLE && type <= VEXT_FLUSH_STRICT;
}

uint32_t flush_flags(const struct qp *qp, enum vext_flush_type type)
{
	if (type == VEXT_FLUSH_VISIBLE)
		return RDMAP_FLUSH_VISIBLE;
	return RDMAP_FLUSH_PERSIST |
	       (type == VEXT_FLUSH_STRICT || qp->cfg.strict_persist ? RDMAP_FLUSH_STRICT : 0);
}

void flush_fill_range(struct sq_wr *slot, const struct ibv_send_wr *wr)
{
	slot->raddr = wr->wr.rdma.remote_addr;
	slot->rkey = wr->wr.rdma.rkey;
	slot->length = op_vext(wr)->len;
}

static void flush_fill(const struct qp *qp, struct sq_wr *slot, const struct ibv_send_wr *wr)
{
	flush_fill_range(slot, wr);
	slot->flags = flush_flags(qp, op_vext(wr)->type);
}

static void flush_all_fill(const struct qp *qp, struct sq_wr *slot, const struct ibv_send_wr *wr)
{
	slot->flags = flush_flags(qp, op_vext(wr)->type) | RDMAP_FLUSH_ALL;
}

bool flush_build(struct qp *qp, struct sq_wr *wr)
{
	struct rdmap_flush_req req = {
		.flags = wr->flags,
		.stag = wr->rkey,
		.to = wr->raddr,
		.len = wr->length,
	};
	uint8_t bytes[RDMAP_FLUSH_REQ_LEN];

	return tx_build_request(qp, wr, RDMAP_FLUSH_REQ, bytes,
				rdmap_flush_req_encode(bytes, sizeof(bytes), &req));
}

/* --- ours: the answer --------------------------------------------------------------------- */

static enum rx_verdict flush_accept_answer(struct qp *qp, struct rx_seg *seg, bool whole)
{
	const struct sq_wr *wr;

	if (qp_answer_accept(qp, seg, whole) != RX_DONE)
		return RX_DEAD;
	wr = qp_answered_wr(qp, seg->rx);
	if (seg->payload <= wr->op->answer_max)
		return RX_DONE;
	qp_refuse_seg(qp, TERM_DDP_TOO_LONG, seg);
	return RX_DEAD;
}

/* What vendor_err says of a flush that failed at the target; the code is never 0. */
static uint32_t flush_reason(const struct rdmap_flush_resp *resp)
{
	uint32_t detail = resp->detail;

	switch (resp->status) {
	case RDMAP_FLUSH_VOLATILE:
		return vext_vendor_err(VEXT_REASON_VOLATILE, detail ? detail : ENOTSUP);
	case RDMAP_FLUSH_GONE:
		return vext_vendor_err(VEXT_REASON_GONE, detail ? detail : EFAULT);
	default:
		return vext_vendor_err(VEXT_REASON_WRITE_BACK, detail ? detail : EIO);
	}
}

bool flush_is_durability(uint32_t durability)
{
	return durability >= RDMAP_DURABILITY_VOLATILE && durability <= RDMAP_DURABILITY_DAX;
}

static int flush_take_answer(struct qp *qp, struct sq_wr *wr, const union rdmap_answer *answer,
			     struct rcursor *rest)
{
	if (answer->flush.status)
		return rcursor_left(rest) ? -EBADMSG : 0;
	return wr->op->take_answer ? wr->op->take_answer(qp, wr, answer, rest) : 0;
}

static void flush_finish_answer(struct qp *qp, const struct rx_seg *seg, const uint8_t *bytes)
{
	struct rcursor c = rcursor_init(bytes, seg->payload);
	struct sq_wr *wr = qp_answered_wr(qp, seg->rx);
	union rdmap_answer answer;

	rdmap_flush_resp_get(&c, &answer.flush);
	qp->rx.msn[DDP_QN_RESPONSE]++;
	if (flush_take_answer(qp, wr, &answer, &c))
		qp_refuse_seg(qp, TERM_RDMAP_STREAM_CATASTROPHIC, seg);
	else if (answer.flush.status)
		qp_answer_failed(qp, wr, flush_reason(&answer.flush), "the peer could not flush");
	else
		qp_answer_done(qp, wr);
}

const struct op_rx flush_answer_rx = {
	.accept = flush_accept_answer,
	.finish = flush_finish_answer,
};

/* --- the peer's --------------------------------------------------------------------------- */

static void flush_finish(struct qp *qp, const struct rx_seg *seg, const uint8_t *bytes)
{
	union rdmap_request msg;

	rdmap_flush_req_decode(bytes, seg->payload, &msg.flush);
	qp->counters.flushes_in++;
	qp_request_add(qp, seg, rdmap_flush_kind(&msg.flush), &msg);
}

const struct op_rx flush_rx = {
	.accept = qp_request_accept,
	.finish = flush_finish,
};

bool flush_is_persistent(const struct irq_entry *e)
{
	return e->msg.flush.flags & RDMAP_FLUSH_PERSIST;
}

bool flush_is_strict(const struct qp *qp, const struct irq_entry *e)
{
	return qp->cfg.strict_persist || e->msg.flush.flags & RDMAP_FLUSH_STRICT;
}

void flush_ready(struct qp *qp, struct irq_entry *e, enum rdmap_flush_status status, int err)
{
	e->answer.flush = (struct rdmap_flush_resp){.status = status, .detail = (uint32_t)err};
	if (status && !qp->requests.failed.status)
		qp->requests.failed = e->answer.flush;
	qp_request_ready(qp);
}

bool flush_hold(struct qp *qp, struct irq_entry *e, int access, struct qp_job *job)
{
	const struct rdmap_flush_req *req = &e->msg.flush;
	enum mr_verdict verdict;

	if (req->len == 0) {
		flush_ready(qp, e, RDMAP_FLUSH_OK, 0);
		return false;
	}
	job->len = req->len;
	verdict = mr_hold_any(qp->cfg.mrs, qp->cfg.pd, req->stag, req->to, req->len, access,
			      &job->mr, &job->addr);
	if (verdict == MR_OK)
		return true;
	qp_request_refuse(qp, qp_rdmap_error(verdict), NULL);
	return false;
}

/* The range may hold them, under another registration. */
bool flush_has_lost(struct qp *qp, struct irq_entry *e, struct qp_job *job)
{
	if (!dirty_has_failed(&qp->dirty))
		return false;
	mr_release(job->mr);
	flush_ready(qp, e, RDMAP_FLUSH_FAILED, EIO);
	return true;
}

void flush_ask(struct qp *qp, struct irq_entry *e, struct qp_job *job)
{
	job->strict = flush_is_strict(qp, e);
	job->answer = &qp->requests.digest;
	memset(&qp->requests.digest, 0, sizeof(qp->requests.digest));
	qp_request_job(qp, job);
}

/* Placed is visible: only persistence takes more. */
static void flush_begin(struct qp *qp, struct irq_entry *e)
{
	struct qp_job job = {.kind = QP_JOB_WRITE_BACK};
	int right =
		flush_is_persistent(e) ? RNIC_ACCESS_FLUSH_PERSISTENT : RNIC_ACCESS_FLUSH_GLOBAL;

	if (rdmap_flush_kind(&e->msg.flush) == RDMAP_FLUSH_KIND_BAD) {
		qp_request_refuse(qp, TERM_RDMAP_STREAM_CATASTROPHIC, NULL);
		return;
	}
	if (!flush_hold(qp, e, IBV_ACCESS_REMOTE_READ | right, &job))
		return;
	if (!flush_is_persistent(e)) {
		mr_release(job.mr);
		flush_ready(qp, e, RDMAP_FLUSH_OK, 0);
		return;
	}
	if (flush_has_lost(qp, e, &job))
		return;
	dirty_clean(&qp->dirty, job.mr, job.addr, job.len);
	flush_ask(qp, e, &job);
}

void flush_failed(struct qp *qp, struct irq_entry *e, int status)
{
	switch (status) {
	case -ENOTSUP:
		flush_ready(qp, e, RDMAP_FLUSH_VOLATILE, ENOTSUP);
		break;
	case -EFAULT:
	case -ECANCELED: /* given up, because the region goes away */
		flush_ready(qp, e, RDMAP_FLUSH_GONE, EFAULT);
		break;
	default:
		flush_ready(qp, e, RDMAP_FLUSH_FAILED, -status);
		break;
	}
}

void flush_on_job(struct qp *qp, struct irq_entry *e, int status)
{
	if (status)
		flush_failed(qp, e, status);
	else
		flush_ready(qp, e, RDMAP_FLUSH_OK, 0);
}

/* Begun again, it finds the STag invalid. */
void flush_on_detach(struct qp *qp, struct irq_entry *e)
{
	qp_requests_run(qp);
}

bool flush_build_answer(struct qp *qp, const struct irq_entry *e)
{
	uint8_t bytes[RDMAP_FLUSH_RESP_LEN];

	return tx_build_answer(qp, RDMAP_FLUSH_RESP, bytes,
			       rdmap_flush_resp_encode(bytes, sizeof(bytes), &e->answer.flush));
}

const struct qp_op op_flush = {
	.wc = RNIC_WC_FLUSH,
	.level = RDMAP_LEVEL_OURS,
	.is_request = true,
	.check = flush_check,
	.fill = flush_fill,
	.build = flush_build,
	.message = &flush_rx,
	.answer = &flush_answer_rx,
	.answer_max = RDMAP_FLUSH_RESP_LEN,
	.begin = flush_begin,
	.on_job = flush_on_job,
	.on_detach = flush_on_detach,
	.build_answer = flush_build_answer,
};

/* --- the peer's Flush of everything ------------------------------------------------------- */

/* One write-back after the other; a region that is gone may have taken bytes with it. */
static void flush_all_next(struct qp *qp, struct irq_entry *e)
{
	int more = qp_request_next_of_all(qp, flush_is_strict(qp, e));

	if (more < 0)
		flush_ready(qp, e, RDMAP_FLUSH_GONE, EFAULT);
	else if (more == 0)
		flush_ready(qp, e, RDMAP_FLUSH_OK, 0);
}

static void flush_all_begin(struct qp *qp, struct irq_entry *e)
{
	if (!flush_is_persistent(e)) {
		flush_ready(qp, e, RDMAP_FLUSH_OK, 0);
		return;
	}
	if (qp->requests.failed.status) { /* those bytes are not on the medium, and never will be */
		e->answer.flush = qp->requests.failed;
		qp_request_ready(qp);
		return;
	}
	/* What is placed from now on came behind it. */
	dirty_move(&qp->requests.all, &qp->dirty);
	flush_all_next(qp, e);
}

static void flush_all_on_job(struct qp *qp, struct irq_entry *e, int status)
{
	if (status)
		flush_failed(qp, e, status);
	else
		flush_all_next(qp, e);
}

static void flush_all_on_detach(struct qp *qp, struct irq_entry *e)
{
	flush_ready(qp, e, RDMAP_FLUSH_GONE, EFAULT);
}

const struct qp_op op_flush_all = {
	.wc = RNIC_WC_FLUSH,
	.level = RDMAP_LEVEL_OURS,
	.is_request = true,
	.check = flush_check,
	.fill = flush_all_fill,
	.build = flush_build,
	.message = &flush_rx,
	.answer = &flush_answer_rx,
	.answer_max = RDMAP_FLUSH_RESP_LEN,
	.begin = flush_all_begin,
	.on_job = flush_all_on_job,
	.on_detach = flush_all_on_detach,
	.build_answer = flush_build_answer,
};
