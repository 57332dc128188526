/* SPDX-License-Identifier: BSD-3-Clause */
/* world.c -- makes one run: a set, a time with faults ("trouble"), and then a time without faults
 * ("peace"), in which the set must recover completely. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

#define PEACE_LIMIT (60000 * MS)

/* ---- trouble ---- */

static void world_restart(struct world *w, struct event *e)
{
	struct host *h = &w->host[e->host];

	if (h->powered)
		daemon_start(w, h);
	else
		host_power_on(w, h);
	host_settle(w, h);
}

static uint64_t world_while(struct world *w)
{
	return sim_chance(w, 600) ? sim_between(w, MS, 300 * MS)
				  : sim_between(w, 300 * MS, 3000 * MS);
}

static void world_end_process(struct world *w, struct event *e)
{
	struct host *h = &w->host[e->host];

	if (h->lib && h->lib->uid == e->uid && !w->healing)
		lib_crash(w, h);
	/* Sometimes another host loses power at the same time. */
	if (!w->healing && e->arg < w->hosts) {
		host_power_cut(w, &w->host[e->arg]);
		sched_add(w, world_while(w), world_restart, (uint32_t)e->arg, 0, 0, NULL);
	}
}

/* Returns true if no fault is allowed now. */
static bool world_is_spared(const struct world *w)
{
	return w->healing || plan_is_alone(w);
}

void world_ambush_process(struct world *w, uint32_t host, unsigned permille, uint64_t within)
{
	uint64_t other = prng_below(&w->rng, 3 * w->hosts);

	if (!world_is_spared(w) && sim_chance(w, permille) && w->host[host].lib)
		sched_add(w, sim_between(w, 20, within), world_end_process, host,
			  w->host[host].lib->uid, other, NULL);
}

static void world_lose_power(struct world *w, struct event *e)
{
	if (w->healing)
		return;
	host_power_cut(w, &w->host[e->host]);
	sched_add(w, e->arg, world_restart, e->host, 0, 0, NULL);
}

void world_ambush_power(struct world *w, uint32_t host, uint64_t within, uint64_t for_us)
{
	sched_add(w, sim_between(w, 0, within), world_lose_power, host, 0, for_us, NULL);
}

void world_ambush_flush(struct world *w, uint32_t host, unsigned permille)
{
	bool all = sim_chance(w, 400);

	if (world_is_spared(w) || !sim_chance(w, permille))
		return;
	for (unsigned i = 0; i < w->hosts; i++)
		if (i == host || all)
			sched_add(w, sim_between(w, 20, 1500), world_lose_power, i, 0,
				  i == host ? sim_between(w, MS, 3000 * MS)
					    : sim_between(w, MS, 200 * MS),
				  NULL);
}

void world_ambush_member(struct world *w, uint32_t host, mirror_mask members, unsigned permille)
{
	if (!world_is_spared(w) && members && sim_chance(w, permille))
		net_cut(w, (uint8_t)host, (uint8_t)__builtin_ctz(members), w->now + world_while(w));
}

static void world_cut(struct world *w, unsigned a)
{
	unsigned b = (unsigned)prng_below(&w->rng, w->hosts);

	if (a == b)
		return;
	sim_trace(w, "the network between %u and %u is cut", a, b);
	net_cut(w, (uint8_t)a, (uint8_t)b, w->now + world_while(w));
}

static void world_cut_one(struct world *w)
{
	uint32_t from = w->conn_count > 12 ? w->conn_count - 12 : 0;

	if (w->conn_count == 0)
		return;
	uint32_t i = (uint32_t)sim_between(w, from, w->conn_count - 1);

	if (w->conns[i].from != w->conns[i].to)
		conn_cut(w, i);
}

bool world_configure(struct world *w, const struct mirror_config *config)
{
	if (view_set_config(&w->reg.rec, config, sim_random(w), NULL))
		return false;
	w->reg.rec.view.seq += w->mode == SIM_CONFIG_COUNTS;
	w->reg.revision++;
	register_changed(w);
	w->count.configs++;
	return true;
}

static void world_set_config(struct world *w)
{
	struct mirror_config next = w->reg.rec.config;

	next.slow_ms++;
	world_configure(w, &next);
}

/* Returns true if the set can continue without this copy. */
static bool world_is_spare(const struct world *w, const struct host *h)
{
	const struct mirror_record *rec = &w->reg.rec;

	return rec->view.primary != h->id &&
	       view_may_shrink(rec, rec->view.insync & MIRROR_BIT(h->id), NULL);
}

/*
 * Stop the host's daemon and damage its metadata. The daemon detects the damage when it starts
 * again. A copy whose promise is lost cannot be promoted, so the set must not depend on this copy.
 */
