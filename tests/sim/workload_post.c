/* SPDX-License-Identifier: BSD-3-Clause */
/* workload_post.c -- make work requests from planned operations and buffers. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "workload.h"

#define CHAIN 5
#define SGES  4

struct post { /* the work requests that are being built */
	struct vext_wr wr[CHAIN];
	struct ibv_sge sge[CHAIN][SGES];
	uint8_t inline_bytes[CHAIN][512];
	uint64_t word[MODEL_WORDS]; /* words of the peer after all these requests */
	unsigned count;
	bool overfull; /* the requests exceed the depth that the queue was promised to have */
};

static uint64_t post_remote_to(const struct node *n, const struct op *op)
{
	return memory_to(n->peer->mem, op->area, op->off);
}

static unsigned post_flags(const struct op *op)
{
	return (op->signalled ? IBV_SEND_SIGNALED : 0u) | (op->fence ? IBV_SEND_FENCE : 0u) |
	       (op->is_inline ? IBV_SEND_INLINE : 0u) | (op->solicited ? IBV_SEND_SOLICITED : 0u);
}

/* Cut the data into segments at random positions; a segment may be empty. */
static int post_cut_sges(struct sim *sim, struct ibv_sge *sge, uint64_t addr, uint32_t len,
			 uint32_t lkey)
{
	int n = (int)prng_between(&sim->world->rng, 1, sim->sc.send_sge);

	for (int i = 0; i < n; i++) {
		uint32_t part = i + 1 == n ? len : (uint32_t)prng_below(&sim->world->rng, len + 1);

		sge[i] = (struct ibv_sge){.addr = addr, .length = part, .lkey = lkey};
		addr += part;
		len -= part;
	}
	return n;
}

/* --- one operation ------------------------------------------------------------------------ */

static void post_set_source(struct node *n, struct post *p, struct ibv_send_wr *wr,
			    const struct op *op)
{
	uint64_t addr = (uintptr_t)op->data;
	uint32_t lkey = n->mem->pool_stag;

	if (op->changing) {
		addr = memory_to(n->mem, AREA_SOURCE, n->mem->area[AREA_SOURCE].off);
		lkey = n->mem->area[AREA_SOURCE].stag;
	}
	if (op->staged) {
		const struct area *a = &n->mem->area[AREA_STAGE];

		if (!a->gone)
			memcpy(n->mem->cache + op->stage, op->data, op->len);
		addr = memory_to(n->mem, AREA_STAGE, op->stage);
		lkey = a->stag;
	}
	/* inline data need no registration, and the memory is freed after the call */
	if (op->is_inline) {
		memcpy(p->inline_bytes[p->count], op->data, op->len);
		addr = (uintptr_t)p->inline_bytes[p->count];
		lkey = 0;
	}
	wr->num_sge = post_cut_sges(n->sim, wr->sg_list, addr, op->len, lkey);
}

static void post_set_sink(struct node *n, struct ibv_send_wr *wr, const struct op *op)
{
	wr->num_sge = 1;
	wr->sg_list[0] = (struct ibv_sge){
		.addr = memory_to(n->mem, AREA_SINK, op->sink),
		.length = op->len,
		.lkey = n->mem->area[AREA_SINK].stag,
	};
}

static void post_set_atomic(struct node *n, struct ibv_send_wr *wr, const struct op *op)
{
	post_set_sink(n, wr, op);
	wr->wr.atomic.remote_addr = post_remote_to(n, op);
	wr->wr.atomic.rkey = n->peer->mem->area[op->area].stag;
	wr->wr.atomic.swap = op->operand;
	wr->wr.atomic.compare_add = op->operand;
	if (op->kind == OP_CMP_SWAP)
		wr->wr.atomic.compare_add = op->original ^ (op->matches ? 0 : op->mismatch);
}

static uint32_t post_invalidated_stag(const struct node *n, const struct op *op)
{
	return n->peer->mem->area[op->forbidden ? op->area : AREA_LEASE].stag;
}

static void post_set_remote(struct node *n, struct ibv_send_wr *wr, const struct op *op)
{
	wr->wr.rdma.remote_addr = post_remote_to(n, op);
	wr->wr.rdma.rkey = n->peer->mem->area[op->area].stag;
}

static enum vext_op post_ext_op(const struct op *op)
{
	switch (op->kind) {
	case OP_FLUSH:
		return VEXT_OP_FLUSH;
	case OP_FLUSH_ALL:
		return VEXT_OP_FLUSH_ALL;
	case OP_ATOMIC_WRITE:
		return VEXT_OP_ATOMIC_WRITE;
	case OP_VERIFY:
		return VEXT_OP_VERIFY;
	case OP_QUERY:
		return VEXT_OP_QUERY;
	default:
		return VEXT_OP_VERBS;
	}
}

