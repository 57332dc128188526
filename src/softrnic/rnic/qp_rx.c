/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The byte stream to FPDUs, and their payload to memory.
 *
 * With CRC an FPDU is complete in the buffer and checked before any byte of it is placed.
 * Without, the rest of a large payload is read by the owner straight into the registered
 * memory, and then no more than the trailer and the next header, so that the payload
 * behind that can go the same way.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "softrnic/rnic/place.h"
#include "softrnic/rnic/qp_impl.h"

#define TAGGED_FRAME   (MPA_LENGTH_LEN + DDP_TAGGED_HDR)
#define UNTAGGED_FRAME (MPA_LENGTH_LEN + DDP_UNTAGGED_HDR)
#define MOVE_CHEAP     2048u /* leftovers up to this size move to the front of the buffer */

static uint32_t buffered(const struct qp_rx *rx)
{
	return rx->tail - rx->head;
}

/* --- placement ---------------------------------------------------------------------------- */

static void placed(struct qp *qp, const struct mr *mr, const void *ptr, uint32_t len)
{
	qp_dirty_note(qp, mr, mr->iova + (uint64_t)((const char *)ptr - (const char *)mr->ibv.addr),
		      len);
}

void qp_rx_fault_at(struct qp *qp, const struct rx_seg *seg)
{
	if (seg->op == &qp_rx_send)
		qp_recv_fail(qp, IBV_WC_LOC_PROT_ERR);
	else if (seg->op == &qp_rx_read_resp)
		qp_orq_fault(qp);
	qp_refuse_seg(qp, TERM_RDMAP_BASE_BOUNDS, seg);
}

int qp_rx_place(struct qp *qp, struct rx_seg *seg, const uint8_t *src, uint32_t len)
{
	while (len > 0) {
		struct mr *mr;
		void *ptr;
		uint32_t n = seg->op->target(qp, seg, len, &mr, &ptr);
		int err;

		if (n == 0)
			return -EFAULT;
		err = place(ptr, src, n);
		if (!err)
			placed(qp, mr, ptr, n);
		mr_release(mr);
		if (err)
			qp_rx_fault_at(qp, seg);
		if (qp_is_failed(qp))
			return -ECONNABORTED; /* src may be gone */
		qp->counters.rx_copied_bytes += n;
		seg->done += n;
		src += n;
		len -= n;
	}
	return 0;
}

/* --- from bytes to segments --------------------------------------------------------------- */

bool qp_rx_is_next(struct qp *qp, const struct rx_seg *seg)
{
	if (seg->hdr.msn == qp->rx.msn[seg->hdr.qn])
		return true;
	qp_refuse_seg(qp, TERM_DDP_BAD_MSN, seg);
	return false;
}

static enum rx_verdict refuse(struct qp *qp, unsigned error, const struct rx_seg *seg)
{
	qp_refuse_seg(qp, error, seg);
	return RX_DEAD;
}

/* The first FPDU of a peer-to-peer initiator is the agreed one and empty (RFC 6581 s9). */
static bool is_agreed_rtr(const struct qp *qp, const struct rx_seg *seg)
{
	static const int codes[] = {
		[QP_RTR_SEND] = RDMAP_SEND,
		[QP_RTR_WRITE] = RDMAP_WRITE,
		[QP_RTR_READ] = RDMAP_READ_REQ,
	};
	int code = (int)rdmap_ctrl_opcode(seg->hdr.ulp);

	return code == codes[qp->rtr_in] && seg->hdr.last &&
	       seg->payload == rdmap_ops[code].hdr_len;
}

static enum rx_verdict dispatch(struct qp *qp, struct rx_seg *seg, bool whole)
{
	enum rdmap_level level = qp->stream.consent ? RDMAP_LEVEL_OURS : RDMAP_LEVEL_BASE;
	unsigned error = rdmap_check(&seg->hdr, seg->payload, level);

	if (error)
		return refuse(qp, error, seg);
	seg->op = qp_rx_ops[rdmap_ctrl_opcode(seg->hdr.ulp)];
	if (!seg->op)
		return refuse(qp, TERM_RDMAP_UNEXPECTED_OPCODE, seg);
	if (qp->rtr_in != QP_RTR_NONE && !is_agreed_rtr(qp, seg))
		return refuse(qp, TERM_MPA_NO_RTR, seg);
	seg->rtr_send = qp->rtr_in == QP_RTR_SEND;
	if (!whole && !seg->op->target)
		return RX_MORE;
	return seg->op->accept(qp, seg, whole);
}

/* Is it worth while to begin with an FPDU whose end is not here yet? */
static bool can_begin(const struct qp *qp, const uint8_t *p, uint32_t have, size_t whole)
{
	uint32_t frame =
		have > MPA_LENGTH_LEN && p[MPA_LENGTH_LEN] & 0x80 ? TAGGED_FRAME : UNTAGGED_FRAME;

	return !qp->stream.crc && have >= frame && whole - have >= QP_RX_DIRECT_MIN;
}

