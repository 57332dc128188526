/* SPDX-License-Identifier: BSD-3-Clause */
#include "inbox.h"

#include <stdlib.h>
#include <string.h>

#include "sim.h"
#include "windows.h"
#include "workload.h"

#define GAP 8 /* unused bytes between two pieces */

void inbox_init(struct inbox *b, struct node *home)
{
	const struct scenario *sc = &home->sim->sc;

	*b = (struct inbox){
		.home = home,
		.depth = sc->recv_depth[home->index],
		.has_srq = sc->use_srq[home->index],
	};
	if (b->has_srq && srq_init(&b->srq, b->depth, INBOX_PIECES))
		abort();
}

void inbox_fini(struct inbox *b)
{
	if (b->has_srq)
		srq_fini(&b->srq);
	b->has_srq = false;
}

/* --- buffers ------------------------------------------------------------------------------ */

static uint64_t inbox_slot_room(const struct inbox *b)
{
	return b->slot_len + INBOX_PIECES * GAP;
}

uint64_t inbox_room(const struct inbox *b)
{
	return INBOX_SLOTS * inbox_slot_room(b);
}

static void inbox_plan_slot(struct inbox *b, struct inbox_slot *slot, uint64_t off)
{
	struct sim *sim = b->home->sim;
	uint32_t left = b->slot_len;

	slot->pieces = (unsigned)prng_between(&sim->world->rng, 1, sim->sc.recv_sge);
	for (unsigned k = 0; k < slot->pieces; k++) {
		bool last = k + 1 == slot->pieces;

		slot->piece[k].off = off;
		slot->piece[k].len = last ? left : (uint32_t)prng_below(&sim->world->rng, left + 1);
		left -= slot->piece[k].len;
		off += slot->piece[k].len + GAP;
	}
}

void inbox_plan(struct inbox *b)
{
	uint64_t at = b->home->mem->area[AREA_RECV].off;

	for (unsigned i = 0; i < INBOX_SLOTS; i++, at += inbox_slot_room(b))
		inbox_plan_slot(b, &b->slot[i], at);
}

/* Clear the buffer, so that the check notices a late write to it. */
static void inbox_clear_slot(struct inbox *b, struct inbox_slot *slot)
{
	struct memory *m = b->home->mem;

	slot->busy = false;
	for (unsigned i = 0; i < slot->pieces && !m->area[AREA_RECV].gone; i++)
		memcpy(m->cache + slot->piece[i].off, m->initial + slot->piece[i].off,
		       slot->piece[i].len);
}

/* --- posting ------------------------------------------------------------------------------ */

/* Without an SRQ the buffers are reused in turn; with an SRQ they become free in any order. */
static struct inbox_slot *inbox_next_slot(struct inbox *b)
{
	struct inbox_slot *slot = &b->slot[b->posted % INBOX_SLOTS];

	for (unsigned i = 0; b->shared && slot->busy && i < INBOX_SLOTS; i++)
		slot = &b->slot[i];
	return slot->busy ? NULL : slot;
}

struct batch {
	struct ibv_recv_wr wr[INBOX_BATCH];
	struct ibv_sge sge[INBOX_BATCH][INBOX_PIECES];
	struct inbox_slot *slot[INBOX_BATCH];
	unsigned count;
};

static void inbox_add(struct inbox *b, struct batch *t, struct inbox_slot *slot)
{
	struct memory *m = b->home->mem;
	struct ibv_recv_wr *wr = &t->wr[t->count];
	struct ibv_sge *sge = t->sge[t->count];

	for (unsigned i = 0; i < slot->pieces; i++)
		sge[i] = (struct ibv_sge){
			.addr = memory_to(m, AREA_RECV, slot->piece[i].off),
			.length = slot->piece[i].len,
			.lkey = m->area[AREA_RECV].stag,
		};
	*wr = (struct ibv_recv_wr){.wr_id = RECV_ID + (unsigned)(slot - b->slot),
				   .sg_list = sge,
				   .num_sge = (int)slot->pieces};
	if (t->count > 0)
		t->wr[t->count - 1].next = wr;
	slot->busy = true;
	b->posted++;
	t->slot[t->count++] = slot;
}

static void inbox_take_back(struct inbox *b, struct batch *t, unsigned from)
{
	b->posted -= t->count - from;
	for (unsigned i = from; i < t->count; i++)
		t->slot[i]->busy = false;
}

