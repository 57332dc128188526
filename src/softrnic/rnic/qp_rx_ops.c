/* SPDX-License-Identifier: BSD-3-Clause */
/* What to do for each opcode that may arrive; Write and Terminate are here. */
#include "softrnic/rnic/qp_impl.h"

/* --- RDMA Write --------------------------------------------------------------------------- */

static uint32_t write_target(struct qp *qp, const struct rx_seg *seg, uint32_t max, struct mr **mr,
			     void **ptr)
{
	enum mr_verdict verdict =
		mr_hold(qp->cfg.mrs, qp->cfg.pd, seg->hdr.stag, seg->hdr.to + seg->done, max,
			IBV_ACCESS_REMOTE_WRITE, mr, ptr);

	if (verdict == MR_OK)
		return max;
	qp_refuse_seg(qp, qp_ddp_error(verdict), seg);
	return 0;
}

/* RFC 5041 s5.3: the segments of a message follow each other in the same buffer. */
static unsigned check_continues(const struct qp_rx *rx, const struct rx_seg *seg)
{
	if (!rx->write_open || seg->payload == 0)
		return 0;
	if (seg->hdr.stag != rx->write_stag)
		return TERM_DDP_INVALID_STAG;
	return seg->hdr.to == rx->write_to ? 0 : TERM_DDP_BASE_BOUNDS;
}

static enum rx_verdict accept_write(struct qp *qp, struct rx_seg *seg, bool whole)
{
	unsigned error = check_continues(&qp->rx, seg);
	struct mr *mr;
	void *ptr;

	if (error) {
		qp_refuse_seg(qp, error, seg);
		return RX_DEAD;
	}
	if (seg->payload == 0) /* STag and TO must not be checked (RFC 5041 s5.2) */
		return RX_DONE;
	/* All of the segment is in bounds, or none of it is placed. */
	if (write_target(qp, seg, seg->payload, &mr, &ptr) == 0)
		return RX_DEAD;
	mr_release(mr);
	return RX_DONE;
}

static void finish_write(struct qp *qp, const struct rx_seg *seg, const uint8_t *bytes)
{
	struct qp_rx *rx = &qp->rx;

	if (!rx->write_open)
		rx->written = 0;
	rx->written += seg->payload;
	if (seg->payload > 0 || seg->hdr.last)
		rx->write_open = !seg->hdr.last;
	if (seg->payload > 0) {
		rx->write_stag = seg->hdr.stag;
		rx->write_to = seg->hdr.to + seg->payload;
	}
	if (seg->hdr.last)
		qp->counters.writes_in++;
}

static const struct rx_op rx_write = {accept_write, write_target, finish_write};

/* --- Terminate ---------------------------------------------------------------------------- */

static enum rx_verdict accept_control(struct qp *qp, struct rx_seg *seg, bool whole)
{
	return qp_rx_is_next(qp, seg) ? RX_DONE : RX_DEAD;
}

/* How the first unfinished work request ends when the peer says this. */
static enum ibv_wc_status status_of(const struct terminate *t)
{
	unsigned error = terminate_error(t);
	bool protection = t->layer == TERM_RDMAP && t->etype == TERM_RDMAP_PROTECTION;

	if (protection || (t->layer == TERM_DDP && t->etype == TERM_DDP_TAGGED))
		return IBV_WC_REM_ACCESS_ERR;
	if (error == TERM_DDP_NO_BUFFER || error == TERM_DDP_TOO_LONG)
		return IBV_WC_REM_INV_REQ_ERR;
	return IBV_WC_REM_OP_ERR;
}

static void finish_terminate(struct qp *qp, const struct rx_seg *seg, const uint8_t *bytes)
{
	struct terminate t;

	if (terminate_decode(bytes, seg->payload, &t))
		t = terminate_of(TERM_RDMAP_OPERATION_UNSPECIFIED);
	qp->counters.terminates_in++;
	qp->term = t;
	qp->has_term = true;
	LOG_INFO("qp %u: the peer terminated the stream: %s", qp->cfg.qp_num,
		 term_str(terminate_error(&t)));
	qp_die(qp, status_of(&t), vext_vendor_err(VEXT_REASON_TERMINATE_IN, terminate_error(&t)),
	       "Terminate received");
	qp_tx_shut(qp); /* the peer takes nothing more */
}

static const struct rx_op rx_terminate = {accept_control, NULL, finish_terminate};

/* Opcodes without an entry are not accepted: Terminate 0/2/06. */
const struct rx_op *const qp_rx_ops[RDMAP_OPCODES] = {
	[RDMAP_WRITE] = &rx_write,
	[RDMAP_READ_REQ] = &qp_rx_read_req,
	[RDMAP_READ_RESP] = &qp_rx_read_resp,
	[RDMAP_SEND] = &qp_rx_send,
	[RDMAP_SEND_INV] = &qp_rx_send,
	[RDMAP_SEND_SE] = &qp_rx_send,
	[RDMAP_SEND_SE_INV] = &qp_rx_send,
	[RDMAP_TERMINATE] = &rx_terminate,
	[RDMAP_IMM] = &qp_rx_imm,
	[RDMAP_IMM_SE] = &qp_rx_imm,
	[RDMAP_ATOMIC_REQ] = &qp_rx_atomic_req,
	[RDMAP_ATOMIC_RESP] = &qp_rx_atomic_resp,
	[RDMAP_FLUSH_REQ] = &qp_rx_flush_req,
	[RDMAP_FLUSH_RESP] = &qp_rx_flush_resp,
	[RDMAP_SEND_IMM] = &qp_rx_send,
	[RDMAP_ENGINE] = &qp_rx_engine,
};
