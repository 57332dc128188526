/* SPDX-License-Identifier: BSD-3-Clause */
/* Splits the received bytes into FPDUs, and places their payload in memory. With CRC, an FPDU must
 * be complete in the buffer and checked before any of its bytes is placed. */
#include <string.h>

#include "softrnic/rnic/place.h"
#include "softrnic/rnic/qp_impl.h"

/* --- placement ---------------------------------------------------------------------------- */

/*
 * Must the placed bytes be recorded for a later Flush, or for a later Read that acts as a flush?
 * For a Flush all bytes are recorded, except those in a receive buffer that no peer can address and
 * that cannot persist. Other memory that cannot persist is recorded because a strict Flush refuses
 * it. For Reads only bytes that can persist are recorded.
 */
static bool rx_is_dirt(const struct qp *qp, const struct mr *mr)
{
	if (!mr->backing.persist)
		return false;
	if (mr->backing.durable)
		return qp->stream.consent || !qp->stream.peer_flushes;
	return qp->stream.consent && mr->access & RNIC_REACHED;
}

void qp_rx_placed(struct qp *qp, struct mr *mr, const void *at, uint64_t len)
{
	if (!rx_is_dirt(qp, mr) || dirty_note(&qp->dirty, mr_base(mr), at, len) == 0)
		return;
	if (qp->stream.peer_flushes)
		qp->dirty.lost = true;
	else /* without a record each Read of the peer would have to write back all memory */
		qp_refuse(qp, TERM_DDP_LOCAL_CATASTROPHIC, NULL, 0, NULL);
}

