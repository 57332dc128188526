/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests of the extensions, as far as they are alike: messages, answers, and why one failed. */
#include "softrnic/rnic/op_ext.h"

#include <errno.h>

/* --- ours: the request -------------------------------------------------------------------- */

void ext_fill_range(struct sq_wr *slot, const struct ibv_send_wr *wr)
{
	slot->raddr = wr->wr.rdma.remote_addr;
	slot->rkey = wr->wr.rdma.rkey;
	slot->length = op_vext(wr)->len;
}

bool ext_build_request(struct qp *qp, struct sq_wr *wr, const void *bytes, int len)
{
	return tx_build_request(qp, wr, RDMAP_EXT_REQ, bytes, len);
}

bool ext_build_range(struct qp *qp, struct sq_wr *wr, enum ext_kind kind)
{
	struct ext_range req = {
		.word = {.kind = (uint8_t)kind, .arg = wr->flags},
		.stag = wr->rkey,
		.to = wr->raddr,
		.len = wr->length,
	};
	uint8_t bytes[EXT_RANGE_LEN];

	return ext_build_request(qp, wr, bytes, ext_range_encode(bytes, sizeof(bytes), &req));
}

/* --- ours: the answer --------------------------------------------------------------------- */

/* Answers come in the order of the requests, so it is of the kind of the first of them. */
static enum rx_verdict ext_accept_answer(struct qp *qp, struct rx_seg *seg, bool whole)
{
	if (qp_answer_accept(qp, seg, whole) != RX_DONE)
		return RX_FAULT;
	if (qp_answered_wr(qp, seg->rx)->op == seg->op)
		return RX_DONE;
	qp_refuse_seg(qp, TERM_RDMAP_STREAM_CATASTROPHIC, seg);
	return RX_FAULT;
}

/* What vendor_err says of a request that failed at the target; the code is never 0. */
static uint32_t ext_reason(const struct ext_answer *answer)
{
	uint32_t detail = answer->detail;

	switch (answer->word.arg) {
	case EXT_VOLATILE:
		return vext_vendor_err(VEXT_REASON_VOLATILE, detail ? detail : ENOTSUP);
	case EXT_GONE:
		return vext_vendor_err(VEXT_REASON_GONE, detail ? detail : EFAULT);
	default:
		return vext_vendor_err(VEXT_REASON_WRITE_BACK, detail ? detail : EIO);
	}
}

static void ext_finish_answer(struct qp *qp, const struct rx_seg *seg, const uint8_t *bytes)
{
	struct rcursor c = rcursor_init(bytes, seg->payload);
	struct sq_wr *wr = qp_answered_wr(qp, seg->rx);
	union rdmap_answer answer;

	ext_answer_get(&c, &answer.ext);
	qp->rx.msn[DDP_QN_RESPONSE]++;
	if (answer.ext.word.arg != EXT_OK)
		qp_answer_failed(qp, wr, ext_reason(&answer.ext), "a request failed at the peer");
	else if (wr->op->take_answer && wr->op->take_answer(qp, wr, &answer, &c))
		qp_refuse_seg(qp, TERM_RDMAP_STREAM_CATASTROPHIC, seg);
	else
		qp_answer_done(qp, wr);
}

/* It was successful, and that is all that it says. */
bool op_ext_answer_at_once(struct qp *qp, const struct rx_seg *seg, const uint8_t *bytes)
{
	struct ext_word word;
	struct sq_wr *wr;

	if (seg->hdr.qn != DDP_QN_RESPONSE || seg->payload != EXT_ANSWER_LEN)
		return false;
	word = ext_word_of(bytes);
	wr = qp_answered_wr(qp, &ext_answer_rx);
	if (!wr || word.arg != EXT_OK || wr->op->take_answer ||
	    wr->op != op_of_request(RDMAP_EXT_REQ, word.kind))
		return false;
	qp->rx.msn[DDP_QN_RESPONSE]++;
	qp_answer_done(qp, wr);
	return true;
}

const struct op_rx ext_answer_rx = {
	.accept = ext_accept_answer,
	.finish = ext_finish_answer,
};

/* --- the peer's --------------------------------------------------------------------------- */

static void ext_finish_range(struct qp *qp, const struct rx_seg *seg, const uint8_t *bytes)
{
	union rdmap_request msg;

	ext_range_decode(bytes, seg->payload, &msg.range);
	qp->counters.flushes_in++;
	qp_request_add(qp, seg, msg.word.kind, &msg);
}

bool op_ext_request_at_once(struct qp *qp, const struct rx_seg *seg, const uint8_t *bytes)
{
	unsigned kind = ext_word_of(bytes).kind;
	const struct qp_op *op = op_of_request(RDMAP_EXT_REQ, kind);
	struct irq_entry *e;

	if (seg->hdr.qn != DDP_QN_REQUEST || seg->payload != EXT_RANGE_LEN || !op ||
	    op->message != &ext_range_rx || irq_is_full(&qp->irq) || irq_make_room(&qp->irq))
		return false;
	e = irq_push(&qp->irq);
	ddp_hdr_copy(&e->ddp, &seg->hdr);
	e->len = seg->ulpdu;
	e->op = op;
	ext_range_decode(bytes, seg->payload, &e->msg.range);
	e->after_sends = qp->recv.seen_sends;
	qp->counters.flushes_in++;
	qp->rx.msn[DDP_QN_REQUEST]++;
	qp_requests_run(qp);
	return true;
}

const struct op_rx ext_range_rx = {
	.accept = qp_request_accept,
	.finish = ext_finish_range,
};

void ext_ready(struct qp *qp, struct irq_entry *e, enum ext_status status, uint32_t detail)
{
	e->answer.ext = (struct ext_answer){
		.word = {.kind = e->msg.word.kind, .arg = status},
		.detail = detail,
	};
	qp_request_ready(qp);
}

void ext_refuse(struct qp *qp)
{
	qp_request_refuse(qp, TERM_RDMAP_STREAM_CATASTROPHIC, NULL);
}

bool ext_build_answer(struct qp *qp, const struct irq_entry *e)
{
	uint8_t bytes[EXT_ANSWER_LEN];

	return tx_build_answer(qp, RDMAP_EXT_RESP, bytes,
			       ext_answer_encode(bytes, sizeof(bytes), &e->answer.ext));
}