static void world_rot(struct world *w, struct host *h)
{
	bool is_spare = world_is_spare(w, h);

	if (!is_spare && sim_chance(w, 500))
		host_power_cut(w, h);
	if (h->lib)
		lib_crash(w, h);
	daemon_end(w, h);
	disk_rot(w, &h->disk, !is_spare);
	w->count.rots++;
	sched_add(w, world_while(w), world_restart, h->id, 0, 0, NULL);
}

/* The host's copy is lost, and the operator replaces it by an empty copy (`rpmirror member
 * replace`). */
void world_replace(struct world *w, struct host *h)
{
	struct mirror_config next = w->reg.rec.config;

	do
		next.members[h->id].id += 10;
	while (next.members[h->id].id <= h->meta.super.member_id);
	if (!world_configure(w, &next))
		return;
	w->count.replaced++;
	sim_trace(w, "%u: its copy is replaced", h->id);
	daemon_end(w, h);
	h->persists_left = -1;
	world_format(w, h, &w->reg.rec.config, META_EMPTY);
	sched_add(w, world_while(w), world_restart, h->id, 0, 0, NULL);
}

void world_force_now(struct world *w, struct host *h)
{
	orders_give(w, h, PROMOTION_FORCE, 3000 * MS);
}

bool world_may_be_forced(const struct host *h)
{
	enum mirror_copy copy = h->daemon_uid ? member_copy(&h->member, true) : MIRROR_COPY_FAILED;

	return !h->split && copy != MIRROR_COPY_EMPTY && copy != MIRROR_COPY_FAILED &&
	       copy != MIRROR_COPY_SYNCING;
}

static void world_force(struct world *w, struct host *h)
{
	for (unsigned i = 0; i < w->hosts; i++)
		if (w->host[i].lib)
			return;
	if (!world_may_be_forced(h) || w->now < w->reg.down_until)
		return;
	world_force_now(w, h);
}

static void world_hurt(struct world *w, struct host *h)
{
	switch (sim_between(w, 0, 13)) {
	case 0:
		host_power_cut(w, h);
		sched_add(w, world_while(w), world_restart, h->id, 0, 0, NULL);
		break;
	case 1:
	case 2:
		if (h->lib)
			lib_crash(w, h);
		break;
	case 3:
		daemon_end(w, h);
		sched_add(w, world_while(w), world_restart, h->id, 0, 0, NULL);
		break;
	case 4:
	case 5:
		world_cut(w, h->id);
		break;
	case 6:
		world_cut_one(w);
		break;
	case 7:
		if (sim_chance(w, 500))
			w->reg.down_until = w->now + world_while(w);
		else
			w->register_cut_until[h->id] = w->now + world_while(w);
		break;
	case 8:
		h->persists_left = (long)prng_below(&w->rng, 12);
		break;
	case 9:
		if (h->lib && !h->lib->ended) {
			primary_demote(&h->lib->p);
			lib_run(w, h->lib);
		}
		break;
	case 10:
		world_ambush_process(w, h->id, 1000, 5 * MS);
		break;
	case 11:
		if (sim_chance(w, 300))
			world_rot(w, h);
		else if (sim_chance(w, 400) && !h->lib && world_is_spare(w, h) && w->hosts > 1)
			world_replace(w, h);
		break;
	case 12:
		if (w->may_force)
			world_force(w, h);
		break;
	default:
		world_set_config(w);
		break;
	}
	host_settle(w, h);
}

static void world_trouble(struct world *w, struct event *e)
{
	unsigned most = 1 + (unsigned)prng_below(&w->rng, 2);

	(void)e;
	if (w->now > w->trouble_until || w->healing)
		return;
	for (unsigned i = 0; i < most && !plan_is_alone(w); i++) {
		/* Choose the primary's host more often than other hosts. */
		unsigned id = (unsigned)prng_below(&w->rng, w->hosts);

		if (sim_chance(w, 400) && w->reg.rec.view.primary < w->hosts)
			id = w->reg.rec.view.primary;
		world_hurt(w, &w->host[id]);
	}
	disk_evict(w, &w->host[prng_below(&w->rng, w->hosts)].disk);
	sched_add(w, sim_between(w, 5 * MS, 700 * MS), world_trouble, 0, 0, 0, NULL);
}

/* ---- the end of a run: no more faults ---- */

/* Returns true if each copy of S was discarded, so that only a promotion by force is possible. */
static bool world_is_all_discarded(const struct world *w)
{
	for (unsigned i = 0; i < w->hosts; i++) {
		const struct host *h = &w->host[i];

		if (h->lib || (w->reg.rec.view.insync & MIRROR_BIT(i) &&
			       (!h->daemon_uid || h->split ||
				member_copy(&h->member, true) != MIRROR_COPY_SYNCING)))
			return false;
	}
	return w->resolving;
}