static enum rx_verdict begin_fpdu(struct qp *qp)
{
	struct qp_rx *rx = &qp->rx;
	const uint8_t *p = rx->buf + rx->head;
	uint32_t have = buffered(rx);
	struct rx_seg seg = {0};
	enum rx_verdict verdict;
	size_t whole;
	int hdr_len;

	if (have < MPA_LENGTH_LEN)
		return RX_MORE;
	seg.ulpdu = (uint32_t)p[0] << 8 | p[1];
	whole = mpa_fpdu_len(seg.ulpdu);
	if (have < whole && !can_begin(qp, p, have, whole))
		return RX_MORE;
	if (have >= whole && qp->stream.crc && !mpa_fpdu_is_intact(p, whole)) {
		qp->counters.crc_errors++;
		return refuse(qp, TERM_MPA_CRC, &seg);
	}
	hdr_len = ddp_decode(p + MPA_LENGTH_LEN, seg.ulpdu, &seg.hdr);
	if (hdr_len < 0)
		return refuse(qp, TERM_MPA_MARKER, &seg); /* no segment is that short */
	seg.payload = seg.ulpdu - (uint32_t)hdr_len;
	seg.trailer = mpa_pad(seg.ulpdu) + MPA_CRC_LEN;
	verdict = dispatch(qp, &seg, have >= whole);
	if (verdict != RX_DONE)
		return verdict;
	seg.active = true;
	rx->seg = seg;
	rx->head += MPA_LENGTH_LEN + (uint32_t)hdr_len;
	return RX_DONE;
}

static void end_fpdu(struct qp *qp, const uint8_t *bytes)
{
	struct rx_seg seg = qp->rx.seg;

	qp->rx.seg.active = false;
	qp->rx.head += seg.trailer;
	qp->rx.any = true;
	qp->tx.held = false;
	qp->rtr_in = QP_RTR_NONE;
	qp->counters.rx_fpdus++;
	seg.op->finish(qp, &seg, bytes);
}

/* Go on with the FPDU whose header was accepted. */
static enum rx_verdict go_on(struct qp *qp)
{
	struct qp_rx *rx = &qp->rx;
	struct rx_seg *seg = &rx->seg;
	const uint8_t *bytes = rx->buf + rx->head;
	uint32_t n = seg->payload - seg->done;

	n = n < buffered(rx) ? n : buffered(rx);
	if (seg->op->target && !seg->keep) {
		if (qp_rx_place(qp, seg, bytes, n))
			return RX_DEAD;
	} else {
		seg->done += n; /* it is whole */
	}
	rx->head += n;
	if (seg->done < seg->payload || buffered(rx) < seg->trailer)
		return RX_MORE;
	end_fpdu(qp, bytes);
	return qp_is_failed(qp) ? RX_DEAD : RX_DONE;
}

static void free_own_buf(struct qp_rx *rx)
{
	if (!rx->own_buf || buffered(rx) > 0)
		return;
	free(rx->buf);
	rx->buf = NULL;
	rx->own_buf = false;
	rx->head = rx->tail = 0;
}

static void parse(struct qp *qp)
{
	struct qp_rx *rx = &qp->rx;
	enum rx_verdict verdict = RX_DONE;

	if (!rx->buf || qp->ibv.state == IBV_QPS_INIT)
		return;
	while (verdict == RX_DONE && !qp_is_failed(qp))
		verdict = rx->seg.active ? go_on(qp) : begin_fpdu(qp);
	if (qp_is_failed(qp))
		rx->head = rx->tail;
	if (verdict == RX_STALL && !rx->stalled)
		qp->counters.stalls++;
	rx->stalled = verdict == RX_STALL && !qp_is_failed(qp);
	free_own_buf(rx);
}

/* --- what to read next -------------------------------------------------------------------- */

static void take_lent_back(struct qp_rx *rx)
{
	if (rx->lent_mr)
		mr_release(rx->lent_mr);
	rx->lent_mr = NULL;
	rx->lent_len = 0;
}

static int want_buf(struct qp_rx *rx, uint32_t max, struct iovec *iov)
{
	uint32_t room = QP_RXBUF - rx->tail;

	*iov = (struct iovec){.iov_base = rx->buf + rx->tail, .iov_len = room < max ? room : max};
	return 1;
}

static void make_room(struct qp_rx *rx)
{
	uint32_t have = buffered(rx);
	const uint8_t *p = rx->buf + rx->head;
	size_t whole =
		have < MPA_LENGTH_LEN ? UNTAGGED_FRAME : mpa_fpdu_len((size_t)p[0] << 8 | p[1]);

	if (have > MOVE_CHEAP && rx->head + whole <= QP_RXBUF)
		return;
	memmove(rx->buf, p, have);
	rx->head = 0;
	rx->tail = have;
}

