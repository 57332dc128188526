/* SPDX-License-Identifier: BSD-3-Clause */
/* verdict.c -- the rules that must hold at any time, and the rules for the end of a run. */
#include "sim.h"
#include "workload.h"

static void verdict_queues(struct sim *sim, struct node *n)
{
	const char *bad = model_check_complete(&n->model);
	bool whole = n->disconnecting && sim->sc.fault == FAULT_DISCONNECT &&
		     n->index == sim->sc.fault_node && !n->peer->disconnecting;

	if (n->killed || n->destroyed)
		return;
	if (n->established && !n->disconnected)
		sim_violate(sim, "node %d: no disconnect event", n->index);
	if (n->overrun)
		return;
	if (bad)
		sim_violate(sim, "node %d: %s", n->index, bad);
	if (sim_is_clean(sim) && n->model.completed != n->model.planned)
		sim_violate(sim, "node %d: %u of %u operations complete", n->index,
			    n->model.completed, n->model.planned);
	if (whole && n->model.failed && n->model.first_failed < n->posted_at_disconnect)
		sim_violate(sim, "node %d: an operation posted before the disconnect failed",
			    n->index);
	if (sim_is_clean(sim) && !n->model.failed)
		n->model.applied = n->model.executed = n->model.posted;
}

/* The model does not record which messages a killed or overrun end received. */
static void verdict_inbox(struct node *n)
{
	const struct world *w = n->sim->world;
	bool known = n->own_box.has_srq || n->established;

	for (unsigned i = 0; i < w->conns; i++) {
		const struct node *user = &w->conn[i].node[n->index];

		known &= user->box != &n->own_box || !(user->killed || user->overrun);
	}
	if (known)
		inbox_check(&n->own_box);
}

void sim_check_memory(struct node *n)
{
	struct sim *sim = n->sim;
	const struct scenario *sc = &sim->sc;
	bool words = scenario_has_crc(sc) && sc->fault != FAULT_UNMAP;
	const char *bad;

	if (!scenario_is_trusted(sc))
		return;
	bad = model_check_cache(&n->peer->model, n->mem, words);
	if (!bad && sc->fault != FAULT_UNMAP)
		bad = model_on_observed(&n->peer->model, n->mem);
	if (bad)
		sim_violate(sim, "node %d: %s", n->index, bad);
}

static void verdict_medium(struct node *n)
{
	const char *bad = NULL;

	if (scenario_is_trusted(&n->sim->sc))
		bad = model_check_medium(&n->peer->model, n->mem);
	if (bad)
		sim_violate(n->sim, "node %d: %s", n->index, bad);
}

void sim_verdict(struct sim *sim)
{
	for (int i = 0; i < 2 && !sim->world->powered_off; i++)
		verdict_queues(sim, &sim->node[i]);
	for (int i = 0; i < 2 && !sim->world->powered_off; i++)
		verdict_inbox(&sim->node[i]);
	for (int i = 0; i < 2; i++) {
		struct node *n = &sim->node[i];
		int64_t damage = memory_find_damage(n->mem);

		if (damage >= 0)
			sim_violate(
				sim,
				"node %d: the byte at offset %lld, outside of every live area, changed",
				i, (long long)damage);
		sim_check_memory(n);
		verdict_medium(n);
		if (scenario_is_trusted(&sim->sc))
			workload_check_areas(n);
	}
}
