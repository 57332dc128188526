/* SPDX-License-Identifier: BSD-3-Clause */
/* Send (RFC 5040 s4.5), Send with Invalidate (s5.3), and Send with Immediate Data, which is an
 * extension of softrnic. */
#include <endian.h>
#include <errno.h>

#include "softrnic/rnic/qp_impl.h"

/* --- sending ------------------------------------------------------------------------------ */

static bool send_build_as(struct qp *qp, struct sq_wr *wr, enum rdmap_opcode code, uint8_t ctrl,
			  uint32_t ulp_word)
{
	struct ddp_hdr hdr = tx_untagged(qp, code);

	hdr.ulp |= ctrl;
	hdr.ulp_word = ulp_word;
	hdr.mo = qp->tx.off;
	if (!tx_build_data(qp, wr, &hdr, hdr.mo))
		return false;
	if (hdr.last)
		tx_wr_built(qp, wr);
	return true;
}

static bool send_build(struct qp *qp, struct sq_wr *wr)
{
	return send_build_as(qp, wr, wr->solicited ? RDMAP_SEND_SE : RDMAP_SEND, 0, 0);
}

static void send_fill_inv(const struct qp *qp, struct sq_wr *slot, const struct ibv_send_wr *wr)
{
	slot->rkey = wr->invalidate_rkey;
}

static bool send_build_inv(struct qp *qp, struct sq_wr *wr)
{
	return send_build_as(qp, wr, wr->solicited ? RDMAP_SEND_SE_INV : RDMAP_SEND_INV, 0,
			     wr->rkey);
}

static void send_fill_imm(const struct qp *qp, struct sq_wr *slot, const struct ibv_send_wr *wr)
{
	slot->imm = be32toh(wr->imm_data);
}

static bool send_build_imm(struct qp *qp, struct sq_wr *wr)
{
	return send_build_as(qp, wr, RDMAP_SEND_IMM, wr->solicited ? RDMAP_CTRL_SEND_IMM_SE : 0,
			     wr->imm);
}

/* --- receiving ---------------------------------------------------------------------------- */

/* Is the receive long enough for the segment? Returns false if an error is recorded, or if the
 * message is lost. */
static inline bool send_fits(struct qp *qp, struct rx_seg *seg)
{
	const struct recv_msg *msg = &qp->recv.msg;

	if (msg->received + (uint64_t)seg->payload <= msg->room)
		return true;
	if (qp_rx_lose(qp, seg))
		return false;
	qp_recv_fail(qp, IBV_WC_LOC_LEN_ERR, EMSGSIZE);
	qp_refuse_seg(qp, TERM_DDP_TOO_LONG, seg);
	return false;
}

static inline enum rx_verdict send_accept(struct qp *qp, struct rx_seg *seg)
{
	struct qp_recv *r = &qp->recv;

	if (!qp_recv_is_in_order(qp, seg))
		return RX_FAULT;
	if (seg->rtr_send || (r->lost && qp_rx_lose(qp, seg)))
		return RX_DONE;
	if (park_is_empty(&r->park) && (r->msg.has_wr || qp_recv_take(qp)))
		return send_fits(qp, seg) || seg->lost ? RX_DONE : RX_FAULT;
	if (qp_rx_lose(qp, seg))
		return RX_DONE;
	if (!park_has_room(&r->park, seg->payload))
		return RX_STALL;
	seg->keep = true;
	return seg->whole ? RX_DONE : RX_MORE;
}

/* Find the address at which the next byte of the Send is placed, in the receive's SGEs. */
static inline uint32_t send_target(struct qp *qp, struct rx_seg *seg, uint32_t max, void **ptr)
{
	const struct rq_wr *wr = &qp->recv.msg.wr;
	uint64_t off = qp->recv.msg.received + (uint64_t)seg->done;
	/* send_fits() has checked that the list is long enough */
	const struct ibv_sge *sge = sge_at(wr->sge, &off);
	uint32_t n = sge->length - (uint32_t)off;
	enum mr_verdict verdict;

	n = n < max ? n : max;
	verdict = mr_hold_near(qp->cfg.mrs, &qp->rx.near, qp->cfg.pd, sge->lkey, sge->addr + off, n,
			       IBV_ACCESS_LOCAL_WRITE, 0, ptr);
	if (verdict == MR_OK)
		return n;
	qp_recv_fail(qp, IBV_WC_LOC_PROT_ERR, qp_local_errno(verdict));
	qp_refuse_seg(qp, TERM_DDP_LOCAL_CATASTROPHIC, seg);
	return 0;
}

