/* SPDX-License-Identifier: BSD-3-Clause */
/* workload_post.c -- from planned operations and buffers to work requests. */
#include <errno.h>
#include <string.h>

#include "lib/post.h"
#include "workload.h"

#define CHAIN 3
#define SGES  4

struct post { /* work requests under construction */
	struct ibv_send_wr wr[CHAIN];
	struct ibv_sge sge[CHAIN][SGES];
	uint8_t inline_bytes[CHAIN][512];
	unsigned count;
};

static uint64_t op_to(const struct node *n, const struct op *op)
{
	return memory_to(&n->peer->mem, op->area, op->off);
}

static unsigned op_flags(const struct op *op)
{
	return (op->signalled ? IBV_SEND_SIGNALED : 0u) | (op->fence ? IBV_SEND_FENCE : 0u) |
	       (op->is_inline ? IBV_SEND_INLINE : 0u);
}

/* Cut the data into segments anywhere, empty ones included. */
static int cut_sges(struct sim *sim, struct ibv_sge *sge, uint64_t addr, uint32_t len,
		    uint32_t lkey)
{
	int n = (int)prng_between(&sim->rng, 1, sim->sc.send_sge);

	for (int i = 0; i < n; i++) {
		uint32_t part = i + 1 == n ? len : (uint32_t)prng_below(&sim->rng, len + 1);

		sge[i] = (struct ibv_sge){.addr = addr, .length = part, .lkey = lkey};
		addr += part;
		len -= part;
	}
	return n;
}

static void add_source(struct node *n, struct post *p, struct ibv_send_wr *wr, const struct op *op)
{
	uint64_t addr = (uintptr_t)op->data;
	uint32_t lkey = n->mem.pool_stag;

	if (op->restless) {
		addr = memory_to(&n->mem, AREA_SOURCE, n->mem.area[AREA_SOURCE].off);
		lkey = n->mem.area[AREA_SOURCE].stag;
	}
	if (op->is_inline) { /* from memory that is not registered and gone after the call */
		memcpy(p->inline_bytes[p->count], op->data, op->len);
		addr = (uintptr_t)p->inline_bytes[p->count];
		lkey = 0;
	}
	wr->num_sge = cut_sges(n->sim, wr->sg_list, addr, op->len, lkey);
}

static void add_wr(struct node *n, struct post *p, const struct op *op, unsigned id)
{
	struct ibv_send_wr *wr = &p->wr[p->count];

	*wr = (struct ibv_send_wr){
		.wr_id = id, .sg_list = p->sge[p->count], .send_flags = op_flags(op)};
	if (op->kind == OP_SEND) {
		wr->opcode = IBV_WR_SEND;
		add_source(n, p, wr, op);
	} else {
		wr->opcode = op->kind == OP_READ ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;
		wr->wr.rdma.remote_addr = op_to(n, op);
		wr->wr.rdma.rkey = n->peer->mem.area[op->area].stag;
		if (op->kind == OP_WRITE)
			add_source(n, p, wr, op);
	}
	if (op->kind == OP_READ) {
		wr->num_sge = 1;
		p->sge[p->count][0] = (struct ibv_sge){
			.addr = memory_to(&n->mem, AREA_SINK, op->sink),
			.length = op->len,
			.lkey = n->mem.area[AREA_SINK].stag,
		};
	}
	if (p->count > 0)
		p->wr[p->count - 1].next = wr;
	p->count++;
}

/* Only a queue pair that was told to stop may refuse; or one that a flipped bit told it has no ORD.
 */
static void check_refusal(struct node *n, int err)
{
	if (qp_state(n->qp) == IBV_QPS_RTS && scenario_is_trusted(&n->sim->sc))
		sim_violate(n->sim, "node %d: posting operation %u of %u (%u complete): error %d",
			    n->index, n->model.posted, n->model.planned, n->model.completed, err);
}

static void accepted(struct node *n, unsigned count)
{
	struct model *m = &n->model;
	bool told = cm_stream_agreed(n->stream)->consent && n->sim->sc.user_flushes[n->index];

	for (; count > 0; count--) {
		struct op *op = &m->op[m->posted++];

		op->reads_flush = !told;
		if (op->forbidden)
			n->sim->fault_hit = true;
	}
}

static bool post_chain(struct node *n, struct post *p)
{
	struct ibv_send_wr *bad = NULL;
	int err;

	if (p->count == 0)
		return true;
	err = qp_post_send(n->qp, p->wr, &bad);
	memset(p->inline_bytes, 0xaa, sizeof(p->inline_bytes));
	accepted(n, err ? (unsigned)(bad - p->wr) : p->count);
	if (err)
		check_refusal(n, err);
	p->count = 0;
	return err == 0;
}