bool inbox_post(struct inbox *b, struct node *n, unsigned count)
{
	struct batch t = {.count = 0};
	struct ibv_recv_wr *bad = NULL;
	struct inbox_slot *slot;
	struct stream_update u; /* not used: the node's next run performs the update */
	int err;

	while (t.count < count && t.count < INBOX_BATCH && (slot = inbox_next_slot(b)))
		inbox_add(b, &t, slot);
	if (t.count == 0)
		return false;
	err = b->has_srq ? srq_post(&b->srq, t.wr, &bad)
			 : stream_post_recv(n->stream, t.wr, &bad, &u);
	if (!err)
		return true;
	inbox_take_back(b, &t, (unsigned)(bad - t.wr));
	/* A message takes a shared receive out of the SRQ before the receive completes. */
	if (b->posted - b->completed < b->depth && qp_state(n->qp) == IBV_QPS_RTS)
		sim_violate(n->sim, "node %d: posting a receive: error %d", n->index, err);
	return false;
}

/* --- completions ---------------------------------------------------------------------------- */

static void inbox_check_message(struct inbox *b, struct node *n, const struct inbox_slot *slot,
				const struct ibv_wc *wc)
{
	static uint8_t whole[OP_LEN_MAX];
	const struct memory *m = b->home->mem;
	bool known = !m->area[AREA_RECV].gone;
	const char *bad;
	size_t at = 0;

	/* runs of connections in a row do not compare the contents of Sends */
	if (n->sim->world->reconnect)
		return;
	for (unsigned i = 0; i < slot->pieces; i++) {
		memcpy(whole + at, m->cache + slot->piece[i].off, slot->piece[i].len);
		at += slot->piece[i].len;
	}
	if (n->sim->world->windows) {
		windows_on_message(n, wc, whole);
		return;
	}
	if (known && scenario_is_trusted(&n->sim->sc) && wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM)
		for (unsigned i = 0; i < slot->pieces; i++)
			if (memcmp(m->cache + slot->piece[i].off, m->initial + slot->piece[i].off,
				   slot->piece[i].len) != 0)
				sim_violate(n->sim, "node %d: an Immediate wrote to its receive",
					    n->index);
	known &= scenario_is_trusted(&n->sim->sc);
	bad = model_on_received(&n->peer->model, wc, known ? whole : NULL, n->mem);
	if (!bad)
		workload_on_message(n, wc);
	else if (scenario_is_trusted(&n->sim->sc))
		sim_violate(n->sim, "node %d: %s", n->index, bad);
}

void inbox_on_completion(struct inbox *b, struct node *n, const struct ibv_wc *wc)
{
	unsigned index = (unsigned)(wc->wr_id - RECV_ID);

	if (index >= INBOX_SLOTS || !b->slot[index].busy ||
	    (!b->shared && index != b->completed % INBOX_SLOTS)) {
		sim_violate(n->sim, "node %d: receive %u completed, and it was not its turn",
			    n->index, index);
		return;
	}
	b->completed++;
	n->recv_completed++;
	if (wc->status == IBV_WC_SUCCESS && n->recv_failed)
		sim_violate(n->sim, "node %d: a receive succeeded after an error", n->index);
	n->recv_failed |= wc->status != IBV_WC_SUCCESS;
	if (wc->status == IBV_WC_SUCCESS)
		inbox_check_message(b, n, &b->slot[index], wc);
	inbox_clear_slot(b, &b->slot[index]);
}

void inbox_lose(struct inbox *b)
{
	b->lost += b->posted - b->completed;
}

bool inbox_is_used_up(const struct inbox *b)
{
	return b->posted - b->completed <= b->lost;
}

void inbox_check(const struct inbox *b)
{
	unsigned left = b->has_srq ? b->srq.rq.count : 0;
	unsigned missing = b->posted - b->completed - left;

	if (missing > b->lost)
		sim_violate(b->home->sim, "node %d: %u receives never completed", b->home->index,
			    missing);
}

void inbox_allow(const struct inbox *b, uint8_t *want)
{
	for (unsigned i = 0; i < INBOX_SLOTS; i++) {
		const struct inbox_slot *slot = &b->slot[i];

		for (unsigned k = 0; slot->busy && k < slot->pieces; k++)
			memcpy(want + slot->piece[k].off, b->home->mem->cache + slot->piece[k].off,
			       slot->piece[k].len);
	}
}
