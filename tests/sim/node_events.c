/* SPDX-License-Identifier: BSD-3-Clause */
/* node_events.c -- timed events of an end: resets, deadlines, deregistration. */
#include <errno.h>
#include <string.h>

#include "sim.h"
#include "workload.h"

#define DEREG_LOOK_NS  (50 * 1000ull)
#define DEREG_LIMIT_NS (1 * NSEC_PER_SEC)

void node_on_reset(struct node *n, int err)
{
	struct sim *sim = n->sim;
	struct stream_update u;

	if (n->killed || !sim->link.up || sim->link.closed[n->index])
		return;
	if (err == EPIPE)
		stream_tx_end(n->stream, -err, &u);
	else
		stream_rx_end(n->stream, -err, sim->world->now, &u);
	node_perform(n, &u);
}

void node_on_time(struct node *n)
{
	struct stream_update u;

	if (n->killed)
		return;
	node_read(n, &u);
	n->deadline = CLOCK_NEVER;
	if (n->sim->world->now >= u.deadline)
		stream_on_time(n->stream, n->sim->world->now, &u);
	node_perform(n, &u);
}

/* --- deregistration ------------------------------------------------------------------------ */

struct mr **node_dereg_mr(struct node *n)
{
	return n->dereg_pool ? &n->mem->pool_mr : &n->mem->area[n->dereg_area].mr;
}

/* Like the engine, detach the region from every connection of the host. */
static void node_detach_all(struct node *n, struct mr *mr)
{
	struct world *w = n->sim->world;

	for (unsigned i = 0; i < w->conns; i++) {
		struct node *other = &w->conn[i].node[n->index];
		struct stream_update u;

		if (!other->qp)
			continue;
		stream_detach_mr(other->stream, mr,
				 !mr->backing.lasting && prng_chance(&w->rng, 50), &u);
		node_perform(other, &u);
	}
}

/* The host's other connections share the receive buffers, so the deregistration affects them,
 * too. */
static void node_spread_fault(struct node *n)
{
	struct world *w = n->sim->world;

	for (unsigned i = 0; i < w->conns; i++)
		w->conn[i].fault_hit |= n->own_box.shared && n->dereg_area == AREA_RECV;
}

static void node_dereg_begin(struct node *n)
{
	struct sim *sim = n->sim;
	unsigned dice = (unsigned)prng_below(&sim->world->rng, 2 * AREA_COUNT), running;

	n->dereg_pool = dice > AREA_COUNT + 2;
	n->dereg_area = (enum area_kind)(dice % AREA_COUNT); /* in most cases a target area */
	if (prng_chance(&sim->world->rng, 30))
		n->dereg_area = AREA_LEASE;
	if (n->mem->area[n->dereg_area].gone)
		n->dereg_area = AREA_TARGET0;
	n->dereg_since = sim->world->now;
	sim->fault_hit = true;
	if (!n->dereg_pool)
		node_spread_fault(n);
	mr_kill(*node_dereg_mr(n));
	node_detach_all(n, *node_dereg_mr(n));
	/* A peer that reads slowly or not at all must not delay the deregistration, so only a
	 * write-back is allowed to delay it. */
	running = n->job.running && n->job.wb.mr == *node_dereg_mr(n);
	if ((*node_dereg_mr(n))->holds > running)
		sim_violate(sim, "node %d: a deregistered region is held, and not by a write-back",
			    n->index);
}

/* No request uses the region any more, so its memory is reused and its content changes. */
static void node_reuse_memory(struct node *n, enum area_kind kind)
{
	struct area *a = &n->mem->area[kind];
	const char *bad = NULL;

	if (kind <= AREA_WORDS && scenario_is_trusted(&n->sim->sc))
		bad = model_check_medium_area(&n->peer->model, n->mem, a);
	if (bad)
		sim_violate(n->sim, "node %d, at deregistration: %s", n->index, bad);
	mr_delete(a->mr);
	if (kind <= AREA_WORDS && !a->lasting)
		model_drop_area(&n->peer->model, n->mem, a);
	memory_retire(n->mem, kind);
}

static void node_dereg_end(struct node *n)
{
	if (!n->dereg_pool) {
		node_reuse_memory(n, n->dereg_area);
		return;
	}
	mr_delete(n->mem->pool_mr);
	n->mem->pool_mr = NULL;
}

void node_end_lease(struct node *n)
{
	struct mr *mr = n->mem->area[AREA_LEASE].mr;

	n->lease_ended = true;
	if (!mr || (n->dereg_since && !n->dereg_pool && n->dereg_area == AREA_LEASE))
		return;
	if (!mr->killed)
		sim_violate(n->sim, "node %d: an invalidated region is alive", n->index);
	mr_kill(mr);
	node_detach_all(n, mr);
	if (mr->holds > 0)
		sim_violate(n->sim, "node %d: an invalidated region is held", n->index);
	else
		node_reuse_memory(n, AREA_LEASE);
}

void node_on_dereg(struct node *n)
{
	struct sim *sim = n->sim;

	if (n->destroyed)
		return;
	if (!n->dereg_since)
		node_dereg_begin(n);
	if (!*node_dereg_mr(n))
		return;
	if ((*node_dereg_mr(n))->holds == 0) {
		node_dereg_end(n);
		node_pump(n);
		return;
	}
	if (sim->world->now > n->dereg_since + DEREG_LIMIT_NS)
		sim_violate(sim, "node %d: a deregistered region is still held", n->index);
	else
		sim_at(sim, sim->world->now + DEREG_LOOK_NS, EV_DEREG, n->index, 0);
	node_pump(n);
}