/*
 * Do what `rpmirror explain` advises, in two cases. In the first case, copies of S cannot be used
 * any more, and min_copies forbids their exclusion. In the second case, the register was restored,
 * and lacks the replacement of a copy.
 */
static void world_operate(struct world *w, struct event *e)
{
	struct mirror_config next = w->reg.rec.config;
	const struct mirror_record *rec = &w->reg.rec;
	mirror_mask useless = 0;

	(void)e;
	for (unsigned i = 0; i < w->hosts; i++) {
		struct host *h = &w->host[i];

		if (h->daemon_uid && rec->view.insync & MIRROR_BIT(i) &&
		    ((!h->lib && member_copy(&h->member, true) == MIRROR_COPY_SYNCING) ||
		     medium_has_failed(h)))
			useless |= MIRROR_BIT(i);
	}
	if (useless && !view_may_shrink(rec, useless, NULL) && next.min_copies > 1) {
		next.min_copies = 1;
		world_configure(w, &next);
	}
	for (unsigned i = 0; i < w->hosts && w->resolving; i++)
		if (w->host[i].daemon_uid && !w->host[i].lib &&
		    w->host[i].meta.super.member_id != w->reg.rec.config.members[i].id)
			world_replace(w, &w->host[i]);
	growth_operate(w);
	medium_operate(w);
	if (world_is_all_discarded(w))
		world_force_now(w, &w->host[__builtin_ctz(rec->view.insync)]);
	sched_add(w, 5000 * MS, world_operate, 0, 0, 0, NULL);
}

static void world_heal(struct world *w)
{
	w->healing = true;
	w->is_manual = false; /* from now on the set has `auto = yes` */
	w->reg.down_until = 0;
	sched_add(w, 5000 * MS, world_operate, 0, 0, 0, NULL);
	memset(w->cut_until, 0, sizeof(w->cut_until));
	memset(w->register_cut_until, 0, sizeof(w->register_cut_until));
	for (unsigned i = 0; i < w->hosts; i++) {
		w->host[i].persists_left = -1;
		w->host[i].stopping = 0;
		w->host[i].disk.failing = 0;
		if (!w->host[i].powered)
			host_power_on(w, &w->host[i]);
		daemon_start(w, &w->host[i]);
	}
}

static bool world_is_well(const struct world *w)
{
	const struct mirror_view *v = &w->reg.rec.view;
	const struct lib *lib;

	if (v->phase != MIRROR_PHASE_SERVING || view_count(v->insync) != w->hosts ||
	    !growth_is_well(w))
		return false;
	lib = w->host[v->primary].lib;
	if (!lib || !lib->served || lib->ended || lib->wants_flush ||
	    lib->p.rec.view.seq != v->seq || lib->p.rec.config.number != w->reg.rec.config.number ||
	    lib->flush.begun != lib->flush.retired || lib->flush.begun == 0)
		return false;
	for (unsigned i = 0; i < w->hosts; i++)
		if (i != v->primary &&
		    (lib->p.members[i].state != PRIMARY_MEMBER_EQUAL || w->host[i].lib))
			return false;
	return true;
}

static void world_run_until(struct world *w, uint64_t until, bool stop_when_well)
{
	struct event e;

	w->until = until;
	while (!w->violated && w->now < w->until && !(stop_when_well && world_is_well(w)) &&
	       sched_next(w, &e)) {
		e.fn(w, &e);
		free(e.data);
		w->count.events++;
		if (++w->steps % 4 == 0 && !w->healing)
			oracle_step(w);
	}
}

static void world_become_well(struct world *w)
{
	const struct mirror_view *v = &w->reg.rec.view;

	world_run_until(w, w->now + PEACE_LIMIT, true);
	if (w->violated)
		return;
	if (world_is_well(w)) {
		oracle_at_end(w);
		return;
	}
	if (medium_is_all_lost(w))
		return;
	w->count.unhealed++;
	oracle_fail(w, "it does not become well: register phase %d primary %u S %#x, %s", v->phase,
		    v->primary, v->insync,
		    v->primary < w->hosts && w->host[v->primary].lib
			    ? w->host[v->primary].lib->p.text
			    : "no process");
}

static void world_run_peace(struct world *w)
{
	world_heal(w);
	world_become_well(w);
}

