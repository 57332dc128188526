/* SPDX-License-Identifier: BSD-3-Clause */
/* qp_rewind.c -- lets a queue pair leave an unsuccessful stream, and keep its posted requests for
 * the next stream. Only queue pairs that connect by a meeting do this. */
#include <assert.h>
#include <string.h>

#include "softrnic/rnic/qp_impl.h"

uint64_t qp_traffic(const struct qp *qp)
{
	const struct qp_counters *n = &qp->counters;
	uint64_t begun = (qp->tx.source == TX_FROM_SQ) + qp->rx.write_open + qp->recv.open;

	return qp->sq.next + qp->recv.seen_sends + n->writes_in + n->lost_in + n->reads_in +
	       n->flushes_in + n->atomics_in + begun;
}

bool qp_has_posted(const struct qp *qp)
{
	return qp->sq.head != qp->sq.tail;
}

/* Refuse requests that can never begin. They were posted before the limit of outstanding requests
 * was known. */
static void rewind_refuse_requests(struct qp *qp)
{
	for (uint64_t i = qp->sq.next; i != qp->sq.tail; i++) {
		struct sq_wr *wr = sq_at(&qp->sq, i);

		if (!wr->op->is_request)
			continue;
		wr->status = IBV_WC_REM_INV_REQ_ERR;
		qp_fault(qp, IBV_WC_WR_FLUSH_ERR, qp->cause, "the peer permits no requests");
		return;
	}
}

void qp_limit_requests(struct qp *qp, uint32_t ord)
{
	if (qp->state == IBV_QPS_INIT || qp_is_failed(qp))
		return;
	qp->orq.ord = ord < RNIC_MAX_RD_ATOM ? ord : RNIC_MAX_RD_ATOM;
	if (ord == 0)
		rewind_refuse_requests(qp);
	qp_settle(qp);
}

void qp_quiet(struct qp *qp)
{
	assert(qp->requests.state != REQUEST_RUNNING);
	qp_rx_stop(qp);
	qp_tx_shut(qp);
	qp_requests_stop(qp);
	origin_fini(qp);
	qp_recv_rewind(qp);
}

void qp_rewind(struct qp *qp)
{
	assert(!qp_is_failed(qp) && !qp->rx.buf && !qp->tx.batch);
	irq_fini(&qp->irq);
	irq_init(&qp->irq, 0);
	memset(&qp->stream, 0, sizeof(qp->stream));
	memset(&qp->fault, 0, sizeof(qp->fault));
	memset(&qp->orq, 0, sizeof(qp->orq));
	memset(&qp->requests, 0, sizeof(qp->requests));
	memset(&qp->rx, 0, sizeof(qp->rx));
	memset(&qp->tx, 0, sizeof(qp->tx));
	memset(&qp->hello, 0, sizeof(qp->hello));
	memset(&qp->origin, 0, sizeof(qp->origin));
	memset(&qp->heartbeat, 0, sizeof(qp->heartbeat));
	memset(&qp->link, 0, sizeof(qp->link));
	qp_watch_given_up(qp, NULL);
	qp_msn_init(qp);
	qp->has_term = qp->term_sent_by_us = false;
	qp->cause = 0;
	qp->rtr_in = QP_RTR_NONE;
	qp->sq.next = qp->sq.head;
	ack_rewind(qp);
	qp_set_state(qp, IBV_QPS_INIT, "rewound");
}
