/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * broken.c -- targets that are broken on purpose. An atomic write takes effect when it arrives, and
 * does not wait for the Flush before it; a Read is not a flush; or the target acknowledges a
 * message when it arrives, before it is placed or delivered. Only this file of the simulation reads
 * members of the queue pair.
 */
#include <string.h>

#include "sim.h"
#include "softrnic/rnic/op.h"
#include "softrnic/rnic/qp_impl.h"

extern const struct qp_op op_write;

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

/* Treat every consenting peer as if it had announced native flushes. */
void node_ignore_read_flushes(struct node *n)
{
	if (n->sim->sc.mode == SIM_PLAIN_READS && n->qp && n->qp->stream.consent)
		n->qp->stream.peer_flushes = true;
}

/* Returns true if the peer is not in the middle of a message. An Ack of all messages that the peer
 * has begun then covers only complete ones. */
static bool has_sent_all(const struct qp *qp)
{
	return qp && qp->tx.source == TX_NONE && qp->tx.built == qp->tx.sent;
}

/* Count messages that have arrived but that the product does not count yet: Sends that wait for a
 * receive, Writes after them, and a Write whose last part has not arrived. */
static uint64_t unplaced(const struct qp *qp, const struct qp *peer)
{
	const struct park_seg *waits = park_first(&qp->recv.park);
	uint64_t n =
		(qp->rx.write_open || (qp->rx.seg.active && qp->rx.seg.rx == op_write.message)) &&
		has_sent_all(peer);

	if (waits)
		n += qp->recv.park.msgs + qp->counters.writes_in - waits->writes_before;
	return n;
}

void node_acknowledge_early(struct node *n)
{
	if (n->sim->sc.mode != SIM_HASTY_ACK || !n->qp || !n->qp->acks.on || qp_is_failed(n->qp))
		return;
	n->qp->acks.before = -unplaced(n->qp, n->peer->qp);
	ack_update(n->qp);
}
