/* SPDX-License-Identifier: BSD-3-Clause */
/* Fetch and Add, Compare and Swap (RFC 7306 s5). This host's CPU executes them by its own atomic
 * instructions, so they are also atomic for other accesses by CPUs of this host. */
#include "softrnic/rnic/op_atomic.h"

#include <errno.h>

#include "softrnic/rnic/place.h"

/* --- this end's request ------------------------------------------------------------------- */

static bool atomic_check(const struct ibv_send_wr *wr)
{
	uint64_t sum = 0;

	for (int i = 0; i < wr->num_sge; i++)
		sum += wr->sg_list[i].length;
	return sum == sizeof(uint64_t);
}

static bool atomic_build(struct qp *qp, struct sq_wr *wr, enum rdmap_atomic_op op,
			 uint64_t data_mask)
{
	struct rdmap_atomic_req req = {
		.op = (uint8_t)op,
		.id = (uint32_t)qp->sq.next,
		.stag = wr->rkey,
		.to = wr->raddr,
		.data = wr->operand,
		.data_mask = data_mask,
		.compare = wr->compare,
		.compare_mask = UINT64_MAX,
	};
	uint8_t bytes[RDMAP_ATOMIC_REQ_LEN];

	return tx_build_request(qp, wr, RDMAP_ATOMIC_REQ, bytes,
				rdmap_atomic_req_encode(bytes, sizeof(bytes), &req));
}

static void fetch_add_fill(const struct qp *qp, struct sq_wr *slot, const struct ibv_send_wr *wr)
{
	slot->raddr = wr->wr.atomic.remote_addr;
	slot->rkey = wr->wr.atomic.rkey;
	slot->operand = wr->wr.atomic.compare_add;
}

/* RFC 7306 s5.2: unused data fields are 0, and an unused mask has all bits set. A Fetch and Add
 * with mask 0 adds all 64 bits as one field. */
static bool fetch_add_build(struct qp *qp, struct sq_wr *wr)
{
	int err = tx_check_sink(qp, wr);

	return err ? tx_source_failed(qp, wr, err) : atomic_build(qp, wr, RDMAP_FETCH_ADD, 0);
}

static void cmp_swap_fill(const struct qp *qp, struct sq_wr *slot, const struct ibv_send_wr *wr)
{
	slot->raddr = wr->wr.atomic.remote_addr;
	slot->rkey = wr->wr.atomic.rkey;
	slot->operand = wr->wr.atomic.swap;
	slot->compare = wr->wr.atomic.compare_add;
}

static bool cmp_swap_build(struct qp *qp, struct sq_wr *wr)
{
	int err = tx_check_sink(qp, wr);

	return err ? tx_source_failed(qp, wr, err)
		   : atomic_build(qp, wr, RDMAP_CMP_SWAP, UINT64_MAX);
}

/* --- the answer to this end's request ----------------------------------------------------- */

static const struct op_rx atomic_answer_rx;

static enum rx_verdict atomic_whole_answer(struct qp *qp, struct rx_seg *seg, const uint8_t *bytes)
{
	struct sq_wr *wr = qp_answered_wr(qp, &atomic_answer_rx);
	union rdmap_answer answer;
	int err;

	rdmap_atomic_resp_decode(bytes, seg->payload, &answer.atomic);
	if (!wr || answer.atomic.id != (uint32_t)orq_head(&qp->orq)) {
		qp_refuse_seg(qp, TERM_RDMAP_UNEXPECTED_OPCODE, seg);
		return RX_FAULT;
	}
	err = wr->op->take_answer ? wr->op->take_answer(qp, wr, &answer, NULL) : 0;
	if (err) {
		qp_set_local_cause(qp, wr, IBV_WC_LOC_PROT_ERR, -err);
		qp_refuse_seg(qp, TERM_RDMAP_LOCAL_CATASTROPHIC, seg);
		return RX_FAULT;
	}
	qp_answer_done(qp, wr);
	return RX_DONE;
}

/* Store the original value as a number in the byte order of the user's CPU. */
static int atomic_take_answer(struct qp *qp, struct sq_wr *wr, const union rdmap_answer *answer,
			      struct rcursor *rest)
{
	struct mr *mr;
	void *ptr;
	int err;

	if (mr_hold(qp->cfg.mrs, qp->cfg.pd, wr->sge[0].lkey, wr->sge[0].addr, sizeof(uint64_t),
		    IBV_ACCESS_LOCAL_WRITE, &mr, &ptr) != MR_OK)
		return -EACCES;
	err = place(ptr, &answer->atomic.original, sizeof(uint64_t));
	mr_release(mr);
	return err;
}

/* --- the peer's request ------------------------------------------------------------------- */

static void atomic_decode(struct qp *qp, struct irq_entry *e, const uint8_t *bytes, uint32_t len)
{
	const struct qp_op *op;

	rdmap_atomic_req_decode(bytes, len, &e->msg.atomic);
	op = op_of_request(RDMAP_ATOMIC_REQ, e->msg.atomic.op);
	if (op) /* a request of an unknown kind is refused later, when it is executed */
		e->op = op;
	qp->counters.atomics_in++;
}

/* Execute the operation on the word. Before that, copy the word's bytes for answers to earlier
 * Reads that are still being sent, because these answers must not contain the new value. */
