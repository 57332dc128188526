/* SPDX-License-Identifier: BSD-3-Clause */
/* RDMA Write (RFC 5040 s4.3), and Write with Immediate Data (RFC 7306 s6). The latter consists of
 * two messages: a Write, and the Immediate Data, which takes a receive. */
#include <endian.h>
#include <string.h>

#include "softrnic/rnic/qp_impl.h"

/* --- sending ------------------------------------------------------------------------------ */

static void write_fill(const struct qp *qp, struct sq_wr *slot, const struct ibv_send_wr *wr)
{
	slot->raddr = wr->wr.rdma.remote_addr;
	slot->rkey = wr->wr.rdma.rkey;
}

/* *last is true if this is the last segment. */
static inline bool write_build_segment(struct qp *qp, struct sq_wr *wr, bool *last)
{
	uint64_t at = wr->raddr + qp->tx.off;
	struct ddp_hdr hdr = tx_tagged(RDMAP_WRITE, wr->rkey ? wr->rkey : TX_DUMMY_STAG, at);

	if (!tx_build_data(qp, wr, &hdr, at))
		return false;
	*last = hdr.last;
	return true;
}

static bool write_build(struct qp *qp, struct sq_wr *wr)
{
	bool last;

	if (!write_build_segment(qp, wr, &last))
		return false;
	if (last)
		tx_wr_built(qp, wr);
	return true;
}

/* --- receiving ---------------------------------------------------------------------------- */

/* This function is not inlined, so that the compiler inlines write_target() and write_accept():
 * calls of these would add 4 % to the instructions of a small Write. */
static __attribute__((noinline)) void write_refuse(struct qp *qp, struct rx_seg *seg,
						   enum mr_verdict verdict)
{
	if (!qp_rx_lose(qp, seg))
		qp_refuse_seg(qp, qp_ddp_error(verdict), seg);
}

static inline __attribute__((always_inline)) uint32_t
write_target(struct qp *qp, struct rx_seg *seg, uint32_t max, void **ptr)
{
	enum mr_verdict verdict =
		qp_hold_remote(qp, &qp->rx.near, seg->hdr.stag, seg->hdr.to + seg->done, max,
			       qp->rights.write, 0, ptr);

	if (verdict == MR_OK)
		return max;
	write_refuse(qp, seg, verdict);
	return 0;
}

/* Does the segment continue the Write in progress? The segments of a message follow each other in
 * the same buffer (RFC 5041 s5.3). */
static inline unsigned write_check_continues(const struct qp_rx *rx, const struct rx_seg *seg)
{
	if (!rx->write_open || seg->payload == 0)
		return 0;
	if (seg->hdr.stag != rx->write_stag)
		return TERM_DDP_INVALID_STAG;
	return seg->hdr.to == rx->write_to ? 0 : TERM_DDP_BASE_BOUNDS;
}

static inline __attribute__((always_inline)) enum rx_verdict write_accept(struct qp *qp,
									  struct rx_seg *seg)
{
	unsigned error = write_check_continues(&qp->rx, seg);
	void *ptr;

	if (error) {
		qp_refuse_seg(qp, error, seg);
		return RX_FAULT;
	}
	if (__builtin_expect(qp->rx.write_lost, 0) && qp->rx.write_open && qp_rx_lose(qp, seg))
		return RX_DONE;
	/* an empty Write: its STag and TO must not be checked (RFC 5041 s5.2) */
	if (seg->payload == 0)
		return RX_DONE;
	/*
	 * A segment is placed as a whole or not at all, so the whole segment must be in bounds. If
	 * all its bytes have arrived, write_target() checks the bounds when it places the segment.
	 */
	if (seg->whole)
		return RX_DONE;
	return write_target(qp, seg, seg->payload, &ptr) || seg->lost ? RX_DONE : RX_FAULT;
}

static inline void write_finish(struct qp *qp, const struct rx_seg *seg, const uint8_t *bytes)
{
	struct qp_rx *rx = &qp->rx;

	if (!rx->write_open) {
		rx->written = 0;
		rx->write_lost = false;
	}
	rx->written += seg->payload;
	rx->write_lost |= seg->lost;
	if (seg->hdr.last) {
		rx->write_open = false;
		qp->counters.writes_in += !rx->write_lost;
		qp->counters.lost_in += rx->write_lost;
	} else if (seg->payload > 0) {
		rx->write_open = true;
		rx->write_stag = seg->hdr.stag;
		rx->write_to = seg->hdr.to + seg->payload;
	}
}