static void post_set_ext(struct node *n, struct vext_wr *w, struct op *op)
{
	post_set_remote(n, &w->wr, op);
	w->op = post_ext_op(op);
	w->alg = op->alg;
	w->result = op->kind == OP_VERIFY ? (void *)&op->digest : &op->durability;
	w->len = op->len;
	w->type = op->strict       ? VEXT_FLUSH_STRICT
		  : op->persistent ? VEXT_FLUSH_PERSISTENT
				   : VEXT_FLUSH_VISIBLE;
	memcpy(w->bytes, &op->operand, sizeof(w->bytes));
}

static void post_set_verbs(struct node *n, struct post *p, struct ibv_send_wr *wr,
			   const struct op *op)
{
	static const enum ibv_wr_opcode opcodes[OP_KINDS] = {
		[OP_WRITE] = IBV_WR_RDMA_WRITE,
		[OP_READ] = IBV_WR_RDMA_READ,
		[OP_SEND] = IBV_WR_SEND,
		[OP_WRITE_IMM] = IBV_WR_RDMA_WRITE_WITH_IMM,
		[OP_SEND_IMM] = IBV_WR_SEND_WITH_IMM,
		[OP_SEND_INV] = IBV_WR_SEND_WITH_INV,
		[OP_FETCH_ADD] = IBV_WR_ATOMIC_FETCH_AND_ADD,
		[OP_CMP_SWAP] = IBV_WR_ATOMIC_CMP_AND_SWP,
	};

	wr->opcode = opcodes[op->kind];
	if (op->kind == OP_SEND_INV)
		wr->invalidate_rkey = post_invalidated_stag(n, op);
	else
		wr->imm_data = htonl(op->imm);
	if (op_is_atomic(op))
		post_set_atomic(n, wr, op);
	else
		post_set_remote(n, wr, op);
	if (op->kind == OP_READ)
		post_set_sink(n, wr, op);
	else if (op_traits[op->kind].has_data)
		post_set_source(n, p, wr, op);
}

static void post_add_op(struct node *n, struct post *p, struct op *op, unsigned id)
{
	struct vext_wr *w = &p->wr[p->count];

	*w = (struct vext_wr){
		.wr = {.wr_id = id, .sg_list = p->sge[p->count], .send_flags = post_flags(op)}};
	if (op_is_atomic(op)) {
		uint64_t *now = model_word(&n->model, n->peer->mem, op);

		model_execute(op, &p->word[now - n->model.word]);
	}
	if (post_ext_op(op) != VEXT_OP_VERBS)
		post_set_ext(n, w, op);
	else
		post_set_verbs(n, p, &w->wr, op);
	p->count++;
}

/* --- operations without the peer's consent ------------------------------------------------- */

static bool post_is_possible(const struct node *n, const struct op *op)
{
	uint32_t caps = op_traits[op->kind].caps;

	return qp_state(n->qp) != IBV_QPS_RTS || (qp_caps(n->qp) & caps) == caps;
}

/*
 * Without the peer's consent the post call must refuse the operation. The operation was planned for
 * a consenting peer, but the connection was made again without consent. So replace it by an
 * operation of RFC 5040.
 */
static void post_replace_op(struct node *n, struct op *op)
{
	struct post p = {.count = 0};
	struct stream_update u; /* not used: the node's next run performs the update */
	int posted;

	post_add_op(n, &p, op, n->model.posted);
	if (stream_post_list(n->stream, p.wr, 1, &posted, &u) != EINVAL || posted != 0)
		sim_violate(n->sim, "node %d: an operation of kind %d, not agreed to, was posted",
			    n->index, (int)op->kind);
	if (op->kind == OP_SEND_IMM) {
		op->kind = OP_SEND;
		return;
	}
	if (op_is_request(op)) {
		op->area = AREA_TARGET0;
		op->off = n->peer->mem->area[AREA_TARGET0].off;
		op->len = 0;
	}
	op->kind = OP_WRITE;
	op->solicited = false;
	op->forbidden = op->forbidden && op->len > 0;
}

/* --- posting ------------------------------------------------------------------------------ */

/* A post is allowed to fail only if the queue is full, if the queue pair is stopping, or if a
 * flipped bit has set its ORD to 0. */
static void post_check_refusal(struct node *n, const struct post *p, int err)
{
	n->refused_lists++;
	if (p->overfull && err == ENOMEM)
		return;
	if (qp_state(n->qp) == IBV_QPS_RTS && scenario_is_trusted(&n->sim->sc))
		sim_violate(n->sim, "node %d: posting operation %u of %u (%u complete): error %d",
			    n->index, n->model.posted, n->model.planned, n->model.completed, err);
}

