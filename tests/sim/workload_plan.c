/* SPDX-License-Identifier: BSD-3-Clause */
/* workload_plan.c -- plan the operations of both applications, and their memory. */
#include <string.h>

#include "workload.h"

#define STAGE_MAX     (512u << 10)
#define FORBIDDEN_MAX 400u
#define GAP           8 /* unused bytes between the memory of two operations */
/* bytes of Sends that can wait for a receive; the RNIC limits them */
#define LATE_SEND (96u << 10)

struct sizes { /* sizes of the memory that one end's plan needs */
	uint64_t sink, stage, send_bytes;
	uint32_t send_max;
	bool invalidated, flushes_all, by_reading;
	bool may_lose; /* the peer will deregister a region that can have unflushed bytes */
};

static uint32_t plan_len(struct sim *sim, uint32_t max)
{
	unsigned dice = (unsigned)prng_below(&sim->world->rng, 100);

	if (sim->sc.mostly_sends && dice < 60)
		return max;
	if (sim->sc.mostly_large && dice < 60)
		return (uint32_t)prng_between(&sim->world->rng, max / 2, max);
	if (dice < 8)
		return 0;
	if (dice < 14)
		return 1;
	if (dice < 35)
		return 8;
	return (uint32_t)prng_between(&sim->world->rng, 1, dice < 70 && max > 256 ? 256 : max);
}

static enum op_kind plan_message_kind(struct sim *sim)
{
	unsigned dice = (unsigned)prng_below(&sim->world->rng, 100);

	if (dice < 25 && scenario_has_consent(&sim->sc))
		return OP_SEND_IMM;
	if (dice < 50 && scenario_has_7306(&sim->sc))
		return OP_WRITE_IMM;
	return dice < 60 ? OP_SEND_INV : OP_SEND;
}

static enum op_kind plan_atomic_kind(struct sim *sim)
{
	unsigned dice = (unsigned)prng_below(&sim->world->rng, 100);

	if (dice < 40 && scenario_has_consent(&sim->sc))
		return OP_ATOMIC_WRITE;
	if (!scenario_has_7306(&sim->sc))
		return OP_READ;
	return dice < 70 ? OP_FETCH_ADD : OP_CMP_SWAP;
}

/* A peer that announced native flushes does not flush by reading. If the end of AREA_LEASE can lose
 * bytes, no Flush of all bytes is planned, because such a Flush would fail. */
static enum op_kind plan_flush_kind(struct sim *sim, const struct sizes *need)
{
	unsigned dice = (unsigned)prng_below(&sim->world->rng, 100);

	if (need->by_reading && prng_chance(&sim->world->rng, 50))
		return OP_READ;
	if (dice < 20)
		return OP_VERIFY;
	if (dice < 28)
		return OP_QUERY;
	return dice < 45 && need->flushes_all ? OP_FLUSH_ALL : OP_FLUSH;
}

static enum op_kind plan_kind(struct sim *sim, const struct sizes *need)
{
	unsigned dice = (unsigned)prng_below(&sim->world->rng, 100);
	bool consent = scenario_has_consent(&sim->sc);

	if (sim->sc.mostly_sends && prng_chance(&sim->world->rng, 80))
		return plan_message_kind(sim);
	if (sim->sc.commit_flags && consent && dice < 70)
		return dice < 25   ? OP_WRITE
		       : dice < 50 ? plan_flush_kind(sim, need)
				   : OP_ATOMIC_WRITE;
	if (dice < 40)
		return OP_WRITE;
	if (dice < 53)
		return OP_READ;
	if (dice < 73)
		return plan_message_kind(sim);
	if (dice < 84)
		return plan_atomic_kind(sim);
	return consent ? plan_flush_kind(sim, need) : OP_READ;
}

static enum area_kind plan_area(struct node *n, const struct op *op, bool leased)
{
	unsigned dice = (unsigned)prng_below(&n->sim->world->rng, 100);

	if (op_is_atomic(op))
		return AREA_WORDS;
	if (op_is_request(op) && dice < 12)
		return AREA_WORDS;
	if (op_traits[op->kind].writes && leased && dice < 12)
		return AREA_LEASE;
	return dice < 70 ? AREA_TARGET0 : AREA_TARGET1;
}

