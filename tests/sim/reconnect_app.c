/* SPDX-License-Identifier: BSD-3-Clause */
/* reconnect_app.c -- the two applications: one writes, ends and connects again, the other serves.
 */
#include <string.h>

#include "reconnect.h"
#include "workload.h"

#define STOP_WAITING_NS (3 * NSEC_PER_SEC) /* for the end that was planned */

static struct reconnect_conn *app_conn(const struct node *n)
{
	return &n->sim->world->reconnect->conn[n->sim->index];
}

/* --- posting ------------------------------------------------------------------------------ */

static enum reconnect_kind app_kind(struct prng *rng)
{
	unsigned dice = (unsigned)prng_below(rng, 100);

	return dice < 55   ? RC_WRITE
	       : dice < 65 ? RC_ELSEWHERE
	       : dice < 73 ? RC_ATOMIC
	       : dice < 80 ? RC_SEND
			   : RC_FLUSH;
}

static const struct area *app_area(const struct node *n, const struct reconnect_op *op, bool words)
{
	enum area_kind kind = op->kind == RC_ELSEWHERE         ? AREA_SCRATCH
			      : op->kind == RC_ATOMIC || words ? AREA_WORDS
							       : AREA_TARGET0;

	return &n->peer->mem->area[kind];
}

static void app_place(struct prng *rng, const struct area *a, struct reconnect_op *op)
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

/* Of large ones several FPDUs, of which the rest may go straight to memory. */
static uint32_t app_len(struct prng *rng, uint32_t max)
{
	if (prng_chance(rng, 20))
		return 8;
	return (uint32_t)prng_between(rng, prng_chance(rng, 50) ? max / 2 : 1, max);
}

static const struct area *app_choose(struct node *n, struct reconnect_op *op)
{
	struct prng *rng = &n->sim->world->rng;
	const struct area *a;
	uint32_t len = app_len(rng, n->sim->sc.op_max);

	*op = (struct reconnect_op){.kind = app_kind(rng)};
	a = app_area(n, op, op->kind == RC_FLUSH && prng_chance(rng, 30));
	op->len = len < a->len ? len : (uint32_t)a->len;
	if (op->kind == RC_SEND && op->len > n->peer->box->slot_len)
		op->len = n->peer->box->slot_len;
	app_place(rng, a, op);
	return a;
}

static bool app_has_version(const struct reconnect_op *op)
{
	return op->kind == RC_WRITE || op->kind == RC_ATOMIC;
}

/* The bytes of a version, which stay as they are until the run ends. False: there is no room. */
static bool app_stage(struct node *n, struct reconnect_op *op, struct ibv_sge *sge)
{
	const struct area *a = &n->mem->area[AREA_STAGE];
	struct reconnect_conn *c = app_conn(n);
	uint64_t off = a->off + c->staged;

	if (op->len > a->len - c->staged)
		return false;
	c->staged += op->len;
	memset(n->mem->cache + off, op->version, op->len);
	*sge = (struct ibv_sge){
		.addr = memory_to(n->mem, AREA_STAGE, off), .length = op->len, .lkey = a->stag};
	return true;
}

static void app_fill(struct vext_wr *w, const struct reconnect_op *op)
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

/* False: the queue is full, or the queue pair does not take it any more. */
static bool app_post(struct node *n, struct reconnect_op *op, const struct area *a)
{
	struct reconnect_conn *c = app_conn(n);
	struct vext_wr w = {.wr = {.wr_id = c->posted, .send_flags = IBV_SEND_SIGNALED}};
	struct stream_update u; /* the visit performs */
	struct ibv_sge sge;
	int posted = 0;

	if (op->kind <= RC_ELSEWHERE || op->kind == RC_SEND) {
		if (!app_stage(n, op, &sge))
			return false;
		w.wr.sg_list = &sge;
		w.wr.num_sge = 1;
	}
	w.wr.wr.rdma.remote_addr =
		memory_to(n->peer->mem, (enum area_kind)(a - n->peer->mem->area), op->off);
	w.wr.wr.rdma.rkey = a->stag;
	app_fill(&w, op);
	stream_post_list(n->stream, &w, 1, &posted, &u);
	if (posted != 1)
		return false;
	c->op[c->posted++] = *op;
	return true;
}

