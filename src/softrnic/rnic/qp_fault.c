/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Records and settles errors. An error is recorded where it is found, deep inside a parser or a
 * builder. It is settled at the end of the owner's call, so that no queue is flushed while a
 * calling function still uses the queue.
 */
#include <errno.h>

#include "softrnic/rnic/qp_impl.h"

/* --- record ------------------------------------------------------------------------------- */

static void fault_set_cause(struct qp *qp, uint32_t vendor_err)
{
	if (!qp->cause)
		qp->cause = vendor_err;
}

/* Returns NULL if an error is already recorded. A failed QP may find more errors while it delivers
 * parked Sends. */
static struct qp_fault *fault_record(struct qp *qp, enum ibv_wc_status first, const char *why)
{
	struct qp_fault *f = &qp->fault;

	if (f->due)
		return NULL;
	f->due = true;
	f->first = first;
	f->why = why;
	return qp_is_failed(qp) ? NULL : f;
}

void qp_fault(struct qp *qp, enum ibv_wc_status first, uint32_t vendor_err, const char *why)
{
	if (fault_record(qp, first, why))
		fault_set_cause(qp, vendor_err);
}

/* Does the same as fault_record(), and notifies the owner. */
static struct qp_fault *fault_record_event(struct qp *qp, enum ibv_event_type event,
					   enum ibv_wc_status first, const char *why)
{
	struct qp_fault *f = fault_record(qp, first, why);

	if (!f)
		return NULL;
	f->event_due = true;
	f->event = event;
	return f;
}

static enum ibv_event_type fault_event_of(unsigned error)
{
	switch (error >> 8) {
	case TERM_RDMAP << 4 | TERM_RDMAP_PROTECTION:
	case TERM_DDP << 4 | TERM_DDP_TAGGED:
		return IBV_EVENT_QP_ACCESS_ERR;
	case TERM_RDMAP << 4 | TERM_RDMAP_OPERATION:
	case TERM_DDP << 4 | TERM_DDP_UNTAGGED:
		return IBV_EVENT_QP_REQ_ERR;
	default:
		return IBV_EVENT_QP_FATAL;
	}
}

void qp_refuse(struct qp *qp, unsigned error, const struct ddp_hdr *ddp, uint32_t segment_len,
	       const struct rdmap_read_req *read)
{
	if (!fault_record_event(qp, fault_event_of(error), IBV_WC_WR_FLUSH_ERR, term_str(error)))
		return;
	fault_set_cause(qp, vext_vendor_err(VEXT_REASON_TERMINATE_OUT, error));
	LOG_INFO("qp %u: terminates the stream: %s", qp->cfg.qp_num, term_str(error));
	if (qp->has_term || qp->cfg.unreliable)
		return;
	qp->term = terminate_of(error);
	terminate_echo(&qp->term, ddp, (uint16_t)segment_len, read);
	qp->has_term = qp->term_sent_by_us = qp->tx.term_due = true;
}

void qp_refuse_seg(struct qp *qp, unsigned error, const struct rx_seg *seg)
{
	qp_refuse(qp, error, &seg->hdr, seg->ulpdu, NULL);
}

void qp_set_local_cause(struct qp *qp, struct sq_wr *wr, enum ibv_wc_status status, int err)
{
	uint32_t vendor_err = vext_vendor_err(VEXT_REASON_LOCAL, (uint32_t)err);

	if (wr) {
		wr->status = status;
		wr->vendor_err = vendor_err;
	}
	fault_set_cause(qp, vendor_err);
}

void qp_fault_local(struct qp *qp, int err, const char *why)
{
	if (fault_record_event(qp, IBV_EVENT_QP_FATAL, IBV_WC_WR_FLUSH_ERR, why))
		qp_set_local_cause(qp, NULL, IBV_WC_SUCCESS, err);
}

void qp_complete(struct qp *qp, struct cq *cq, struct ibv_wc *wc, bool solicited,
		 atomic_uint *uncollected)
{
	wc->qp_num = qp->cfg.qp_num;
	if (qp->taker && cq_take(qp->taker, cq, wc))
		return;
	if (cq_push(cq, wc, solicited, uncollected))
		qp_fault_local(qp, EOVERFLOW, "completion queue overrun");
}

void qp_event(struct qp *qp, enum ibv_event_type event)
{
	if (qp->cfg.async)
		qp->cfg.async(qp->cfg.owner, event);
}

/* --- settle ------------------------------------------------------------------------------- */

static void fault_stop(struct qp *qp, const struct qp_fault *f)
{
	if (f->event_due)
		qp_event(qp, f->event);
	if (qp->state == IBV_QPS_INIT || qp->tx.held)
		qp->tx.term_due = false; /* no FPDU may be sent any more, not even a Terminate */
	if (f->keep)
		qp_recv_keep(qp);
	qp_set_state(qp, IBV_QPS_ERR, f->why);
	qp_rx_stop(qp);
	if (!f->shut)
		qp_tx_stop(qp);
	else
		qp_tx_shut(qp);
	qp_requests_stop(qp);
	qp_sq_flush(qp, f->first);
	qp_recv_flush(qp);
}