static uint32_t plan_len_in(const struct node *n, const struct op *op, uint32_t len)
{
	uint32_t words = n->sim->sc.words_len;

	if (op_is_atomic(op))
		return sizeof(uint64_t);
	if (op->kind == OP_READ && op->area == AREA_WORDS && len > 64)
		return words; /* all words, which are too many to be copied in one step */
	if ((op->kind == OP_VERIFY || op->kind == OP_QUERY) && len == 0)
		return 1;
	return op->area == AREA_WORDS && len > words ? words : len;
}

static bool plan_can_be_strict(const struct sim *sim, const struct op *op)
{
	bool all_persist = !sim->sc.half_volatile[0] && !sim->sc.half_volatile[1];

	return all_persist || (op->kind != OP_FLUSH_ALL && op->area != AREA_TARGET1);
}

static void plan_flags(struct sim *sim, struct op *op)
{
	op->signalled = prng_chance(&sim->world->rng, 60);
	op->fence = prng_chance(&sim->world->rng, 15);
	op->persistent = prng_chance(&sim->world->rng, 75);
	op->strict = (op->kind == OP_FLUSH || op->kind == OP_FLUSH_ALL) && op->persistent &&
		     plan_can_be_strict(sim, op) && prng_chance(&sim->world->rng, 40);
	op->solicited = op_is_message(op) && prng_chance(&sim->world->rng, 40);
	op->is_inline = op_traits[op->kind].has_data && op->len <= sim->sc.inline_max &&
			prng_chance(&sim->world->rng, 50);
	op->persistent |= op->kind == OP_VERIFY;
	op->alg = prng_chance(&sim->world->rng, 50) ? VEXT_DIGEST_CRC32C : VEXT_DIGEST_BLAKE2B;
	op->imm = (uint32_t)prng_next(&sim->world->rng);
	op->operand = prng_next(&sim->world->rng);
	op->mismatch = 1ull << prng_below(&sim->world->rng, 64);
	op->matches = prng_chance(&sim->world->rng, 60);
	op->data = memory_pool() + prng_below(&sim->world->rng, POOL_LEN - OP_LEN_MAX);
}

/* Add the memory for answers, and for messages that wait for a receive. */
static void plan_note_needs(struct op *op, struct sizes *need)
{
	if (op_is_message(op) && op->kind != OP_WRITE_IMM) {
		need->send_bytes += op->len;
		need->send_max = op->len > need->send_max ? op->len : need->send_max;
	}
	if (op->staged) {
		op->stage = need->stage;
		need->stage += op->len;
	}
	need->invalidated |= op->kind == OP_SEND_INV;
	if (op->kind == OP_READ || op->kind == OP_FETCH_ADD || op->kind == OP_CMP_SWAP) {
		/* for now an offset in the area; later an offset in the arena */
		op->sink = need->sink;
		need->sink += op->len + GAP;
	}
}

static bool plan_may_lease(const struct sizes *need)
{
	return !need->invalidated && (!need->flushes_all || need->may_lose);
}

static void plan_op(struct node *n, struct op *op, struct sizes *need)
{
	struct sim *sim = n->sim;
	const struct scenario *sc = &sim->sc;
	uint32_t len;

	*op = (struct op){.kind = plan_kind(sim, need)};
	len = plan_len(sim, op_is_message(op) ? sc->send_max : sc->op_max);
	if (op_is_message(op) && sc->late_receives && need->send_bytes + len > LATE_SEND)
		op->kind = OP_WRITE;
	if (op->kind == OP_SEND_INV && (need->invalidated || need->may_lose))
		op->kind = OP_SEND;
	op->area = plan_area(n, op, plan_may_lease(need));
	op->len = plan_len_in(n, op, len);
	plan_flags(sim, op);
	if (op->kind == OP_WRITE && !op->is_inline && sc->changing &&
	    prng_chance(&sim->world->rng, 40)) {
		op->changing = true;
		op->area = AREA_SCRATCH;
	}
	op->staged = op_traits[op->kind].has_data && !op->is_inline && !op->changing &&
		     need->stage + op->len < STAGE_MAX &&
		     prng_chance(&sim->world->rng, sim->sc.reuse_percent);
	plan_note_needs(op, need);
}

