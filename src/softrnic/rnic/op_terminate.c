/* SPDX-License-Identifier: BSD-3-Clause */
/* Terminate (RFC 5040 s4.8): the last message of a stream. */
#include "softrnic/rnic/qp_impl.h"

bool terminate_build(struct qp *qp)
{
	struct ddp_hdr hdr = tx_untagged(qp, RDMAP_TERMINATE);
	uint8_t bytes[TERM_MAX_LEN];

	if (!tx_build_small(qp, &hdr, bytes, terminate_encode(bytes, sizeof(bytes), &qp->term)))
		return false;
	qp->tx.term_due = false;
	qp->counters.terminates_out++;
	return true;
}

/* The status that the first unfinished work request gets when the peer sends this Terminate. */
static enum ibv_wc_status terminate_status(const struct terminate *t)
{
	unsigned error = terminate_error(t);
	bool protection = t->layer == TERM_RDMAP && t->etype == TERM_RDMAP_PROTECTION;

	if (protection || (t->layer == TERM_DDP && t->etype == TERM_DDP_TAGGED))
		return IBV_WC_REM_ACCESS_ERR;
	if (error == TERM_DDP_NO_BUFFER || error == TERM_DDP_TOO_LONG)
		return IBV_WC_REM_INV_REQ_ERR;
	return IBV_WC_REM_OP_ERR;
}

/* --- with Acks: find the work request that a Terminate refers to ---------------------------- */

static bool terminate_is_about_write(const struct sq_wr *wr, const struct ddp_hdr *echo)
{
	return wr->op->messages && wr->op->places && wr->rkey == echo->stag &&
	       echo->to - wr->raddr <= wr->length;
}

/* Does the Terminate concern a Send, or the Immediate Data of a Write? The peer delivers these two
 * kinds in order. */
static bool terminate_is_about_send(const struct sq_wr *wr)
{
	return wr->op->messages && (wr->op->messages > 1 || !wr->op->places);
}

/*
 * Find the refused message among the messages that no Ack covers. Returns NULL if no message fits.
 */
static struct sq_wr *terminate_find_message(const struct qp *qp, const struct ddp_hdr *echo)
{
	for (uint64_t i = qp->acks.next; i < qp->sq.tail; i++) {
		struct sq_wr *wr = sq_at(&qp->sq, i);

		if (echo->tagged ? terminate_is_about_write(wr, echo) : terminate_is_about_send(wr))
			return wr;
	}
	return NULL;
}

/* Find the work request by the header that the peer refused and returned. Returns NULL if the
 * Terminate has no header, or no work request fits. */
static struct sq_wr *terminate_find_wr(const struct qp *qp, const struct terminate *t)
{
	const struct ddp_hdr *echo = &t->ddp;

	if (!qp->acks.on || !t->has_ddp)
		return NULL;
	if (!echo->tagged && echo->qn == DDP_QN_REQUEST) {
		/* The peer executes requests in order, so the Terminate refers to the first request
		 * without an answer. */
		if (qp->orq.count == 0 || orq_head(&qp->orq) == ORQ_RTR)
			return NULL;
		return sq_at(&qp->sq, orq_head(&qp->orq));
	}
	if (echo->tagged || echo->qn == DDP_QN_SEND)
		return terminate_find_message(qp, echo);
	return NULL;
}

/* Find the status of the refused work request. Some causes share a code; the operation then
 * distinguishes them. */
static enum ibv_wc_status terminate_status_of(const struct sq_wr *wr, const struct terminate *t)
{
	unsigned error = terminate_error(t);

	/* the address is not aligned */
	if (error == TERM_RDMAP_STREAM_CATASTROPHIC && wr->op->is_atomic)
		return IBV_WC_REM_INV_REQ_ERR;
	if (error == TERM_RDMAP_BASE_BOUNDS &&
	    /* a page is gone; bounds have a different code, because DDP checks them */
	    wr->op->messages)
		return IBV_WC_REM_OP_ERR;
	return terminate_status(t);
}

static void terminate_fail(struct qp *qp, const struct terminate *t)
{
	uint32_t cause = vext_vendor_err(VEXT_REASON_TERMINATE_IN, terminate_error(t));
	struct sq_wr *wr = terminate_find_wr(qp, t);
	/* the status of the first work request that has no separate status yet */
	enum ibv_wc_status first = terminate_status(t);

	if (wr) {
		wr->status = terminate_status_of(wr, t);
		wr->vendor_err = cause;
		first = IBV_WC_WR_FLUSH_ERR;
	} else if (qp->acks.on && terminate_error(t) == TERM_RDMAP_LOCAL_CATASTROPHIC) {
		/* the peer has an error that none of this end's requests caused */
		first = IBV_WC_RETRY_EXC_ERR;
	}
	qp_fault(qp, first, cause, "Terminate received");
}

/* ------------------------------------------------------------------------------------------ */

static enum rx_verdict terminate_whole(struct qp *qp, struct rx_seg *seg, const uint8_t *bytes)
{
	struct terminate t;

	if (terminate_decode(bytes, seg->payload, &t))
		t = terminate_of(TERM_RDMAP_OPERATION_UNSPECIFIED);
	qp->counters.terminates_in++;
	qp->term = t;
	qp->has_term = true;
	LOG_INFO("qp %u: the peer terminated the stream: %s", qp->cfg.qp_num,
		 term_str(terminate_error(&t)));
	terminate_fail(qp, &t);
	qp->fault.shut = true; /* the peer accepts no message after its Terminate */
	return RX_DONE;
}

static const struct op_rx terminate_rx = {
	.whole = terminate_whole,
};

const struct qp_op op_terminate = {
	.level = RDMAP_LEVEL_BASE,
	.message = &terminate_rx,
};
