/* SPDX-License-Identifier: BSD-3-Clause */
/* Verify: a persistent Flush of a range, followed by a digest of the bytes that are read back. */
#include <errno.h>

#include "softrnic/rnic/op_flush.h"

/* The range is shorter than 4 GiB, because the answer has 32 bits for its length. */
static bool verify_check(const struct ibv_send_wr *wr)
{
	const struct vext_wr *w = op_vext(wr);

	return w->result && w->type != VEXT_FLUSH_VISIBLE && w->len > 0 && w->len <= UINT32_MAX &&
	       vext_digest_is_alg(w->alg);
}

static void verify_fill(const struct qp *qp, struct sq_wr *slot, const struct ibv_send_wr *wr)
{
	ext_fill_range(slot, wr);
	slot->result = op_vext(wr)->result;
	slot->flags = flush_flags(qp, op_vext(wr)->type) | EXT_VERIFY_ALG(op_vext(wr)->alg);
}

static bool verify_build(struct qp *qp, struct sq_wr *wr)
{
	return ext_build_range(qp, wr, EXT_VERIFY);
}

static int verify_take_answer(struct qp *qp, struct sq_wr *wr, const union rdmap_answer *answer,
			      struct rcursor *rest)
{
	struct vext_digest msg;

	ext_digest_get(rest, &msg);
	if (rest->bad || msg.alg != wr->flags >> 8 || msg.len != wr->length ||
	    !ext_is_durability(msg.durability) || msg.source > VEXT_DIGEST_FROM_DAX)
		return -EBADMSG; /* the answer's digest is not of the requested kind */
	*(struct vext_digest *)wr->result = msg;
	return 0;
}

/* A digest of a single byte reveals the byte, so the peer needs the right to read the range. */
static void verify_begin(struct qp *qp, struct irq_entry *e)
{
	struct qp_job job = {
		.kind = QP_JOB_DIGEST,
		.alg = ext_verify_alg(&e->msg.range),
	};

	if (!ext_verify_is_valid(&e->msg.range)) {
		ext_refuse(qp);
		return;
	}
	if (!flush_hold(qp, e, IBV_ACCESS_REMOTE_READ, &job) || flush_has_lost(qp, e, &job))
		return;
	dirty_clean(&qp->dirty, mr_base(job.mr), job.addr, job.len);
	flush_ask(qp, e, &job);
}

static bool verify_build_answer(struct qp *qp, const struct irq_entry *e)
{
	uint8_t bytes[EXT_ANSWER_LEN + EXT_DIGEST_LEN];
	struct wcursor c = wcursor_init(bytes, sizeof(bytes));

	ext_answer_put(&c, &e->answer.ext);
	if (e->answer.ext.word.arg == EXT_OK)
		ext_digest_put(&c, &qp->requests.digest);
	return tx_build_answer(qp, RDMAP_EXT_RESP, bytes, (int)wcursor_len(&c));
}

const struct qp_op op_verify = {
	.wc = VEXT_WC_VERIFY,
	.level = RDMAP_LEVEL_OURS,
	.cap = VEXT_CAP_VERIFY,
	.is_request = true,
	.check = verify_check,
	.fill = verify_fill,
	.build = verify_build,
	.message = &ext_range_rx,
	.answer = &ext_answer_rx,
	.take_answer = verify_take_answer,
	.begin = verify_begin,
	.on_job = flush_on_job,
	.on_detach = flush_on_detach,
	.build_answer = verify_build_answer,
};
