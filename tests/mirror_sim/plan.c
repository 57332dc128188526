/* SPDX-License-Identifier: BSD-3-Clause */
/* plan.c -- chains of faults that rarely occur by chance. A run has at most one chain. Each step
 * begins when the set is in the required state. Every step can happen in reality. */
#include "sim.h"

void plan_choose(struct world *w)
{
	static const enum plan_kind kinds[] = {PLAN_CHAIN, PLAN_LEASE, PLAN_JOIN, PLAN_FENCE};

	w->plan = PLAN_NONE;
	w->plan_step = 0;
	w->plan_host = HOSTS;
	if (sim_chance(w, 330))
		w->plan = kinds[prng_below(&w->rng, sizeof(kinds) / sizeof(kinds[0]))];
	if (w->plan != PLAN_NONE)
		w->hosts = (unsigned)sim_between(w, 3, 4);
}

static void plan_go(struct world *w, unsigned step)
{
	w->plan_step = step;
	sim_trace(w, "plan %d: step %u", w->plan, step);
}

/* From now on no message of this process arrives. */
static void plan_silence(struct world *w, const struct lib *lib)
{
	for (uint32_t i = 0; i < w->conn_count; i++)
		if (w->conns[i].lib_uid == lib->uid && w->conns[i].to != lib->host &&
		    w->conns[i].cut_fwd == NEVER)
			conn_silence(w, i);
}

/* CHAIN: only the primary's copy has the flush when the primary's process ends. */
void plan_on_flush(struct world *w, struct lib *lib)
{
	if (w->plan != PLAN_CHAIN || w->plan_step || w->healing || !sim_chance(w, 60) ||
	    view_count(lib->p.rec.view.insync) < 3)
		return;
	plan_go(w, 1);
	w->plan_host = lib->host;
	plan_silence(w, lib);
	world_ambush_process(w, lib->host, 1000, 40);
}

/* CHAIN: the host of the ended primary promotes its member again before other hosts promote their
 * members. */
bool plan_may_promote(const struct world *w, const struct host *h)
{
	return w->healing || w->plan != PLAN_CHAIN || w->plan_step != 1 || w->plan_host == h->id;
}

/* Returns true if no other fault is allowed during the present step. */
bool plan_is_alone(const struct world *w)
{
	return w->plan == PLAN_FENCE && w->plan_step == 1 &&
	       w->now < w->register_cut_until[w->plan_host];
}

/* Returns true if no other delay is allowed during the present step. */
bool plan_is_smooth(const struct world *w)
{
	return (w->plan == PLAN_CHAIN && w->plan_step == 1) || plan_is_alone(w);
}

bool plan_is_eager(const struct world *w, const struct host *h)
{
	return (w->plan == PLAN_CHAIN && w->plan_step == 1 && w->plan_host == h->id) ||
	       ((w->plan == PLAN_LEASE || w->plan == PLAN_FENCE) && w->plan_step == 1);
}

/* CHAIN: one other member is made equal, the messages to the next members are late, and the
 * primary's host loses power. */
void plan_on_equalise(struct world *w, struct lib *lib, unsigned slot)
{
	if (w->plan == PLAN_CHAIN && w->plan_step == 1 && !lib->served && !w->healing &&
	    w->plan_host == lib->host && slot != (lib->host + 1) % w->hosts)
		conn_stall(w, lib->peers[slot].conn[MEMBER_CONTROL] - 1, 250 * MS);
}

void plan_on_equal(struct world *w, struct lib *lib)
{
	if (w->plan == PLAN_CHAIN && w->plan_step == 1 && !lib->served &&
	    w->plan_host == lib->host && !w->healing) {
		plan_go(w, 2);
		world_ambush_power(w, lib->host, 4 * MS, 3000 * MS);
	}
}

/* LEASE: the answer to a renewal arrives late, and afterwards the register cannot be reached.
 * FENCE: the primary reaches all members, but not the register. */
bool plan_on_renewal(struct world *w, uint32_t host, uint64_t *delay)
{
	if ((w->plan != PLAN_LEASE && w->plan != PLAN_FENCE) || w->plan_step || w->healing ||
	    !sim_chance(w, 150))
		return false;
	if (w->plan == PLAN_FENCE && view_count(w->reg.rec.view.insync) < 3)
		return false;
	plan_go(w, 1);
	w->plan_host = host;
	w->register_cut_until[host] = w->now + sim_between(w, 2000 * MS, 4000 * MS);
	if (w->plan == PLAN_FENCE)
		return false;
	*delay = sim_between(w, 600 * MS, 990 * MS);
	return true;
}

/* FENCE: the primary flushes at the moment when other members promise a newer epoch. */
void plan_on_promise(struct world *w, struct mirror_epoch epoch)
{
	struct lib *lib = w->plan_host < w->hosts ? w->host[w->plan_host].lib : NULL;

	if (w->plan == PLAN_FENCE && w->plan_step == 1 && !w->healing && lib && !lib->ended &&
	    lib->p.rec.view.epoch.number < epoch.number)
		app_hurry(w, lib);
}

/* JOIN: while a member joins, flushes to the other members are late. After the member has joined,
 * these flushes are lost. */
void plan_on_join(struct world *w, struct lib *lib, unsigned slot)
{
	if (w->plan != PLAN_JOIN || w->healing)
		return;
	for (unsigned i = 0; i < MIRROR_MEMBERS_MAX; i++)
		if (i != slot && i != lib->host && lib->peers[i].conn[MEMBER_LANE])
			conn_stall(w, lib->peers[i].conn[MEMBER_LANE] - 1, 200 * MS);
	app_hurry(w, lib);
	plan_go(w, 1);
}

void plan_on_expand(struct world *w, uint32_t host)
{
	struct lib *lib = w->host[host].lib;

	if (w->plan != PLAN_JOIN || w->plan_step != 1 || w->healing || !lib)
		return;
	plan_go(w, 2);
	plan_silence(w, lib);
	world_ambush_power(w, host, 2 * MS, 3000 * MS);
	/* Sometimes end the faults now, so that the planned loss of power does not happen. */
	if (sim_chance(w, 100))
		w->until = w->now;
}
