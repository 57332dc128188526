/* SPDX-License-Identifier: BSD-3-Clause */
/* Posting to the send queue: a request is checked first, and only then takes its slot. */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "softrnic/rnic/qp_impl.h"

#define SEND_FLAGS (IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE)
#define OWN_FLAGS  (IBV_SEND_FENCE | IBV_SEND_SIGNALED)

static int sq_op_of(enum ibv_wr_opcode opcode)
{
	for (size_t op = 0; op < SQ_OPS; op++)
		if (qp_sq_rows[op].wr == (int)opcode)
			return (int)op;
	return -1;
}

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
	return qp_sq_rows[op].level > qp_level(qp) || (qp_sq_rows[op].request && qp->orq.ord == 0);
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
	if (qp_sq_rows[op].request && (is_inline || wr->num_sge > RNIC_MAX_SGE_RD))
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

/* --- beyond verbs ------------------------------------------------------------------------- */

static int own_op_of(enum vext_op op)
{
	switch (op) {
	case VEXT_OP_FLUSH:
	case VEXT_OP_FLUSH_ALL:
		return SQ_FLUSH;
	case VEXT_OP_VERIFY:
		return SQ_VERIFY;
	case VEXT_OP_QUERY:
		return SQ_QUERY;
	case VEXT_OP_ATOMIC_WRITE:
		return SQ_ATOMIC_WRITE;
	case VEXT_OP_VERBS:
		break;
	}
	return -1;
}

static bool is_flush_type(enum vext_flush_type type)
{
	return type >= VEXT_FLUSH_VISIBLE && type <= VEXT_FLUSH_STRICT;
}

/* The answer has 32 bits for the length of what was digested. */
static bool is_verify(const struct vext_wr *w)
{
	return w->result && w->len > 0 && w->len <= UINT32_MAX && vext_digest_is_alg(w->alg);
}

static bool is_complete(int op, const struct vext_wr *w)
{
	switch (op) {
	case SQ_FLUSH:
		return is_flush_type(w->type);
	case SQ_VERIFY:
		return is_verify(w);
	case SQ_QUERY:
		return w->result && w->len > 0;
	default:
		return w->wr.wr.rdma.remote_addr % sizeof(w->bytes) == 0;
	}
}

static int check_own(const struct qp *qp, const struct vext_wr *w)
{
	int op = own_op_of(w->op);

	return op >= 0 && !(w->wr.send_flags & ~(unsigned)OWN_FLAGS) && !is_beyond_peer(qp, op) &&
			       is_complete(op, w)
		       ? 0
		       : EINVAL;
}

static uint32_t way_flags(const struct qp *qp, enum vext_flush_type type)
{
	if (type == VEXT_FLUSH_VISIBLE)
		return RDMAP_FLUSH_VISIBLE;
	return RDMAP_FLUSH_PERSIST |
	       (type == VEXT_FLUSH_STRICT || qp->cfg.strict_persist ? RDMAP_FLUSH_STRICT : 0);
}

static uint32_t flush_flags(const struct qp *qp, const struct vext_wr *w)
{
	switch (w->op) {
	case VEXT_OP_FLUSH:
		return way_flags(qp, w->type);
	case VEXT_OP_FLUSH_ALL:
		return way_flags(qp, w->type) | RDMAP_FLUSH_ALL;
	case VEXT_OP_VERIFY:
		return way_flags(qp, VEXT_FLUSH_PERSISTENT) | RDMAP_FLUSH_DIGEST |
		       RDMAP_FLUSH_ALG(w->alg);
	case VEXT_OP_QUERY:
		return RDMAP_FLUSH_QUERY;
	case VEXT_OP_VERBS:
	case VEXT_OP_ATOMIC_WRITE:
		break;
	}
	return 0;
}

/* They name no memory of ours. */
static void fill_own(struct qp *qp, struct sq_wr *slot, const struct vext_wr *w)
{
	int op = own_op_of(w->op);
	uint64_t word;

	*slot = (struct sq_wr){
		.wr_id = w->wr.wr_id,
		.op = (uint8_t)op,
		.raddr = w->wr.wr.rdma.remote_addr,
		.rkey = w->wr.wr.rdma.rkey,
		.length = w->len,
		.flush_flags = flush_flags(qp, w),
		.result = w->result,
		.signaled = qp->cfg.sq_sig_all || w->wr.send_flags & IBV_SEND_SIGNALED,
		.fence = w->wr.send_flags & IBV_SEND_FENCE,
	};
	if (w->op == VEXT_OP_FLUSH_ALL)
		slot->raddr = slot->rkey = slot->length = 0;
	if (op == SQ_ATOMIC_WRITE) {
		/* Bytes, not a number: they arrive in their order whatever the CPUs' is. */
		memcpy(&word, w->bytes, sizeof(word));
		slot->operand = be64toh(word);
		slot->length = sizeof(word);
	}
}

/* --- taking them in ----------------------------------------------------------------------- */

/* As with a card, a slot is free again when its completion was collected, not when it came: whoever
 * posts until there is no room cannot make the completion queue overrun. */
static uint32_t sq_room(const struct qp *qp)
{
	uint64_t taken = qp->sq.tail - qp->sq.head +
			 atomic_load_explicit(&qp->sq.uncollected, memory_order_relaxed);

	return taken < qp->sq.depth ? (uint32_t)(qp->sq.depth - taken) : 0;
}

static int post_one(struct qp *qp, const struct ibv_send_wr *wr)
{
	int err = check_state(qp);

	if (!err)
		err = check_wr(qp, wr);
	if (!err && sq_room(qp) == 0)
		err = ENOMEM;
	if (err)
		return err;
	if (qp_is_failed(qp)) {
		struct sq_wr gone;

		fill(qp, &gone, wr);
		qp_sq_complete(qp, &gone, IBV_WC_WR_FLUSH_ERR, qp->cause);
		return 0;
	}
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

static void post_own(struct qp *qp, const struct vext_wr *w)
{
	if (qp_is_failed(qp)) {
		struct sq_wr gone;

		fill_own(qp, &gone, w);
		qp_sq_complete(qp, &gone, IBV_WC_WR_FLUSH_ERR, qp->cause);
		return;
	}
	fill_own(qp, qp_sq_at(qp, qp->sq.tail), w);
	qp->sq.tail++;
}

static int check_list(const struct qp *qp, const struct vext_wr *wrs, int n)
{
	int err = n < 0 ? EINVAL : check_state(qp);

	for (int i = 0; i < n && !err; i++)
		err = wrs[i].op == VEXT_OP_VERBS ? check_wr(qp, &wrs[i].wr)
						 : check_own(qp, &wrs[i]);
	if (!err && (uint32_t)n > sq_room(qp))
		err = ENOMEM;
	return err;
}

/* After the check nothing can be refused any more. */
int qp_post_list(struct qp *qp, const struct vext_wr *wrs, int n, int *posted)
{
	int err = check_list(qp, wrs, n);

	*posted = err ? 0 : n;
	for (int i = 0; i < *posted; i++) {
		if (wrs[i].op == VEXT_OP_VERBS)
			(void)post_one(qp, &wrs[i].wr);
		else
			post_own(qp, &wrs[i]);
	}
	return err;
}