/*
 * The completions of flushed requests may overrun their CQ. The next iteration settles that error.
 */
void qp_settle_fault(struct qp *qp)
{
	while (qp->fault.due) {
		struct qp_fault f = qp->fault;

		qp->fault = (struct qp_fault){.due = false};
		if (!qp_is_failed(qp) && qp->cfg.failing)
			qp->cfg.failing(qp->cfg.owner);
		qp_recv_end(qp, f.recv);
		if (!qp_is_failed(qp)) {
			fault_stop(qp, &f);
			continue;
		}
		qp_recv_keep_no_more(qp);
		if (f.shut)
			qp_tx_shut(qp);
	}
}

/* --- faults that the owner reports -------------------------------------------------------- */

bool qp_cause_is_local(const struct qp *qp)
{
	return qp->cause >> 24 == VEXT_REASON_LOCAL;
}

void qp_set_link_cause(struct qp *qp, int err)
{
	fault_set_cause(qp, vext_vendor_err(VEXT_REASON_LINK, (uint32_t)err));
}

void qp_fail(struct qp *qp, enum ibv_wc_status status)
{
	qp_set_link_cause(qp, ECONNABORTED);
	qp_fault(qp, status, qp->cause, "failed by its owner");
	qp->fault.shut = true;
	qp_settle(qp);
}

/* The status of the first unacknowledged work request when the peer is lost. With Acks it is the
 * status that RoCE devices report after their retries. */
static enum ibv_wc_status fault_of_lost_peer(const struct qp *qp)
{
	return qp->acks.on ? IBV_WC_RETRY_EXC_ERR : IBV_WC_WR_FLUSH_ERR;
}

void qp_fail_lost(struct qp *qp)
{
	qp_fail(qp, fault_of_lost_peer(qp));
}

bool qp_find_end(struct qp *qp)
{
	return atomic_load(qp->rx.given_up) == QP_GIVEN_UP ||
	       (qp->cfg.is_over && qp->cfg.is_over(qp->cfg.owner));
}

/* Record that the peer has given up the connection. A plain queue pair does not fail here, because
 * it may continue on another stream: the link reports its end separately, and the stream then
 * decides which requests are lost. */
void qp_given_up(struct qp *qp)
{
	if (qp->cfg.plain) {
		qp->rx.over = true;
		qp->rx.stalled = false;
		return;
	}
	qp_set_link_cause(qp, ECONNRESET);
	qp_fault(qp, fault_of_lost_peer(qp), qp->cause, "given up by the peer");
	qp->fault.shut = true;
}

void qp_on_eof(struct qp *qp)
{
	bool inside = qp->rx.seg.active || qp->rx.head != qp->rx.tail;

	qp->rx.eof = true;
	qp_set_link_cause(qp, inside ? ECONNRESET : ENOTCONN);
	if (inside)
		(void)fault_record_event(qp, IBV_EVENT_QP_FATAL, fault_of_lost_peer(qp),
					 "end of stream inside an FPDU");
	else
		qp_fault(qp, fault_of_lost_peer(qp), qp->cause, "end of stream");
	qp->fault.keep = true;
	qp->fault.shut = true;
	qp_settle(qp);
}

/* --- error codes -------------------------------------------------------------------------- */

int qp_local_errno(enum mr_verdict verdict)
{
	return verdict == MR_BAD_BOUNDS || verdict == MR_TO_WRAP ? ERANGE : EACCES;
}

unsigned qp_rdmap_error(enum mr_verdict verdict)
{
	static const unsigned errors[] = {
		[MR_BAD_STAG] = TERM_RDMAP_INVALID_STAG,
		[MR_BAD_PD] = TERM_RDMAP_STAG_NOT_ASSOCIATED,
		[MR_BAD_ACCESS] = TERM_RDMAP_ACCESS,
		[MR_BAD_BOUNDS] = TERM_RDMAP_BASE_BOUNDS,
		[MR_TO_WRAP] = TERM_RDMAP_TO_WRAP,
	};

	return errors[verdict];
}

/* Returns the DDP error for a verdict. DDP has no code for missing rights, because RDMAP checks
 * rights (RFC 5040 s7.2). */
unsigned qp_ddp_error(enum mr_verdict verdict)
{
	static const unsigned errors[] = {
		[MR_BAD_STAG] = TERM_DDP_INVALID_STAG, [MR_BAD_PD] = TERM_DDP_STAG_NOT_ASSOCIATED,
		[MR_BAD_ACCESS] = TERM_RDMAP_ACCESS,   [MR_BAD_BOUNDS] = TERM_DDP_BASE_BOUNDS,
		[MR_TO_WRAP] = TERM_DDP_TO_WRAP,
	};

	return errors[verdict];
}
