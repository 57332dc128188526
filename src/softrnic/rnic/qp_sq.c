/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handles this end's work requests from the start of each to its completion, and the answers that
 * some of them wait for.
 */
#include <errno.h>

#include "softrnic/rnic/qp_impl.h"

/* --- completing --------------------------------------------------------------------------- */

void qp_sq_complete(struct qp *qp, const struct sq_wr *wr, enum ibv_wc_status status,
		    uint32_t vendor_err)
{
	struct ibv_wc wc = {
		.wr_id = wr->wr_id,
		.status = status,
		.opcode = (enum ibv_wc_opcode)wr->op->wc,
		.vendor_err = vendor_err,
		.byte_len = (uint32_t)wr->length,
	};

	qp_complete(qp, qp->cfg.send_cq, &wc, false, &qp->sq.uncollected);
}

/*
 * Is the work request finished? A Write or Send is finished when the LLP has taken all its bytes
 * (RFC 5041 s5.3), a request when its answer has arrived.
 */
static bool qp_sq_is_finished(const struct qp *qp, const struct sq_wr *wr)
{
	return wr->op->is_request ? wr->answered : wr->end_pos <= qp->tx.done;
}

static void sq_report_drained(struct qp *qp)
{
	if (!sq_is_drained(&qp->sq))
		return;
	qp->notify_drained = false;
	qp_event(qp, IBV_EVENT_SQ_DRAINED);
}

void qp_sq_retire(struct qp *qp)
{
	struct sq *sq = &qp->sq;

	while (!qp->fault.due && sq->head != sq->next &&
	       qp_sq_is_finished(qp, sq_at(sq, sq->head))) {
		const struct sq_wr *wr = sq_pop(sq);

		if (wr->op->is_request)
			sq->proven = sq->head;
		if (wr->signaled)
			qp_sq_complete(qp, wr, IBV_WC_SUCCESS, 0);
	}
	if (__builtin_expect(qp->notify_drained, 0))
		sq_report_drained(qp);
}

void qp_sq_pause(struct qp *qp, bool notify_drained)
{
	qp->sq.stop = qp->sq.next + (qp->tx.source == TX_FROM_SQ);
	qp->notify_drained = notify_drained;
	if (notify_drained)
		sq_report_drained(qp);
}

/* A Write with Immediate is counted twice: as a Write, and as a Send for its Immediate Data. */
struct qp_news qp_news(const struct qp *qp)
{
	return (struct qp_news){
		.written = qp->counters.writes_in,
		.completed = qp->sq.head + qp->counters.sends_in,
	};
}

bool qp_leaves_writes(const struct qp *qp)
{
	return qp->sq.placing > qp->sq.proven;
}

void qp_sq_flush(struct qp *qp, enum ibv_wc_status first)
{
	struct sq *sq = &qp->sq;

	while (sq->head != sq->tail) {
		const struct sq_wr *wr = sq_pop(sq);

		if (wr->status != IBV_WC_SUCCESS) {
			qp_sq_complete(qp, wr, wr->status, wr->vendor_err);
			continue;
		}
		qp_sq_complete(qp, wr, first, qp->cause);
		first = IBV_WC_WR_FLUSH_ERR;
	}
	sq->next = sq->tail;
}

/* Execute the next work request if it needs no peer. Returns false if it has failed, or cannot be
 * executed now. */
static bool sq_run_alone(struct qp *qp)
{
	struct sq_wr *wr = sq_at(&qp->sq, qp->sq.next);
	int err = wr->op->is_local ? wr->op->run(qp, wr) : 0;

	if (err && err != EAGAIN) {
		qp_set_local_cause(qp, wr, IBV_WC_MW_BIND_ERR, err);
		qp_refuse(qp, TERM_RDMAP_LOCAL_CATASTROPHIC, NULL, 0, NULL);
	}
	return !err && !qp->fault.due;
}

void qp_give_away(struct qp *qp)
{
	struct sq *sq = &qp->sq;

	if (!qp->cfg.unreliable || qp_is_failed(qp))
		return;
	qp_tx_shut(qp);
	while (!qp->fault.due && sq->head != sq->tail) {
		const struct sq_wr *wr;

		if (sq->head == sq->next) {
			if (!sq_run_alone(qp))
				break;
			sq->next++;
		}
		wr = sq_pop(sq);
		if (wr->signaled)
			qp_sq_complete(qp, wr, IBV_WC_SUCCESS, 0);
	}
	if (qp->notify_drained)
		sq_report_drained(qp);
	qp_settle(qp);
}

void qp_lose_peer(struct qp *qp)
{
	qp_tx_shut(qp);
	if (qp->acks.on) /* at the peer, Sends without an Ack have failed */
		qp_recv_rewind(qp);
	qp_give_away(qp);
}

/* --- answers ------------------------------------------------------------------------------ */

bool qp_answer_is_for_rtr(const struct qp *qp)
{
	return qp->orq.count > 0 && orq_head(&qp->orq) == ORQ_RTR;
}

struct sq_wr *qp_answered_wr(const struct qp *qp, const struct op_rx *rx)
{
	struct sq_wr *wr;

	if (qp->orq.count == 0 || orq_head(&qp->orq) == ORQ_RTR)
		return NULL;
	wr = sq_at(&qp->sq, orq_head(&qp->orq));
	return wr->op->answer == rx ? wr : NULL;
}

void qp_answer_done(struct qp *qp, struct sq_wr *wr)
{
	if (wr)
		wr->answered = true;
	if (qp->acks.on)
		ack_on_answer(qp, orq_head(&qp->orq));
	orq_pop(&qp->orq);
	qp_sq_retire(qp);
}

void qp_answer_failed(struct qp *qp, struct sq_wr *wr, uint32_t vendor_err, const char *why)
{
	if (qp->acks.on) {
		ack_on_answer(qp, orq_head(&qp->orq));
		qp_sq_retire(qp);
	}
	orq_pop(&qp->orq);
	wr->status = IBV_WC_REM_OP_ERR;
	wr->vendor_err = vendor_err;
	qp_fault(qp, IBV_WC_WR_FLUSH_ERR, vendor_err, why);
}
