/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The byte stream to FPDUs, and their payload to memory. With CRC an FPDU is complete in
 * the buffer and checked before any byte of it is placed.
 */
#include <errno.h>
#include <string.h>

#include "softrnic/rnic/place.h"
#include "softrnic/rnic/qp_impl.h"

/* --- placement ---------------------------------------------------------------------------- */

/*
 * A receive buffer that no peer can reach and that cannot persist is no concern of a
 * Flush; everything else is, also memory that cannot persist, which a strict Flush refuses. To a
 * Read only what can persist matters.
 */
static bool rx_is_dirt(const struct qp *qp, const struct mr *mr)
{
	if (!mr->backing.persist)
		return false;
	if (mr->backing.durable)
		return qp->stream.consent || !qp->stream.peer_flushes;
	return qp->stream.consent && mr->access & RNIC_REMOTE_ACCESS;
}

void qp_rx_placed(struct qp *qp, struct mr *mr, const void *at, uint64_t len)
{
	if (!rx_is_dirt(qp, mr) || dirty_note(&qp->dirty, mr, at, len) == 0)
		return;
	if (qp->stream.peer_flushes)
		qp->dirty.lost = true;
	else /* its Reads would have to flush everything */
		qp_refuse(qp, TERM_DDP_LOCAL_CATASTROPHIC, NULL, 0, NULL);
}

void qp_rx_fault_at(struct qp *qp, const struct rx_seg *seg)
{
	if (seg->rx && seg->rx->on_fault) /* none: the fault was of no payload */
		seg->rx->on_fault(qp);
	qp_refuse_seg(qp, TERM_RDMAP_BASE_BOUNDS, seg);
}

int qp_rx_prepare(const struct mr *mr, const void *ptr, uint32_t len)
{
	int err = mr->backing.can_stall ? place_prepare(ptr, len) : 0;

	if (!err && mr->backing.can_stall && mr->backing.expect_store)
		mr->backing.expect_store(mr->backing.persist, ptr, len);
	return err;
}

int qp_rx_place(struct qp *qp, struct rx_seg *seg, const uint8_t *src, uint32_t len)
{
	while (len > 0 && !qp->fault.due) {
		void *ptr;
		uint32_t n = seg->rx->target(qp, seg, len, &ptr);
		struct mr *mr = qp->rx.near.mr;
		int err;

		if (n == 0)
			return -EFAULT;
		err = qp_rx_prepare(mr, ptr, n);
		if (!err)
			err = place(ptr, src, n);
		if (!err && !seg->rx->is_answer)
			qp_rx_placed(qp, mr, ptr, n);
		if (err) {
			qp_rx_fault_at(qp, seg);
			return err;
		}
		qp->counters.rx_copied_bytes += n;
		seg->done += n;
		src += n;
		len -= n;
	}
	return qp->fault.due ? -ECONNABORTED : 0;
}

/* --- bytes that are parsed ------------------------------------------------------------------ */

/*
 * Those of the buffer; or where they lie, in memory that the peer may write to meanwhile. There a
 * header is copied out before it is checked, and every byte of it is read once. What is not placed
 * and longer than the copy is only copied on, or goes through the buffer.
 */
#define RX_COPY_MAX 96u
#define RX_HEAD     24u /* of an FPDU: length and the longest DDP header, in whole words */

_Static_assert(RX_HEAD >= RX_UNTAGGED_FRAME, "the head is there");

struct rx_view {
	const uint8_t *p;
	uint32_t n;
	uint8_t *copy;           /* RX_COPY_MAX bytes; NULL: nobody else writes to the bytes */
	uint32_t copied;         /* of them, of this FPDU */
	const uint8_t *unplaced; /* payload for op_rx.finish() */
};

static void rx_view_take(struct rx_view *v, uint32_t n)
{
	v->p += n;
	v->n -= n;
}

/* The first bytes of an FPDU. */
static const uint8_t *rx_view_head(struct rx_view *v)
{
	if (!v->copy)
		return v->p;
	v->copied = RX_HEAD;
	if (__builtin_expect(v->n >= RX_HEAD, 1)) /* as a rule: a copy of known length */
		memcpy(v->copy, v->p, RX_HEAD);
	else
		memcpy(v->copy, v->p, v->copied = v->n);
	return v->copy;
}