void qp_rx_fault_at(struct qp *qp, const struct rx_seg *seg)
{
	/* seg->rx is NULL if the segment has no payload that could fail. */
	if (seg->rx && seg->rx->on_fault)
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

bool qp_rx_lose(struct qp *qp, struct rx_seg *seg)
{
	if (!qp->cfg.unreliable)
		return false;
	seg->lost = seg->keep = true;
	return true;
}

int qp_rx_place(struct qp *qp, struct rx_seg *seg, const uint8_t *src, uint32_t len)
{
	if (seg->lost) {
		seg->done += len;
		return 0;
	}
	return qp_rx_place_as(qp, seg, src, len, seg->rx, len < seg->payload - seg->done);
}

/* --- the parsed bytes ----------------------------------------------------------------------- */

/*
 * The bytes to parse. They are in the buffer, or in memory of the link, which the peer may write to
 * at any time. In the latter case a header is copied before it is checked, and only the copy is
 * used. A payload that is not placed, and that does not fit into the copy, is received into the
 * buffer instead.
 */
#define RX_COPY_MAX 96u
/* number of bytes that are copied first: a whole Flush or its answer, with the frame */
#define RX_HEAD     48u
#define RX_HEAD_MIN 24u /* length and the longest DDP header, in whole words */

_Static_assert(RX_HEAD_MIN >= RX_UNTAGGED_FRAME && RX_HEAD <= 2 * RX_HEAD_MIN, "the head is there");

struct rx_view {
	const uint8_t *p;
	uint32_t n;
	uint8_t *copy;   /* RX_COPY_MAX bytes; NULL: the peer cannot write to the parsed bytes */
	uint32_t copied; /* number of bytes of this FPDU in the copy */
};

static void rx_view_take(struct rx_view *v, uint32_t n)
{
	v->p += n;
	v->n -= n;
}

/* Copy the first bytes of an FPDU. The length is usually a constant, for which GCC emits a few
 * moves. */
static const uint8_t *rx_view_head(struct rx_view *v)
{
	const uint8_t *p = v->p;
	uint8_t *to = v->copy;
	uint32_t n = v->n;

	if (!to)
		return p;
	if (n >= RX_HEAD) {
		n = RX_HEAD;
		memcpy(to, p, RX_HEAD);
	} else if (n >= RX_HEAD_MIN) { /* the second part may overlap the first one */
		memcpy(to, p, RX_HEAD_MIN);
		memcpy(to + n - RX_HEAD_MIN, p + n - RX_HEAD_MIN, RX_HEAD_MIN);
	} else {
		memcpy(to, p, n);
	}
	v->copied = n;
	return to;
}

/* Extend the copy to the first `len` bytes, as far as they have arrived and the copy is large
 * enough. */
static void rx_view_more(struct rx_view *v, uint32_t len)
{
	uint32_t n = v->n < RX_COPY_MAX ? v->n : RX_COPY_MAX;

	if (!v->copy || len <= v->copied)
		return;
	n = len < n ? len : n;
	memcpy(v->copy + v->copied, v->p + v->copied, n - v->copied);
	v->copied = n;
}

/* --- from bytes to segments --------------------------------------------------------------- */

static enum rx_verdict rx_refuse(struct qp *qp, unsigned error, const struct rx_seg *seg)
{
	qp_refuse_seg(qp, error, seg);
	return RX_FAULT;
}

/* May the processing of this FPDU begin before its end has arrived? */
static bool rx_can_begin(const struct qp *qp, const uint8_t *p, uint32_t have, size_t len)
{
	uint32_t frame = have > MPA_LENGTH_LEN && p[MPA_LENGTH_LEN] & 0x80 ? RX_TAGGED_FRAME
									   : RX_UNTAGGED_FRAME;

	return !qp->stream.crc && have >= frame && len - have >= QP_RX_DIRECT_MIN;
}

/* Is the FPDU at p complete and intact, or can it begin? `have` bytes of it have arrived. */
static enum rx_verdict rx_open_fpdu(struct qp *qp, const uint8_t *p, uint32_t have,
				    struct rx_seg *seg)
{
	size_t len;

	/* Set field by field: for a structure of this size GCC would emit an instruction that takes
	 * 30 cycles or more. */
	seg->active = seg->whole = seg->keep = seg->lost = seg->rtr_send = false;
	seg->op = NULL;
	seg->rx = NULL;
	seg->done = seg->written = 0;
	seg->ulpdu = (uint32_t)p[0] << 8 | p[1];
	len = mpa_fpdu_len(seg->ulpdu);
	seg->whole = have >= len;
	if (!seg->whole)
		return rx_can_begin(qp, p, have, len) ? RX_DONE : RX_MORE;
	if (!qp->stream.crc || mpa_fpdu_is_intact(p, len))
		return RX_DONE;
	qp->counters.crc_errors++;
	seg->hdr = (struct ddp_hdr){0};
	return rx_refuse(qp, TERM_MPA_CRC, seg);
}

/*
 * The first FPDU of a peer-to-peer initiator must be of the agreed kind, and empty (RFC 6581 s9).
 */
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

/* Find the operation of the segment. `bytes` are the bytes after the segment's DDP header. */
static bool rx_find_op(struct rx_seg *seg, const struct rdmap_op *kind, const uint8_t *bytes)
{
	const struct qp_op *op = op_of_segment(&seg->hdr, kind, bytes);

	if (!op)
		return false;
	seg->op = op;
	seg->rx = kind->is_answer ? op->answer : op->message;
	return seg->rx != NULL;
}

/* May the message arrive before full operation? (Called only during the start-up.) */
static __attribute__((noinline)) enum rx_verdict rx_check_start(struct qp *qp, struct rx_seg *seg)
{
	if (qp->hello.awaited && !hello_permits(qp, seg))
		return rx_refuse(qp, TERM_RDMAP_UNEXPECTED_OPCODE, seg);
	if (qp->rtr_in != QP_RTR_NONE && !rx_is_agreed_rtr(qp, seg))
		return rx_refuse(qp, TERM_MPA_NO_RTR, seg);
	seg->rtr_send = qp->rtr_in == QP_RTR_SEND;
	return RX_DONE;
}

/* May the peer send this message now? */
static enum rx_verdict rx_check(struct qp *qp, struct rx_seg *seg, const struct rdmap_op *kind,
				const uint8_t *bytes)
{
	unsigned error = rdmap_check(kind, &seg->hdr, bytes, seg->payload, qp_level(qp));

	if (error)
		return rx_refuse(qp, error, seg);
	if (!rx_find_op(seg, kind, bytes))
		return rx_refuse(qp, TERM_RDMAP_UNEXPECTED_OPCODE, seg);
	if (__builtin_expect(qp->hello.awaited | (qp->rtr_in != QP_RTR_NONE), 0))
		return rx_check_start(qp, seg);
	return RX_DONE;
}

/* --- from segments to operations ------------------------------------------------------------ */

/* Is the segment the next one of its queue? Sends are checked in their row, because a Send may have
 * to wait (qp_recv_is_in_order()). On the other queues each message is one segment, so the MSN
 * alone shows the order. */
static bool rx_is_next(struct qp *qp, const struct rx_seg *seg)
{
	const struct ddp_hdr *hdr = &seg->hdr;

	if (hdr->tagged || hdr->qn == DDP_QN_SEND)
		return true;
	if (hdr->msn == qp->rx.msn[hdr->qn]++)
		return true;
	qp_refuse_seg(qp, TERM_DDP_BAD_MSN, seg);
	return false;
}

static enum rx_verdict rx_taken(struct qp *qp)
{
	qp->rx.any = true;
	qp->rtr_in = QP_RTR_NONE;
	qp->counters.rx_fpdus++;
	return qp->fault.due ? RX_FAULT : RX_DONE;
}

/* The end of a large segment has not arrived: begin to receive the segment. */
static enum rx_verdict rx_take_begun(struct qp *qp, struct rx_view *v, struct rx_seg *seg,
				     uint32_t frame)
{
	enum rx_verdict verdict = seg->rx->accept(qp, seg);

	if (verdict != RX_DONE)
		return verdict;
	rx_view_take(v, frame);
	seg->trailer = mpa_pad(seg->ulpdu) + MPA_CRC_LEN;
	seg->active = true;
	qp->rx.seg = *seg;
	return RX_DONE;
}

/* `frame` is the number of bytes before the payload. A payload that is placed is read only once, so
 * it is read in place. A row that decodes its payload gets the copy if the peer may write to the
 * original bytes. */
static enum rx_verdict rx_take(struct qp *qp, struct rx_view *v, struct rx_seg *seg, uint32_t frame)
{
	const uint8_t *bytes = v->p;
	enum rx_verdict verdict;

	if (!seg->rx->target) {
		if (!seg->whole || (v->copy && frame + seg->payload > v->copied))
			return RX_MORE;
		bytes = v->copy ? v->copy : bytes;
	}
	if (!rx_is_next(qp, seg))
		return RX_FAULT;
	if (__builtin_expect(!seg->whole, 0))
		return rx_take_begun(qp, v, seg, frame);
	verdict = seg->rx->whole(qp, seg, bytes + frame);
	if (verdict != RX_DONE)
		return verdict;
	rx_view_take(v, (uint32_t)mpa_fpdu_len(seg->ulpdu));
	return rx_taken(qp);
}

static enum rx_verdict rx_begin_fpdu(struct qp *qp, struct rx_view *v)
{
	const struct rdmap_op *kind;
	enum rx_verdict verdict;
	struct rx_seg seg;
	const uint8_t *p;
	int hdr_len;

	if (v->n < MPA_LENGTH_LEN)
		return RX_MORE;
	if (qp_is_over(qp))
		return RX_OVER;
	p = rx_view_head(v);
	verdict = rx_open_fpdu(qp, p, v->n, &seg);
	if (verdict != RX_DONE)
		return verdict;
	/* A peer that has begun to send an FPDU is in full operation, so this end may send from now
	 * on (RFC 5044 s7.1.2). This also holds if the FPDU is refused. */
	qp->tx.held = false;
	hdr_len = ddp_decode(p + MPA_LENGTH_LEN, seg.ulpdu, &seg.hdr);
	if (hdr_len < 0)
		/* the FPDU is too short, because every DDP segment has a header */
		return rx_refuse(qp, TERM_MPA_MARKER, &seg);
	seg.payload = seg.ulpdu - (uint32_t)hdr_len;
	kind = rdmap_op_of(&seg.hdr);
	if (kind->hdr_len > 0)
		rx_view_more(v, MPA_LENGTH_LEN + seg.ulpdu);
	verdict = rx_check(qp, &seg, kind, p + MPA_LENGTH_LEN + hdr_len);
	if (verdict != RX_DONE)
		return verdict;
	return rx_take(qp, v, &seg, MPA_LENGTH_LEN + (uint32_t)hdr_len);
}

/* Continue with the FPDU in progress. */
static enum rx_verdict rx_continue(struct qp *qp, struct rx_view *v)
{
	struct rx_seg *seg = &qp->rx.seg;
	uint32_t begun = seg->done, left = seg->payload - begun;

	if (qp_is_over(qp))
		return RX_OVER;
	if (qp_rx_place(qp, seg, v->p, left < v->n ? left : v->n))
		return RX_FAULT;
	rx_view_take(v, seg->done - begun);
	if (seg->done < seg->payload || v->n < seg->trailer)
		return RX_MORE;
	rx_view_take(v, seg->trailer);
	seg->active = false;
	seg->rx->finish(qp, seg, NULL);
	return rx_taken(qp);
}

/* The peer has given up its connection. Find a Terminate among the unparsed bytes, but do not
 * search memory that the peer may write to. */
static void rx_on_over(struct qp *qp, struct rx_view *v)
{
	if (!v->copy)
		rx_view_take(v, qp_rx_seek_terminate(qp, v->p, v->n));
	qp_given_up(qp);
}

/* A message of the peer's user has arrived before this end's user has moved the QP to RTS: report
 * the event COMM_EST. */
static void rx_report_comm(struct qp *qp)
{
	if (qp->comm_reported || !qp_traffic(qp))
		return;
	qp->comm_reported = true;
	qp_event(qp, IBV_EVENT_COMM_EST);
}

static void rx_parse(struct qp *qp, struct rx_view *v)
{
	struct qp_rx *rx = &qp->rx;
	enum rx_verdict verdict = RX_DONE;

	while (verdict == RX_DONE && !rx->stop)
		verdict = rx->seg.active ? rx_continue(qp, v) : rx_begin_fpdu(qp, v);
	if (__builtin_expect(rx->stop & RX_STOP_SWITCH, 0) && v->n > 0)
		link_refuse(qp); /* bytes arrived after the peer's SWITCH */
	if (__builtin_expect(verdict == RX_OVER, 0))
		rx_on_over(qp, v);
	if (verdict == RX_STALL && !rx->stalled)
		qp->counters.stalls++;
	rx->stalled = verdict == RX_STALL;
	mr_release_near(&rx->near);
	ack_update(qp);
	if (__builtin_expect(qp->ibv.state == IBV_QPS_RTR, 0))
		rx_report_comm(qp);
}

void qp_rx_parse(struct qp *qp)
{
	struct qp_rx *rx = &qp->rx;
	struct rx_view v;

	if (qp->state == IBV_QPS_INIT)
		return;
	if (!rx->buf) {
		rx->stalled = false; /* the unparsed bytes stay in the link's memory */
		return;
	}
	v = (struct rx_view){.p = rx->buf + rx->head, .n = qp_rx_buffered(rx)};
	if (__builtin_expect(rx->over, 0))
		rx_view_take(&v, qp_rx_seek_terminate(qp, v.p, v.n));
	else
		rx_parse(qp, &v);
	rx->head = rx->tail - v.n;
	qp_rx_free_own_buf(rx);
}

/* --- in place ------------------------------------------------------------------------------- */

bool qp_rx_is_in_place(const struct qp *qp)
{
	const struct qp_rx *rx = &qp->rx;

	return !(qp->stream.crc | rx->stalled | rx->eof | rx->over) && qp_rx_buffered(rx) == 0 &&
	       qp->state != IBV_QPS_INIT && qp->state != IBV_QPS_ERR;
}

size_t qp_rx_in_place(struct qp *qp, const void *bytes, size_t len)
{
	uint8_t copy[RX_COPY_MAX];
	struct rx_view v = {.p = bytes, .n = (uint32_t)len, .copy = copy};
	size_t taken;

	if (!qp_rx_is_in_place(qp))
		return 0;
	rx_parse(qp, &v);
	taken = qp->fault.due ? len : len - v.n; /* after a fault the remaining bytes are dropped */
	qp->rx.exact = true;
	qp->counters.rx_reads += taken > 0;
	qp->counters.rx_bytes += taken;
	if (qp->link.rx_switched)
		qp->counters.shm_rx_bytes += taken;
	qp_settle(qp);
	return taken;
}