/*
 * In each phase, requests precede Sends. Otherwise the applications could cause a deadlock: if each
 * end posted a Flush after a Send, the Flush would wait until the Send's receive is posted, and the
 * peer posts this receive only after its own Flush.
 */
static void plan_phases(struct node *n)
{
	struct model *m = &n->model;
	struct op sends[MODEL_OPS];
	unsigned at = 0, phase = 0;

	while (at < m->planned) {
		unsigned end = at + (unsigned)prng_between(&n->sim->world->rng, 1, 12);
		unsigned kept = at, moved = 0;

		end = end < m->planned ? end : m->planned;
		for (unsigned i = at; i < end; i++) {
			m->op[i].phase = phase;
			if (op_is_message(&m->op[i]))
				sends[moved++] = m->op[i];
			else
				m->op[kept++] = m->op[i];
		}
		memcpy(&m->op[kept], sends, moved * sizeof(sends[0]));
		at = end;
		phase++;
	}
}

/* Signal enough operations, so that the send queue can always be emptied, and the application
 * notices the end of a phase. */
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

	need->may_lose = n->sim->sc.fault == FAULT_DEREG && n->sim->sc.fault_node != n->index;
	need->by_reading = !n->sim->sc.announces[n->index];
	need->flushes_all = prng_chance(&n->sim->world->rng, 50);
	m->planned = n->sim->sc.ops[n->index];
	for (unsigned i = 0; i < m->planned; i++)
		plan_op(n, &m->op[i], need);
	if (n->sim->sc.late_receives)
		plan_phases(n);
	plan_signals(n);
}

/* --- memory ------------------------------------------------------------------------------- */

static void plan_memory(struct node *n, const struct sizes *own)
{
	const struct scenario *sc = &n->sim->sc;
	uint64_t len[AREA_COUNT] = {
		[AREA_TARGET0] = sc->target_len, [AREA_TARGET1] = sc->op_max + 8,
		[AREA_LEASE] = sc->op_max,       [AREA_WORDS] = sc->words_len,
		[AREA_SINK] = own->sink,         [AREA_RECV] = inbox_room(&n->own_box),
		[AREA_SCRATCH] = sc->op_max,     [AREA_SOURCE] = sc->op_max,
		[AREA_STAGE] = own->stage,
	};

	memory_init(n->mem, &n->sim->world->rng, len, n->host->mrs, &n->host->pd);
	n->mem->area[AREA_TARGET1].is_volatile = sc->half_volatile[n->index];
	n->mem->area[AREA_TARGET1].mr->backing.durable = !sc->half_volatile[n->index];
	n->mem->is_dax = sc->dax[n->index];
	inbox_plan(&n->own_box);
}

/* Choose the address in the peer's target area, whose layout is known now. Words are usually
 * aligned. */
static void plan_place_op(struct node *n, struct op *op)
{
	struct sim *sim = n->sim;
	const struct area *a = &n->peer->mem->area[op->area];
	uint64_t slack = a->len - op->len;

	op->stage += n->mem->area[AREA_STAGE].off;
	op->sink += n->mem->area[AREA_SINK].off;
	if (op->changing)
		op->data = n->mem->cache + n->mem->area[AREA_SOURCE].off;
	op->off = a->off + prng_below(&sim->world->rng, slack + 1);
	if (op_is_atomic(op))
		op->off = a->off + 8 * prng_below(&sim->world->rng, MODEL_WORDS);
	else if (op->len == 8 && !op->changing && slack >= 8 && prng_chance(&sim->world->rng, 80))
		op->off = (a->off + 7 + prng_below(&sim->world->rng, slack - 7)) & ~7ull;
}

/*
 * Make a message that does not fit the peer's receive, or that invalidates a region which must stay
 * valid.
 */
static void plan_forbid_message(struct node *n, struct op *op)
{
	struct prng *rng = &n->sim->world->rng;

	if (prng_chance(rng, 50)) {
		op->kind = OP_SEND_INV;
		op->len = op->len ? op->len : 1;
		/* Choose an area to which the peer has no right, or only the rights to read and
		 * write. */
		op->area = prng_chance(rng, 50) ? AREA_RECV : AREA_TARGET0;
	} else {
		op->len = n->peer->box->slot_len + 1 + (uint32_t)prng_below(rng, 100);
	}
}

