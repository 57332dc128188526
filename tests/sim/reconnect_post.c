/* SPDX-License-Identifier: BSD-3-Clause */
/* reconnect_post.c -- the random posts of the initiator of connections in a row. */
#include <string.h>

#include "reconnect.h"

/* If the run has commit flags, the order is: data, flush, flag. */
static enum reconnect_kind post_kind(struct prng *rng, bool commit_flags)
{
	static const unsigned most[][RC_FLUSH] = {{55, 65, 73, 80}, {20, 25, 60, 62}};
	unsigned dice = (unsigned)prng_below(rng, 100), kind = RC_WRITE;

	while (kind < RC_FLUSH && dice >= most[commit_flags][kind])
		kind++;
	return (enum reconnect_kind)kind;
}

static const struct area *post_area(const struct node *n, const struct reconnect_op *op, bool words)
{
	enum area_kind kind = op->kind == RC_ELSEWHERE         ? AREA_SCRATCH
			      : op->kind == RC_ATOMIC || words ? AREA_WORDS
							       : AREA_TARGET0;

	return &n->peer->mem->area[kind];
}

static void post_place(struct prng *rng, const struct area *a, struct reconnect_op *op)
{
	if (op->kind == RC_ATOMIC) {
		op->len = 8;
		op->off = a->off + 8 * prng_below(rng, a->len / 8);
	} else if (op->kind == RC_FLUSH && prng_chance(rng, 60)) {
		op->len = (uint32_t)a->len;
		op->off = a->off;
	} else {
		op->off = a->off + prng_below(rng, a->len - op->len + 1);
	}
}

/* A large Write has several FPDUs, which are placed while they arrive. */
static uint32_t post_len(struct prng *rng, uint32_t max)
{
	if (prng_chance(rng, 20))
		return 8;
	return (uint32_t)prng_between(rng, prng_chance(rng, 50) ? max / 2 : 1, max);
}

static bool post_has_version(const struct reconnect_op *op)
{
	return op->kind == RC_WRITE || op->kind == RC_ATOMIC;
}

static const struct area *post_choose(struct node *n, struct reconnect_op *op)
{
	struct prng *rng = &n->sim->world->rng;
	const struct area *a;
	uint32_t len = post_len(rng, n->sim->sc.op_max);

	*op = (struct reconnect_op){.kind = post_kind(rng, n->sim->sc.commit_flags)};
	if (post_has_version(op) && reconnect_conn_of(n)->end == END_STAY)
		op->kind = RC_ELSEWHERE;
	a = post_area(n, op, op->kind == RC_FLUSH && prng_chance(rng, 30));
	op->len = len < a->len ? len : (uint32_t)a->len;
	if (op->kind == RC_SEND && op->len > n->peer->box->slot_len)
		op->len = n->peer->box->slot_len;
	post_place(rng, a, op);
	return a;
}

/* Write the bytes of a version to the stage, where they stay until the run ends. Returns false if
 * the stage is full. */
static bool post_stage(struct node *n, struct reconnect_op *op, struct ibv_sge *sge)
{
	const struct area *a = &n->mem->area[AREA_STAGE];
	struct reconnect_conn *c = reconnect_conn_of(n);
	uint64_t off = a->off + c->staged;

	if (op->len > a->len - c->staged)
		return false;
	c->staged += op->len;
	memset(n->mem->cache + off, op->version, op->len);
	*sge = (struct ibv_sge){
		.addr = memory_to(n->mem, AREA_STAGE, off), .length = op->len, .lkey = a->stag};
	return true;
}

static void post_fill(struct vext_wr *w, const struct reconnect_op *op)
{
	switch (op->kind) {
	case RC_WRITE:
	case RC_ELSEWHERE:
		w->wr.opcode = IBV_WR_RDMA_WRITE;
		break;
	case RC_SEND:
		w->wr.opcode = IBV_WR_SEND;
		break;
	case RC_ATOMIC:
		w->op = VEXT_OP_ATOMIC_WRITE;
		memset(w->bytes, op->version, sizeof(w->bytes));
		break;
	case RC_FLUSH:
		w->op = VEXT_OP_FLUSH;
		w->type = VEXT_FLUSH_PERSISTENT;
		w->len = op->len;
		break;
	}
}

/* Returns false if the queue is full, or if the queue pair refuses the operation. */
static bool post_post(struct node *n, struct reconnect_op *op, const struct area *a)
{
	struct reconnect_conn *c = reconnect_conn_of(n);
	struct vext_wr w = {.wr = {.wr_id = c->posted, .send_flags = IBV_SEND_SIGNALED}};
	struct stream_update u; /* not used: the node's next run performs the update */
	struct ibv_sge sge;
	int posted = 0;

	if (op->kind <= RC_ELSEWHERE || op->kind == RC_SEND) {
		if (!post_stage(n, op, &sge))
			return false;
		w.wr.sg_list = &sge;
		w.wr.num_sge = 1;
	}
	w.wr.wr.rdma.remote_addr =
		memory_to(n->peer->mem, (enum area_kind)(a - n->peer->mem->area), op->off);
	w.wr.wr.rdma.rkey = a->stag;
	post_fill(&w, op);
	stream_post_list(n->stream, &w, 1, &posted, &u);
	if (posted != 1)
		return false;
	c->op[c->posted++] = *op;
	return true;
}

void reconnect_post_one(struct node *n)
{
	struct reconnect *r = n->sim->world->reconnect;
	struct reconnect_op op;
	const struct area *a = post_choose(n, &op);

	if (post_has_version(&op)) {
		if (r->version == RECONNECT_VERSIONS)
			return;
		op.version = (uint8_t)(r->version + 1);
	}
	if (post_post(n, &op, a) && post_has_version(&op))
		r->version++;
}

/* Post the last operation of the last connection, a flush of the place. */
void reconnect_post_last(struct node *n)
{
	const struct area *a = &n->peer->mem->area[AREA_TARGET0];
	struct reconnect_op op = {.kind = RC_FLUSH, .off = a->off, .len = (uint32_t)a->len};

	post_post(n, &op, a);
}
