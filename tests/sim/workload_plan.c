/* SPDX-License-Identifier: BSD-3-Clause */
/* workload_plan.c -- what both applications are going to ask for, and memory for it. */
#include <string.h>

#include "workload.h"

#define FORBIDDEN_MAX 400u
#define GAP           8 /* between pieces of memory that belong to different operations */
#define LATE_SEND                                                                                  \
	(96u << 10) /* bytes of Sends that may wait for late receives (D8 bounds them)             \
		     */

struct sizes { /* what one end's plan needs */
	uint64_t sink, send_bytes;
	uint32_t send_max;
};

static uint32_t choose_len(struct sim *sim, uint32_t max)
{
	unsigned dice = (unsigned)prng_below(&sim->rng, 100);

	if (sim->sc.talkative && dice < 60)
		return max;
	if (dice < 8)
		return 0;
	if (dice < 14)
		return 1;
	if (dice < 35)
		return 8;
	return (uint32_t)prng_between(&sim->rng, 1, dice < 70 && max > 256 ? 256 : max);
}

static enum op_kind choose_kind(struct sim *sim)
{
	unsigned dice = (unsigned)prng_below(&sim->rng, 100);

	if (sim->sc.talkative && prng_chance(&sim->rng, 80))
		return OP_SEND;
	if (dice < 45)
		return OP_WRITE;
	if (dice < 60)
		return OP_READ;
	if (dice < 80)
		return OP_SEND;
	return scenario_has_consent(&sim->sc) ? OP_FLUSH : OP_READ;
}

static void plan_data(struct sim *sim, struct op *op)
{
	op->data = memory_pool() + prng_below(&sim->rng, POOL_LEN - OP_LEN_MAX);
}

static void plan_op(struct node *n, struct op *op, struct sizes *need)
{
	struct sim *sim = n->sim;
	const struct scenario *sc = &sim->sc;

	*op = (struct op){.kind = choose_kind(sim)};
	op->area = prng_chance(&sim->rng, 70) ? AREA_TARGET0 : AREA_TARGET1;
	op->len = choose_len(sim, op->kind == OP_SEND ? sc->send_max : sc->op_max);
	op->signalled = prng_chance(&sim->rng, 60);
	op->fence = prng_chance(&sim->rng, 15);
	op->persistent = prng_chance(&sim->rng, 75);
	if (op->kind == OP_SEND && sc->late_receives && need->send_bytes + op->len > LATE_SEND)
		op->kind = OP_WRITE;
	op->is_inline = (op->kind == OP_SEND || op->kind == OP_WRITE) &&
			op->len <= sc->inline_max && prng_chance(&sim->rng, 50);
	plan_data(sim, op);
	if (op->kind == OP_WRITE && !op->is_inline && sc->restless && prng_chance(&sim->rng, 40)) {
		op->restless = true;
		op->area = AREA_SCRATCH;
	}
	if (op->kind == OP_SEND) {
		need->send_bytes += op->len;
		need->send_max = op->len > need->send_max ? op->len : need->send_max;
	}
	if (op->kind == OP_READ) {
		op->sink = need->sink; /* in the area, for now */
		need->sink += op->len + GAP;
	}
}

/* In a phase requests come before Sends: a Flush behind a Send that waits for a receive, which
 * waits for a Flush behind a Send, would be a deadlock of the applications' own making. */
static void plan_phases(struct node *n)
{
	struct model *m = &n->model;
	struct op sends[MODEL_OPS];
	unsigned at = 0, phase = 0;

	while (at < m->planned) {
		unsigned end = at + (unsigned)prng_between(&n->sim->rng, 1, 12);
		unsigned kept = at, moved = 0;

		end = end < m->planned ? end : m->planned;
		for (unsigned i = at; i < end; i++) {
			m->op[i].phase = phase;
			if (m->op[i].kind == OP_SEND)
				sends[moved++] = m->op[i];
			else
				m->op[kept++] = m->op[i];
		}
		memcpy(&m->op[kept], sends, moved * sizeof(sends[0]));
		at = end;
		phase++;
	}
}

/* Enough signalled operations that the send queue can always be emptied, and that a phase's
 * end is noticed. */
static void plan_signals(struct node *n)
{
	struct model *m = &n->model;
	unsigned silent = 0;

	for (unsigned i = 0; i < m->planned; i++) {
		struct op *op = &m->op[i];
		bool last = i + 1 == m->planned || m->op[i + 1].phase != op->phase;

		if (last || silent + 1 >= n->sim->sc.send_depth[n->index])
			op->signalled = true;
		silent = op->signalled ? 0 : silent + 1;
	}
}

