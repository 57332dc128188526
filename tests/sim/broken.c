/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * broken.c -- targets that are broken on purpose: an atomic write takes effect when it arrives, not
 * when the Flush before it is complete; or a Read is not a flush. Only this file looks inside the
 * queue pair.
 */
#include <string.h>

#include "sim.h"
#include "softrnic/rnic/qp_impl.h"

static void execute(struct node *n, const struct ext_atomic_write *w)
{
	struct mr *mr;
	void *word;

	if (mr_hold(n->host->mrs, &n->host->pd, w->stag, w->to, sizeof(w->bytes),
		    IBV_ACCESS_REMOTE_WRITE, &mr, &word) != MR_OK)
		return;
	memcpy(word, w->bytes, sizeof(w->bytes));
	mr_release(mr);
}

void node_run_atomics_early(struct node *n)
{
	const struct irq *irq;

	if (n->sim->sc.mode != SIM_EAGER_ATOMIC || !n->qp || qp_is_failed(n->qp))
		return;
	irq = &n->qp->irq;
	for (uint32_t i = 0; i < irq->count; i++) {
		const struct irq_entry *e = &irq->ring[(irq->head + i) % irq->size];

		if (rdmap_ctrl_opcode(e->ddp.ulp) == RDMAP_EXT_REQ &&
		    e->msg.word.kind == EXT_ATOMIC_WRITE)
			execute(n, &e->msg.atomic_write);
	}
}

/* As if every peer that consented had announced native flushes. */
void node_ignore_read_flushes(struct node *n)
{
	if (n->sim->sc.mode == SIM_PLAIN_READS && n->qp && n->qp->stream.consent)
		n->qp->stream.peer_flushes = true;
}