/* And more of them, as far as they are here. A message that is placed needs none. */
static void rx_view_more(struct rx_view *v, size_t len)
{
	uint32_t n = v->n < RX_COPY_MAX ? v->n : RX_COPY_MAX;

	n = len < n ? (uint32_t)len : n;
	if (!v->copy || n <= v->copied)
		return;
	memcpy(v->copy + v->copied, v->p + v->copied, n - v->copied);
	v->copied = n;
}

/* Are so many bytes, which are here, to be had at `bytes`, which rx_view_head() leads to? */
static bool rx_view_has(const struct rx_view *v, const uint8_t *bytes, uint32_t len)
{
	return !v->copy || len + (uint32_t)(bytes - v->copy) <= v->copied;
}

/* --- from bytes to segments --------------------------------------------------------------- */

bool qp_rx_is_next(struct qp *qp, const struct rx_seg *seg)
{
	if (seg->hdr.msn == qp->rx.msn[seg->hdr.qn])
		return true;
	qp_refuse_seg(qp, TERM_DDP_BAD_MSN, seg);
	return false;
}

enum rx_verdict qp_rx_accept_next(struct qp *qp, struct rx_seg *seg, bool whole)
{
	return qp_rx_is_next(qp, seg) ? RX_DONE : RX_FAULT;
}

static enum rx_verdict rx_refuse(struct qp *qp, unsigned error, const struct rx_seg *seg)
{
	qp_refuse_seg(qp, error, seg);
	return RX_FAULT;
}

/* The first FPDU of a peer-to-peer initiator is the agreed one and empty (RFC 6581 s9). */
static bool rx_is_agreed_rtr(const struct qp *qp, const struct rx_seg *seg)
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

/*
 * To which operation does the segment belong? bytes: those behind its DDP header. False: to none.
 */
static bool rx_find_op(struct rx_seg *seg, const uint8_t *bytes)
{
	bool is_answer = rdmap_ops[rdmap_ctrl_opcode(seg->hdr.ulp)].is_answer;

	seg->op = op_of_segment(&seg->hdr, bytes);
	if (seg->op)
		seg->rx = is_answer ? seg->op->answer : seg->op->message;
	return seg->rx != NULL;
}

static enum rx_verdict rx_dispatch(struct qp *qp, struct rx_seg *seg, const struct rx_view *v,
				   const uint8_t *bytes, bool whole)
{
	unsigned error = rdmap_check(&seg->hdr, bytes, seg->payload, qp_level(qp));

	if (error)
		return rx_refuse(qp, error, seg);
	if (!rx_find_op(seg, bytes) || (qp->hello.awaited && !hello_permits(qp, seg)))
		return rx_refuse(qp, TERM_RDMAP_UNEXPECTED_OPCODE, seg);
	if (qp->rtr_in != QP_RTR_NONE && !rx_is_agreed_rtr(qp, seg))
		return rx_refuse(qp, TERM_MPA_NO_RTR, seg);
	seg->rtr_send = qp->rtr_in == QP_RTR_SEND;
	if (!seg->rx->target && !(whole && rx_view_has(v, bytes, seg->payload)))
		return RX_MORE;
	return seg->rx->accept(qp, seg, whole);
}

/* May an FPDU be begun before its end has arrived? */
static bool rx_can_begin(const struct qp *qp, const uint8_t *p, uint32_t have, size_t whole)
{
	uint32_t frame = have > MPA_LENGTH_LEN && p[MPA_LENGTH_LEN] & 0x80 ? RX_TAGGED_FRAME
									   : RX_UNTAGGED_FRAME;

	return !qp->stream.crc && have >= frame && whole - have >= QP_RX_DIRECT_MIN;
}

static enum rx_verdict rx_go_on(struct qp *qp, struct rx_view *v, struct rx_seg *seg);

/* Field by field: GCC zeroes a structure of this size by an instruction of 30 cycles and more. */
static void rx_seg_init(struct rx_seg *seg)
{
	seg->active = seg->keep = seg->rtr_send = false;
	seg->hdr = (struct ddp_hdr){0};
	seg->op = NULL;
	seg->rx = NULL;
	seg->payload = seg->done = seg->trailer = seg->written = 0;
}

