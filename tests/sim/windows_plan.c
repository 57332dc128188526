/* SPDX-License-Identifier: BSD-3-Clause */
/* windows_plan.c -- the connections, the memory and the windows of a run with memory windows. */
#include <stdlib.h>
#include <string.h>

#include "windows.h"
#include "workload.h"

static void plan_scenario(struct scenario *sc, struct prng *rng)
{
	do
		scenario_make(sc, rng);
	while (sc->op_max > 20000);
	sc->fault = FAULT_NONE;
	sc->offer_consent[0] = sc->offer_consent[1] = true;
	sc->p2p = sc->assumes_7306 = sc->changing = false;
	sc->revision = 2;
	sc->want_crc[0] = sc->want_crc[1] = prng_chance(rng, 30);
	sc->op_max = (uint32_t)(prng_chance(rng, 15) ? prng_between(rng, 4500, 12000)
						     : prng_between(rng, 16, 400));
	sc->target_len = 2 * sc->op_max + (uint32_t)prng_below(rng, sc->op_max);
	sc->window = (uint32_t)prng_between(rng, 64, 8 * sc->op_max + 64);
	sc->chunk_max = (uint32_t)prng_between(rng, 1, 2 * sc->op_max);
	sc->half_volatile[0] = sc->half_volatile[1] = false;
	sc->strict[0] = sc->strict[1] = false;
	sc->use_srq[0] = sc->use_srq[1] = false;
	sc->bulk_receives = sc->late_receives = sc->mostly_sends = sc->evicts = false;
	sc->tick_ns = prng_between(rng, 1000, 20000);
	sc->unreliable = prng_chance(rng, 45);
	sc->acks[0] = sc->acks[1] = !sc->unreliable && prng_chance(rng, 60);
	for (int i = 0; i < 2; i++) {
		sc->send_depth[i] = (uint32_t)prng_between(rng, 4, 16);
		sc->recv_depth[i] = (uint32_t)prng_between(rng, 2, 8);
	}
}

/* --- memory --------------------------------------------------------------------------------- */

static void plan_memory(struct sim *sim)
{
	const struct scenario *sc = &sim->sc;

	for (int i = 0; i < 2; i++) {
		struct node *n = &sim->node[i];
		uint64_t len[AREA_COUNT] = {
			[AREA_TARGET0] = i == 1 ? sc->target_len : 8,
			[AREA_TARGET1] = i == 1 ? sc->target_len : 8,
			[AREA_LEASE] = 8,
			[AREA_WORDS] = 16,
			[AREA_SINK] = i == 0 ? sc->op_max : 8,
			[AREA_RECV] = inbox_room(&n->own_box),
			[AREA_SCRATCH] = 8,
			[AREA_SOURCE] = 8,
			[AREA_STAGE] = i == 0 ? WIN_OPS * (uint64_t)sc->op_max / 2 : 8,
		};

		memory_init(n->mem, &sim->world->rng, len, n->host->mrs, &n->host->pd);
		n->mem->is_dax = sc->dax[i];
		inbox_plan(&n->own_box);
	}
}

/* Set version 0, which means that no Write has changed the areas. */
static void plan_oracle(struct win_conn *c, struct memory *m)
{
	for (int i = AREA_TARGET0; i <= AREA_TARGET1; i++) {
		memset(m->cache + m->area[i].off, 0, m->area[i].len);
		memset(m->medium + m->area[i].off, 0, m->area[i].len);
	}
	if (m->size > c->room) {
		c->room = m->size;
		c->shadow = realloc(c->shadow, c->room);
		c->floor = realloc(c->floor, c->room);
	}
	if (!c->shadow || !c->floor)
		abort();
	memcpy(c->shadow, m->cache, m->size);
	memset(c->floor, 0, m->size);
}

static void plan_windows(struct win_conn *c, struct node *n)
{
	struct prng *rng = &n->sim->world->rng;

	for (int i = 0; i < WIN_WINDOWS; i++) {
		struct win_window *win = &c->window[i];
		enum ibv_mw_type type = prng_chance(rng, 40) ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2;

		if (mw_new(n->host->mrs, &n->host->pd, type, &win->mw))
			abort();
		win->key = win->mw->ibv.rkey;
		win->pending = win->live = -1;
	}
}

/* --- connections ---------------------------------------------------------------------------- */

static void plan_conn(struct sim *sim)
{
	struct win_conn *c = &sim->world->windows->conn[sim->index];
	uint8_t *shadow = c->shadow, *floor = c->floor;
	uint64_t room = c->room;

	for (int i = 0; i < 2; i++) {
		node_start(&sim->node[i], sim, i);
		sim->node[i].own_box.slot_len = sim->sc.op_max;
	}
	*c = (struct win_conn){
		.shadow = shadow,
		.floor = floor,
		.room = room,
		.planned = (unsigned)prng_between(&sim->world->rng, 5, WIN_OPS),
	};
	plan_memory(sim);
	plan_oracle(c, sim->node[1].mem);
	plan_windows(c, &sim->node[1]);
	node_open(&sim->node[0]);
	node_open(&sim->node[1]);
}

static void plan_dial(struct sim *sim)
{
	uint64_t now = sim->world->now;
	struct stream_params params = workload_params(&sim->node[0]);
	struct stream_update u;

	if (stream_connect(sim->node[0].stream, &params, now, &u))
		sim_violate(sim, "connect");
	sim_at(sim, now + sim->sc.latency_ns, EV_DIALED, 0, 0);
	sim_at(sim, now + 1, EV_APP, 0, 0);
	sim_at(sim, now + 2, EV_APP, 1, 0);
	sim_at(sim, now + SIM_GIVE_UP_NS, EV_GIVE_UP, 0, 0);
}

void win_plan(struct world *w, const struct sim_options *opt)
{
	w->windows->version = 0;
	w->conns = (unsigned)prng_between(&w->rng, 1, WIN_CONNS);
	for (unsigned i = 0; i < w->conns; i++) {
		struct sim *sim = &w->conn[i];

		sim->world = w;
		sim->index = i;
		sim->redials = 0;
		sim->fault_hit = true; /* some operations can fail */
		sim->disconnecting = false;
		sim->link.up = false;
		plan_scenario(&sim->sc, &w->rng);
		sim->sc.mode = opt->mode;
		plan_conn(sim);
		windows_seen.reliable += !sim->sc.unreliable;
		windows_seen.unreliable += sim->sc.unreliable;
	}
	for (unsigned i = 0; i < w->conns; i++)
		plan_dial(&w->conn[i]);
}
