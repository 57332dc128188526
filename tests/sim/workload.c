/* SPDX-License-Identifier: BSD-3-Clause */
#include "workload.h"

#include <stdlib.h>
#include <string.h>

#define LONG_NS (100 * NSEC_PER_MS)
#define LOOKS   6 /* number of checks of the whole memory during a run */

/* --- events ------------------------------------------------------------------------------- */

/* Returns private data of an end: bytes that the other end can check. */
static const uint8_t *workload_pdata(const struct node *n)
{
	return memory_pool() + 1000 * (unsigned)(n->index + 1);
}

struct stream_params workload_params(const struct node *n)
{
	const struct scenario *sc = &n->sim->sc;
	struct stream_params p = {
		.ird = sc->ird[n->index],
		.ord = sc->ord[n->index],
		.pdata_len = sc->pdata_len[n->index],
	};

	memcpy(p.pdata, workload_pdata(n), p.pdata_len);
	return p;
}

static void workload_check_pdata(struct node *n)
{
	const struct stream_params *p = stream_remote(n->stream);

	if (!scenario_is_trusted(&n->sim->sc))
		return;
	if (p->pdata_len != n->sim->sc.pdata_len[n->peer->index] ||
	    memcmp(p->pdata, workload_pdata(n->peer), p->pdata_len) != 0)
		sim_violate(n->sim, "node %d: private data of %u bytes is not what was sent",
			    n->index, p->pdata_len);
}

static void workload_on_established(struct node *n)
{
	if (n->established)
		sim_violate(n->sim, "node %d: established twice", n->index);
	n->established = true;
	if (n->index == 0)
		workload_check_pdata(n);
}

static void workload_on_disconnected(struct node *n)
{
	if (n->disconnected || !n->established)
		sim_violate(n->sim, "node %d: an unexpected disconnect event", n->index);
	n->disconnected = true;
}

/*
 * Returns true if the length of the end's first FPDU was changed. The peer waits for the rest of
 * that FPDU, perhaps for ever. It does not receive the HELLO, so it neither answers nor sends
 * pings.
 */
static bool workload_is_not_understood(const struct node *n)
{
	const struct scenario *sc = &n->sim->sc;

	return sc->fault == FAULT_FLIP && n->sim->fault_hit && sc->fault_node == n->index &&
	       sc->fault_pos - scenario_frame_len(sc, n->index) < MPA_LENGTH_LEN;
}

/*
 * Returns true if the length of one of the peer's FPDUs was changed, and the peer has moved to the
 * ring since. The rest of that FPDU never arrives, so this end does not see the peer's SWITCH.
 */
static bool workload_misses_the_ring(const struct node *n)
{
	const struct scenario *sc = &n->sim->sc;

	return sc->fault == FAULT_FLIP && n->sim->fault_hit && sc->fault_node != n->index &&
	       n->sim->link.sends_ring[n->peer->index] && !n->sim->link.reads_ring[n->index];
}

/* A peer that is alive must not be reported lost. */
static void workload_on_lost(struct node *n)
{
	const struct sim *sim = n->sim;
	bool dead = sim->link.silent || n->peer->killed || !scenario_is_trusted(&sim->sc) ||
		    workload_is_not_understood(n) || workload_misses_the_ring(n);

	n->lost = true;
	if (!dead)
		sim_violate(n->sim, "node %d lost a peer that is there", n->index);
}

static void workload_on_no_connection(struct node *n, enum stream_event event)
{
	struct sim *sim = n->sim;

	if (n->established)
		sim_violate(sim, "node %d: event %d after established", n->index, event);
	if (sim_is_clean(sim))
		sim_violate(sim, "node %d: event %d instead of a connection", n->index, event);
	if (sim->sc.fault == FAULT_REJECT && event == STREAM_EV_REJECTED)
		workload_check_pdata(n);
}

