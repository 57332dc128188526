/* SPDX-License-Identifier: BSD-3-Clause */
#include <endian.h>
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

/* --- the operations ----------------------------------------------------------------------- */

static const struct sq_row {
	int wr, wc; /* verbs' opcodes; wr -1: posted by a call of its own */
	enum rdmap_level level;
	bool request; /* answered by the peer */
} rows[] = {
	[SQ_WRITE] = {IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE, RDMAP_LEVEL_BASE, false},
	[SQ_WRITE_IMM] = {IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RDMA_WRITE, RDMAP_LEVEL_7306, false},
	[SQ_SEND] = {IBV_WR_SEND, IBV_WC_SEND, RDMAP_LEVEL_BASE, false},
	[SQ_SEND_INV] = {IBV_WR_SEND_WITH_INV, IBV_WC_SEND, RDMAP_LEVEL_BASE, false},
	[SQ_SEND_IMM] = {IBV_WR_SEND_WITH_IMM, IBV_WC_SEND, RDMAP_LEVEL_OURS, false},
	[SQ_READ] = {IBV_WR_RDMA_READ, IBV_WC_RDMA_READ, RDMAP_LEVEL_BASE, true},
	[SQ_FETCH_ADD] = {IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_FETCH_ADD, RDMAP_LEVEL_7306, true},
	[SQ_CMP_SWAP] = {IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WC_COMP_SWAP, RDMAP_LEVEL_7306, true},
	[SQ_FLUSH] = {-1, RNIC_WC_FLUSH, RDMAP_LEVEL_OURS, true},
	[SQ_ATOMIC_WRITE] = {-1, RNIC_WC_ATOMIC_WRITE, RDMAP_LEVEL_OURS, true},
};
#define N_ROWS (sizeof(rows) / sizeof(rows[0]))

static int sq_op_of(enum ibv_wr_opcode opcode)
{
	for (size_t op = 0; op < N_ROWS; op++)
		if (rows[op].wr == (int)opcode)
			return (int)op;
	return -1;
}

/* --- completing --------------------------------------------------------------------------- */

static void complete(struct qp *qp, const struct sq_wr *wr, enum ibv_wc_status status,
		     uint32_t vendor_err)
{
	struct ibv_wc wc = {
		.wr_id = wr->wr_id,
		.status = status,
		.opcode = (enum ibv_wc_opcode)rows[wr->op].wc,
		.vendor_err = vendor_err,
		.byte_len = (uint32_t)wr->length,
	};

	qp_complete(qp, qp->cfg.send_cq, &wc, false);
}

static bool is_request(const struct sq_wr *wr)
{
	return rows[wr->op].request;
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

static uint64_t total_length(const struct ibv_send_wr *wr)
{
	uint64_t sum = 0;

	for (int i = 0; i < wr->num_sge; i++)
		sum += wr->sg_list[i].length;
	return sum;
}

static bool is_atomic(int op)
{
	return op == SQ_FETCH_ADD || op == SQ_CMP_SWAP;
}

/* What the peer cannot be asked; known as long as there is one. */
static bool is_beyond_peer(const struct qp *qp, int op)
{
	if (qp->ibv.state != IBV_QPS_RTS)
		return false;
	return rows[op].level > qp_level(qp) || (rows[op].request && qp->orq.ord == 0);
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
	if (is_beyond_peer(qp, op))
		return EINVAL;
	/* A Read Response names one sink. */
	if (rows[op].request && (is_inline || wr->num_sge > RNIC_MAX_SGE_RD))
		return EINVAL;
	length = total_length(wr);
	if (is_atomic(op) && length != sizeof(uint64_t))
		return EINVAL;
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
	if (op == SQ_WRITE_IMM || op == SQ_SEND_IMM)
		slot->imm = be32toh(wr->imm_data);
	if (op == SQ_WRITE || op == SQ_WRITE_IMM || op == SQ_READ) {
		slot->raddr = wr->wr.rdma.remote_addr;
		slot->rkey = wr->wr.rdma.rkey;
	} else if (is_atomic(op)) {
		slot->raddr = wr->wr.atomic.remote_addr;
		slot->rkey = wr->wr.atomic.rkey;
		slot->operand = op == SQ_FETCH_ADD ? wr->wr.atomic.compare_add : wr->wr.atomic.swap;
		slot->compare = op == SQ_FETCH_ADD ? 0 : wr->wr.atomic.compare_add;
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

/* A request beyond verbs; it names no memory of ours. */
static int post_own(struct qp *qp, const struct sq_wr *wr, unsigned send_flags)
{
	if (check_state(qp) || send_flags & ~(unsigned)(IBV_SEND_FENCE | IBV_SEND_SIGNALED))
		return EINVAL;
	if (qp_is_failed(qp)) {
		complete(qp, wr, IBV_WC_WR_FLUSH_ERR, 0);
		return 0;
	}
	if (is_beyond_peer(qp, wr->op))
		return EINVAL;
	if (qp->sq.tail - qp->sq.head == qp->sq.depth)
		return ENOMEM;
	*qp_sq_at(qp, qp->sq.tail++) = *wr;
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

	return post_own(qp, &wr, send_flags);
}

int qp_post_atomic_write(struct qp *qp, uint64_t wr_id, unsigned send_flags, uint32_t rkey,
			 uint64_t raddr, const void *bytes)
{
	struct sq_wr wr = {
		.wr_id = wr_id,
		.op = SQ_ATOMIC_WRITE,
		.raddr = raddr,
		.rkey = rkey,
		.length = sizeof(uint64_t),
		.signaled = qp->cfg.sq_sig_all || send_flags & IBV_SEND_SIGNALED,
		.fence = send_flags & IBV_SEND_FENCE,
	};
	uint64_t word;

	if (raddr % sizeof(word) != 0)
		return EINVAL;
	/* Bytes, not a number: they arrive in their order whatever the CPUs' is. */
	memcpy(&word, bytes, sizeof(word));
	wr.operand = be64toh(word);
	return post_own(qp, &wr, send_flags);
}
