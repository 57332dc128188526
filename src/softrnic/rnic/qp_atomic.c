/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The peer's Atomic Requests (RFC 7306 s5), and the Atomic Write, which is ours. Executed by the
 * CPU, so they are atomic with regard to whatever else the CPUs here do to the word.
 */
#include <endian.h>

#include "softrnic/rnic/place.h"
#include "softrnic/rnic/qp_impl.h"

/* A bit of the mask ends a field: no carry leaves it (RFC 7306 s5.1). */
static bool fetch_add(const void *arg, uint64_t old, uint64_t *new_value)
{
	const struct rdmap_atomic_req *r = arg;
	uint64_t ends = r->data_mask;

	*new_value = ((old & ~ends) + (r->data & ~ends)) ^ ((old ^ r->data) & ends);
	return true;
}

static bool cmp_swap(const void *arg, uint64_t old, uint64_t *new_value)
{
	const struct rdmap_atomic_req *r = arg;

	*new_value = (old & ~r->data_mask) | (r->data & r->data_mask);
	return ((old ^ r->compare) & r->compare_mask) == 0;
}

static int access_of(uint8_t op)
{
	return op == RDMAP_ATOMIC_WRITE ? IBV_ACCESS_REMOTE_WRITE : IBV_ACCESS_REMOTE_ATOMIC;
}

/*
 * The peer may have sent it behind a Flush without waiting: an atomic that says "the data are
 * safe" must not be seen when they are not. The peer learns of the Flush first.
 */
static unsigned check(const struct qp *qp, const struct rdmap_atomic_req *r)
{
	if (qp->irq.failed.status)
		return TERM_RDMAP_STREAM_CATASTROPHIC;
	switch (r->op) {
	case RDMAP_ATOMIC_WRITE:
		if (qp_level(qp) < RDMAP_LEVEL_OURS)
			return TERM_RDMAP_UNEXPECTED_OPCODE;
		break;
	case RDMAP_FETCH_ADD:
	case RDMAP_CMP_SWAP:
		break;
	default:
		return TERM_RDMAP_UNEXPECTED_OPCODE;
	}
	return 0;
}

static int execute(uint64_t *word, const struct rdmap_atomic_req *r, uint64_t *original)
{
	uint64_t bytes = htobe64(r->data);

	switch (r->op) {
	case RDMAP_FETCH_ADD:
		return place_atomic(word, fetch_add, r, original);
	case RDMAP_CMP_SWAP:
		return place_atomic(word, cmp_swap, r, original);
	default:
		*original = 0;
		return place(word, &bytes, sizeof(bytes));
	}
}

/* Answers to earlier Reads may still refer to the word; they must not show what follows. */
static unsigned apply(struct qp *qp, struct irq_entry *e, struct mr *mr, void *word)
{
	uint64_t original;

	if ((uintptr_t)word % sizeof(original) != 0)
		return TERM_RDMAP_STREAM_CATASTROPHIC;
	if (qp->tx.batch && tx_batch_refers_to(qp->tx.batch, word, sizeof(original)) &&
	    tx_batch_own(qp->tx.batch, NULL))
		return TERM_RDMAP_STREAM_CATASTROPHIC;
	if (execute(word, &e->atomic, &original))
		return TERM_RDMAP_BASE_BOUNDS;
	e->was = (struct rdmap_atomic_resp){.id = e->atomic.id, .original = original};
	qp_dirty_note(qp, mr, word, sizeof(original));
	return 0;
}

void qp_atomic_begin(struct qp *qp, struct irq_entry *e)
{
	const struct rdmap_atomic_req *r = &e->atomic;
	unsigned error = check(qp, r);
	enum mr_verdict verdict;
	struct mr *mr;
	void *word;

	if (error) {
		qp_irq_refuse(qp, error, 0);
		return;
	}
	verdict = mr_hold(qp->cfg.mrs, qp->cfg.pd, r->stag, r->to, sizeof(uint64_t),
			  access_of(r->op), &mr, &word);
	if (verdict != MR_OK) {
		qp_irq_refuse(qp, qp_rdmap_error(verdict), 0);
		return;
	}
	error = apply(qp, e, mr, word);
	mr_release(mr);
	if (error)
		qp_irq_refuse(qp, error, 0);
	else if (!qp_is_failed(qp))
		qp->irq.state = IRQ_READY;
}
