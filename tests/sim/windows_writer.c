/* SPDX-License-Identifier: BSD-3-Clause */
/* windows_writer.c -- the application that uses the windows of its peer. */
#include <endian.h>
#include <string.h>

#include "softrnic/rnic/rnic.h"
#include "windows.h"
#include "workload.h"

#define WRITER_TURNS 2000 /* after this many turns the writer posts no more operations */

/* --- the operations of a post ----------------------------------------------------------------- */

static enum win_kind op_choose_kind(struct node *n)
{
	static const unsigned most[] = {50, 58, 72, 80, 90, 100};
	unsigned dice = (unsigned)prng_below(&n->sim->world->rng, n->sim->sc.unreliable ? 80 : 100);
	unsigned kind = WIN_WRITE;

	while (dice >= most[kind])
		kind++;
	return (enum win_kind)kind;
}

/* Choose a live binding in most cases, and sometimes a binding of the other connection. This
 * connection shares such a binding, or must not use it. */
static bool op_choose_binding(struct node *n, struct win_op *op)
{
	struct world *w = n->sim->world;
	struct windows *all = w->windows;
	unsigned rough = n->sim->sc.unreliable ? 25 : 2;

	op->owner = &all->conn[n->sim->index];
	if (w->conns > 1 && prng_chance(&w->rng, 15))
		op->owner = &all->conn[1 - n->sim->index];
	if (op->owner->bindings == 0)
		return false;
	op->b = &op->owner->binding[prng_below(&w->rng, op->owner->bindings)];
	for (unsigned i = 0; i < WIN_WINDOWS && !prng_chance(&w->rng, rough); i++) {
		if (op->owner->window[i].live >= 0 && prng_chance(&w->rng, 50))
			op->b = &op->owner->binding[op->owner->window[i].live];
	}
	if (op->owner != win_of(n) && op->b->area == AREA_TARGET0 && op->b->type == IBV_MW_TYPE_1)
		return false;
	if (op->owner != win_of(n) &&
	    /* skip it, because a write-back covers the memory of only one owner */
	    op->kind >= WIN_READ)
		return false;
	/* A pending second Bind must find the window bound. */
	if (op->kind == WIN_SEND_INV && op->owner->window[op->b->window].pending >= 0)
		return false;
	return op->b->state == BIND_LIVE || prng_chance(&w->rng, rough);
}

/* Returns the rights of which the operation needs one. */
static int op_rights(const struct win_op *op)
{
	switch (op->kind) {
	case WIN_WRITE:
	case WIN_WRITE_IMM:
		return IBV_ACCESS_REMOTE_WRITE;
	case WIN_READ:
		return IBV_ACCESS_REMOTE_READ;
	case WIN_FLUSH:
		return VEXT_ACCESS_FLUSH_PERSISTENT | IBV_ACCESS_REMOTE_READ;
	default:
		return 0;
	}
}

static bool op_is_inside(const struct win_op *op)
{
	return op->off >= op->b->off && op->off + op->len <= op->b->off + op->b->len;
}

/* Returns true if the window never permits this operation. */
static bool op_is_forbidden(const struct node *n, const struct win_op *op)
{
	bool mine = op->owner == win_of(n);

	if (op->kind == WIN_SEND)
		return false;
	if (op->b->refused || (op->b->type == IBV_MW_TYPE_2 && !mine))
		return true;
	if (op->kind == WIN_SEND_INV)
		return op->b->type != IBV_MW_TYPE_2;
	return !op_is_inside(op) || !(op->b->access & op_rights(op));
}

static void op_choose_place(struct node *n, struct win_op *op)
{
	struct prng *rng = &n->sim->world->rng;
	const struct win_binding *b = op->b;
	uint64_t most = b->len < n->sim->sc.op_max ? b->len : n->sim->sc.op_max;

	op->len = (uint32_t)prng_between(rng, 1, most ? most : 1);
	op->off = b->off + (b->len ? prng_below(rng, b->len - op->len + 1) : 0);
	if (prng_chance(rng, n->sim->sc.unreliable ? 15 : 2)) /* possibly outside of the window */
		op->off = b->off + prng_below(rng, b->len + 32);
}

/* A message fits into a receive. On UC some messages are longer, and are lost. */
static void op_choose_message(struct node *n, struct win_op *op)
{
	struct prng *rng = &n->sim->world->rng;
	uint32_t room = n->peer->box->slot_len;

	op->len = (uint32_t)prng_between(rng, 1, room);
	if (n->sim->sc.unreliable && prng_chance(rng, 10))
		op->len += room;
}

static bool op_choose(struct node *n, struct win_op *op)
{
	*op = (struct win_op){.kind = op_choose_kind(n)};
	if (op->kind != WIN_SEND && !op_choose_binding(n, op))
		return false;
	if (op->kind == WIN_SEND || op->kind == WIN_SEND_INV)
		op_choose_message(n, op);
	else
		op_choose_place(n, op);
	op->forbidden = op_is_forbidden(n, op);
	op->was_dead = op->b && op->b->state == BIND_DEAD;
	if (n->sim->sc.unreliable || !(op->forbidden || (op->b && op->b->state != BIND_LIVE)))
		return true;
	/* On RC a refused operation ends the connection, so choose one only seldom. */
	return prng_chance(&n->sim->world->rng, 4);
}

/* --- posts ---------------------------------------------------------------------------------- */

