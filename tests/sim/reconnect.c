/* SPDX-License-Identifier: BSD-3-Clause */
/* reconnect.c -- a run of several connections in a row: the network, stuck stores, and coverage. */
#include "reconnect.h"

#include <errno.h>
#include <stdlib.h>

#include "origin.h"
#include "stall.h"
#include "workload.h"

#define BUSY_NS     (20 * 1000ull) /* delay after the last event of an end */
#define IDLE_MAX_NS (100 * NSEC_PER_MS)
/* time for the former connections to close, after the last connection was closed */
#define SETTLE_NS (4 * NSEC_PER_SEC)

static struct reconnect reconnect;

/* --- the network -------------------------------------------------------------------------- */

bool reconnect_loses_reset(struct sim *sim)
{
	struct reconnect *r = sim->world->reconnect;
	bool lost = r->barrier && prng_chance(&sim->world->rng, r->stopped ? 60 : 30);

	reconnect_seen.resets_lost += lost;
	return lost;
}

uint64_t reconnect_unacknowledged_ns(const struct node *n)
{
	const struct reconnect *r = n->sim->world->reconnect;
	const struct pipe *p = &n->sim->link.pipe[n->index];

	return r->stopped && p->written > p->arrived ? n->sim->world->now - r->stopped_at : 0;
}

/*
 * A stopped network keeps the bytes. It keeps their order, too, if the run's network is in order.
 */
static void network_delay(struct sim *sim, const struct event *e)
{
	struct reconnect *r = sim->world->reconnect;
	uint64_t at = r->resume_at + (e->kind == EV_DIALED);

	if (r->barrier)
		at += prng_below(&sim->world->rng, 2 * sim->sc.latency_ns + 1);
	sim_at(sim, at, e->kind, e->node % 2, e->arg);
}

static bool network_is_crossed(const struct event *e)
{
	return e->kind == EV_ARRIVE || e->kind == EV_RESET || e->kind == EV_DIALED;
}

/* The target's kernel accepts bytes even if its process does not run. After a reset it accepts no
 * more bytes. */
static void network_deliver(struct sim *sim, const struct event *e)
{
	int index = e->node % 2;
	struct link *l = &sim->link;

	if (l->closed[index] || l->error[index])
		return;
	sim->node[index].busy_until = sim->world->now + BUSY_NS;
	if (e->kind == EV_RESET) {
		l->error[index] = l->pipe[1 - index].end_arrived ? EPIPE : (int)e->arg;
		atomic_store(&sim->node[index].alarm, 1);
	} else {
		link_on_arrival(l, index, e->arg);
	}
	node_pump_soon(&sim->node[index]);
}

/* --- events ------------------------------------------------------------------------------- */

static void node_do(struct node *n, const struct event *e)
{
	if (e->kind == EV_APP)
		reconnect_tick(n);
	else
		sim_do_event(n->sim, e);
}

/* Schedule the application's next step. Delay it if the application only waits for a time limit. */
static void app_again(struct node *n)
{
	struct world *w = n->sim->world;
	uint64_t idle_ns = w->now > n->busy_until ? w->now - n->busy_until : 0;
	uint64_t tick = n->sim->sc.tick_ns + (idle_ns < IDLE_MAX_NS ? idle_ns : IDLE_MAX_NS) / 4;

	if (n->killed || (n->ended && (n->index == 1 || w->reconnect->conn[n->sim->index].over)))
		return;
	sim_at(n->sim, w->now + 1 + prng_below(&w->rng, tick), EV_APP, n->index, 0);
}

static void node_visit(struct node *n, const struct event *e)
{
	struct world *w = n->sim->world;
	uint64_t free_at = stall_is_stuck(n) ? n->stuck_until : n->paused_until;

	if (free_at > w->now || stall_is_stuck(n)) {
		sim_at(n->sim, free_at + 1, e->kind, n->index, e->arg);
		return;
	}
	if (n->index == 0)
		node_do(n, e);
	else
		stall_visit(n, node_do, e);
	if (e->kind == EV_APP)
		app_again(n);
}

void reconnect_on_event(struct sim *sim, const struct event *e)
{
	struct reconnect *r = sim->world->reconnect;
	struct node *n = &sim->node[e->node % 2];

	if (e->kind == EV_RESUME)
		r->stopped = false;
	else if (e->kind == EV_GO_ON)
		stall_go_on(n);
	else if (network_is_crossed(e) && r->stopped)
		network_delay(sim, e);
	else if (e->kind == EV_ARRIVE || e->kind == EV_RESET)
		network_deliver(sim, e);
	/* EV_DIALED and EV_COPY need no thread of the target, which is possibly stuck. */
	else if (e->kind == EV_DIALED || e->kind == EV_COPY)
		sim_do_event(sim, e);
	else
		node_visit(n, e);
	if (e->node % 2 == 1) /* only the target has memory to check */
		reconnect_check(sim->world);
}