/* The operator runs `rpmirror member remove`: S becomes smaller without a change by the primary. */
static void world_remove(struct world *w, struct host *h)
{
	struct mirror_config next = w->reg.rec.config;

	next.members[h->id] = (struct mirror_member){0};
	if (world_configure(w, &next))
		sim_trace(w, "%u: is no member any more", h->id);
}

/*
 * When all copies are in-sync, a member loses power. The primary continues without this member, and
 * then ends. The register is restored to its former content. All members can be reached, so
 * acknowledged data must not be lost silently: the set must report that it is split. The operator
 * then resolves the split, and the set recovers without the discarded data.
 */
static void world_run_restore(struct world *w)
{
	unsigned primary = w->reg.rec.view.primary;
	struct host *lost = &w->host[(primary + 1) % w->hosts];

	w->reg.old = w->reg.rec;
	w->reg.old_revision = w->reg.revision;
	growth_before_restore(w, &w->host[primary]);
	/* otherwise the set grows before the restore, or a growth is ordered and fails */
	if (!w->grows || sim_chance(w, 500))
		host_power_cut(w, lost);
	if (!lost->powered && sim_chance(w, 300))
		world_remove(w, lost);
	world_run_until(w, w->now + 1500 * MS, false);
	if (w->violated)
		return;
	host_power_cut(w, lost);
	if (w->host[primary].lib)
		lib_crash(w, &w->host[primary]);
	register_restore(w);
	/* The operator changes unrelated settings, through a daemon that has not read a newer
	 * record. */
	for (uint64_t changes = sim_chance(w, 500) ? sim_between(w, 1, 4) : 0; changes; changes--)
		world_set_config(w);
	host_power_on(w, lost);
	world_run_until(w, w->now + 5000 * MS, false);
	if (w->violated || w->mode == SIM_RESTORED_TRUSTED)
		return;
	w->resolving = true;
	memset(w->acked, 0, sizeof(w->acked));
	memset(w->floor, 0, sizeof(w->floor));
	world_become_well(w);
}

static void world_clear(struct world *w)
{
	sched_clear(w);
	for (unsigned i = 0; i < w->hosts; i++) {
		struct host *h = &w->host[i];

		if (h->lib) {
			meta_fini(&h->lib->meta);
			free(h->lib);
			h->lib = NULL;
		}
		if (h->daemon_uid) {
			member_fini(&h->member);
			meta_fini(&h->meta);
			h->daemon_uid = 0;
		}
		growth_forget(h);
	}
}

static void world_reset(struct world *w, uint64_t seed, enum sim_mode mode)
{
	w->seed = seed;
	w->rng.state = seed * 0x2545f4914f6cdd1dull;
	w->growth_rng.state = seed * 0x9e3779b97f4a7c15ull;
	w->medium_rng.state = seed * 0xd1342543de82ef95ull;
	w->parts_rng.state = seed * 0xaef17502108ef2d9ull;
	w->orders_rng.state = seed * 0xda942042e4dd58b5ull;
	w->mode = mode;
	w->now = w->order = w->steps = 0;
	w->conn_count = w->uids = 0;
	w->healing = w->restored = w->violated = w->forced = w->gave_up = w->resolving = false;
	memset(w->cut_until, 0, sizeof(w->cut_until));
	memset(w->register_cut_until, 0, sizeof(w->register_cut_until));
	memset(w->acked, 0, sizeof(w->acked));
	memset(w->floor, 0, sizeof(w->floor));
	memset(&w->reg, 0, sizeof(w->reg));
}

bool world_run(struct world *w, uint64_t seed, enum sim_mode mode, bool restore)
{
	world_reset(w, seed, mode);
	world_make_set(w);
	w->trouble_until = sim_between(w, 1000 * MS, 8000 * MS);
	sched_add(w, sim_between(w, 50 * MS, 1500 * MS), world_trouble, 0, 0, 0, NULL);
	if (w->grows)
		sched_add(w, 20 * MS, growth_orders, 0, 0, 0, NULL);
	medium_choose(w);
	parts_choose(w);
	orders_choose(w);
	if (w->may_order)
		sched_add(w, 100 * MS, orders_trouble, 0, 0, 0, NULL);
	if (w->media_fail)
		sched_add(w, 300 * MS, medium_trouble, 0, 0, 0, NULL);
	world_run_until(w, w->trouble_until, false);
	if (!w->violated)
		world_run_peace(w);
	if (!w->violated && restore)
		world_run_restore(w);
	w->count.runs++;
	world_clear(w);
	return !w->violated;
}

void world_fini(struct world *w)
{
	for (unsigned i = 0; i < HOSTS; i++) {
		free(w->host[i].disk.meta);
		free(w->host[i].disk.meta_medium);
	}
	free(w->heap);
	free(w->conns);
}
