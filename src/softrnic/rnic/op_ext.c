/* SPDX-License-Identifier: BSD-3-Clause */
/* The common part of the requests that belong to the extensions: messages, answers, and the reason
 * of a failure. */
#include "softrnic/rnic/op_ext.h"

#include <errno.h>

/* --- this end's request ------------------------------------------------------------------- */

void ext_fill_range(struct sq_wr *slot, const struct ibv_send_wr *wr)
{
	slot->raddr = wr->wr.rdma.remote_addr;
	slot->rkey = wr->wr.rdma.rkey;
	slot->length = op_vext(wr)->len;
}

bool ext_build_request(struct qp *qp, struct sq_wr *wr, const void *bytes, int len)
{
	if (!hello_names(qp, wr->op)) /* posted before the peer's HELLO */
		return tx_wr_failed(qp, wr, IBV_WC_REM_INV_REQ_ERR, EOPNOTSUPP);
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

/* --- the answer to this end's request ----------------------------------------------------- */

/* The vendor_err of a request that failed at the target. The code in it is never 0. */
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

/* Handle the answer. It contains an error, or possibly a result. */
static void ext_take_answer(struct qp *qp, struct sq_wr *wr, const struct rx_seg *seg,
			    const uint8_t *bytes)
{
	struct rcursor c = rcursor_init(bytes, seg->payload);
	union rdmap_answer answer;

	ext_answer_get(&c, &answer.ext);
	if (answer.ext.word.arg != EXT_OK)
		qp_answer_failed(qp, wr, ext_reason(&answer.ext), "a request failed at the peer");
	else if (wr->op->take_answer(qp, wr, &answer, &c))
		qp_refuse_seg(qp, TERM_RDMAP_STREAM_CATASTROPHIC, seg);
	else
		qp_answer_done(qp, wr);
}

/* Answers arrive in the order of the requests, so the answer must be of the same kind as the oldest
 * request. */
static enum rx_verdict ext_whole_answer(struct qp *qp, struct rx_seg *seg, const uint8_t *bytes)
{
	struct sq_wr *wr = qp_answered_wr(qp, seg->rx);

	if (!wr)
		qp_refuse_seg(qp, TERM_RDMAP_UNEXPECTED_OPCODE, seg);
	else if (wr->op != seg->op)
		qp_refuse_seg(qp, TERM_RDMAP_STREAM_CATASTROPHIC, seg);
	else if (wr->op->take_answer || ext_word_of(bytes).arg != EXT_OK)
		ext_take_answer(qp, wr, seg, bytes);
	else
		qp_answer_done(qp, wr);
	return RX_DONE;
}

const struct op_rx ext_answer_rx = {
	.whole = ext_whole_answer,
};

/* --- the peer's request ------------------------------------------------------------------- */

static void ext_decode_range(struct qp *qp, struct irq_entry *e, const uint8_t *bytes, uint32_t len)
{
	ext_range_decode(bytes, len, &e->msg.range);
	qp->counters.flushes_in++;
}

const struct op_rx ext_range_rx = {
	.whole = qp_request_whole,
	.decode = ext_decode_range,
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
