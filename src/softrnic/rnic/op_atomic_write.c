/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomic Write (doc/wire.md s6): stores 8 bytes by one store. It is executed in order with the
 * other requests. */
#include <string.h>

#include "softrnic/rnic/op_atomic.h"
#include "softrnic/rnic/op_ext.h"
#include "softrnic/rnic/place.h"

static bool atomic_write_check(const struct ibv_send_wr *wr)
{
	return wr->wr.rdma.remote_addr % sizeof(uint64_t) == 0;
}

/* The operand is copied byte by byte, because it is not a number: its bytes keep their order. */
static void atomic_write_fill(const struct qp *qp, struct sq_wr *slot, const struct ibv_send_wr *wr)
{
	slot->raddr = wr->wr.rdma.remote_addr;
	slot->rkey = wr->wr.rdma.rkey;
	slot->length = sizeof(slot->operand);
	memcpy(&slot->operand, op_vext(wr)->bytes, sizeof(slot->operand));
}

static bool atomic_write_build(struct qp *qp, struct sq_wr *wr)
{
	struct ext_atomic_write req = {
		.word = {.kind = EXT_ATOMIC_WRITE},
		.stag = wr->rkey,
		.to = wr->raddr,
	};
	uint8_t bytes[EXT_ATOMIC_WRITE_LEN];

	memcpy(req.bytes, &wr->operand, sizeof(req.bytes));
	return ext_build_request(qp, wr, bytes,
				 ext_atomic_write_encode(bytes, sizeof(bytes), &req));
}

/* --- the peer's request ------------------------------------------------------------------- */

static void atomic_write_decode(struct qp *qp, struct irq_entry *e, const uint8_t *bytes,
				uint32_t len)
{
	ext_atomic_write_decode(bytes, len, &e->msg.atomic_write);
	qp->counters.atomics_in++;
}

static int atomic_write_execute(uint64_t *word, struct irq_entry *e)
{
	e->answer.ext = (struct ext_answer){.word = {.kind = EXT_ATOMIC_WRITE}};
	return place(word, e->msg.atomic_write.bytes, sizeof(e->msg.atomic_write.bytes));
}

static void atomic_write_begin(struct qp *qp, struct irq_entry *e)
{
	const struct ext_atomic_write *req = &e->msg.atomic_write;

	if (req->word.arg)
		ext_refuse(qp);
	else if (atomic_may_run(qp))
		atomic_run(qp, e, req->stag, req->to, qp->rights.write, atomic_write_execute);
}

static const struct op_rx atomic_write_rx = {
	.whole = qp_request_whole,
	.decode = atomic_write_decode,
};

const struct qp_op op_atomic_write = {
	.wc = VEXT_WC_ATOMIC_WRITE,
	.level = RDMAP_LEVEL_OURS,
	.cap = VEXT_CAP_ATOMIC_WRITE,
	.is_request = true,
	.places = true,
	.is_atomic = true,
	.check = atomic_write_check,
	.fill = atomic_write_fill,
	.build = atomic_write_build,
	.message = &atomic_write_rx,
	.answer = &ext_answer_rx,
	.begin = atomic_write_begin,
	.build_answer = ext_build_answer,
};
