/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * qp_rx_over.c -- searches for a Terminate after the peer has given up its connection. The peer's
 * bytes must no longer change memory, so FPDUs are skipped up to the Terminate. A Terminate changes
 * no memory, and states why the peer gives up. It arrives before the reset: a peer that closes its
 * socket with unread bytes sends a reset directly after its Terminate.
 */
#include "softrnic/rnic/qp_impl.h"

/*
 * Skip the FPDU whose payload is in progress. Returns how many of the n bytes belong to this FPDU.
 */
static uint32_t over_skip_begun(struct rx_seg *seg, uint32_t n)
{
	uint32_t payload = seg->payload - seg->done, all = payload + seg->trailer;

	n = n < all ? n : all;
	payload = n < payload ? n : payload;
	seg->done += payload;
	seg->trailer -= n - payload;
	seg->active = n < all;
	return n;
}

/* Is this whole FPDU a Terminate? Errors in it are not answered, because the peer reads nothing
 * more. */
static bool over_is_terminate(const struct qp *qp, const uint8_t *fpdu, struct rx_seg *seg)
{
	const uint8_t *ddp = fpdu + MPA_LENGTH_LEN;
	int hdr_len;

	if (qp->stream.crc && !mpa_fpdu_is_intact(fpdu, mpa_fpdu_len(seg->ulpdu)))
		return false;
	hdr_len = ddp_decode(ddp, seg->ulpdu, &seg->hdr);
	if (hdr_len < 0 || rdmap_ctrl_opcode(seg->hdr.ulp) != RDMAP_TERMINATE)
		return false;
	seg->payload = seg->ulpdu - (uint32_t)hdr_len;
	return !rdmap_check(rdmap_op_of(&seg->hdr), &seg->hdr, ddp + hdr_len, seg->payload,
			    qp_level(qp)) &&
	       seg->hdr.msn == qp->rx.msn[seg->hdr.qn];
}

/* Returns the length of the FPDU, or 0 if it is incomplete. */
static uint32_t over_take_fpdu(struct qp *qp, const uint8_t *fpdu, uint32_t n)
{
	struct rx_seg seg = {.active = false};
	size_t len;

	if (n < MPA_LENGTH_LEN)
		return 0;
	seg.ulpdu = (uint32_t)fpdu[0] << 8 | fpdu[1];
	len = mpa_fpdu_len(seg.ulpdu);
	if (n < len)
		return 0;
	if (over_is_terminate(qp, fpdu, &seg))
		op_terminate.message->whole(qp, &seg,
					    fpdu + MPA_LENGTH_LEN + seg.ulpdu - seg.payload);
	return (uint32_t)len;
}

uint32_t qp_rx_seek_terminate(struct qp *qp, const uint8_t *bytes, uint32_t n)
{
	uint32_t taken = 0, len = 0;

	do {
		taken += len;
		len = qp->rx.seg.active ? over_skip_begun(&qp->rx.seg, n - taken)
					: over_take_fpdu(qp, bytes + taken, n - taken);
	} while (len > 0 && !qp->fault.due);
	return taken + len;
}

void qp_rx_give_up(struct qp *qp)
{
	if (qp->rx.over)
		return;
	qp->rx.over = true;
	qp->rx.stalled = false;
	qp_rx_parse(qp);
	qp_settle(qp);
}
