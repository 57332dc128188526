/* SPDX-License-Identifier: BSD-3-Clause */
/* reconnect_plan.c -- plan how each connection in a row ends, and choose the properties of the two
 * hosts. */
#include "reconnect.h"

#define INITIATOR_LIMIT_NS (300 * NSEC_PER_MS)
#define DRAIN_NS           (200 * NSEC_PER_MS)

/* Plan small, busy connections, so that bytes are in flight when a connection ends. */
static void plan_scenario(struct world *w, struct scenario *sc)
{
	struct prng *rng = &w->rng;
	bool large = prng_chance(rng, 15);

	do
		scenario_make(sc, rng);
	while (sc->op_max > 20000);
	sc->fault = FAULT_NONE;
	sc->offer_consent[0] = sc->offer_consent[1] = true;
	sc->p2p = sc->assumes_7306 = sc->changing = false;
	sc->revision = 2;
	sc->want_crc[0] = sc->want_crc[1] = prng_chance(rng, 30);
	sc->op_max =
		(uint32_t)(large ? prng_between(rng, 4500, 12000) : prng_between(rng, 16, 600));
	sc->target_len = sc->op_max + (uint32_t)prng_below(rng, sc->op_max);
	sc->words_len = sc->commit_flags ? 16 : 64;
	sc->window = (uint32_t)prng_between(rng, 64, 8 * sc->op_max + 64);
	sc->chunk_max = (uint32_t)prng_between(rng, 1, large ? 20000 : 700);
	sc->half_volatile[0] = sc->half_volatile[1] = false;
	sc->use_srq[0] = sc->use_srq[1] = false;
	sc->bulk_receives = sc->late_receives = sc->mostly_sends = sc->evicts = false;
	sc->tick_ns = prng_between(rng, 1000, 20000);
	sc->liveness_ns[0] = INITIATOR_LIMIT_NS;
	sc->drain_ns = DRAIN_NS;
	for (int i = 0; i < 2; i++)
		sc->send_depth[i] = (uint32_t)prng_between(rng, 4, 32);
}

static void plan_stop(struct world *w, struct reconnect_conn *c)
{
	struct prng *rng = &w->rng;

	c->stops_after = RECONNECT_OPS;
	if (c->end == END_ORDERLY || !prng_chance(rng, c->end == END_LOST ? 100 : 40))
		return;
	c->stops_after = (unsigned)prng_between(rng, c->ends_after / 2, c->ends_after);
	c->stop_ns = prng_chance(rng, 50) && c->end != END_LOST
			     ? prng_between(rng, 1000, 20 * NSEC_PER_MS)
			     : prng_between(rng, 100 * NSEC_PER_MS, 1500 * NSEC_PER_MS);
}

/* A mode that tests one kind of end uses this kind often. */
static enum reconnect_end plan_end(struct world *w)
{
	enum sim_mode mode = w->conn[0].sc.mode;
	enum reconnect_end end = (enum reconnect_end)prng_below(&w->rng, END_COUNT);

	if (mode != SIM_NO_LEAVE && mode != SIM_NO_MARK)
		return end;
	if (prng_chance(&w->rng, 40))
		return end;
	return mode == SIM_NO_LEAVE ? END_TARGET : END_DELETE;
}

static void plan_conn(struct world *w, struct reconnect_conn *c, bool last)
{
	struct prng *rng = &w->rng;

	*c = (struct reconnect_conn){
		.ends_after = (unsigned)prng_between(rng, 1, RECONNECT_OPS - 2),
		.end = last ? END_ORDERLY : plan_end(w),
		.recv_percent = prng_chance(rng, 60) ? 40 : 1,
	};
	c->delete_ns = prng_chance(rng, 50)   ? 0
		       : prng_chance(rng, 70) ? prng_below(rng, NSEC_PER_MS)
					      : prng_below(rng, 1300 * NSEC_PER_MS);
	/* After these ends the sent bytes can still be in flight, because a time limit reported the
	 * end, or no application waited for the end. */
	if (!w->reconnect->barrier &&
	    (c->end == END_HURRIED || c->end == END_LIMIT || c->end == END_TARGET))
		c->end = END_ORDERLY;
	if (c->end != END_ORDERLY &&
	    prng_chance(rng, w->conn[0].sc.mode == SIM_LATE_ORIGIN ? 60 : 15))
		c->pause_ns = prng_between(rng, 1000, 500 * NSEC_PER_MS);
	if (c->end == END_ORDERLY)
		c->recv_percent = 40;
	plan_stop(w, c);
}

/*
 * A run has no barrier if one end does not support it, or if a process that dies has no owner's
 * name. A mode that switches off another protection also has no barrier, so that it tests that
 * protection alone.
 */
static void plan_barrier(struct world *w, struct reconnect *r, enum sim_mode mode)
{
	bool alone = mode == SIM_GRACEFUL_CLOSE || mode == SIM_NO_MARK || mode == SIM_NO_LOOK;

	r->barrier = (prng_chance(&w->rng, 60) && !alone) || mode == SIM_BARRIER_ALONE;
	r->takes_part[0] = r->barrier || (prng_chance(&w->rng, 50) && !alone);
	r->takes_part[1] = r->barrier || prng_chance(&w->rng, 50);
	r->named = r->barrier && mode != SIM_NO_OWNER && prng_chance(&w->rng, 30);
}

void reconnect_plan(struct world *w, const struct sim_options *opt)
{
	struct reconnect *r = w->reconnect;
	struct scenario *first = &w->conn[0].sc;
	bool rings;

	r->planned = (unsigned)prng_between(&w->rng, 2, 4);
	plan_barrier(w, r, opt->mode);
	r->stalls = 0;
	r->stopped = false;
	r->resume_at = r->quiet_at = r->done_at = 0;
	r->version = 0;
	plan_scenario(w, first);
	first->mode = opt->mode;
	rings = first->rings || opt->mode == SIM_NO_MARK;
	for (unsigned c = 0; c < WORLD_CONNS; c++) {
		w->conn[c].sc = *first;
		w->conn[c].sc.rings = rings && prng_chance(&w->rng, 80);
		plan_conn(w, &r->conn[c], c + 1 >= r->planned);
		r->named |= r->barrier && r->conn[c].end == END_KILL && opt->mode != SIM_NO_OWNER;
	}
}

/* All targets use the memory of the first target. Only the initiator's stage is large. */
void reconnect_plan_memory(struct sim *sim)
{
	const struct scenario *sc = &sim->sc;

	for (int i = 0; i < 2; i++) {
		struct node *n = &sim->node[i];
		uint64_t len[AREA_COUNT] = {
			[AREA_TARGET0] = i == 1 ? sc->target_len : 8,
			[AREA_TARGET1] = 8,
			[AREA_LEASE] = 8,
			[AREA_WORDS] = sc->words_len,
			[AREA_SINK] = 8,
			[AREA_RECV] = inbox_room(&n->own_box),
			[AREA_SCRATCH] = i == 1 ? sc->op_max : 8,
			[AREA_SOURCE] = 8,
			[AREA_STAGE] = i == 0 ? RECONNECT_OPS * sc->op_max / 2 : 8,
		};

		if (i == 1 && sim->index > 0) {
			n->mem = &sim->world->conn[0].node[1].own_mem;
		} else {
			memory_init(n->mem, &sim->world->rng, len, n->host->mrs, &n->host->pd);
			n->mem->is_dax = sc->dax[i];
		}
		inbox_plan(&n->own_box);
	}
}