void workload_on_event(struct node *n, enum stream_event event, int status)
{
	switch (event) {
	case STREAM_EV_CONNECT_REQUEST:
		n->requested = true;
		workload_check_pdata(n);
		break;
	case STREAM_EV_REPLIED: /* this event occurs only if queue pairs connect without rdma_cm */
		break;
	case STREAM_EV_ESTABLISHED:
		workload_on_established(n);
		break;
	case STREAM_EV_LOST:
		workload_on_lost(n);
		workload_on_disconnected(n);
		break;
	case STREAM_EV_DISCONNECTED:
		workload_on_disconnected(n);
		break;
	case STREAM_EV_REJECTED:
	case STREAM_EV_UNREACHABLE:
	case STREAM_EV_CONNECT_ERROR:
	case STREAM_EV_DEAD:
		workload_on_no_connection(n, event);
		break;
	}
}

/* --- completions -------------------------------------------------------------------------- */

void workload_on_message(struct node *n, const struct ibv_wc *wc)
{
	const struct op *op = model_last_received(&n->peer->model);

	n->expected |= op->solicited;
	if (op->kind == OP_SEND_INV && n->qp && wc->wc_flags & IBV_WC_WITH_INV &&
	    wc->invalidated_rkey == n->mem->area[AREA_LEASE].stag)
		node_end_lease(n);
}

/* The peer executes a request after it has delivered all earlier Sends (RFC 5040 s5.5). A completed
 * Send is also delivered if the ends use Acks. */
static void workload_check_order(struct node *n, unsigned id)
{
	const struct model *m = &n->model;
	const struct node *peer = n->peer;
	unsigned sent = 0;

	if (!op_is_request(&m->op[id]) && !node_is_acknowledged(n))
		return;
	for (unsigned i = 0; i <= id; i++)
		sent += op_is_message(&m->op[i]);
	if (!n->sim->sc.one_cq[peer->index] && !peer->destroyed &&
	    sent > peer->recv_completed + atomic_load(&peer->recv_cq.count))
		sim_violate(n->sim, "node %d: operation %u overtook a message", n->index, id);
}

/* With Acks, the operation that caused an error must be the one that fails with this error. */
static void workload_check_blame(struct node *n, const struct ibv_wc *wc)
{
	if (wc->status == IBV_WC_REM_ACCESS_ERR && n->sim->sc.fault == FAULT_ACCESS &&
	    node_is_acknowledged(n) && !n->model.op[wc->wr_id].forbidden)
		sim_violate(n->sim, "node %d: operation %llu was blamed for another", n->index,
			    (unsigned long long)wc->wr_id);
}

static void workload_on_completion(struct node *n, const struct ibv_wc *wc)
{
	const char *bad;

	if (n->destroyed)
		sim_violate(n->sim, "node %d: a completion of a destroyed QP", n->index);
	if (wc->qp_num != 2 * n->sim->index + (uint32_t)n->index + 1)
		sim_violate(n->sim, "node %d: a completion of QP %u", n->index, wc->qp_num);
	if (wc->wr_id >= RECV_ID) {
		n->expected |= wc->status != IBV_WC_SUCCESS;
		inbox_on_completion(n->box, n, wc);
		return;
	}
	n->expected |= wc->status != IBV_WC_SUCCESS && n->sim->sc.one_cq[n->index];
	if (wc->status != IBV_WC_SUCCESS && sim_is_clean(n->sim) && !n->sim->disconnecting)
		sim_violate(n->sim, "node %d: operation %llu: status %d without a reason", n->index,
			    (unsigned long long)wc->wr_id, wc->status);
	bad = model_on_completion(&n->model, wc, n->mem, n->peer->mem,
				  scenario_is_trusted(&n->sim->sc));
	if (!bad && wc->status == IBV_WC_SUCCESS && node_is_acknowledged(n) &&
	    scenario_is_trusted(&n->sim->sc))
		bad = model_on_acknowledged(&n->model, (unsigned)wc->wr_id, n->peer->mem);
	if (bad)
		sim_violate(n->sim, "node %d: %s", n->index, bad);
	else if (wc->status == IBV_WC_SUCCESS && scenario_is_trusted(&n->sim->sc))
		workload_check_order(n, (unsigned)wc->wr_id);
	else
		workload_check_blame(n, wc);
}