/* The rest of a payload goes where it belongs, and behind it only as much as no payload follows. */
static int want_direct(struct qp *qp, struct iovec iov[QP_RX_IOV])
{
	struct qp_rx *rx = &qp->rx;
	struct rx_seg *seg = &rx->seg;
	uint32_t left = seg->payload - seg->done, n;
	struct mr *mr;
	void *ptr;

	n = seg->op->target(qp, seg, left, &mr, &ptr);
	if (n == 0)
		return 0;
	rx->lent_mr = mr;
	rx->lent_ptr = ptr;
	rx->lent_len = n;
	iov[0] = (struct iovec){.iov_base = ptr, .iov_len = n};
	if (n < left)
		return 1;
	return 1 + want_buf(rx, seg->trailer + TAGGED_FRAME, &iov[1]);
}

/* How much to read into the buffer. */
static uint32_t buf_share(const struct qp *qp)
{
	const struct qp_rx *rx = &qp->rx;
	const uint8_t *p = rx->buf + rx->head;
	uint32_t have = buffered(rx);

	if (rx->seg.active)
		return rx->seg.trailer - have + TAGGED_FRAME;
	/* The header of a large Send is 4 bytes longer than what comes with a trailer. */
	if (!qp->stream.crc && have >= MPA_LENGTH_LEN && have < UNTAGGED_FRAME &&
	    ((uint32_t)p[0] << 8 | p[1]) >= QP_RX_DIRECT_MIN + UNTAGGED_FRAME)
		return UNTAGGED_FRAME - have;
	return QP_RXBUF;
}

int qp_rx_want(struct qp *qp, struct iovec iov[QP_RX_IOV])
{
	struct qp_rx *rx = &qp->rx;
	int n;

	take_lent_back(rx);
	if (!rx->buf || rx->eof || rx->stalled || qp->ibv.state == IBV_QPS_INIT)
		return 0;
	make_room(rx);
	if (!qp_is_failed(qp) && rx->seg.active && rx->seg.done < rx->seg.payload) {
		n = want_direct(qp, iov);
		if (!qp_is_failed(qp))
			return n;
		make_room(rx);
	}
	/* After a failure: what still comes is drained, so that the LLP can close cleanly. */
	return want_buf(rx, qp_is_failed(qp) ? QP_RXBUF : buf_share(qp), iov);
}

void qp_rx_got(struct qp *qp, size_t len)
{
	struct qp_rx *rx = &qp->rx;
	uint32_t direct = len < rx->lent_len ? (uint32_t)len : rx->lent_len;

	qp->counters.rx_reads++;
	qp->counters.rx_bytes += len;
	if (qp_is_failed(qp)) {
		take_lent_back(rx);
		return;
	}
	if (direct > 0) {
		qp->counters.rx_direct_bytes += direct;
		rx->seg.done += direct;
		placed(qp, rx->lent_mr, rx->lent_ptr, direct);
	}
	take_lent_back(rx);
	rx->tail += (uint32_t)len - direct;
	assert(rx->tail <= QP_RXBUF);
	parse(qp);
}

void qp_rx_fault(struct qp *qp)
{
	take_lent_back(&qp->rx);
	if (!qp_is_failed(qp))
		qp_rx_fault_at(qp, &qp->rx.seg);
}

/* --- the buffer --------------------------------------------------------------------------- */

bool qp_rx_needs_buf(const struct qp *qp)
{
	return !qp->rx.buf && !qp->rx.eof && qp->ibv.state != IBV_QPS_INIT;
}

void qp_rx_lend(struct qp *qp, void *buf)
{
	assert(!qp->rx.buf);
	qp->rx.buf = buf;
	qp->rx.head = qp->rx.tail = 0;
}

void *qp_rx_reclaim(struct qp *qp)
{
	void *buf = qp->rx.buf;

	if (qp->rx.own_buf || buffered(&qp->rx) > 0)
		return NULL;
	take_lent_back(&qp->rx);
	qp->rx.buf = NULL;
	return buf;
}

void qp_rx_push(struct qp *qp, const void *bytes, size_t len)
{
	struct qp_rx *rx = &qp->rx;

	if (qp_is_failed(qp) || len == 0)
		return;
	if (!rx->buf) {
		rx->buf = malloc(QP_RXBUF);
		rx->own_buf = rx->buf;
		rx->head = rx->tail = 0;
	}
	if (!rx->buf || len > QP_RXBUF - rx->tail) {
		qp_refuse(qp, TERM_MPA_LOCAL_CATASTROPHIC, NULL, 0, NULL);
		return;
	}
	memcpy(rx->buf + rx->tail, bytes, len);
	rx->tail += (uint32_t)len;
	qp->counters.rx_bytes += len;
	parse(qp);
}

void qp_rx_resume(struct qp *qp)
{
	if (qp_is_failed(qp))
		return;
	qp_recv_deliver(qp);
	parse(qp);
}

void qp_rx_stop(struct qp *qp)
{
	struct qp_rx *rx = &qp->rx;

	take_lent_back(rx);
	rx->seg.active = false;
	rx->stalled = false;
	rx->head = rx->tail; /* a parser further up the stack may still look at the bytes */
}

void qp_rx_fini(struct qp *qp)
{
	qp_rx_stop(qp);
	free_own_buf(&qp->rx);
}