static bool post_flush(struct node *n)
{
	struct model *m = &n->model;
	struct op *op = &m->op[m->posted];
	int err;

	if (!(qp_caps(n->qp) & SOFTRNIC_CAP_FLUSH) && !qp_is_failed(n->qp)) {
		/* The peer did not agree after all (it was dialled again); do without. */
		if (qp_flush(n->qp, m->posted, op_flags(op), 1, 0, 0,
			     SOFTRNIC_FLUSH_PERSISTENT) == 0)
			sim_violate(n->sim, "node %d: a flush without consent", n->index);
		*op = (struct op){.kind = OP_WRITE,
				  .phase = op->phase,
				  .area = op->area,
				  .off = op->off,
				  .data = op->data,
				  .signalled = op->signalled};
		return true;
	}
	err = qp_flush(n->qp, m->posted, op_flags(op), n->peer->mem.area[op->area].stag,
		       op_to(n, op), op->len,
		       op->persistent ? SOFTRNIC_FLUSH_PERSISTENT : SOFTRNIC_FLUSH_VISIBLE);
	if (err)
		check_refusal(n, err);
	else
		accepted(n, 1);
	return err == 0;
}

/* The operations of one phase go out when all of the phases before are complete. */
static bool may_post(struct node *n, unsigned id)
{
	struct model *m = &n->model;

	if (id == m->planned || id - m->completed >= n->sim->sc.send_depth[n->index])
		return false;
	if (m->op[id].phase > n->phase && m->completed == id)
		n->phase = m->op[id].phase;
	return m->op[id].phase <= n->phase;
}

void workload_post_ops(struct node *n)
{
	struct model *m = &n->model;
	unsigned chain = (unsigned)prng_between(&n->sim->rng, 1, CHAIN);
	struct post p = {.count = 0};

	while (p.count < chain && may_post(n, m->posted + p.count)) {
		const struct op *op = &m->op[m->posted + p.count];

		if (op->kind == OP_FLUSH)
			break;
		add_wr(n, &p, op, m->posted + p.count);
	}
	if (post_chain(n, &p) && may_post(n, m->posted) && m->op[m->posted].kind == OP_FLUSH)
		post_flush(n);
}

/* --- receives ----------------------------------------------------------------------------- */

/* How many receives the application is willing to post by now. */
static unsigned recvs_wanted(const struct node *n)
{
	const struct model *m = &n->peer->model;
	unsigned wanted = 0;

	if (!n->sim->sc.late_receives)
		return n->recv_completed + NODE_SLOTS;
	for (unsigned i = 0; i < m->planned; i++)
		wanted += m->op[i].kind == OP_SEND &&
			  (m->op[i].phase < n->phase || n->model.completed == n->model.planned);
	return wanted;
}

static int post_recv(struct node *n, unsigned index)
{
	const struct recv_slot *slot = &n->slot[index];
	struct ibv_sge sge[NODE_PIECES];
	struct ibv_recv_wr wr = {.wr_id = RECV_ID + index, .sg_list = sge}, *bad = NULL;

	for (unsigned i = 0; i < slot->pieces; i++)
		sge[i] = (struct ibv_sge){
			.addr = memory_to(&n->mem, AREA_RECV, slot->piece[i].off),
			.length = slot->piece[i].len,
			.lkey = n->mem.area[AREA_RECV].stag,
		};
	wr.num_sge = (int)slot->pieces;
	return n->sim->sc.use_srq[n->index] ? srq_post(&n->srq, &wr, &bad)
					    : qp_post_recv(n->qp, &wr, &bad);
}

void workload_post_recvs(struct node *n)
{
	unsigned most = (unsigned)prng_between(&n->sim->rng, 1, 4);

	while (most-- > 0 && n->recv_posted < recvs_wanted(n) &&
	       n->recv_posted - n->recv_completed < NODE_SLOTS) {
		int err = post_recv(n, n->recv_posted % NODE_SLOTS);

		if (err) {
			/* With an SRQ a receive that was taken makes room before it completes. */
			if (n->recv_posted - n->recv_completed < n->sim->sc.recv_depth[n->index] &&
			    qp_state(n->qp) == IBV_QPS_RTS)
				sim_violate(n->sim, "node %d: posting a receive: error %d",
					    n->index, err);
			return;
		}
		n->recv_posted++;
	}
}