/* A completed or failed operation no longer needs its source, so change the source. */
static void workload_reuse_sources(struct node *n)
{
	for (; n->reused < n->model.completed; n->reused++) {
		const struct op *op = &n->model.op[n->reused];

		if (op->staged && !n->mem->area[AREA_STAGE].gone)
			memset(n->mem->cache + op->stage, 0x77, op->len);
	}
}

/* A CQ that is armed for solicited completions raises an event only for solicited completions and
 * for errors. */
static void workload_check_events(struct node *n)
{
	struct cq *cq = node_recv_cq(n);

	if (!cq_is_empty(cq) || n->overrun)
		return;
	if (n->armed && n->notified != n->expected && scenario_is_trusted(&n->sim->sc) &&
	    !n->destroyed)
		sim_violate(n->sim, "node %d: %s event of a CQ armed for solicited completions",
			    n->index, n->notified ? "an" : "no");
	n->events += n->armed && n->notified;
	n->armed = prng_chance(&n->sim->world->rng, 80);
	n->notified = n->expected = false;
	if (n->armed)
		cq_arm(cq, true);
}

void workload_poll(struct node *n, int max)
{
	struct ibv_wc wc[8];

	for (int q = 0; q < 2; q++) {
		struct cq *cq = q ? &n->recv_cq : &n->send_cq;
		int got = cq_poll(cq, max < 8 ? max : 8, wc);

		for (int i = 0; i < got; i++)
			workload_on_completion(n, &wc[i]);
	}
	workload_check_events(n);
	workload_reuse_sources(n);
}

/* --- decisions ---------------------------------------------------------------------------- */

static void workload_answer(struct node *n)
{
	struct sim *sim = n->sim;
	struct stream_params params = workload_params(n);
	struct stream_update u; /* not used: the node's next run performs the update */
	int err;

	n->answered = true;
	if (sim->sc.fault == FAULT_REJECT) {
		sim->fault_hit = true;
		err = stream_reject(n->stream, params.pdata, params.pdata_len, sim->world->now, &u);
	} else {
		err = stream_accept(n->stream, &params, sim->sc.mss, sim->world->now, &u);
	}
	if (err && sim_is_clean(sim))
		sim_violate(sim, "node %d: answering failed: %d", n->index, err);
}

void workload_disconnect(struct node *n)
{
	struct stream_update u;
	int err;

	if (n->disconnecting || !n->established)
		return;
	n->disconnecting = true;
	n->posted_at_disconnect = n->model.posted;
	err = stream_disconnect(n->stream, n->sim->world->now, &u);
	if (err)
		sim_violate(n->sim, "node %d: disconnect: error %d", n->index, err);
}

bool workload_is_done(const struct node *n)
{
	const struct model *m = &n->peer->model;

	for (unsigned i = m->received; i < m->planned; i++) {
		if (op_is_message(&m->op[i]))
			return false;
	}
	return n->model.completed == n->model.planned;
}

static void workload_post(struct node *n)
{
	struct sim *sim = n->sim;

	if (!n->qp)
		return;
	if (prng_chance(&sim->world->rng, sim->sc.mostly_sends ? 3 : 60))
		workload_post_recvs(n);
	if (!n->established)
		return;
	/* After the end of its connection an application still posts for some time. */
	if ((n->disconnecting || n->disconnected || n->model.failed) &&
	    !prng_chance(&sim->world->rng, 10))
		return;
	if (prng_chance(&sim->world->rng, 70))
		workload_post_ops(n);
}

