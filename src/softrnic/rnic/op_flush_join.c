/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * op_flush_join.c -- Flushes of one region that wait in the IRQ share one write-back.
 *
 * The bytes of a Flush that waits were placed before it arrived, so a write-back that begins now
 * covers them as well. Each Flush is still answered in its order. The write-back covers the
 * smallest range that contains the ranges of all these Flushes. Clean pages in the gaps cost
 * nothing, but dirty pages do. For each Flush that joins, a gap of up to DIRTY_NEAR bytes is
 * accepted, because it costs no more than the separate write-back that is saved.
 */
#include "softrnic/rnic/op_flush.h"

#define JOIN_RIGHTS (IBV_ACCESS_REMOTE_READ | VEXT_ACCESS_FLUSH_PERSISTENT)

struct join {
	uintptr_t from, to;
	uint64_t bytes; /* sum of the lengths of the requested ranges */
};

/* Find the address of the request's range. The region of the head is remembered in qp->rx.near. */
static bool join_find(struct qp *qp, const struct irq_entry *e, void **addr)
{
	const struct ext_range *r = &e->msg.range;

	return qp_hold_remote(qp, &qp->rx.near, r->stag, r->to, r->len, 0, JOIN_RIGHTS, addr) ==
	       MR_OK;
}

static bool join_add(struct qp *qp, const struct irq_entry *head, const struct irq_entry *e,
		     struct join *j)
{
	uint64_t len = e->msg.range.len;
	void *addr;

	if (e->op != head->op || e->msg.word.arg != head->msg.word.arg ||
	    e->msg.range.stag != head->msg.range.stag || len == 0 || !qp_request_is_due(qp, e) ||
	    !join_find(qp, e, &addr))
		return false;
	j->from = (uintptr_t)addr < j->from ? (uintptr_t)addr : j->from;
	j->to = (uintptr_t)addr + len > j->to ? (uintptr_t)addr + len : j->to;
	j->bytes += len;
	return true;
}

static bool join_pays(const struct join *j, uint32_t count)
{
	return j->to - j->from <= j->bytes + (uint64_t)count * DIRTY_NEAR;
}

/* Returns the number of Flushes after the head that join it; *job gets the range that contains all
 * their ranges. */
static uint32_t join_count(struct qp *qp, struct qp_job *job)
{
	const struct irq_entry *head = irq_head(&qp->irq);
	uintptr_t start = (uintptr_t)job->addr;
	struct join j = {.from = start, .to = start + job->len, .bytes = job->len};
	uint32_t joined = 0;

	for (uint32_t i = 1; i < qp->irq.count; i++) {
		if (!join_add(qp, head, irq_at(&qp->irq, i), &j) ||
		    /* The range is too large even if all later Flushes join it. */
		    !join_pays(&j, qp->irq.count))
			break;
		if (!join_pays(&j, i))
			continue;
		joined = i;
		job->addr = (void *)j.from;
		job->len = j.to - j.from;
	}
	return joined;
}

void flush_join(struct qp *qp, struct qp_job *job)
{
	void *addr;

	qp->requests.joined = join_count(qp, job);
	for (uint32_t i = 1; i <= qp->requests.joined; i++) {
		const struct irq_entry *e = irq_at(&qp->irq, i);

		if (join_find(qp, e, &addr))
			dirty_clean(&qp->dirty, job->mr, addr, e->msg.range.len);
	}
}
