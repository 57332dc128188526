/* SPDX-License-Identifier: BSD-3-Clause */
/* reconnect_app.c -- the two applications: the initiator writes, ends its connection and connects
 * again; the target serves. */
#include <errno.h>
#include <string.h>

#include "origin.h"
#include "reconnect.h"
#include "workload.h"

#define STOP_WAITING_NS (3 * NSEC_PER_SEC) /* limit of the wait for the planned end */

/* --- completions -------------------------------------------------------------------------- */

static void app_on_completion(struct node *n, const struct ibv_wc *wc)
{
	struct world *w = n->sim->world;
	struct reconnect_conn *c = reconnect_conn_of(n);
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

/* --- how connections end ------------------------------------------------------------------ */

static void app_delete(struct node *n);

/* Before the next connection begins, the application sometimes also gives up the connection of kind
 * STAY. */
static void app_leave_stay(struct world *w)
{
	for (unsigned c = 0; c < w->conns; c++) {
		struct node *n = &w->conn[c].node[0];
		bool stays = w->reconnect->conn[c].end == END_STAY && n->established && !n->ended;

		if (stays && prng_chance(&w->rng, 30))
			app_delete(n);
	}
}

static void app_over(struct node *n)
{
	struct world *w = n->sim->world;
	struct reconnect *r = w->reconnect;
	struct reconnect_conn *c = reconnect_conn_of(n);

	if (c->over)
		return;
	c->over = true;
	reconnect_seen.ends[c->end] += n->established;
	if (c->beside)
		return;
	if (n->sim->index + 1 >= r->planned && !c->failed && n->established) {
		r->done_at = w->now;
		return;
	}
	if (c->end != END_STAY)
		app_leave_stay(w);
	reconnect_begin(w);
}

/*
 * Do what rpma_conn_delete() does. A connection in full operation is reset. After a disconnect the
 * node waits for an answer, which proves that all Writes are placed. The connection then ends
 * without the application.
 */
static void app_delete(struct node *n)
{
	struct stream_update u;

	stream_look(n->stream, &u);
	if (stream_state(n->stream) <= STREAM_LIVE)
		stream_abort(n->stream, &u);
	else if (!n->ended && stream_leaves_writes(n->stream))
		return;
	node_perform(n, &u);
	origin_give_up(n);
	if (n->qp)
		qp_delete(stream_detach_qp(n->stream, &u));
	n->qp = NULL;
	node_perform(n, &u);
	app_over(n);
}

static void app_die(struct node *n)
{
	struct world *w = n->sim->world;

	for (unsigned c = 0; c < w->conns; c++) {
		struct node *other = &w->conn[c].node[0];

		if (other->process == n->process && !other->ended)
			node_kill(other);
	}
	origin_next_process();
	app_over(n);
}

/* Stop the network after some of the posted operations. */
static void app_maybe_stop(struct node *n)
{
	struct world *w = n->sim->world;
	struct reconnect *r = w->reconnect;
	struct reconnect_conn *c = reconnect_conn_of(n);

	if (r->stopped || c->posted < c->stops_after)
		return;
	c->stops_after = RECONNECT_OPS + 1;
	/* two processes of one host use no network, so the target's process stops instead */
	if (n->sim->sc.rings) {
		n->peer->paused_until = w->now + c->stop_ns;
		return;
	}
	r->stopped = true;
	r->stopped_at = w->now;
	r->resume_at = w->now + c->stop_ns;
	sim_at(n->sim, r->resume_at, EV_RESUME, 0, 0);
	reconnect_seen.network_stops++;
}

/* Stop the target's thread for some time. */
static void app_slow_target(struct node *n)
{
	static const uint64_t most[] = {NSEC_PER_MS, 20 * NSEC_PER_MS, 800 * NSEC_PER_MS};
	struct prng *rng = &n->sim->world->rng;
	/* poll often until the application notices the reset */
	bool often = n->sim->sc.mode == SIM_NO_MARK;
	unsigned k = often ? 1 : (unsigned)prng_below(rng, 3);
	uint64_t until = n->sim->world->now + prng_between(rng, 1000, most[k]);

	if ((often || prng_chance(rng, 40)) && until > n->peer->paused_until)
		n->peer->paused_until = until;
}

static void app_begin_end(struct node *n)
{
	struct reconnect_conn *c = reconnect_conn_of(n);

	c->ending = true;
	if (c->end == END_STAY) {
		app_over(n);
		return;
	}
	if (c->end != END_ORDERLY)
		app_slow_target(n);
	c->ends_at = n->sim->world->now + c->delete_ns;
	if (c->end == END_ORDERLY || c->end == END_HURRIED || c->end == END_LIMIT)
		workload_disconnect(n);
	if (c->end == END_TARGET)
		n->peer->leaves = true;
	if (c->end == END_LOST || c->end == END_TARGET)
		c->ends_at = n->sim->world->now + STOP_WAITING_NS;
	if (c->end == END_ORDERLY || c->end == END_LIMIT)
		c->ends_at = CLOCK_NEVER;
}

static bool app_wrote_all(struct node *n)
{
	const struct reconnect_conn *c = reconnect_conn_of(n);
	bool last = n->sim->index + 1 >= n->sim->world->reconnect->planned;

	return c->failed || (last ? c->completed == c->posted && c->posted > c->ends_after
				  : c->posted >= c->ends_after);
}

static void app_write(struct node *n)
{
	struct reconnect_conn *c = reconnect_conn_of(n);
	struct prng *rng = &n->sim->world->rng;
	bool last = n->sim->index + 1 >= n->sim->world->reconnect->planned;

	for (unsigned i = (unsigned)prng_below(rng, 5); i > 0 && c->posted < c->ends_after; i--)
		reconnect_post_one(n);
	if (c->posted == c->ends_after && last)
		reconnect_post_last(n);
	app_maybe_stop(n);
	if (app_wrote_all(n))
		app_begin_end(n);
}

/* Keep the connection until the other connections are done. */
static void app_stay(struct node *n)
{
	bool done = n->sim->world->reconnect->done_at > 0;

	if (reconnect_conn_of(n)->end != END_STAY || n->disconnecting ||
	    (!done && !n->disconnected))
		return;
	reconnect_seen.stayed += !n->disconnected;
	workload_disconnect(n);
}

static void app_initiator(struct node *n)
{
	struct reconnect_conn *c = reconnect_conn_of(n);

	if (c->over) {
		app_stay(n);
		return;
	}
	if (n->established && !c->ending && !n->disconnected &&
	    prng_chance(&n->sim->world->rng, 70))
		app_write(n);
	if (n->disconnected && !n->disconnecting)
		workload_disconnect(n);
	/* The connection could not be made, or its end was reported. */
	if (n->disconnected || n->refused) {
		app_over(n);
		return;
	}
	if (!c->ending || c->over || c->ends_at > n->sim->world->now)
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
		origin_arrive(n);
		stream_accept(n->stream, &params, n->sim->sc.mss, n->sim->world->now, &u);
	}
	if (prng_chance(rng, reconnect_conn_of(n)->recv_percent))
		inbox_post(n->box, n, 1);
	if ((n->disconnected || n->leaves) && !n->disconnecting)
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
	if (event == STREAM_EV_ESTABLISHED)
		origin_on_established(n);
	else
		origin_give_up(n);
	switch (event) {
	case STREAM_EV_CONNECT_REQUEST:
		n->requested = true;
		break;
	case STREAM_EV_REPLIED: /* this event occurs only if queue pairs connect without rdma_cm */
		break;
	case STREAM_EV_ESTABLISHED:
		n->established = true;
		if (n->index == 0 && reconnect_conn_of(n)->pause_ns)
			n->peer->paused_until = n->sim->world->now + reconnect_conn_of(n)->pause_ns;
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
		reconnect_seen.refused += n->index == 0 && status == -EBUSY;
		break;
	}
}