static void workload_change_source(struct node *n)
{
	const struct area *a = &n->mem->area[AREA_SOURCE];

	if (!a->gone)
		memset(n->mem->cache + a->off, (int)prng_below(&n->sim->world->rng, 256),
		       prng_between(&n->sim->world->rng, 1, a->len));
}

static void workload_maybe_disconnect(struct node *n)
{
	struct sim *sim = n->sim;
	bool done = workload_is_done(n) && workload_is_done(n->peer);

	if ((!done && !n->disconnected) || !prng_chance(&sim->world->rng, 30))
		return;
	sim->disconnecting |= done;
	workload_disconnect(n);
}

/* A parked Send can still take a receive from a shared receive queue, so the application must poll
 * until no Send is parked. */
static bool workload_is_finished(struct node *n)
{
	return n->ended && !n->box->has_srq && cq_is_empty(&n->send_cq) && cq_is_empty(&n->recv_cq);
}

/* An application that only waits for a timeout polls less often. */
static uint64_t workload_tick_ns(const struct node *n)
{
	uint64_t tick = n->sim->sc.tick_ns;

	return n->sim->world->now > LONG_NS ? 50 * tick : tick;
}

/* Send at the time at which the product sends: Writes without a completion can be deferred until
 * the next post. */
static void workload_send(struct node *n)
{
	struct stream_update u;

	stream_look(n->stream, &u);
	if (u.todo & STREAM_DO_SEND && stream_may_wait(n->stream) &&
	    prng_chance(&n->sim->world->rng, 50)) {
		n->waiting_writes++;
		node_pump_soon(n);
		return;
	}
	node_perform(n, &u);
}

void workload_tick(struct node *n)
{
	struct sim *sim = n->sim;

	if (n->killed)
		return;
	if (sim->sc.changing)
		workload_change_source(n);
	if (sim->sc.evicts && prng_chance(&sim->world->rng, 20))
		node_evict(n);

	if (n->looks < LOOKS && prng_chance(&sim->world->rng, 5) && ++n->looks)
		sim_check_memory(n);
	if (n->requested && !n->answered && prng_chance(&sim->world->rng, 50))
		workload_answer(n);
	if (prng_chance(&sim->world->rng, 80))
		workload_poll(n, (int)prng_between(&sim->world->rng, 1, 8));
	workload_post(n);
	workload_maybe_disconnect(n);
	workload_send(n);
	if (!workload_is_finished(n))
		sim_at(sim, sim->world->now + 1 + prng_below(&sim->world->rng, workload_tick_ns(n)),
		       EV_APP, n->index, 0);
}

/* --- at the end --------------------------------------------------------------------------- */

static void workload_allow(struct node *n, uint8_t *want, uint64_t off, uint64_t len)
{
	memcpy(want + off, n->mem->cache + off, len);
}

/* Check that Reads and receives of this end changed only memory that they name. */
void workload_check_areas(struct node *n)
{
	const struct area *sink = &n->mem->area[AREA_SINK], *recv = &n->mem->area[AREA_RECV];
	uint8_t *want = malloc(n->mem->size);

	if (!want)
		abort();
	memcpy(want, n->mem->initial, n->mem->size);
	for (unsigned i = 0; i < n->model.posted; i++) {
		const struct op *op = &n->model.op[i];

		if (op->kind == OP_READ || op->kind == OP_FETCH_ADD || op->kind == OP_CMP_SWAP)
			workload_allow(n, want, op->sink, op->len);
	}
	inbox_allow(&n->own_box, want);
	if (!sink->gone && memcmp(want + sink->off, n->mem->cache + sink->off, sink->len) != 0)
		sim_violate(n->sim, "node %d: a Read wrote beside its sink", n->index);
	if (!recv->gone && memcmp(want + recv->off, n->mem->cache + recv->off, recv->len) != 0)
		sim_violate(n->sim, "node %d: a Send wrote beside its receive", n->index);
	free(want);
}
