/* SPDX-License-Identifier: BSD-3-Clause */
/* Posts requests to the send queue. A request is checked completely before it gets a slot. */
#include <errno.h>
#include <string.h>

#include "softrnic/rnic/qp_impl.h"

#define POST_FLAGS      (IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE)
#define POST_VEXT_FLAGS (IBV_SEND_FENCE | IBV_SEND_SIGNALED)

static int post_check_state(const struct qp *qp)
{
	switch (qp->ibv.state) {
	case IBV_QPS_RTS:
	case IBV_QPS_ERR:
		return 0;
	case IBV_QPS_SQD: /* set by the user, or by a disconnect */
	case IBV_QPS_SQE:
		return qp->cfg.plain ? 0 : EINVAL;
	default:
		return EINVAL;
	}
}

static uint64_t post_length(const struct ibv_send_wr *wr)
{
	uint64_t sum = 0;

	if (wr->num_sge == 1)
		return wr->sg_list[0].length;

	for (int i = 0; i < wr->num_sge; i++)
		sum += wr->sg_list[i].length;
	return sum;
}

/* Is it known that the peer cannot execute this operation? In most cases this is known only while
 * the connection exists. Exception: a request on an unreliable QP, because its peer never answers
 * requests. The peer's HELLO names the operations of the extensions. A request that is posted before
 * the HELLO has arrived waits, and ext_build_request() checks it. */
static bool post_is_beyond_peer(const struct qp *qp, const struct qp_op *op)
{
	if (op->is_request && qp->cfg.unreliable)
		return true;
	if (qp->state != IBV_QPS_RTS)
		return false;
	return op->level > qp_level(qp) || (!qp->hello.missing && !hello_names(qp, op)) ||
	       (op->is_request && qp->orq.ord == 0);
}

static inline int post_check(const struct qp *qp, const struct qp_op *op,
			     const struct ibv_send_wr *wr, unsigned flags)
{
	bool good = op && !(wr->send_flags & ~flags) && !post_is_beyond_peer(qp, op) &&
		    (!op->check || op->check(wr));

	return good ? 0 : EINVAL;
}

static inline int post_check_payload(const struct qp *qp, const struct qp_op *op,
				     const struct ibv_send_wr *wr, uint64_t *length)
{
	const struct ibv_qp_cap *cap = &qp->cfg.cap;
	bool is_inline = wr->send_flags & IBV_SEND_INLINE;

	if (op->is_local) {
		*length = 0;
		return is_inline ? EINVAL : 0;
	}
	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > cap->max_send_sge)
		return EINVAL;
	/* A request with an answer has no inline data, and only a Read scatters its answer. */
	if (op->is_request && (is_inline || (wr->num_sge > 1 && !op->scatters)))
		return EINVAL;
	*length = post_length(wr);
	return *length > (is_inline ? cap->max_inline_data : RNIC_MAX_MSG) ? EINVAL : 0;
}

static int post_check_wr(const struct qp *qp, const struct qp_op *op, const struct ibv_send_wr *wr,
			 uint64_t *length)
{
	int err = op ? post_check_payload(qp, op, wr, length) : EINVAL;

	return err ? err : post_check(qp, op, wr, POST_FLAGS);
}

/* Copy field by field: this happens for each request, and most fields belong to few operations. */
static inline void post_fill(struct qp *qp, const struct qp_op *op, struct sq_wr *slot,
			     const struct ibv_send_wr *wr, uint64_t length)
{
	unsigned flags = wr->send_flags;

	slot->op = op;
	slot->wr_id = wr->wr_id;
	slot->length = length;
	slot->num_sge = 0;
	slot->flags = 0;
	slot->received = 0;
	slot->status = IBV_WC_SUCCESS;
	slot->signaled = qp->cfg.sq_sig_all || flags & IBV_SEND_SIGNALED;
	slot->fence = flags & IBV_SEND_FENCE ? SQ_FENCE_ANSWERS : SQ_FENCE_NONE;
	slot->solicited = flags & IBV_SEND_SOLICITED;
	slot->is_inline = flags & IBV_SEND_INLINE;
	slot->answered = false;
	if (op->fill)
		op->fill(qp, slot, wr);
}

