/* SPDX-License-Identifier: BSD-3-Clause */
/* sim.c -- one run from its seed to its verdict. */
#include "sim.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "coverage.h"
#include "workload.h"

void sim_violate(struct sim *sim, const char *fmt, ...)
{
	va_list ap;

	if (sim->violated)
		return;
	sim->violated = true;
	va_start(ap, fmt);
	vsnprintf(sim->violation, sizeof(sim->violation), fmt, ap);
	va_end(ap);
}

bool sim_is_clean(const struct sim *sim)
{
	return !sim->fault_hit;
}

/* --- connecting --------------------------------------------------------------------------- */

static void arm_link(struct sim *sim)
{
	const struct scenario *sc = &sim->sc;
	struct pipe *p = &sim->link.pipe[sc->fault_node];

	if (sim->redials > 0)
		return;
	if (sc->fault == FAULT_FLIP) {
		p->flip_at = sc->fault_pos;
		p->flip_mask = (uint8_t)(1u << sc->fault_bit);
	}
	if (sc->fault == FAULT_FIN || sc->fault == FAULT_RST) {
		p->cut_at = sc->fault_pos;
		p->cut_is_reset = sc->fault == FAULT_RST;
	}
}

/* A responder whose queue pair was used up by the first dial listens no more. */
static void on_dialed(struct sim *sim)
{
	struct node *a = &sim->node[0], *b = &sim->node[1];

	if (sim->redials > 0) {
		sched_drop(&sim->sched, EV_ARRIVE);
		sched_drop(&sim->sched, EV_RESET);
		if (qp_state(b->qp) != IBV_QPS_INIT) {
			cm_on_dial_failed(a->stream, ECONNREFUSED, sim->now);
			node_pump(a);
			return;
		}
		node_open_stream(b);
		b->requested = b->answered = b->ended = false;
		a->eof_seen = b->eof_seen = false;
	}
	link_open(&sim->link, sim->sc.window);
	arm_link(sim);
	cm_on_dialed(a->stream, sim->sc.mss, sim->now);
	cm_on_incoming(b->stream, sim->now);
	node_pump(a);
	node_pump(b);
}

/* --- time --------------------------------------------------------------------------------- */

static void on_cut(struct sim *sim)
{
	struct node *n = &sim->node[sim->sc.fault_node];

	switch (sim->sc.fault) {
	case FAULT_POWER:
		sim->dark = true;
		break;

	case FAULT_KILL:
		if (!sim->link.up)
			return;
		sim->fault_hit = true;
		node_kill(n);
		break;
	case FAULT_LEAVE:
		if (!n->established || sim->leaving)
			return;
		sim->fault_hit = sim->leaving = true;
		workload_leave(n);
		node_pump(n);
		break;
	default:
		break;
	}
}

static void on_impatient(struct sim *sim)
{
	if (sim_is_clean(sim) && !sim->leaving)
		sim_violate(sim, "hang: %u of %u and %u of %u operations complete after %llu ms",
			    sim->node[0].model.completed, sim->node[0].model.planned,
			    sim->node[1].model.completed, sim->node[1].model.planned,
			    sim->now / NSEC_PER_MS);
	for (int i = 0; i < 2; i++) {
		if (sim->sc.fault == FAULT_ACCESS && sim->fault_hit && !sim->node[i].disconnected)
			sim_violate(sim, "node %d: what must not be done did not end the stream",
				    i);
		sim->leaving = true;
		if (!sim->node[i].killed)
			workload_leave(&sim->node[i]);
		node_pump(&sim->node[i]);
	}
}

static void on_event(struct sim *sim, const struct event *e)
{
	struct node *n = &sim->node[e->node];

	switch (e->kind) {
	case EV_DIALED:
		on_dialed(sim);
		break;
	case EV_ARRIVE:
		link_on_arrival(&sim->link, e->node, e->arg);
		node_pump(n);
		break;
	case EV_RESET:
		node_on_reset(n, (int)e->arg);
		break;
	case EV_PUMP:
		n->pump_due = false;
		node_pump(n);
		break;
	case EV_TIME:
		node_on_time(n);
		break;
	case EV_APP:
		workload_tick(n);
		break;
	case EV_WRITEBACK:
		node_on_writeback(n);
		break;
	case EV_COPY:
		node_on_copy(n);
		break;
	case EV_DEREG:
		node_on_dereg(n);
		break;
	case EV_CUT:
		on_cut(sim);
		break;
	case EV_IMPATIENT:
		on_impatient(sim);
		break;
	case EV_GIVE_UP:
		sim_violate(sim,
			    "hang: not everything ended, although both sides disconnected (%s, %s)",
			    cm_state_str(cm_stream_state(sim->node[0].stream)),
			    cm_state_str(cm_stream_state(sim->node[1].stream)));
		break;
	}
}

/* A responder that nobody dialled has nothing to end. */
static bool is_over(struct sim *sim)
{
	for (int i = 0; i < 2; i++) {
		struct node *n = &sim->node[i];
		bool idle = cm_stream_state(n->stream) == CM_IDLE && sim->node[0].ended;

		if (n->killed)
			continue;
		if (!(n->ended || idle) || !cq_is_empty(&n->send_cq) || !cq_is_empty(&n->recv_cq) ||
		    n->wb_running || (n->dereg_since && *node_dereg_mr(n)))
			return false;
	}
	return true;
}