static bool op_has_version(const struct win_op *op)
{
	return op->kind <= WIN_SEND_INV;
}

/* Write the bytes of a version to the stage, where they stay until the run ends. */
static bool op_stage(struct node *n, const struct win_op *op, struct ibv_sge *sge)
{
	const struct area *a = &n->mem->area[AREA_STAGE];
	struct win_conn *c = win_of(n);
	uint64_t off = a->off + c->staged;

	if (op->len > a->len - c->staged)
		return false;
	c->staged += op->len;
	memset(n->mem->cache + off, op->version, op->len);
	*sge = (struct ibv_sge){
		.addr = memory_to(n->mem, AREA_STAGE, off), .length = op->len, .lkey = a->stag};
	return true;
}

static void op_fill(struct vext_wr *w, const struct win_op *op)
{
	switch (op->kind) {
	case WIN_WRITE:
		w->wr.opcode = IBV_WR_RDMA_WRITE;
		break;
	case WIN_WRITE_IMM:
		w->wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
		w->wr.imm_data = htobe32(op->version);
		break;
	case WIN_SEND:
		w->wr.opcode = IBV_WR_SEND;
		break;
	case WIN_SEND_INV:
		w->wr.opcode = IBV_WR_SEND_WITH_INV;
		w->wr.invalidate_rkey = op->b->stag;
		return;
	case WIN_READ:
		w->wr.opcode = IBV_WR_RDMA_READ;
		break;
	default:
		w->op = VEXT_OP_FLUSH;
		w->type = VEXT_FLUSH_PERSISTENT;
		w->len = op->len;
		break;
	}
	if (op->b) {
		w->wr.wr.rdma.remote_addr = op->b->to + (op->off - op->b->off);
		w->wr.wr.rdma.rkey = op->b->stag;
	}
}

static bool op_post(struct node *n, struct win_op *op)
{
	struct win_conn *c = win_of(n);
	struct vext_wr w = {.wr = {.wr_id = c->posted, .send_flags = IBV_SEND_SIGNALED}};
	struct ibv_sge sge = {.addr = memory_to(n->mem, AREA_SINK, n->mem->area[AREA_SINK].off),
			      .length = op->len,
			      .lkey = n->mem->area[AREA_SINK].stag};
	struct stream_update u; /* not used: the visit performs the update */
	int posted = 0;

	if (op_has_version(op) && !op_stage(n, op, &sge))
		return false;
	if (op->kind != WIN_FLUSH) {
		w.wr.sg_list = &sge;
		w.wr.num_sge = 1;
	}
	op_fill(&w, op);
	stream_post_list(n->stream, &w, 1, &posted, &u);
	return posted == 1;
}

/*
 * A Send can invalidate a window before earlier Reads and Flushes through this window are executed.
 */
static bool writer_overtakes(const struct win_conn *c, const struct win_op *inv)
{
	for (unsigned i = c->completed; i < c->posted; i++) {
		if (c->op[i].b == inv->b && c->op[i].kind >= WIN_READ)
			return true;
	}
	return false;
}

static void writer_expect_errors(struct node *n, const struct win_op *op)
{
	struct win_conn *c = win_of(n);

	if (n->sim->sc.unreliable)
		return;
	if (op->forbidden || (op->b && op->b->state != BIND_LIVE))
		c->may_fail = true;
	if (op->kind == WIN_SEND_INV && writer_overtakes(c, op))
		c->may_fail = true;
}

static void writer_post(struct node *n)
{
	struct win_conn *c = win_of(n);
	struct windows *all = n->sim->world->windows;
	struct win_op *op = &c->op[c->posted];

	if (!op_choose(n, op) || (op_has_version(op) && all->version == WIN_VERSIONS))
		return;
	op->version = op_has_version(op) ? (uint8_t)(all->version + 1) : 0;
	if (!op_post(n, op))
		return;
	if (op_has_version(op))
		all->of_version[++all->version] = op;
	writer_expect_errors(n, op);
	if (op->kind == WIN_SEND_INV && op->b->state == BIND_LIVE && !op->forbidden)
		op->b->state = BIND_ENDING;
	c->posted++;
}

/* --- a turn --------------------------------------------------------------------------------- */

void win_writer_on_completion(struct node *n, const struct ibv_wc *wc)
{
	struct win_conn *c = win_of(n);

	if (wc->wr_id != c->completed || wc->wr_id >= c->posted) {
		sim_violate(n->sim, "operation %u completes out of order", (unsigned)wc->wr_id);
		return;
	}
	c->completed++;
	c->op[wc->wr_id].completed = wc->status == IBV_WC_SUCCESS;
	if (c->op[wc->wr_id].kind >= WIN_READ)
		c->answered = c->completed;
	if (wc->status == IBV_WC_SUCCESS)
		win_on_completed(n, &c->op[wc->wr_id]);
}

void win_writer_tick(struct node *n)
{
	struct prng *rng = &n->sim->world->rng;
	struct win_conn *c = win_of(n);

	if (!n->established || n->disconnecting)
		return;
	for (unsigned i = (unsigned)prng_below(rng, 5); i > 0 && c->posted < c->planned; i--) {
		if (!c->failed && (!n->disconnected || n->sim->sc.unreliable))
			writer_post(n);
	}
	c->turns++;
	if (c->completed == c->posted && (c->posted == c->planned || c->turns > WRITER_TURNS))
		workload_disconnect(n);
}