static bool rx_untagged_at_once(struct qp *qp, struct rx_view *v, const struct rx_seg *seg,
				const uint8_t *bytes)
{
	if (seg->hdr.qn >= DDP_QN_COUNT || seg->hdr.msn != qp->rx.msn[seg->hdr.qn] || seg->hdr.mo)
		return false;
	switch (seg->hdr.ulp) {
	case RDMAP_VERSION << 6 | RDMAP_SEND:
	case RDMAP_VERSION << 6 | RDMAP_SEND_SE:
		return op_send_at_once(qp, seg, v->p + RX_UNTAGGED_FRAME);
	case RDMAP_VERSION << 6 | RDMAP_EXT_REQ:
	case RDMAP_VERSION << 6 | RDMAP_EXT_RESP:
		if (!qp->stream.consent || seg->payload > RX_COPY_MAX - RX_UNTAGGED_FRAME)
			return false;
		rx_view_more(v, RX_UNTAGGED_FRAME + seg->payload);
		return seg->hdr.ulp == rdmap_ctrl(RDMAP_EXT_REQ)
			       ? op_ext_request_at_once(qp, seg, bytes)
			       : op_ext_answer_at_once(qp, seg, bytes);
	default:
		return false;
	}
}

/*
 * Most FPDUs of most streams are a whole message. Those that are just as they should be are done
 * here, in one step each. False: it is none of them, or it is to be refused. bytes: behind the
 * header.
 */
static bool rx_at_once(struct qp *qp, struct rx_view *v, const struct rx_seg *seg,
		       const uint8_t *bytes)
{
	const struct ddp_hdr *hdr = &seg->hdr;

	if (!hdr->last || hdr->version != DDP_VERSION || seg->payload == 0 || qp->hello.awaited ||
	    qp->rtr_in != QP_RTR_NONE)
		return false;
	if (!hdr->tagged && !rx_untagged_at_once(qp, v, seg, bytes))
		return false;
	if (hdr->tagged &&
	    (hdr->ulp != rdmap_ctrl(RDMAP_WRITE) ||
	     !op_write_at_once(qp, hdr->stag, hdr->to, v->p + RX_TAGGED_FRAME, seg->payload)))
		return false;
	qp->rx.any = true;
	qp->counters.rx_fpdus++;
	rx_view_take(v, (uint32_t)mpa_fpdu_len(seg->ulpdu));
	return true;
}

/* One that is whole is finished at once; else it is the one that is being received from here on. */
static enum rx_verdict rx_begin_fpdu(struct qp *qp, struct rx_view *v)
{
	uint32_t have = v->n;
	enum rx_verdict verdict;
	struct rx_seg seg;
	const uint8_t *p;
	size_t whole;
	int hdr_len;

	if (have < MPA_LENGTH_LEN)
		return RX_MORE;
	if (qp_is_over(qp))
		return RX_FAULT;
	p = rx_view_head(v);
	rx_seg_init(&seg);
	seg.ulpdu = (uint32_t)p[0] << 8 | p[1];
	whole = mpa_fpdu_len(seg.ulpdu);
	if (have < whole && !rx_can_begin(qp, p, have, whole))
		return RX_MORE;
	if (have >= whole && qp->stream.crc && !mpa_fpdu_is_intact(p, whole)) {
		qp->counters.crc_errors++;
		return rx_refuse(qp, TERM_MPA_CRC, &seg);
	}
	/*
	 * A peer that has begun an FPDU, even a refused one, is in full operation and reads, so
	 * this end may send now (RFC 5044 s7.1.2).
	 */
	qp->tx.held = false;
	hdr_len = ddp_decode(p + MPA_LENGTH_LEN, seg.ulpdu, &seg.hdr);
	if (hdr_len < 0)
		return rx_refuse(qp, TERM_MPA_MARKER, &seg); /* no segment is that short */
	seg.payload = seg.ulpdu - (uint32_t)hdr_len;
	seg.trailer = mpa_pad(seg.ulpdu) + MPA_CRC_LEN;
	if (have >= whole && rx_at_once(qp, v, &seg, p + MPA_LENGTH_LEN + hdr_len))
		return qp->fault.due ? RX_FAULT : RX_DONE;
	if (!seg.hdr.tagged)
		rx_view_more(v, whole);
	p += MPA_LENGTH_LEN + hdr_len;
	verdict = rx_dispatch(qp, &seg, v, p, have >= whole);
	if (verdict != RX_DONE)
		return verdict;
	rx_view_take(v, MPA_LENGTH_LEN + (uint32_t)hdr_len);
	v->unplaced = rx_view_has(v, p, seg.payload) ? p : v->p;
	if (__builtin_expect(have >= whole, 1))
		return rx_go_on(qp, v, &seg);
	seg.active = true;
	qp->rx.seg = seg;
	return RX_DONE;
}