static const struct op_rx write_rx;

static enum rx_verdict write_whole(struct qp *qp, struct rx_seg *seg, const uint8_t *bytes)
{
	return qp_rx_place_whole(qp, seg, bytes, &write_rx);
}

static const struct op_rx write_rx = {
	.whole = write_whole,
	.accept = write_accept,
	.target = write_target,
	.finish = write_finish,
};

const struct qp_op op_write = {
	.wc = IBV_WC_RDMA_WRITE,
	.level = RDMAP_LEVEL_BASE,
	.places = true,
	.is_patient = true,
	.messages = 1,
	.fill = write_fill,
	.build = write_build,
	.message = &write_rx,
};

/* --- Immediate Data ----------------------------------------------------------------------- */

static void imm_fill(const struct qp *qp, struct sq_wr *slot, const struct ibv_send_wr *wr)
{
	write_fill(qp, slot, wr);
	slot->imm = be32toh(wr->imm_data);
}

/* Build the Immediate Data right after the Write: no other message may come between the two. */
static bool imm_build(struct qp *qp, struct sq_wr *wr)
{
	struct ddp_hdr hdr = tx_untagged(qp, wr->solicited ? RDMAP_IMM_SE : RDMAP_IMM);
	struct rdmap_imm imm = {.data = (uint64_t)wr->imm << 32};
	uint8_t bytes[RDMAP_IMM_LEN];

	if (!qp->tx.imm_due)
		return write_build_segment(qp, wr, &qp->tx.imm_due);
	if (!tx_build_small(qp, &hdr, bytes, rdmap_imm_encode(bytes, sizeof(bytes), &imm)))
		return false;
	tx_wr_built(qp, wr);
	return true;
}

/*
 * Complete the receive. Its memory does not change. After a Write, the completion reports the
 * length of the Write.
 */
static void imm_complete(struct qp *qp, const struct rx_seg *seg, const uint8_t *bytes)
{
	struct ibv_wc wc = {
		.opcode = IBV_WC_RECV_RDMA_WITH_IMM,
		.byte_len = seg->written,
		.wc_flags = IBV_WC_WITH_IMM,
	};
	struct rdmap_imm imm;

	rdmap_imm_decode(bytes, seg->payload, &imm);
	wc.imm_data = htobe32((uint32_t)(imm.data >> 32));
	qp_recv_complete(qp, seg, &wc);
}

static enum rx_verdict imm_whole(struct qp *qp, struct rx_seg *seg, const uint8_t *bytes)
{
	if (!qp_recv_is_in_order(qp, seg))
		return RX_FAULT;
	seg->keep = !park_is_empty(&qp->recv.park) || !(qp->recv.msg.has_wr || qp_recv_take(qp));
	if (seg->keep | qp->rx.write_lost)
		(void)qp_rx_lose(qp, seg);
	if (seg->keep && !seg->lost && !park_has_room(&qp->recv.park, seg->payload))
		return RX_STALL;
	seg->written = qp->rx.written;
	qp->rx.written = 0;
	qp->rx.msn[DDP_QN_SEND]++;
	qp->recv.seen_sends++;
	if (seg->lost)
		qp_recv_lose(qp, true);
	else if (seg->keep)
		qp_recv_park(qp, seg, bytes);
	else
		imm_complete(qp, seg, bytes);
	return RX_DONE;
}

static bool imm_deliver(struct qp *qp, struct rx_seg *seg, struct park_seg *parked)
{
	uint8_t bytes[RDMAP_IMM_LEN];

	memcpy(bytes, parked->bytes, sizeof(bytes));
	park_drop(&qp->recv.park, parked);
	imm_complete(qp, seg, bytes);
	return !qp->fault.due;
}

static const struct op_rx imm_rx = {
	.whole = imm_whole,
	.deliver = imm_deliver,
};

const struct qp_op op_write_imm = {
	.wc = IBV_WC_RDMA_WRITE,
	.level = RDMAP_LEVEL_7306,
	.places = true,
	.messages = 2,
	.fill = imm_fill,
	.build = imm_build,
	.message = &imm_rx,
};
