/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "softrnic/rnic/qp_impl.h"

#define SEND_FLAGS (IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE)

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

/* --- completing --------------------------------------------------------------------------- */

static void complete(struct qp *qp, const struct sq_wr *wr, enum ibv_wc_status status,
		     uint32_t vendor_err)
{
	static const int opcodes[] = {
		[SQ_WRITE] = IBV_WC_RDMA_WRITE, [SQ_SEND] = IBV_WC_SEND,
		[SQ_SEND_INV] = IBV_WC_SEND,    [SQ_READ] = IBV_WC_RDMA_READ,
		[SQ_FLUSH] = RNIC_WC_FLUSH,
	};
	struct ibv_wc wc = {
		.wr_id = wr->wr_id,
		.status = status,
		.opcode = (enum ibv_wc_opcode)opcodes[wr->op],
		.vendor_err = vendor_err,
		.byte_len = (uint32_t)wr->length,
	};

	qp_complete(qp, qp->cfg.send_cq, &wc, false);
}

static bool is_request(const struct sq_wr *wr)
{
	return wr->op == SQ_READ || wr->op == SQ_FLUSH;
}

/* Write and Send: the LLP has all of it (RFC 5041 s5.3). Read and Flush: the answer is here. */
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
			complete(qp, wr, IBV_WC_SUCCESS, 0);
	}
}

void qp_sq_flush(struct qp *qp, enum ibv_wc_status first, uint32_t vendor_err)
{
	struct qp_sq *sq = &qp->sq;

	while (sq->head != sq->tail) {
		const struct sq_wr *wr = qp_sq_at(qp, sq->head++);

		if (wr->status != IBV_WC_SUCCESS) {
			complete(qp, wr, wr->status, wr->vendor_err);
			continue;
		}
		complete(qp, wr, first, vendor_err);
		first = IBV_WC_WR_FLUSH_ERR;
		vendor_err = 0;
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

/* --- posting ------------------------------------------------------------------------------ */

static int check_state(const struct qp *qp)
{
	switch (qp->ibv.state) {
	case IBV_QPS_RTS:
	case IBV_QPS_ERR:
		return 0;
	default:
		return EINVAL;
	}
}

static int sq_op_of(enum ibv_wr_opcode opcode)
{
	switch ((int)opcode) {
	case IBV_WR_RDMA_WRITE:
		return SQ_WRITE;
	case IBV_WR_SEND:
		return SQ_SEND;
	case IBV_WR_SEND_WITH_INV:
		return SQ_SEND_INV;
	case IBV_WR_RDMA_READ:
		return SQ_READ;
	default:
		return -1;
	}
}

static uint64_t total_length(const struct ibv_send_wr *wr)
{
	uint64_t sum = 0;

	for (int i = 0; i < wr->num_sge; i++)
		sum += wr->sg_list[i].length;
	return sum;
}

static int check_wr(const struct qp *qp, const struct ibv_send_wr *wr)
{
	const struct ibv_qp_cap *cap = &qp->cfg.cap;
	int op = sq_op_of(wr->opcode);
	bool is_inline = wr->send_flags & IBV_SEND_INLINE;
	uint64_t length;

	if (op < 0 || wr->send_flags & ~(unsigned)SEND_FLAGS)
		return EINVAL;
	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > cap->max_send_sge)
		return EINVAL;
	/* A Read Response names one sink; without ORD it could never be sent. */
	if (op == SQ_READ && (is_inline || wr->num_sge > RNIC_MAX_SGE_RD ||
			      (qp->ibv.state == IBV_QPS_RTS && qp->orq.ord == 0)))
		return EINVAL;
	length = total_length(wr);
	return length > (is_inline ? cap->max_inline_data : RNIC_MAX_MSG) ? EINVAL : 0;
}

static void copy_payload(struct sq_wr *slot, const struct ibv_send_wr *wr)
{
	uint8_t *to = qp_sq_inline(slot);

	if (!slot->is_inline) {
		slot->num_sge = (uint32_t)wr->num_sge;
		if (wr->num_sge)
			memcpy(slot->sge, wr->sg_list, slot->num_sge * sizeof(slot->sge[0]));
		return;
	}
	for (int i = 0; i < wr->num_sge; i++) {
		memcpy(to, (const void *)(uintptr_t)wr->sg_list[i].addr, wr->sg_list[i].length);
		to += wr->sg_list[i].length;
	}
}

static void fill(struct qp *qp, struct sq_wr *slot, const struct ibv_send_wr *wr)
{
	int op = sq_op_of(wr->opcode);

	*slot = (struct sq_wr){
		.wr_id = wr->wr_id,
		.op = (uint8_t)op,
		.length = total_length(wr),
		.signaled = qp->cfg.sq_sig_all || wr->send_flags & IBV_SEND_SIGNALED,
		.fence = wr->send_flags & IBV_SEND_FENCE,
		.solicited = wr->send_flags & IBV_SEND_SOLICITED,
		.is_inline = wr->send_flags & IBV_SEND_INLINE,
	};
	if (op == SQ_WRITE || op == SQ_READ) {
		slot->raddr = wr->wr.rdma.remote_addr;
		slot->rkey = wr->wr.rdma.rkey;
	} else if (op == SQ_SEND_INV) {
		slot->rkey = wr->invalidate_rkey;
	}
}

static int post_one(struct qp *qp, const struct ibv_send_wr *wr)
{
	int err = check_state(qp);

	if (!err)
		err = check_wr(qp, wr);
	if (err)
		return err;
	if (qp_is_failed(qp)) {
		struct sq_wr gone;

		fill(qp, &gone, wr);
		complete(qp, &gone, IBV_WC_WR_FLUSH_ERR, 0);
		return 0;
	}
	if (qp->sq.tail - qp->sq.head == qp->sq.depth)
		return ENOMEM;
	fill(qp, qp_sq_at(qp, qp->sq.tail), wr);
	copy_payload(qp_sq_at(qp, qp->sq.tail), wr);
	qp->sq.tail++;
	return 0;
}

int qp_post_send(struct qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	for (; wr; wr = wr->next) {
		int err = post_one(qp, wr);

		if (err) {
			*bad = wr;
			return err;
		}
	}
	return 0;
}

int qp_post_flush(struct qp *qp, uint64_t wr_id, unsigned send_flags, uint32_t rkey, uint64_t raddr,
		  uint64_t len, bool persistent, bool strict)
{
	struct sq_wr wr = {
		.wr_id = wr_id,
		.op = SQ_FLUSH,
		.raddr = raddr,
		.rkey = rkey,
		.length = len,
		.signaled = qp->cfg.sq_sig_all || send_flags & IBV_SEND_SIGNALED,
		.fence = send_flags & IBV_SEND_FENCE,
		.flush_flags = (persistent ? RDMAP_FLUSH_PERSIST : RDMAP_FLUSH_VISIBLE) |
			       (strict ? RDMAP_FLUSH_STRICT : 0),
	};

	if (check_state(qp) || send_flags & ~(unsigned)(IBV_SEND_FENCE | IBV_SEND_SIGNALED))
		return EINVAL;
	if (qp_is_failed(qp)) {
		complete(qp, &wr, IBV_WC_WR_FLUSH_ERR, 0);
		return 0;
	}
	if (!qp_has_flush(qp))
		return EINVAL;
	if (qp->sq.tail - qp->sq.head == qp->sq.depth)
		return ENOMEM;
	*qp_sq_at(qp, qp->sq.tail++) = wr;
	return 0;
}
