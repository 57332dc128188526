/* SPDX-License-Identifier: BSD-3-Clause */
/* qp_tx_stall.c -- finds out whether unsent messages need loads from memory that can stall. */
#include "softrnic/rnic/qp_impl.h"

/* number of work requests that are checked; if there are more, assume that one can stall */
#define STALL_LOOK_MAX 64u

static bool stall_sge(const struct qp *qp, const struct ibv_sge *sge)
{
	struct mr *mr;
	void *ptr;
	bool can;

	if (sge->length == 0 ||
	    mr_hold(qp->cfg.mrs, qp->cfg.pd, sge->lkey, 0, 0, 0, &mr, &ptr) != MR_OK)
		return false;
	can = mr->backing.can_stall;
	mr_release(mr);
	return can;
}

static bool stall_wr(const struct qp *qp, const struct sq_wr *wr)
{
	/* no loads: the data of an inline request is copied, and the sink of a request is only
	 * written to */
	if (wr->is_inline || wr->op->is_request)
		return false;
	for (uint32_t i = 0; i < wr->num_sge; i++)
		if (stall_sge(qp, &wr->sge[i]))
			return true;
	return false;
}

/* Check the unsent requests. Begin with the one before `next`, which may be half built. */
static bool stall_sq(const struct qp *qp)
{
	uint64_t from = qp->sq.next > qp->sq.head ? qp->sq.next - 1 : qp->sq.head;

	if (qp->sq.tail - from > STALL_LOOK_MAX)
		return true;
	for (uint64_t i = from; i < qp->sq.tail; i++)
		if (stall_wr(qp, sq_at(&qp->sq, i)))
			return true;
	return false;
}

/* Check the peer's requests: the answer to the first request is sent, and then the next request is
 * executed. */
static bool stall_irq(struct qp *qp)
{
	if (!qp_request_is_ready(qp))
		return false;
	return qp->irq.count > 1 || irq_head(&qp->irq)->op->answer_loads;
}

static bool stall_batch(const struct tx_batch *b)
{
	for (unsigned i = b->first; i < b->n; i++)
		if (b->piece[i].mr && b->piece[i].mr->backing.can_stall)
			return true;
	return false;
}

bool qp_tx_can_stall(struct qp *qp)
{
	if (qp->tx.batch && !tx_batch_is_sent(qp->tx.batch))
		return stall_batch(qp->tx.batch) || qp->irq.count > 0;
	return qp_tx_has_work(qp) && (stall_irq(qp) || stall_sq(qp));
}