/* --- verdict ------------------------------------------------------------------------------ */

static void check_queues(struct sim *sim, struct node *n)
{
	const char *bad = model_check_complete(&n->model);
	bool whole = n->left && sim->sc.fault == FAULT_LEAVE && n->index == sim->sc.fault_node &&
		     !n->peer->left;

	if (n->killed)
		return;
	if (n->established && !n->disconnected)
		sim_violate(sim, "node %d: no disconnect event", n->index);
	if (n->overrun)
		return;
	if (bad)
		sim_violate(sim, "node %d: %s", n->index, bad);
	if (n->established && !sim->sc.use_srq[n->index] && n->recv_completed != n->recv_posted)
		sim_violate(sim, "node %d: %u receives never completed", n->index,
			    n->recv_posted - n->recv_completed);
	if (sim_is_clean(sim) && n->model.completed != n->model.planned)
		sim_violate(sim, "node %d: %u of %u operations complete", n->index,
			    n->model.completed, n->model.planned);
	if (whole && n->model.failed && n->model.first_failed < n->left_posted)
		sim_violate(sim, "node %d: an operation posted before the disconnect failed",
			    n->index);
	if (sim_is_clean(sim) && !n->model.failed)
		n->model.applied = n->model.posted;
}

static void check_contents(struct sim *sim, struct node *n)
{
	const struct scenario *sc = &sim->sc;
	bool words = scenario_has_crc(sc) && sc->fault != FAULT_VANISH;
	const char *bad = model_check_cache(&n->peer->model, &n->mem, words);

	if (!bad)
		bad = model_check_medium(&n->peer->model, &n->mem);
	if (bad)
		sim_violate(sim, "node %d: %s", n->index, bad);
	workload_check_areas(n);
}

static void verdict(struct sim *sim)
{
	for (int i = 0; i < 2 && !sim->dark; i++)
		check_queues(sim, &sim->node[i]);
	for (int i = 0; i < 2; i++) {
		struct node *n = &sim->node[i];
		int64_t damage = memory_find_damage(&n->mem);

		if (damage >= 0)
			sim_violate(sim,
				    "node %d: the byte at offset %lld is nobody's, and changed", i,
				    (long long)damage);
		if (scenario_is_trusted(&sim->sc))
			check_contents(sim, n);
	}
}

/* --- a run -------------------------------------------------------------------------------- */

static void start(struct sim *sim)
{
	struct cm_params params;

	for (int i = 0; i < 2; i++)
		node_start(&sim->node[i], sim, i);
	workload_plan(sim);
	params = workload_params(&sim->node[0]);
	if (cm_stream_connect(sim->node[0].stream, &params, 0))
		sim_violate(sim, "connect");
	sched_add(&sim->sched, sim->sc.latency_ns, EV_DIALED, 0, 0);
	sched_add(&sim->sched, 1, EV_APP, 0, 0);
	sched_add(&sim->sched, 2, EV_APP, 1, 0);
	sched_add(&sim->sched, sim->sc.fault_ns, EV_CUT, 0, 0);
	sched_add(&sim->sched, SIM_IMPATIENT_NS, EV_IMPATIENT, 0, 0);
	sched_add(&sim->sched, SIM_GIVE_UP_NS, EV_GIVE_UP, 0, 0);
}

static void prepare(struct sim *sim, uint64_t seed, enum sim_mode mode)
{
	sim->seed = seed;
	sim->rng = (struct prng){.state = seed * 0x2545f4914f6cdd1dull + 1};
	sim->now = sim->events = 0;
	sim->redials = 0;
	sim->fault_hit = sim->leaving = sim->dark = sim->violated = false;
	sim->link.up = false;
	sched_clear(&sim->sched);
	scenario_make(&sim->sc, &sim->rng);
	sim->sc.mode = mode;
	if (mode == SIM_EARLY_ACK && sim->sc.fault != FAULT_POWER)
		sim->sc.fault = FAULT_NONE;
	if (mode == SIM_BLIND && sim->sc.fault == FAULT_FLIP)
		sim->sc.wish_crc[0] = sim->sc.wish_crc[1] = false;
}

bool sim_run(struct sim *sim, uint64_t seed, enum sim_mode mode, struct coverage *coverage)
{
	struct event e;

	prepare(sim, seed, mode);
	start(sim);
	while (!sim->violated && !sim->dark && !is_over(sim) && sched_pop(&sim->sched, &e)) {
		sim->now = e.at;
		sim->events++;
		on_event(sim, &e);
	}
	if (!sim->violated)
		verdict(sim);
	coverage_add(coverage, sim);
	for (int i = 0; i < 2; i++)
		node_stop(&sim->node[i]);
	return !sim->violated;
}

void sim_fini(struct sim *sim)
{
	for (int i = 0; i < 2; i++)
		node_free(&sim->node[i]);
	link_fini(&sim->link);
	sched_fini(&sim->sched);
}