static void send_on_fault(struct qp *qp)
{
	qp_recv_fail(qp, IBV_WC_LOC_PROT_ERR, EFAULT);
}

static void send_on_bad_stag(struct qp *qp, const struct rx_seg *seg)
{
	if (qp->cfg.unreliable)
		qp_recv_lose(qp, true);
	else
		qp_refuse_seg(qp, TERM_RDMAP_STAG_NOT_INVALIDATED, seg);
}

static void send_complete(struct qp *qp, const struct rx_seg *seg)
{
	const struct rdmap_op *op = &rdmap_ops[rdmap_ctrl_opcode(seg->hdr.ulp)];
	struct ibv_wc wc = {.opcode = IBV_WC_RECV, .byte_len = qp->recv.msg.received};

	if (op->invalidate) {
		/* a window, or a region that was registered with VEXT_ACCESS_REMOTE_INVALIDATE */
		if (mr_invalidate(qp->cfg.mrs, qp->cfg.pd, seg->hdr.ulp_word) != MR_OK &&
		    !qp_window_invalidate(qp, seg->hdr.ulp_word)) {
			send_on_bad_stag(qp, seg);
			return;
		}
		wc.wc_flags = IBV_WC_WITH_INV;
		wc.invalidated_rkey = seg->hdr.ulp_word;
	} else if (op->immediate) {
		wc.wc_flags = IBV_WC_WITH_IMM;
		wc.imm_data = htobe32(seg->hdr.ulp_word);
	}
	qp_recv_complete(qp, seg, &wc);
}

/* All bytes of the segment are in the receive's memory. */
static inline void send_received(struct qp *qp, const struct rx_seg *seg)
{
	qp->recv.msg.received += seg->payload;
	if (seg->hdr.last)
		send_complete(qp, seg);
}

static inline void send_finish(struct qp *qp, const struct rx_seg *seg, const uint8_t *bytes)
{
	struct qp_recv *r = &qp->recv;

	r->open = !seg->hdr.last;
	r->ulp = seg->hdr.ulp;
	r->mo = seg->hdr.last ? 0 : r->mo + seg->payload;
	if (seg->hdr.last)
		qp->rx.msn[DDP_QN_SEND]++;
	if (seg->rtr_send)
		return;
	qp->rx.written = 0;
	r->seen_sends += seg->hdr.last;
	if (seg->lost)
		qp_recv_lose(qp, seg->hdr.last);
	else if (seg->keep)
		qp_recv_park(qp, seg, bytes);
	else
		send_received(qp, seg);
}

static bool send_deliver(struct qp *qp, struct rx_seg *seg, struct park_seg *parked)
{
	if (!send_fits(qp, seg) || qp_rx_place(qp, seg, parked->bytes, parked->len))
		return false;
	park_drop(&qp->recv.park, parked);
	send_received(qp, seg);
	return !qp->fault.due;
}

static const struct op_rx send_rx;

static enum rx_verdict send_whole(struct qp *qp, struct rx_seg *seg, const uint8_t *bytes)
{
	return qp_rx_place_whole(qp, seg, bytes, &send_rx);
}

static const struct op_rx send_rx = {
	.whole = send_whole,
	.accept = send_accept,
	.target = send_target,
	.on_fault = send_on_fault,
	.finish = send_finish,
	.deliver = send_deliver,
};

const struct qp_op op_send = {
	.wc = IBV_WC_SEND,
	.level = RDMAP_LEVEL_BASE,
	.is_patient_alone = true,
	.messages = 1,
	.build = send_build,
	.message = &send_rx,
};

const struct qp_op op_send_inv = {
	.wc = IBV_WC_SEND,
	.level = RDMAP_LEVEL_BASE,
	.messages = 1,
	.fill = send_fill_inv,
	.build = send_build_inv,
	.message = &send_rx,
};

const struct qp_op op_send_imm = {
	.wc = IBV_WC_SEND,
	.level = RDMAP_LEVEL_OURS,
	.messages = 1,
	.fill = send_fill_imm,
	.build = send_build_imm,
	.message = &send_rx,
};