/* Use memory without rights, or, if such a request can be posted, an unaligned address. */
static void plan_forbid_atomic(struct node *n, struct op *op)
{
	if (op->kind != OP_ATOMIC_WRITE && prng_chance(&n->sim->world->rng, 50)) {
		op->off += 4;
		return;
	}
	op->area = AREA_RECV;
	op->off = (n->peer->mem->area[AREA_RECV].off + 7) & ~7ull;
}

/* Use only one FPDU, because the peer is allowed to place FPDUs that precede the refused one. */
static void plan_forbid_access(struct node *n, struct op *op)
{
	struct sim *sim = n->sim;
	const struct area *a = &n->peer->mem->area[op->area];

	op->len = op->len == 0 ? 1 : op->len > FORBIDDEN_MAX ? FORBIDDEN_MAX : op->len;
	if (prng_chance(&sim->world->rng, 50)) {
		op->area = AREA_RECV; /* an area without rights for the peer */
		op->off = n->peer->mem->area[AREA_RECV].off;
	} else {
		op->off = a->off + a->len - op->len + 1 + prng_below(&sim->world->rng, op->len);
	}
}

/* Plan an operation that the peer must refuse. An operation of zero bytes is permitted at any
 * address (RFC 5041 s5.1). */
static void plan_forbidden_op(struct node *n)
{
	struct op *op = &n->model.op[n->sim->sc.fault_pos];

	if (n->sim->sc.fault_pos >= n->model.planned)
		return;
	if (op->kind == OP_FLUSH_ALL)
		op->kind = OP_FLUSH;
	op->forbidden = true;
	op->changing = op->staged = op->is_inline = false;
	if (op_is_atomic(op))
		plan_forbid_atomic(n, op);
	else if (op_is_message(op) && op->kind != OP_WRITE_IMM)
		plan_forbid_message(n, op);
	else
		plan_forbid_access(n, op);
}

/* Plan a strict flush of memory without a medium. */
static void plan_strict_flush(struct node *n)
{
	struct op *op = &n->model.op[n->sim->sc.fault_pos];
	const struct area *a = &n->peer->mem->area[AREA_TARGET1];

	if (n->sim->sc.fault_pos >= n->model.planned || !scenario_has_consent(&n->sim->sc))
		return;
	*op = (struct op){.kind = OP_FLUSH,
			  .phase = op->phase,
			  .area = AREA_TARGET1,
			  .off = a->off,
			  .len = (uint32_t)a->len,
			  .signalled = op->signalled,
			  .persistent = true,
			  .strict = true};
}

static void plan_place_ops(struct node *n)
{
	model_set_peer(&n->model, n->peer->mem->size);
	model_set_words(&n->model, n->peer->mem);
	for (unsigned k = 0; k < n->model.planned; k++)
		plan_place_op(n, &n->model.op[k]);
}

static void plan_fault(struct sim *sim)
{
	struct node *n = &sim->node[sim->sc.fault_node];

	if (sim->sc.fault == FAULT_ACCESS)
		plan_forbidden_op(n);
	if (sim->sc.fault == FAULT_STRICT)
		plan_strict_flush(n);
}

void workload_plan(struct world *w)
{
	struct sizes need[SIM_CONNS][2] = {{{0}}};

	for (unsigned c = 0; c < w->conns; c++) {
		for (int i = 0; i < 2; i++) {
			struct node *n = &w->conn[c].node[i];
			struct inbox *b = n->peer->box;

			model_init(&n->model);
			plan_node(n, &need[c][i]);
			if (need[c][i].send_max > b->slot_len)
				b->slot_len = need[c][i].send_max;
		}
	}
	for (unsigned c = 0; c < w->conns; c++) {
		for (int i = 0; i < 2; i++)
			plan_memory(&w->conn[c].node[i], &need[c][i]);
		for (int i = 0; i < 2; i++)
			plan_place_ops(&w->conn[c].node[i]);
		plan_fault(&w->conn[c]);
	}
}
