/* SPDX-License-Identifier: BSD-3-Clause */
/* world.c -- makes one run from its seed, and runs it to its end. */
#include <stdlib.h>

#include "coverage.h"
#include "sim.h"
#include "workload.h"

static void world_start_conn(struct sim *sim)
{
	uint64_t now = sim->world->now;
	struct stream_params params = workload_params(&sim->node[0]);
	struct stream_update u;

	if (stream_connect(sim->node[0].stream, &params, now, &u))
		sim_violate(sim, "connect");
	sim_at(sim, now + sim->sc.latency_ns, EV_DIALED, 0, 0);
	sim_at(sim, now + 1, EV_APP, 0, 0);
	sim_at(sim, now + 2, EV_APP, 1, 0);
	sim_at(sim, now + sim->sc.fault_ns, EV_CUT, 0, 0);
	sim_at(sim, now + SIM_IMPATIENT_NS, EV_IMPATIENT, 0, 0);
	sim_at(sim, now + SIM_GIVE_UP_NS, EV_GIVE_UP, 0, 0);
}

/* Let all ends of a host take their receives from one SRQ. */
static void world_share_inbox(struct world *w, int host)
{
	struct inbox *b = &w->conn[0].node[host].own_box;

	b->shared = b->has_srq && w->conns > 1;
	for (unsigned i = 1; i < w->conns && b->shared; i++) {
		inbox_fini(&w->conn[i].node[host].own_box);
		w->conn[i].node[host].box = b;
	}
}

void world_start_hosts(struct world *w)
{
	for (int i = 0; i < 2; i++) {
		w->host[i] = (struct host){.shares = prng_chance(&w->rng, 60)};
		list_init(&w->host[i].waiting);
		if (mr_table_new(&w->host[i].mrs))
			abort();
	}
}

static void world_start(struct world *w)
{
	world_start_hosts(w);
	for (unsigned c = 0; c < w->conns; c++) {
		node_start(&w->conn[c].node[0], &w->conn[c], 0);
		node_start(&w->conn[c].node[1], &w->conn[c], 1);
	}
	world_share_inbox(w, 0);
	world_share_inbox(w, 1);
	for (unsigned c = 0; c < w->conns; c++) {
		node_open(&w->conn[c].node[0]);
		node_open(&w->conn[c].node[1]);
	}
	workload_plan(w);
	for (unsigned c = 0; c < w->conns; c++)
		world_start_conn(&w->conn[c]);
}

static void world_make_conn(struct world *w, unsigned index, const struct sim_options *opt)
{
	struct sim *sim = &w->conn[index];

	sim->world = w;
	sim->index = index;
	sim->redials = 0;
	sim->fault_hit = sim->disconnecting = false;
	sim->link.up = false;
	if (index > 0)
		scenario_make_beside(&sim->sc, &w->rng, &w->conn[0].sc);
	else if (opt->cut_often)
		scenario_make_cut(&sim->sc, &w->rng);
	else
		scenario_make(&sim->sc, &w->rng);
	sim->sc.mode = opt->mode;
	if (index == 0 && w->conns > 1)
		scenario_make_shared(&sim->sc, &w->rng);
}

static void world_prepare(struct world *w, uint64_t seed, const struct sim_options *opt)
{
	struct scenario *first = &w->conn[0].sc;

	w->seed = seed;
	w->rng = (struct prng){.state = seed * 0x2545f4914f6cdd1dull + 1};
	w->now = w->events = w->cuts = 0;
	w->cut_often = opt->cut_often;
	w->powered_off = w->violated = false;
	w->reconnect = NULL;
	w->conns = prng_chance(&w->rng, 75) ? 1 : (unsigned)prng_between(&w->rng, 2, SIM_CONNS);
	sched_clear(&w->sched);
	for (unsigned i = 0; i < w->conns; i++)
		world_make_conn(w, i, opt);
	/* If applications post receives late, a connection that does not wait takes the shared
	 * receives of a connection that waits. */
	for (unsigned i = 0; i < w->conns && w->conns > 1; i++)
		w->conn[i].sc.late_receives = false;
	if (opt->mode != SIM_HONEST && opt->mode != SIM_BLIND && first->fault != FAULT_POWER)
		first->fault = FAULT_NONE;
	if (opt->mode == SIM_BLIND && first->fault == FAULT_FLIP)
		first->want_crc[0] = first->want_crc[1] = false;
}

static bool world_is_over(struct world *w)
{
	for (unsigned i = 0; i < w->conns; i++) {
		if (!sim_is_over(&w->conn[i]))
			return false;
	}
	return true;
}

void world_stop(struct world *w)
{
	bool idle[2] = {true, true};

	for (unsigned c = 0; c < w->conns; c++) {
		node_stop(&w->conn[c].node[0]);
		node_stop(&w->conn[c].node[1]);
	}
	for (unsigned c = 0; c < w->conns; c++) {
		for (int i = 0; i < 2; i++) {
			inbox_fini(&w->conn[c].node[i].own_box);
			idle[i] &= memory_fini(&w->conn[c].node[i].own_mem);
		}
	}
	for (int i = 0; i < 2; i++) {
		if (idle[i])
			mr_table_delete(w->host[i].mrs);
		else
			sim_violate(&w->conn[0],
				    "node %d: a region is still held when the QP is gone", i);
	}
}

bool world_run(struct world *w, uint64_t seed, const struct sim_options *opt,
	       struct coverage *coverage)
{
	struct event e;

	world_prepare(w, seed, opt);
	world_start(w);
	while (!w->violated && !w->powered_off && !world_is_over(w) && sched_pop(&w->sched, &e)) {
		w->now = e.at;
		w->events++;
		sim_on_event(&w->conn[e.node / 2], &e);
	}
	for (unsigned i = 0; i < w->conns && !w->violated; i++)
		sim_verdict(&w->conn[i]);
	coverage_add(coverage, w);
	world_stop(w);
	return !w->violated;
}

void world_fini(struct world *w)
{
	for (unsigned c = 0; c < WORLD_CONNS; c++) {
		node_free(&w->conn[c].node[0]);
		node_free(&w->conn[c].node[1]);
		link_fini(&w->conn[c].link);
	}
	sched_fini(&w->sched);
}
