/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>

#include "softrnic/rnic/qp_impl.h"

static size_t max_of(size_t a, size_t b)
{
	return a > b ? a : b;
}

int qp_sq_init(struct qp *qp)
{
	const struct ibv_qp_cap *cap = &qp->cfg.cap;
	size_t tail = max_of(cap->max_send_sge * sizeof(struct ibv_sge), cap->max_inline_data);

	qp->sq.depth = cap->max_send_wr;
	qp->sq.stride = (sizeof(struct sq_wr) + tail + 15) & ~(size_t)15;
	if (qp->sq.depth == 0)
		return 0;
	qp->sq.slots = calloc(qp->sq.depth, qp->sq.stride);
	return qp->sq.slots ? 0 : -ENOMEM;
}

struct sq_wr *qp_sq_at(const struct qp *qp, uint64_t index)
{
	return (struct sq_wr *)(qp->sq.slots + index % qp->sq.depth * qp->sq.stride);
}

uint8_t *qp_sq_inline(struct sq_wr *wr)
{
	return (uint8_t *)wr->sge;
}

/* --- the operations ----------------------------------------------------------------------- */

const struct sq_row qp_sq_rows[SQ_OPS] = {
	[SQ_WRITE] = {IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE, RDMAP_LEVEL_BASE, false},
	[SQ_WRITE_IMM] = {IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RDMA_WRITE, RDMAP_LEVEL_7306, false},
	[SQ_SEND] = {IBV_WR_SEND, IBV_WC_SEND, RDMAP_LEVEL_BASE, false},
	[SQ_SEND_INV] = {IBV_WR_SEND_WITH_INV, IBV_WC_SEND, RDMAP_LEVEL_BASE, false},
	[SQ_SEND_IMM] = {IBV_WR_SEND_WITH_IMM, IBV_WC_SEND, RDMAP_LEVEL_OURS, false},
	[SQ_READ] = {IBV_WR_RDMA_READ, IBV_WC_RDMA_READ, RDMAP_LEVEL_BASE, true},
	[SQ_FETCH_ADD] = {IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_FETCH_ADD, RDMAP_LEVEL_7306, true},
	[SQ_CMP_SWAP] = {IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WC_COMP_SWAP, RDMAP_LEVEL_7306, true},
	[SQ_FLUSH] = {-1, VEXT_WC_FLUSH, RDMAP_LEVEL_OURS, true},
	[SQ_VERIFY] = {-1, VEXT_WC_VERIFY, RDMAP_LEVEL_OURS, true},
	[SQ_QUERY] = {-1, VEXT_WC_QUERY, RDMAP_LEVEL_OURS, true},
	[SQ_ATOMIC_WRITE] = {-1, VEXT_WC_ATOMIC_WRITE, RDMAP_LEVEL_OURS, true},
};

/* --- completing --------------------------------------------------------------------------- */

void qp_sq_complete(struct qp *qp, const struct sq_wr *wr, enum ibv_wc_status status,
		    uint32_t vendor_err)
{
	struct ibv_wc wc = {
		.wr_id = wr->wr_id,
		.status = status,
		.opcode = (enum ibv_wc_opcode)qp_sq_rows[wr->op].wc,
		.vendor_err = vendor_err,
		.byte_len = (uint32_t)wr->length,
	};

	qp_complete(qp, qp->cfg.send_cq, &wc, false, &qp->sq.uncollected);
}

static bool is_request(const struct sq_wr *wr)
{
	return qp_sq_rows[wr->op].request;
}

/* Write and Send: the LLP has all of it (RFC 5041 s5.3). Requests: the answer is here. */
static bool is_finished(const struct qp *qp, const struct sq_wr *wr)
{
	return is_request(wr) ? wr->answered : wr->end_pos <= qp->tx.sent;
}

void qp_sq_retire(struct qp *qp)
{
	struct qp_sq *sq = &qp->sq;

	while (sq->head != sq->next && is_finished(qp, qp_sq_at(qp, sq->head))) {
		const struct sq_wr *wr = qp_sq_at(qp, sq->head++);

		if (wr->signaled)
			qp_sq_complete(qp, wr, IBV_WC_SUCCESS, 0);
	}
}

void qp_sq_flush(struct qp *qp, enum ibv_wc_status first)
{
	struct qp_sq *sq = &qp->sq;

	while (sq->head != sq->tail) {
		const struct sq_wr *wr = qp_sq_at(qp, sq->head++);

		if (wr->status != IBV_WC_SUCCESS) {
			qp_sq_complete(qp, wr, wr->status, wr->vendor_err);
			continue;
		}
		qp_sq_complete(qp, wr, first, qp->cause);
		first = IBV_WC_WR_FLUSH_ERR;
	}
	sq->next = sq->tail;
}

bool qp_sq_is_ready(const struct qp *qp)
{
	const struct sq_wr *wr;

	if (qp->sq.next == qp->sq.tail)
		return false;
	wr = qp_sq_at(qp, qp->sq.next);
	if (wr->fence && qp->orq.count > 0)
		return false;
	return !is_request(wr) || qp->orq.count < qp->orq.ord;
}
