/* SPDX-License-Identifier: BSD-3-Clause */
/* Chooses the next message to send. */
#include "softrnic/rnic/qp_impl.h"

/* Is rare work due (a message without a work request), or must nothing be sent? One test covers all
 * these conditions. */
static inline bool turn_is_rare_but_for(const struct qp *qp, bool acks)
{
	const struct qp_tx *tx = &qp->tx;
	unsigned rare = tx->shut | tx->held | tx->rtr_due | tx->term_due | qp->link.tx_switching |
			qp->link.out_due | qp->hello.due | qp->hello.awaited |
			qp->heartbeat.ping_due | qp->heartbeat.pong_due | (qp->acks.due & !acks) |
			tx->window_awaited | qp->rnr.is_new;

	return rare || qp->state != IBV_QPS_RTS;
}

static inline bool turn_is_rare(const struct qp *qp)
{
	return turn_is_rare_but_for(qp, false);
}

/* Has a message of a work request or an answer begun, or can one begin? */
static inline bool turn_has_message(const struct qp *qp)
{
	return qp->tx.source != TX_NONE || qp_request_is_ready(qp) || qp_sq_is_ready(qp);
}

static bool turn_has_rare_work(const struct qp *qp)
{
	const struct qp_tx *tx = &qp->tx;

	if (tx->shut || tx->held || qp->link.tx_switching || qp->state == IBV_QPS_INIT)
		return false;
	if (qp_is_failed(qp))
		return tx->term_due;
	/* no other message is sent before both HELLOs are exchanged */
	if (qp->hello.due || qp->hello.awaited)
		return qp->hello.due;
	return tx->rtr_due || heartbeat_is_due(qp) || qp->acks.due || qp->link.out_due ||
	       turn_has_message(qp);
}

bool qp_tx_has_work(const struct qp *qp)
{
	return turn_is_rare(qp) ? turn_has_rare_work(qp) : turn_has_message(qp);
}

bool qp_is_calm(const struct qp *qp)
{
	const struct tx_batch *b = qp->tx.batch;

	return !turn_is_rare(qp) && !turn_has_message(qp) && (!b || tx_batch_is_sent(b)) &&
	       qp->requests.state != REQUEST_JOB && !qp->link.in_due &&
	       !(qp->rx.eof | qp->rx.stalled | qp->rx.stop);
}

bool qp_owes_ack_only(const struct qp *qp)
{
	const struct tx_batch *b = qp->tx.batch;

	return qp->acks.due && !turn_is_rare_but_for(qp, true) && !turn_has_message(qp) &&
	       (!b || tx_batch_is_sent(b));
}

unsigned qp_due(const struct qp *qp)
{
	const struct tx_batch *b = qp->tx.batch;
	unsigned due = 0;

	if (qp_is_calm(qp))
		return QP_DUE_RECEIVE;
	if (qp->state == IBV_QPS_ERR)
		due |= QP_DUE_FAILED;
	if (!qp->rx.eof && !qp->rx.stalled && !qp->rx.stop)
		due |= QP_DUE_RECEIVE;
	if ((b && !tx_batch_is_sent(b)) || qp_tx_has_work(qp))
		due |= QP_DUE_SEND;
	if (qp->requests.state == REQUEST_JOB)
		due |= QP_DUE_JOB;
	if (link_is_due(qp))
		due |= QP_DUE_LINK;
	/* check again later: if another connection uses the window, no event reports when that use
	 * ends */
	if (qp->tx.window_awaited && !qp->tx.shut && !qp_is_failed(qp) && qp->sq.next < qp->sq.stop)
		due |= QP_DUE_AGAIN;
	if (qp->rnr.is_new && !qp_is_failed(qp))
		due |= QP_DUE_RNR;
	return due;
}

/*
 * Build the agreed ready-to-receive FPDU. It is sent before any message of the user (RFC 6581 s9).
 */
static bool turn_build_rtr(struct qp *qp)
{
	struct rdmap_read_req req = {.sink_stag = TX_DUMMY_STAG, .src_stag = TX_DUMMY_STAG};
	uint8_t bytes[RDMAP_READ_REQ_LEN];
	struct ddp_hdr hdr;
	int len = 0;

	switch (qp->stream.rtr_out) {
	case QP_RTR_SEND:
		hdr = tx_untagged(qp, RDMAP_SEND);
		break;
	case QP_RTR_READ:
		hdr = tx_untagged(qp, RDMAP_READ_REQ);
		len = rdmap_read_req_encode(bytes, sizeof(bytes), &req);
		break;
	default:
		hdr = tx_tagged(RDMAP_WRITE, TX_DUMMY_STAG, 0);
		break;
	}
	if (!tx_build_small(qp, &hdr, bytes, len))
		return false;
	if (qp->stream.rtr_out == QP_RTR_READ)
		orq_push(&qp->orq, ORQ_RTR);
	qp->tx.rtr_due = false;
	return true;
}

