/* SPDX-License-Identifier: BSD-3-Clause */
/* Verify: a persistent Flush of a range, and the digest of what is read back. */
#include <errno.h>
#include <string.h>

#include "softrnic/rnic/op_flush.h"

/* The answer has 32 bits for the length of what was digested. */
static bool verify_check(const struct ibv_send_wr *wr)
{
	const struct vext_wr *w = op_vext(wr);

	return w->result && w->len > 0 && w->len <= UINT32_MAX &&
	       (w->alg == VEXT_DIGEST_CRC32C || w->alg == VEXT_DIGEST_BLAKE2B);
}

static void verify_fill(const struct qp *qp, struct sq_wr *slot, const struct ibv_send_wr *wr)
{
	flush_fill_range(slot, wr);
	slot->result = op_vext(wr)->result;
	slot->flags = flush_flags(qp, VEXT_FLUSH_PERSISTENT) | RDMAP_FLUSH_DIGEST |
		      RDMAP_FLUSH_ALG(op_vext(wr)->alg);
}

static int verify_take_answer(struct qp *qp, struct sq_wr *wr, const union rdmap_answer *answer,
			      struct rcursor *rest)
{
	struct vext_digest *to = wr->result;
	struct rdmap_flush_digest msg;

	rdmap_flush_digest_get(rest, &msg);
	if (rest->bad || msg.alg != wr->flags >> 8 || msg.len != wr->length ||
	    !flush_is_durability(msg.durability) || msg.source > VEXT_DIGEST_FROM_DAX)
		return -EBADMSG; /* not the digest that was asked for */
	*to = (struct vext_digest){
		.alg = msg.alg, .source = msg.source, .durability = msg.durability, .len = msg.len};
	memcpy(to->bytes, msg.bytes, sizeof(to->bytes));
	return 0;
}

/* A digest shows what the bytes are, one at a time if the peer likes: that is reading. */
static void verify_begin(struct qp *qp, struct irq_entry *e)
{
	struct qp_job job = {
		.kind = QP_JOB_DIGEST,
		.alg = rdmap_flush_alg(&e->msg.flush),
	};

	if (!flush_hold(qp, e, IBV_ACCESS_REMOTE_READ, &job) || flush_has_lost(qp, e, &job))
		return;
	dirty_clean(&qp->dirty, job.mr, job.addr, job.len);
	flush_ask(qp, e, &job);
}

static void verify_put_digest(struct wcursor *c, const struct vext_digest *digest)
{
	struct rdmap_flush_digest msg = {
		.source = digest->source,
		.durability = digest->durability,
		.alg = digest->alg,
		.len = digest->len,
	};

	memcpy(msg.bytes, digest->bytes, sizeof(msg.bytes));
	rdmap_flush_digest_put(c, &msg);
}

static bool verify_build_answer(struct qp *qp, const struct irq_entry *e)
{
	uint8_t bytes[RDMAP_FLUSH_RESP_LEN + RDMAP_FLUSH_DIGEST_LEN];
	struct wcursor c = wcursor_init(bytes, sizeof(bytes));

	rdmap_flush_resp_put(&c, &e->answer.flush);
	if (!e->answer.flush.status)
		verify_put_digest(&c, &qp->requests.digest);
	return tx_build_answer(qp, RDMAP_FLUSH_RESP, bytes, (int)wcursor_len(&c));
}

const struct qp_op op_verify = {
	.wc = RNIC_WC_VERIFY,
	.level = RDMAP_LEVEL_OURS,
	.is_request = true,
	.check = verify_check,
	.fill = verify_fill,
	.build = flush_build,
	.message = &flush_rx,
	.answer = &flush_answer_rx,
	.answer_max = RDMAP_FLUSH_RESP_LEN + RDMAP_FLUSH_DIGEST_LEN,
	.take_answer = verify_take_answer,
	.begin = verify_begin,
	.on_job = flush_on_job,
	.on_detach = flush_on_detach,
	.build_answer = verify_build_answer,
};