static unsigned atomic_apply(struct qp *qp, struct irq_entry *e, atomic_execute_fn *execute,
			     struct mr *mr, void *word)
{
	if ((uintptr_t)word % sizeof(uint64_t) != 0)
		return TERM_RDMAP_STREAM_CATASTROPHIC;
	if (qp->tx.batch && tx_batch_refers_to(qp->tx.batch, word, sizeof(uint64_t)) &&
	    tx_batch_own(qp->tx.batch, NULL))
		return TERM_RDMAP_STREAM_CATASTROPHIC;
	if (qp_rx_prepare(mr, word, sizeof(uint64_t)) || execute(word, e))
		return TERM_RDMAP_BASE_BOUNDS;
	qp_rx_placed(qp, mr, word, sizeof(uint64_t));
	return 0;
}

void atomic_run(struct qp *qp, struct irq_entry *e, uint32_t stag, uint64_t to, int access,
		atomic_execute_fn *execute)
{
	enum mr_verdict verdict;
	unsigned error;
	struct mr_near near = {.mr = NULL};
	void *word;

	verdict = qp_hold_remote(qp, &near, stag, to, sizeof(uint64_t), access, 0, &word);
	if (verdict != MR_OK) {
		qp_request_refuse(qp, qp_rdmap_error(verdict), NULL);
		return;
	}
	error = atomic_apply(qp, e, execute, near.mr, word);
	mr_release_near(&near);
	if (error)
		qp_request_refuse(qp, error, NULL);
	else
		qp_request_ready(qp);
}

bool atomic_may_run(struct qp *qp)
{
	if (qp->requests.failed == EXT_OK)
		return true;
	qp_request_refuse(qp, TERM_RDMAP_STREAM_CATASTROPHIC, NULL);
	return false;
}

static void atomic_begin(struct qp *qp, struct irq_entry *e, atomic_execute_fn *execute)
{
	const struct rdmap_atomic_req *r = &e->msg.atomic;

	if (atomic_may_run(qp))
		atomic_run(qp, e, r->stag, r->to, qp->rights.atomic, execute);
}

/* Modify the word. The answer contains the original value. */
static int atomic_modify(uint64_t *word, struct irq_entry *e, place_modify_fn *modify)
{
	e->answer.atomic.id = e->msg.atomic.id;
	return place_atomic(word, modify, &e->msg.atomic, &e->answer.atomic.original);
}

/* Each set bit of the mask is the highest bit of a field. No carry passes from one field to the
 * next (RFC 7306 s5.1). */
static bool fetch_add_modify(const void *arg, uint64_t old, uint64_t *new_value)
{
	const struct rdmap_atomic_req *r = arg;
	uint64_t ends = r->data_mask;

	*new_value = ((old & ~ends) + (r->data & ~ends)) ^ ((old ^ r->data) & ends);
	return true;
}

static int fetch_add_execute(uint64_t *word, struct irq_entry *e)
{
	return atomic_modify(word, e, fetch_add_modify);
}

/* Also called for a request of an unknown kind, which it refuses. */
static void fetch_add_begin(struct qp *qp, struct irq_entry *e)
{
	if (e->msg.atomic.op == RDMAP_FETCH_ADD)
		atomic_begin(qp, e, fetch_add_execute);
	else if (atomic_may_run(qp))
		qp_request_refuse(qp, TERM_RDMAP_UNEXPECTED_OPCODE, NULL);
}

static bool cmp_swap_modify(const void *arg, uint64_t old, uint64_t *new_value)
{
	const struct rdmap_atomic_req *r = arg;

	*new_value = (old & ~r->data_mask) | (r->data & r->data_mask);
	return ((old ^ r->compare) & r->compare_mask) == 0;
}

static int cmp_swap_execute(uint64_t *word, struct irq_entry *e)
{
	return atomic_modify(word, e, cmp_swap_modify);
}

static void cmp_swap_begin(struct qp *qp, struct irq_entry *e)
{
	atomic_begin(qp, e, cmp_swap_execute);
}

static bool atomic_build_answer(struct qp *qp, const struct irq_entry *e)
{
	uint8_t bytes[RDMAP_ATOMIC_RESP_LEN];

	return tx_build_answer(qp, RDMAP_ATOMIC_RESP, bytes,
			       rdmap_atomic_resp_encode(bytes, sizeof(bytes), &e->answer.atomic));
}

/* ------------------------------------------------------------------------------------------ */

static const struct op_rx atomic_rx = {
	.whole = qp_request_whole,
	.decode = atomic_decode,
};

static const struct op_rx atomic_answer_rx = {
	.whole = atomic_whole_answer,
};

const struct qp_op op_fetch_add = {
	.wc = IBV_WC_FETCH_ADD,
	.level = RDMAP_LEVEL_7306,
	.is_request = true,
	.places = true,
	.is_atomic = true,
	.check = atomic_check,
	.fill = fetch_add_fill,
	.build = fetch_add_build,
	.message = &atomic_rx,
	.answer = &atomic_answer_rx,
	.take_answer = atomic_take_answer,
	.begin = fetch_add_begin,
	.build_answer = atomic_build_answer,
};

const struct qp_op op_cmp_swap = {
	.wc = IBV_WC_COMP_SWAP,
	.level = RDMAP_LEVEL_7306,
	.is_request = true,
	.places = true,
	.is_atomic = true,
	.check = atomic_check,
	.fill = cmp_swap_fill,
	.build = cmp_swap_build,
	.message = &atomic_rx,
	.answer = &atomic_answer_rx,
	.take_answer = atomic_take_answer,
	.begin = cmp_swap_begin,
	.build_answer = atomic_build_answer,
};
