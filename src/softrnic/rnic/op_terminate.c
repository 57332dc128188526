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

/* How the first unfinished work request ends when the peer sends this. */
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
	qp_fault(qp, terminate_status(&t),
		 vext_vendor_err(VEXT_REASON_TERMINATE_IN, terminate_error(&t)),
		 "Terminate received");
	qp->fault.shut = true; /* the peer takes nothing more */
	return RX_DONE;
}

static const struct op_rx terminate_rx = {
	.whole = terminate_whole,
};

const struct qp_op op_terminate = {
	.level = RDMAP_LEVEL_BASE,
	.message = &terminate_rx,
};