static void plan_node(struct node *n, struct sizes *need)
{
	struct model *m = &n->model;

	m->planned = n->sim->sc.ops[n->index];
	for (unsigned i = 0; i < m->planned; i++)
		plan_op(n, &m->op[i], need);
	if (n->sim->sc.late_receives)
		plan_phases(n);
	plan_signals(n);
}

/* --- memory ------------------------------------------------------------------------------- */

static uint64_t slot_room(const struct node *n)
{
	return n->slot_len + NODE_PIECES * GAP;
}

static void plan_slots(struct node *n)
{
	struct sim *sim = n->sim;
	uint64_t at = n->mem.area[AREA_RECV].off;

	for (unsigned i = 0; i < NODE_SLOTS; i++, at += slot_room(n)) {
		struct recv_slot *slot = &n->slot[i];
		uint64_t off = at;
		uint32_t left = n->slot_len;

		slot->pieces = (unsigned)prng_between(&sim->rng, 1, sim->sc.recv_sge);
		for (unsigned k = 0; k < slot->pieces; k++) {
			bool last = k + 1 == slot->pieces;

			slot->piece[k].off = off;
			slot->piece[k].len =
				last ? left : (uint32_t)prng_below(&sim->rng, left + 1);
			left -= slot->piece[k].len;
			off += slot->piece[k].len + GAP;
		}
	}
}

static void plan_memory(struct node *n, const struct sizes *own, const struct sizes *peer)
{
	const struct scenario *sc = &n->sim->sc;
	uint64_t len[AREA_COUNT] = {
		[AREA_TARGET0] = sc->target_len, [AREA_TARGET1] = sc->op_max + 8,
		[AREA_SINK] = own->sink,         [AREA_SCRATCH] = sc->op_max,
		[AREA_SOURCE] = sc->op_max,
	};

	n->slot_len = peer->send_max;
	len[AREA_RECV] = NODE_SLOTS * slot_room(n);
	memory_init(&n->mem, &n->sim->rng, len, n->mrs, &n->pd);
	plan_slots(n);
}

/* Where in the peer's target, now that it has a place. Words are mostly aligned. */
static void place_op(struct node *n, struct op *op)
{
	struct sim *sim = n->sim;
	const struct area *a = &n->peer->mem.area[op->area];
	uint64_t slack = a->len - op->len;

	op->sink += n->mem.area[AREA_SINK].off;
	if (op->restless)
		op->data = n->mem.cache + n->mem.area[AREA_SOURCE].off;
	op->off = a->off + prng_below(&sim->rng, slack + 1);
	if (op->len == 8 && !op->restless && slack >= 8 && prng_chance(&sim->rng, 80))
		op->off = (a->off + 7 + prng_below(&sim->rng, slack - 7)) & ~7ull;
}

/* One operation that the peer must refuse. Zero bytes may go anywhere (RFC 5041 s5.1). */
static void forbid(struct node *n)
{
	struct sim *sim = n->sim;
	struct op *op = &n->model.op[sim->sc.fault_pos];
	const struct area *a;

	if (sim->sc.fault_pos >= n->model.planned)
		return;
	op->forbidden = true;
	op->restless = false;
	op->is_inline = false;
	if (op->kind == OP_SEND) {
		op->len = n->peer->slot_len + 1 + (uint32_t)prng_below(&sim->rng, 100);
		return;
	}
	/* One FPDU, or the peer would rightly place those before the one it refuses. */
	op->len = op->len == 0 ? 1 : op->len > FORBIDDEN_MAX ? FORBIDDEN_MAX : op->len;
	a = &n->peer->mem.area[op->area];
	if (prng_chance(&sim->rng, 50))
		op->area = AREA_RECV; /* no rights for a peer */
	else
		op->off = a->off + a->len - op->len + 1 + prng_below(&sim->rng, op->len);
	if (op->area == AREA_RECV)
		op->off = n->peer->mem.area[AREA_RECV].off;
}

void workload_plan(struct sim *sim)
{
	struct sizes need[2] = {{0}, {0}};

	for (int i = 0; i < 2; i++) {
		model_init(&sim->node[i].model);
		plan_node(&sim->node[i], &need[i]);
	}
	for (int i = 0; i < 2; i++)
		plan_memory(&sim->node[i], &need[i], &need[1 - i]);
	for (int i = 0; i < 2; i++) {
		struct node *n = &sim->node[i];

		model_set_peer(&n->model, n->peer->mem.size);
		for (unsigned k = 0; k < n->model.planned; k++)
			place_op(n, &n->model.op[k]);
	}
	if (sim->sc.fault == FAULT_ACCESS)
		forbid(&sim->node[sim->sc.fault_node]);
}