static void app_post_one(struct node *n)
{
	struct reconnect *r = n->sim->world->reconnect;
	struct reconnect_op op;
	const struct area *a = app_choose(n, &op);

	if (app_has_version(&op)) {
		if (r->version == RECONNECT_VERSIONS)
			return;
		op.version = (uint8_t)(r->version + 1);
	}
	if (app_post(n, &op, a) && app_has_version(&op))
		r->version++;
}

/* The last connection ends with a flush of the place. */
static void app_post_last(struct node *n)
{
	const struct area *a = &n->peer->mem->area[AREA_TARGET0];
	struct reconnect_op op = {.kind = RC_FLUSH, .off = a->off, .len = (uint32_t)a->len};

	app_post(n, &op, a);
}

/* --- completions -------------------------------------------------------------------------- */

static void app_on_completion(struct node *n, const struct ibv_wc *wc)
{
	struct world *w = n->sim->world;
	struct reconnect_conn *c = app_conn(n);
	unsigned id = (unsigned)wc->wr_id;

	if (wc->wr_id >= RECV_ID) {
		inbox_on_completion(n->box, n, wc);
		return;
	}
	if (id != c->completed || id >= c->posted)
		sim_violate(n->sim, "node %d: operation %u completed out of order", n->index, id);
	c->completed = id + 1;
	c->failed |= wc->status != IBV_WC_SUCCESS;
	if (wc->status != IBV_WC_SUCCESS || c->op[id].kind != RC_FLUSH)
		return;
	reconnect_seen.acknowledged += n->sim->index > 0;
	reconnect_acknowledge(w, n->sim->index, id);
}

static void app_poll(struct node *n)
{
	struct ibv_wc wc[8];

	for (int q = 0; q < 2; q++) {
		int got = cq_poll(q ? &n->recv_cq : &n->send_cq, 8, wc);

		for (int i = 0; i < got; i++)
			app_on_completion(n, &wc[i]);
	}
}

/* --- the ends ----------------------------------------------------------------------------- */

static void app_over(struct node *n)
{
	struct world *w = n->sim->world;
	struct reconnect *r = w->reconnect;
	struct reconnect_conn *c = app_conn(n);

	if (c->over)
		return;
	c->over = true;
	reconnect_seen.ends[c->end] += n->established;
	if (n->sim->index + 1 < r->planned || c->failed || !n->established)
		reconnect_begin(w);
	else
		r->done_at = w->now;
}

/* As the id and its queue pair are destroyed. */
static void app_delete(struct node *n)
{
	struct stream_update u;

	if (n->qp)
		qp_delete(stream_detach_qp(n->stream, &u));
	n->qp = NULL;
	stream_abort(n->stream, &u);
	node_perform(n, &u);
	app_over(n);
}

static void app_die(struct node *n)
{
	node_kill(n);
	app_over(n);
}

/* The network stops, in the middle of what is posted. */
static void app_maybe_stop(struct node *n)
{
	struct world *w = n->sim->world;
	struct reconnect *r = w->reconnect;
	struct reconnect_conn *c = app_conn(n);

	if (r->stopped || c->posted < c->stops_after)
		return;
	c->stops_after = RECONNECT_OPS + 1;
	if (n->sim->sc.rings) { /* on one host: the target's process does */
		n->peer->paused_until = w->now + c->stop_ns;
		return;
	}
	r->stopped = true;
	r->stopped_at = w->now;
	r->resume_at = w->now + c->stop_ns;
	sim_at(n->sim, r->resume_at, EV_RESUME, 0, 0);
	reconnect_seen.network_stops++;
}