static void rx_end_fpdu(struct qp *qp, struct rx_view *v, const struct rx_seg *seg)
{
	rx_view_take(v, seg->trailer);
	qp->rx.any = true;
	qp->rtr_in = QP_RTR_NONE;
	qp->counters.rx_fpdus++;
	seg->rx->finish(qp, seg, v->unplaced);
}

/* Go on with the FPDU whose header was accepted. */
static enum rx_verdict rx_go_on(struct qp *qp, struct rx_view *v, struct rx_seg *seg)
{
	uint32_t n = seg->payload - seg->done;

	n = n < v->n ? n : v->n;
	if (seg->rx->target && !seg->keep) {
		if (qp_rx_place(qp, seg, v->p, n))
			return RX_FAULT;
	} else {
		seg->done += n; /* it is whole */
	}
	rx_view_take(v, n);
	if (seg->done < seg->payload || v->n < seg->trailer)
		return RX_MORE;
	rx_end_fpdu(qp, v, seg);
	return qp->fault.due ? RX_FAULT : RX_DONE;
}

static enum rx_verdict rx_continue(struct qp *qp, struct rx_view *v)
{
	struct rx_seg seg = qp->rx.seg;
	enum rx_verdict verdict;

	if (qp_is_over(qp))
		return RX_FAULT;
	qp->rx.seg.active = false;
	verdict = rx_go_on(qp, v, &seg);
	if (verdict == RX_MORE)
		qp->rx.seg = seg;
	return verdict;
}

static void rx_parse(struct qp *qp, struct rx_view *v)
{
	struct qp_rx *rx = &qp->rx;
	enum rx_verdict verdict = RX_DONE;

	while (verdict == RX_DONE && !rx->stop)
		verdict = rx->seg.active ? rx_continue(qp, v) : rx_begin_fpdu(qp, v);
	if (__builtin_expect(rx->stop & RX_STOP_SWITCH, 0) && v->n > 0)
		link_refuse(qp); /* bytes behind the switch */
	if (verdict == RX_STALL && !rx->stalled)
		qp->counters.stalls++;
	rx->stalled = verdict == RX_STALL;
	mr_release_near(&rx->near);
}

void qp_rx_parse(struct qp *qp)
{
	struct qp_rx *rx = &qp->rx;
	struct rx_view v;

	if (qp->ibv.state == IBV_QPS_INIT)
		return;
	if (!rx->buf) {
		rx->stalled = false; /* what it stalled at lies in the link */
		return;
	}
	v = (struct rx_view){.p = rx->buf + rx->head, .n = qp_rx_buffered(rx)};
	rx_parse(qp, &v);
	rx->head = rx->tail - v.n;
	qp_rx_free_own_buf(rx);
}

/* --- in place ------------------------------------------------------------------------------- */

bool qp_rx_is_in_place(const struct qp *qp)
{
	const struct qp_rx *rx = &qp->rx;

	return !qp->stream.crc && !rx->stalled && !rx->eof && qp_rx_buffered(rx) == 0 &&
	       qp->ibv.state != IBV_QPS_INIT && !qp_is_failed(qp);
}

size_t qp_rx_in_place(struct qp *qp, const void *bytes, size_t len)
{
	uint8_t copy[RX_COPY_MAX];
	struct rx_view v = {.p = bytes, .n = (uint32_t)len, .copy = copy};
	size_t taken;

	rx_parse(qp, &v);
	taken = qp->fault.due ? len : len - v.n; /* after a fault the rest is drained */
	qp->rx.exact = true;
	qp->counters.rx_reads += taken > 0;
	qp->counters.rx_bytes += taken;
	if (qp->link.rx_switched)
		qp->counters.shm_rx_bytes += taken;
	qp_settle(qp);
	return taken;
}