/* Choose the source of the next message: if both an answer and a work request can be sent, they
 * alternate. Messages do not interleave. */
static void turn_pick_source(struct qp *qp)
{
	bool sq = qp_sq_is_ready(qp), irq = qp_request_is_ready(qp);

	if (sq && irq)
		qp->tx.source = qp->tx.last == TX_FROM_SQ ? TX_FROM_IRQ : TX_FROM_SQ;
	else
		qp->tx.source = sq ? TX_FROM_SQ : irq ? TX_FROM_IRQ : TX_NONE;
	qp->tx.last = qp->tx.source;
}

/* May the next posted request follow immediately? It may if no other source has a message. Rare
 * work was not due before, and building a work request's message never makes rare work due. */
static bool turn_stays_with_sq(const struct qp *qp, bool is_rare)
{
	return qp->tx.source == TX_NONE && !is_rare && !qp_request_is_ready(qp) && !qp->fault.due &&
	       qp_sq_is_ready(qp);
}

static bool turn_build_wrs(struct qp *qp, bool is_rare)
{
	do {
		struct sq_wr *wr = sq_at(&qp->sq, qp->sq.next);

		qp->tx.source = TX_FROM_SQ;
		if (!wr->op->build(qp, wr))
			return false;
	} while (turn_stays_with_sq(qp, is_rare));
	return true;
}

/* `is_rare` is the result of turn_is_rare(). */
static bool turn_build_message(struct qp *qp, bool is_rare)
{
	if (qp->tx.source == TX_NONE)
		turn_pick_source(qp);
	switch (qp->tx.source) {
	case TX_FROM_SQ:
		return turn_build_wrs(qp, is_rare);
	case TX_FROM_IRQ:
		return irq_head(&qp->irq)->op->build_answer(qp, irq_head(&qp->irq));
	case TX_NONE:
		break;
	}
	return false;
}

bool qp_tx_build(struct qp *qp)
{
	/* the last Ack shows the peer which message is refused */
	if (__builtin_expect(qp->tx.term_due, 0))
		return qp->acks.due ? ack_build(qp) : terminate_build(qp);
	if (__builtin_expect(qp->hello.due, 0))
		return hello_build(qp);
	if (__builtin_expect(qp->tx.rtr_due, 0))
		return turn_build_rtr(qp);
	if (qp->tx.source == TX_NONE && heartbeat_is_due(qp))
		return heartbeat_build(qp);
	if (qp->tx.source == TX_NONE && qp->acks.due)
		return ack_build(qp);
	if (qp->tx.source == TX_NONE && qp->link.out_due)
		return link_build(qp);
	return turn_build_message(qp, turn_is_rare(qp));
}

/* Building messages of work requests or answers never makes rare work due, so the second loop need
 * not check for it. */
void qp_tx_build_all(struct qp *qp)
{
	if (turn_is_rare(qp))
		while (qp_tx_has_work(qp) && qp_tx_build(qp) && !qp->fault.due)
			;
	else
		while (turn_has_message(qp) && turn_build_message(qp, false) && !qp->fault.due)
			;
	mr_release_near(&qp->tx.near);
	if (qp->sq.next == qp->sq.tail)
		qp->sq.patient = 0;
}

/* May the unsent requests be deferred? They must be Writes or Sends without a completion, and few,
 * so that collecting more of them saves time. Another request must still fit, because only sending
 * empties a full queue. */
static bool turn_may_wait(const struct qp *qp)
{
	const struct qp_tx *tx = &qp->tx;
	const struct sq *sq = &qp->sq;

	return sq->awaited <= sq->next && sq->patient <= QP_PATIENT_MAX && sq_room(sq) > 0 &&
	       qp->state == IBV_QPS_RTS && (!tx->batch || tx_batch_is_sent(tx->batch)) &&
	       tx->source == TX_NONE && !qp_request_is_ready(qp) && !heartbeat_is_due(qp) &&
	       !qp->acks.due;
}

enum qp_patience qp_tx_may_wait(const struct qp *qp)
{
	if (!turn_may_wait(qp))
		return QP_AWAITED;
	return qp->sq.placing > qp->sq.next ? QP_WRITES_WAIT : QP_SENDS_WAIT;
}
