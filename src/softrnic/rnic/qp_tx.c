/* SPDX-License-Identifier: BSD-3-Clause */
/* Gathers bytes for the LLP, and frees what the LLP has sent. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "softrnic/rnic/qp_impl.h"

bool qp_tx_needs_buf(const struct qp *qp)
{
	return !qp->tx.batch && qp_tx_has_work(qp);
}

void qp_tx_lend(struct qp *qp, void *buf)
{
	qp->tx.batch = tx_batch_init(buf);
}

void *qp_tx_reclaim(struct qp *qp)
{
	struct tx_batch *b = qp->tx.batch;

	if (!b || !tx_batch_is_sent(b))
		return NULL;
	qp->tx.batch = NULL;
	return b;
}

int qp_tx_gather(struct qp *qp, struct iovec iov[QP_TX_IOV])
{
	struct tx_batch *b = qp->tx.batch;

	if (!b)
		return 0;
	if (tx_batch_is_sent(b)) {
		tx_batch_init(b);
		qp_tx_build_all(qp);
		qp_settle(qp);
		if (qp->tx.term_due && !qp->link.tx_switching) /* building a message has failed */
			qp_tx_build(qp);
	}
	if (!tx_batch_is_sent(b))
		qp->counters.tx_gathers++;
	return tx_batch_emit(b, iov);
}

void qp_tx_sent(struct qp *qp, size_t len)
{
	struct qp_tx *tx = &qp->tx;

	if (len == 0)
		return;
	assert(tx->in_place == 0 || tx->in_place == len);
	if (tx->in_place == 0)
		tx_batch_sent(tx->batch, len);
	tx->in_place = 0;
	tx->sent += len;
	qp->counters.tx_bytes += len;
	if (qp->link.tx_switched)
		qp->counters.shm_tx_bytes += len;
	if (__builtin_expect(!qp->acks.on, 1))
		tx->done = tx->sent;
	qp_sq_retire(qp);
	qp_settle(qp);
}

/* The peer may write to this memory, so it is never read, and it contains no CRC. */
size_t qp_tx_in_place(struct qp *qp, void *to, size_t room)
{
	struct qp_tx *tx = &qp->tx;

	if (qp->stream.crc | qp->stream.markers || (tx->batch && !tx_batch_is_sent(tx->batch)))
		return 0;
	tx->at = to;
	tx->end = tx->at + room;
	qp_tx_build_all(qp);
	tx->in_place = (size_t)(tx->at - (uint8_t *)to);
	tx->at = tx->end = NULL;
	if (tx->in_place > 0) /* messages that are already built complete before a later error */
		qp->counters.tx_gathers++;
	else
		qp_settle(qp);
	return tx->in_place;
}

void qp_tx_stop(struct qp *qp)
{
	qp->tx.source = TX_NONE;
	qp->tx.rtr_due = false;
	if (!qp->tx.batch)
		return;
	/*
	 * The application may reuse its buffers as soon as it sees the flushed completions, so no
	 * piece of the batch may refer to them any more. FPDUs that are gathered already are sent
	 * before the Terminate. Otherwise the peer would blame the error on a request whose answer
	 * was ready.
	 */
	if (qp->tx.term_due && tx_batch_own(qp->tx.batch, NULL) == 0)
		return;
	tx_batch_cut(qp->tx.batch);
	if (tx_batch_own(qp->tx.batch, NULL))
		qp_tx_shut(qp);
}

void qp_tx_shut(struct qp *qp)
{
	qp->tx.shut = true;
	qp->tx.source = TX_NONE;
	qp->tx.term_due = false;
	if (qp->tx.batch)
		tx_batch_drop(qp->tx.batch);
}

bool qp_tx_is_done(const struct qp *qp)
{
	const struct qp_tx *tx = &qp->tx;

	if (!qp_is_failed(qp))
		return false;
	return tx->shut || (!tx->term_due && (!tx->batch || tx_batch_is_sent(tx->batch)));
}

bool qp_is_idle(const struct qp *qp)
{
	const struct qp_tx *tx = &qp->tx;

	return sq_is_drained(&qp->sq) && qp->orq.count == 0 && tx->source == TX_NONE &&
	       !tx->rtr_due && !tx->term_due && !qp->hello.due && !qp->acks.due &&
	       !qp->link.out_due && !qp_request_is_ready(qp) &&
	       (!tx->batch || tx_batch_is_sent(tx->batch));
}

void qp_tx_fault(struct qp *qp)
{
	struct tx_batch *b = qp->tx.batch;
	bool is_response;
	size_t at;

	if (!b || tx_batch_is_sent(b) || qp_is_failed(qp)) {
		qp_tx_shut(qp);
		return;
	}
	at = tx_batch_find_fault(b, &is_response);
	if (!is_response)
		qp_set_local_cause(qp, sq_find(&qp->sq, qp->tx.sent + at), IBV_WC_LOC_PROT_ERR,
				   EFAULT);
	qp_refuse(qp, is_response ? TERM_RDMAP_BASE_BOUNDS : TERM_RDMAP_LOCAL_CATASTROPHIC, NULL, 0,
		  NULL);
	if (tx_batch_is_at_boundary(b))
		tx_batch_cut(b);
	else /* a half-sent FPDU can neither be finished nor taken back */
		qp->fault.shut = true;
	qp_settle(qp);
}

/* The bytes are private copies: see qp_tx_stop(). */
static size_t qp_tx_append_unsent(struct qp *qp, uint8_t **bytes, size_t len)
{
	struct iovec iov[QP_TX_IOV];
	int n = qp_tx_gather(qp, iov);
	size_t more = 0;
	uint8_t *all;

	for (int i = 0; i < n; i++)
		more += iov[i].iov_len;
	all = more ? realloc(*bytes, len + more) : NULL;
	if (!all)
		return 0;
	*bytes = all;
	for (int i = 0; i < n; i++) {
		memcpy(all + len, iov[i].iov_base, iov[i].iov_len);
		len += iov[i].iov_len;
	}
	qp_tx_sent(qp, more);
	return more;
}

size_t qp_tx_take_rest(struct qp *qp, uint8_t **bytes)
{
	void *own = NULL;
	size_t len = 0, more;

	*bytes = NULL;
	if (!qp_is_failed(qp))
		return 0;
	if (qp_tx_needs_buf(qp)) {
		own = malloc(QP_TXBUF);
		if (!own)
			return 0;
		qp_tx_lend(qp, own);
	}
	while ((more = qp_tx_append_unsent(qp, bytes, len)) > 0)
		len += more;
	if (own) {
		qp_tx_shut(qp);
		qp->tx.batch = NULL;
		free(own);
	}
	return len;
}

void qp_tx_let_go(struct qp *qp, const struct mr *mr)
{
	if (!qp->tx.batch || !tx_batch_own(qp->tx.batch, mr))
		return;
	qp_fault_local(qp, EFAULT, "the source of a partly sent message was deregistered");
	qp->fault.shut = true;
}

void qp_detach_mr(struct qp *qp, struct mr *mr, bool forget)
{
	if (forget) {
		dirty_forget(&qp->dirty, mr);
		dirty_forget(&qp->requests.all, mr);
	}
	qp_requests_detach(qp, mr);
	if (!qp->fault.due)
		qp_tx_let_go(qp, mr);
	qp_settle(qp);
}
