/* SPDX-License-Identifier: BSD-3-Clause */
/* node_events.c -- what happens to an end at a time: write-backs, resets, deadlines,
 * deregistration. */
#include <errno.h>
#include <string.h>

#include "sim.h"
#include "workload.h"

#define DEREG_LOOK_NS  (50 * 1000ull)
#define DEREG_LIMIT_NS (1 * NSEC_PER_SEC)

static void copy_to_medium(struct node *n, const uint8_t *from)
{
	struct memory *m = &n->mem;
	uint64_t off = (uint64_t)((uint8_t *)n->wb.addr - m->cache);
	const struct area *a = memory_area_at(m, off);

	if (!a || n->wb.len > a->off + a->len - off) {
		sim_violate(n->sim, "node %d: write-back of %llu bytes at offset %llu: outside",
			    n->index, (unsigned long long)n->wb.len, (unsigned long long)off);
		return;
	}
	memcpy(m->medium + off, from, n->wb.len);
}

static bool medium_fails(struct node *n)
{
	struct sim *sim = n->sim;

	if (sim->sc.fault != FAULT_WRITEBACK || sim->sc.fault_node != n->index ||
	    n->wb_count++ < sim->sc.fault_pos)
		return false;
	sim->fault_hit = true;
	return true;
}

void node_on_writeback(struct node *n)
{
	int status = medium_fails(n) ? -EIO : 0;

	if (n->killed)
		return;

	if (status == 0 && n->sim->sc.mode != SIM_EARLY_ACK)
		copy_to_medium(n, n->wb_snapshot ? n->wb_bytes : n->wb.addr);
	n->wb_running = false;
	qp_on_writeback(n->qp, status);
	cm_stream_poke(n->stream, n->sim->now);
	node_pump(n);
}

void node_on_copy(struct node *n)
{
	n->wb_copying = false;
	copy_to_medium(n, n->wb_bytes);
	node_pump(n);
}

void node_on_reset(struct node *n, int err)
{
	struct sim *sim = n->sim;

	if (n->killed || !sim->link.up || sim->link.closed[n->index])
		return;
	if (err == EPIPE)
		cm_tx_error(n->stream, err, sim->now);
	else
		cm_rx_error(n->stream, err, sim->now);
	node_pump(n);
}

void node_on_time(struct node *n)
{
	if (n->killed)
		return;
	if (n->sim->now >= cm_deadline(n->stream))
		cm_on_time(n->stream, n->sim->now);
	n->deadline = CLOCK_NEVER;
	node_pump(n);
}

/* --- deregistration ------------------------------------------------------------------------ */

struct mr **node_dereg_mr(struct node *n)
{
	return n->dereg_pool ? &n->mem.pool_mr : &n->mem.area[n->dereg_area].mr;
}

static void dereg_begin(struct node *n)
{
	struct sim *sim = n->sim;
	unsigned dice = (unsigned)prng_below(&sim->rng, 2 * AREA_COUNT), running;

	n->dereg_pool = dice > AREA_COUNT + 1;
	n->dereg_area = (enum area_kind)(dice % AREA_COUNT); /* mostly a target */
	n->dereg_since = sim->now;
	sim->fault_hit = true;
	mr_kill(*node_dereg_mr(n));
	qp_detach_mr(n->qp, *node_dereg_mr(n));
	/* A peer that reads slowly, or not at all, must not delay it. */
	running = n->wb_running && n->wb.mr == *node_dereg_mr(n);
	if ((*node_dereg_mr(n))->holds > running)
		sim_violate(sim, "node %d: a deregistered region is held, and not by a write-back",
			    n->index);
}

/* The region is idle: its owner may do with the memory what he wants, and does. */
static void dereg_end(struct node *n)
{
	struct sim *sim = n->sim;
	struct area *a = &n->mem.area[n->dereg_area];
	const char *bad = NULL;

	mr_delete(*node_dereg_mr(n));
	*node_dereg_mr(n) = NULL;
	if (n->dereg_pool)
		return;
	if (n->dereg_area <= AREA_TARGET1)
		bad = model_check_medium_area(&n->peer->model, &n->mem, a);
	if (bad)
		sim_violate(sim, "node %d, at deregistration: %s", n->index, bad);
	memory_bury(&n->mem, n->dereg_area);
	model_forget(&n->peer->model, a);
}

void node_on_dereg(struct node *n)
{
	struct sim *sim = n->sim;

	if (!n->dereg_since)
		dereg_begin(n);
	if ((*node_dereg_mr(n))->holds == 0) {
		dereg_end(n);
		node_pump(n);
		return;
	}
	if (sim->now > n->dereg_since + DEREG_LIMIT_NS)
		sim_violate(sim, "node %d: a deregistered region is still held", n->index);
	else
		sched_add(&sim->sched, sim->now + DEREG_LOOK_NS, EV_DEREG, n->index, 0);
	node_pump(n);
}
