/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * broken.c -- targets as they must not be: an atomic write takes effect when it comes, and not
 * when the Flush before it is done; or a Read is no flush. They look inside of the queue pair;
 * nothing else here does.
 */
#include <endian.h>
#include <string.h>

#include "sim.h"
#include "softrnic/rnic/qp_impl.h"

static void execute(struct node *n, const struct rdmap_atomic_req *r)
{
	uint64_t bytes = htobe64(r->data);
	struct mr *mr;
	void *word;

	if (r->op != RDMAP_ATOMIC_WRITE ||
	    mr_hold(n->host->mrs, &n->host->pd, r->stag, r->to, sizeof(bytes),
		    IBV_ACCESS_REMOTE_WRITE, &mr, &word) != MR_OK)
		return;
	memcpy(word, &bytes, sizeof(bytes));
	mr_release(mr);
}

void node_hurry_atomics(struct node *n)
{
	const struct irq *irq;

	if (n->sim->sc.mode != SIM_EAGER_ATOMIC || !n->qp || qp_is_failed(n->qp))
		return;
	irq = &n->qp->irq;
	for (uint32_t i = 0; i < irq->count; i++) {
		const struct irq_entry *e = &irq->ring[(irq->head + i) % irq->depth];

		if (rdmap_ctrl_opcode(e->ddp.ulp) == RDMAP_ATOMIC_REQ)
			execute(n, &e->msg.atomic);
	}
}

/* As if every peer that consented had announced native flushes. */
void node_ignore_read_flushes(struct node *n)
{
	if (n->sim->sc.mode == SIM_PLAIN_READS && n->qp && n->qp->stream.consent)
		n->qp->stream.peer_flushes = true;
}