static inline void post_copy_payload(struct sq_wr *slot, const struct ibv_send_wr *wr)
{
	uint8_t *to = sq_inline(slot);

	if (!slot->is_inline) {
		slot->num_sge = (uint32_t)wr->num_sge;
		if (wr->num_sge > 0) /* num_sge is usually 1 */
			slot->sge[0] = wr->sg_list[0];
		for (int i = 1; i < wr->num_sge; i++)
			slot->sge[i] = wr->sg_list[i];
		return;
	}
	for (int i = 0; i < wr->num_sge; i++) {
		memcpy(to, (const void *)(uintptr_t)wr->sg_list[i].addr, wr->sg_list[i].length);
		to += wr->sg_list[i].length;
	}
}

/* --- adding to the queue ------------------------------------------------------------------ */

/* Record that the last request, and so all earlier ones, must not be deferred, unless it is a Send
 * that may be deferred. A Send that follows an unsent Write must not be deferred, because it
 * usually announces the Write to the peer. */
static inline void post_awaited(struct qp *qp, const struct qp_op *op, const struct sq_wr *slot)
{
	if (!op->is_patient_alone || slot->signaled || slot->solicited ||
	    qp->sq.placing > qp->sq.next)
		qp->sq.awaited = qp->sq.tail;
}

/* Copy the request into its slot. Returns NULL if the QP has failed; the request then fails with
 * it. */
static inline struct sq_wr *post_take(struct qp *qp, const struct qp_op *op,
				      const struct ibv_send_wr *wr, uint64_t length)
{
	struct sq_wr gone, *slot;

	if (__builtin_expect(qp_is_failed(qp), 0)) {
		post_fill(qp, op, &gone, wr, length);
		qp_sq_complete(qp, &gone, IBV_WC_WR_FLUSH_ERR, qp->cause);
		return NULL;
	}
	slot = sq_at(&qp->sq, qp->sq.tail++);
	post_fill(qp, op, slot, wr, length);
	if (!op->is_patient || slot->signaled)
		post_awaited(qp, op, slot);
	if (op->places)
		qp->sq.placing = qp->sq.tail;
	qp->sq.patient += length;
	return slot;
}

static inline void post_take_wr(struct qp *qp, const struct qp_op *op, const struct ibv_send_wr *wr,
				uint64_t length)
{
	struct sq_wr *slot = post_take(qp, op, wr, length);

	if (slot && !op->is_local)
		post_copy_payload(slot, wr);
}

static int post_one(struct qp *qp, const struct ibv_send_wr *wr)
{
	const struct qp_op *op = op_of_wr(wr->opcode);
	int err = post_check_state(qp);
	uint64_t length;

	if (!err)
		err = post_check_wr(qp, op, wr, &length);
	if (!err && sq_room(&qp->sq) == 0)
		err = ENOMEM;
	if (!err)
		post_take_wr(qp, op, wr, length);
	return err;
}

int qp_post_send(struct qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	int err = 0;

	while (wr && (err = post_one(qp, wr)) == 0)
		wr = wr->next;
	if (err)
		*bad = wr;
	qp_settle(qp);
	return err;
}

static int post_check_vext(const struct qp *qp, const struct vext_wr *w)
{
	uint64_t length;

	if (w->op == VEXT_OP_VERBS)
		return post_check_wr(qp, op_of_wr(w->wr.opcode), &w->wr, &length);
	return post_check(qp, op_of_vext(w->op), &w->wr, POST_VEXT_FLAGS);
}

static int post_check_list(const struct qp *qp, const struct vext_wr *wrs, int n)
{
	int err = n < 0 ? EINVAL : post_check_state(qp);

	for (int i = 0; i < n && !err; i++)
		err = post_check_vext(qp, &wrs[i]);
	if (!err && (uint32_t)n > sq_room(&qp->sq))
		err = ENOMEM;
	return err;
}

/*
 * No request of the list can be refused after the check, because requests beyond verbs refer to no
 * memory of this end.
 */
int qp_post_list(struct qp *qp, const struct vext_wr *wrs, int n, int *posted)
{
	int err = post_check_list(qp, wrs, n);

	*posted = err ? 0 : n;
	for (int i = 0; i < *posted; i++) {
		const struct vext_wr *w = &wrs[i];
		const struct qp_op *op;

		if (w->op == VEXT_OP_VERBS) {
			op = op_of_wr(w->wr.opcode);
			post_take_wr(qp, op, &w->wr, op->is_local ? 0 : post_length(&w->wr));
		} else {
			(void)post_take(qp, op_of_vext(w->op), &w->wr, 0);
		}
	}
	qp_settle(qp);
	return err;
}