/* --- the connections ---------------------------------------------------------------------- */

static void conn_make(struct world *w, unsigned c)
{
	struct sim *sim = &w->conn[c];

	sim->world = w;
	sim->index = c;
	sim->redials = 0;
	sim->fault_hit = true; /* with this fault some operations can fail */
	sim->disconnecting = false;
	sim->link.up = false;
	for (int i = 0; i < 2; i++) {
		node_start(&sim->node[i], sim, i);
		sim->node[i].own_box.slot_len = sim->sc.op_max;
	}
	reconnect_plan_memory(sim);
	if (c == 0)
		reconnect_oracle_init(w);
	w->conns = c + 1;
	node_open(&sim->node[0]);
	node_open(&sim->node[1]);
}

static void conn_dial(struct sim *sim)
{
	struct world *w = sim->world;
	struct stream_params params = workload_params(&sim->node[0]);
	uint64_t at = w->now + 1 + prng_below(&w->rng, sim->sc.latency_ns);
	struct stream_update u;

	if (at <= w->reconnect->quiet_at && !w->reconnect->barrier)
		at = w->reconnect->quiet_at + 1;
	reconnect_seen_begin(sim);
	if (stream_connect(sim->node[0].stream, &params, w->now, &u))
		sim_violate(sim, "connect");
	node_perform(&sim->node[0], &u);
	for (int i = 0; i < 2; i++) {
		sim->node[i].busy_until = at + BUSY_NS;
		sim_at(sim, w->now + 1, EV_APP, i, 0);
	}
	sim_at(sim, at, EV_DIALED, 0, 0);
}

/* A connection of the kind STAY can begin together with the next connection. In this case both name
 * the same former connections. */
void reconnect_begin(struct world *w)
{
	struct reconnect *r = w->reconnect;
	unsigned c = w->conns;

	if (c == WORLD_CONNS) {
		r->done_at = w->now;
		return;
	}
	conn_make(w, c);
	conn_dial(&w->conn[c]);
	r->conn[c].beside = r->conn[c].end == END_STAY && prng_chance(&w->rng, 50);
	if (r->conn[c].beside)
		reconnect_begin(w);
}

static bool run_is_over(struct world *w)
{
	bool over = true;

	if (!w->reconnect->done_at)
		return false;
	for (unsigned c = 0; c < w->conns; c++)
		over &= w->conn[c].node[1].ended && !stall_is_stuck(&w->conn[c].node[1]);
	return over || w->now > w->reconnect->done_at + SETTLE_NS;
}

static void run_prepare(struct world *w, uint64_t seed, const struct sim_options *opt)
{
	w->seed = seed;
	w->rng = (struct prng){.state = seed * 0x2545f4914f6cdd1dull + 1};
	w->now = w->events = w->cuts = 0;
	w->cut_often = w->powered_off = w->violated = false;
	w->reconnect = &reconnect;
	w->conns = 0;
	sched_clear(&w->sched);
	world_start_hosts(w);
	origin_start(opt->mode);
	reconnect_plan(w, opt);
	reconnect_begin(w);
}

static void run_stop(struct world *w)
{
	w->reconnect->stalls = RECONNECT_STALLS;
	for (unsigned c = 0; c < w->conns; c++) {
		if (stall_is_stuck(&w->conn[c].node[1]))
			stall_go_on(&w->conn[c].node[1]);
	}
	world_stop(w);
	origin_stop();
}

bool reconnect_run(struct world *w, uint64_t seed, const struct sim_options *opt)
{
	struct event e;

	run_prepare(w, seed, opt);
	while (!w->violated && !run_is_over(w) && sched_pop(&w->sched, &e)) {
		w->now = e.at;
		w->events++;
		sim_on_event(&w->conn[e.node / 2], &e);
	}
	reconnect_seen_run(w);
	if (w->violated)
		reconnect_report(w, stdout);
	run_stop(w);
	return !w->violated;
}

void reconnect_fini(void)
{
	free(reconnect.floor[0]);
	free(reconnect.floor[1]);
	reconnect = (struct reconnect){0};
	stall_fini();
}