static void post_accepted(struct node *n, unsigned count)
{
	struct model *m = &n->model;
	/* The peer treats Reads as plain only if this end could send its announcement. */
	bool mere_reads = stream_agreed(n->stream)->consent && n->sim->sc.announces[n->index];

	for (; count > 0; count--) {
		struct op *op = &m->op[m->posted++];

		op->reads_flush = !mere_reads;
		if (op_is_atomic(op)) {
			op->data = op->after;
			memcpy(model_word(m, n->peer->mem, op), op->after, sizeof(op->after));
		}
		if (op->forbidden)
			n->sim->fault_hit = true;
	}
}

static bool post_are_verbs(const struct post *p)
{
	for (unsigned i = 0; i < p->count; i++) {
		if (p->wr[i].op != VEXT_OP_VERBS)
			return false;
	}
	return true;
}

/* ibv_post_send() posts as many requests as fit. The extended call posts all requests or none. */
static int post_chain(struct node *n, struct post *p, unsigned *count)
{
	struct ibv_send_wr wr[CHAIN], *bad = NULL;
	struct stream_update u;
	int err;

	for (unsigned i = 0; i < p->count; i++) {
		wr[i] = p->wr[i].wr;
		wr[i].next = i + 1 < p->count ? &wr[i + 1] : NULL;
	}
	err = stream_post_send(n->stream, wr, &bad, &u);
	*count = err ? (unsigned)(bad - wr) : p->count;
	return err;
}

static int post_list(struct node *n, struct post *p, unsigned *count)
{
	struct stream_update u;
	int posted = -1, err;

	err = stream_post_list(n->stream, p->wr, (int)p->count, &posted, &u);
	if (posted != (err ? 0 : (int)p->count))
		sim_violate(n->sim, "node %d: %d of a list of %u were posted, error %d", n->index,
			    posted, p->count, err);
	*count = (unsigned)posted;
	n->lists += p->count > 1;
	return err;
}

static void post_all(struct node *n, struct post *p)
{
	unsigned count;
	int err;

	if (p->count == 0)
		return;
	if (post_are_verbs(p) && prng_chance(&n->sim->world->rng, 50))
		err = post_chain(n, p, &count);
	else
		err = post_list(n, p, &count);
	memset(p->inline_bytes, 0xaa, sizeof(p->inline_bytes));
	post_accepted(n, count);
	if (err)
		post_check_refusal(n, p, err);
}

/* An operation is allowed to be posted after all operations of earlier phases are complete. */
static bool post_may_go(struct node *n, struct post *p)
{
	struct model *m = &n->model;
	unsigned id = m->posted + p->count;

	if (id == m->planned)
		return false;
	if (id - m->completed >= n->sim->sc.send_depth[n->index]) {
		if (!p->overfull && p->count == 0)
			return false;
		if (!p->overfull && !prng_chance(&n->sim->world->rng, 10))
			return false;
		p->overfull = true;
	}
	if (m->op[id].phase > n->phase && m->completed == id)
		n->phase = m->op[id].phase;
	return m->op[id].phase <= n->phase;
}

void workload_post_ops(struct node *n)
{
	struct model *m = &n->model;
	unsigned chain = (unsigned)prng_between(&n->sim->world->rng, 1, CHAIN);
	struct post p = {.count = 0};

	memcpy(p.word, m->word, sizeof(p.word));
	while (p.count < chain && post_may_go(n, &p)) {
		struct op *op = &m->op[m->posted + p.count];

		if (!post_is_possible(n, op))
			post_replace_op(n, op);
		post_add_op(n, &p, op, m->posted + p.count);
	}
	post_all(n, &p);
}

/* --- receives ----------------------------------------------------------------------------- */

/* Returns how many receives the application has planned to post so far. */
static unsigned post_recvs_wanted(const struct node *n)
{
	const struct model *m = &n->peer->model;
	unsigned wanted = 0;

	if (!n->sim->sc.late_receives)
		return n->box->completed + INBOX_SLOTS;
	for (unsigned i = 0; i < m->planned; i++)
		wanted += op_is_message(&m->op[i]) &&
			  (m->op[i].phase < n->phase || n->model.completed == n->model.planned);
	return wanted;
}

/* Post no receive until all receives are used up. This tests that waiting Sends are resumed. */
static void post_bulk(struct node *n)
{
	if (inbox_is_used_up(n->box))
		inbox_post(n->box, n, (unsigned)prng_between(&n->sim->world->rng, 2, INBOX_BATCH));
}

void workload_post_recvs(struct node *n)
{
	unsigned most = (unsigned)prng_between(&n->sim->world->rng, 1, 4);
	struct inbox *b = n->box;

	if (b->home->sim->sc.bulk_receives) {
		post_bulk(n);
		return;
	}
	while (most-- > 0 && b->posted < post_recvs_wanted(n) &&
	       b->posted - b->completed < INBOX_SLOTS) {
		if (!inbox_post(b, n, 1))
			return;
	}
}