/* The target's thread gets no processor for a while. */
static void app_slow_target(struct node *n)
{
	struct prng *rng = &n->sim->world->rng;
	uint64_t until =
		n->sim->world->now +
		prng_between(rng, 1000, prng_chance(rng, 50) ? NSEC_PER_MS : 800 * NSEC_PER_MS);

	if (prng_chance(rng, 40) && until > n->peer->paused_until)
		n->peer->paused_until = until;
}

static void app_begin_end(struct node *n)
{
	struct reconnect_conn *c = app_conn(n);

	c->ending = true;
	if (c->end != END_ORDERLY)
		app_slow_target(n);
	c->ends_at = n->sim->world->now + c->delete_ns;
	if (c->end == END_ORDERLY || c->end == END_HURRIED || c->end == END_LIMIT)
		workload_disconnect(n);
	if (c->end == END_LOST)
		c->ends_at = n->sim->world->now + STOP_WAITING_NS;
	if (c->end == END_ORDERLY || c->end == END_LIMIT)
		c->ends_at = CLOCK_NEVER;
}

static bool app_wrote_all(struct node *n)
{
	const struct reconnect_conn *c = app_conn(n);
	bool last = n->sim->index + 1 >= n->sim->world->reconnect->planned;

	return c->failed || (last ? c->completed == c->posted && c->posted > c->ends_after
				  : c->posted >= c->ends_after);
}

static void app_write(struct node *n)
{
	struct reconnect_conn *c = app_conn(n);
	struct prng *rng = &n->sim->world->rng;
	bool last = n->sim->index + 1 >= n->sim->world->reconnect->planned;

	for (unsigned i = (unsigned)prng_below(rng, 5); i > 0 && c->posted < c->ends_after; i--)
		app_post_one(n);
	if (c->posted == c->ends_after && last)
		app_post_last(n);
	app_maybe_stop(n);
	if (app_wrote_all(n))
		app_begin_end(n);
}

static void app_initiator(struct node *n)
{
	struct reconnect_conn *c = app_conn(n);

	if (c->over)
		return;
	if (n->established && !c->ending && !n->disconnected &&
	    prng_chance(&n->sim->world->rng, 70))
		app_write(n);
	if (n->disconnected && !n->disconnecting)
		workload_disconnect(n);
	/* Without a connection, or told that it has ended. */
	if (n->disconnected || n->refused) {
		app_over(n);
		return;
	}
	if (!c->ending || c->ends_at > n->sim->world->now)
		return;
	if (c->end == END_KILL)
		app_die(n);
	else
		app_delete(n);
}

static void app_target(struct node *n)
{
	struct prng *rng = &n->sim->world->rng;

	if (n->requested && !n->answered && prng_chance(rng, 50)) {
		struct stream_params params = workload_params(n);
		struct stream_update u;

		n->answered = true;
		stream_accept(n->stream, &params, n->sim->sc.mss, n->sim->world->now, &u);
	}
	if (prng_chance(rng, app_conn(n)->recv_percent))
		inbox_post(n->box, n, 1);
	if (n->disconnected && !n->disconnecting)
		workload_disconnect(n);
}

void reconnect_tick(struct node *n)
{
	if (n->killed)
		return;
	app_poll(n);
	if (n->index == 0)
		app_initiator(n);
	else
		app_target(n);
	if (!n->killed)
		node_pump(n);
}

void reconnect_on_stream_event(struct node *n, enum stream_event event, int status)
{
	switch (event) {
	case STREAM_EV_CONNECT_REQUEST:
		n->requested = true;
		break;
	case STREAM_EV_ESTABLISHED:
		n->established = true;
		break;
	case STREAM_EV_LOST:
		n->lost = n->disconnected = true;
		reconnect_seen.lost += n->index == 0;
		break;
	case STREAM_EV_DISCONNECTED:
		n->disconnected = true;
		break;
	case STREAM_EV_REJECTED:
	case STREAM_EV_UNREACHABLE:
	case STREAM_EV_CONNECT_ERROR:
	case STREAM_EV_DEAD:
		n->refused = true;
		break;
	}
}
