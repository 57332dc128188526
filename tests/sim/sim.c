/* SPDX-License-Identifier: BSD-3-Clause */
/* sim.c -- handles the events of one connection. */
#include "sim.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "reconnect.h"
#include "rings.h"
#include "windows.h"
#include "workload.h"

void world_violate(struct world *w, const char *fmt, ...)
{
	va_list ap;

	if (w->violated)
		return;
	w->violated = true;
	va_start(ap, fmt);
	vsnprintf(w->violation, sizeof(w->violation), fmt, ap);
	va_end(ap);
}

void sim_violate(struct sim *sim, const char *fmt, ...)
{
	struct world *w = sim->world;
	va_list ap;
	int len;

	if (w->violated)
		return;
	w->violated = true;
	len = snprintf(w->violation, sizeof(w->violation), "connection %u, ", sim->index);
	va_start(ap, fmt);
	vsnprintf(w->violation + len, sizeof(w->violation) - (size_t)len, fmt, ap);
	va_end(ap);
}

void sim_at(struct sim *sim, uint64_t at, enum event_kind kind, int node, uint64_t arg)
{
	sched_add(&sim->world->sched, at, kind, (int)(2 * sim->index) + node, arg);
}

bool sim_is_clean(const struct sim *sim)
{
	return !sim->fault_hit;
}

/* --- connecting --------------------------------------------------------------------------- */

static void sim_arm_link(struct sim *sim)
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

/* A responder stops listening after its queue pair has been used by the first dial. */
static void sim_on_dialed(struct sim *sim)
{
	struct node *a = &sim->node[0], *b = &sim->node[1];
	struct stream_update u;

	if (sim->redials > 0) {
		sched_drop(&sim->world->sched, EV_ARRIVE, sim->index);
		sched_drop(&sim->world->sched, EV_RESET, sim->index);
		if (qp_state(b->qp) != IBV_QPS_INIT) {
			stream_on_dial_failed(a->stream, ECONNREFUSED, sim->world->now, &u);
			node_perform(a, &u);
			return;
		}
		node_open_stream(b);
		b->requested = b->answered = b->ended = false;
		a->eof_seen = b->eof_seen = false;
	}
	link_open(&sim->link, sim->sc.window);
	for (int i = 0; i < 2; i++)
		sim->link.resets[i] = !scenario_lacks(&sim->sc, SIM_GRACEFUL_CLOSE);
	sim_arm_link(sim);
	stream_on_dialed(a->stream, sim->sc.mss, sim->world->now, &u);
	node_perform(a, &u);
	stream_on_incoming(b->stream, sim->world->now, &u);
	node_perform(b, &u);
}

/* --- time --------------------------------------------------------------------------------- */

static void sim_on_cut(struct sim *sim)
{
	struct node *n = &sim->node[sim->sc.fault_node];

	switch (sim->sc.fault) {
	case FAULT_POWER:
		sim->world->powered_off = true;
		break;

	case FAULT_KILL:
		if (!sim->link.up)
			return;
		sim->fault_hit = true;
		node_kill(n);
		break;
	case FAULT_DISCONNECT:
		if (!n->established || sim->disconnecting)
			return;
		sim->fault_hit = sim->disconnecting = true;
		workload_disconnect(n);
		node_pump(n);
		break;
	case FAULT_PAUSE:
		n->paused_until = sim->world->now + sim->sc.pause_ns;
		break;
	case FAULT_STOP:
		sim->fault_hit = n->killed = n->ended = true;
		inbox_lose(n->box);
		break;
	case FAULT_BLACKHOLE:
		sim->fault_hit = sim->link.silent = true;
		break;
	case FAULT_DESTROY:
		if (n->qp && n->established && !n->ended)
			node_destroy_qp(n);
		break;
	default:
		break;
	}
}

/* Check that a consenting end has reported the loss of its silent peer within the limit. */
static void sim_check_lost(struct node *n)
{
	const struct sim *sim = n->sim;
	bool silent = sim->link.silent || (sim->sc.fault == FAULT_STOP && n->peer->killed);

	if (silent && !n->killed && n->established && !n->disconnected && !n->disconnecting &&
	    stream_agreed(n->stream)->consent && !stream_is_stalled(n->stream))
		sim_violate(n->sim, "node %d did not notice that its peer is gone", n->index);
}

static void sim_on_timeout(struct sim *sim)
{
	if (sim_is_clean(sim) && !sim->disconnecting)
		sim_violate(sim, "hang: %u of %u and %u of %u operations complete after %llu ms",
			    sim->node[0].model.completed, sim->node[0].model.planned,
			    sim->node[1].model.completed, sim->node[1].model.planned,
			    sim->world->now / NSEC_PER_MS);
	for (int i = 0; i < 2; i++) {
		sim_check_lost(&sim->node[i]);
		if (sim->sc.fault == FAULT_ACCESS && sim->fault_hit && !sim->node[i].disconnected)
			sim_violate(sim, "node %d: what must not be done did not end the stream",
				    i);
		sim->disconnecting = true;
		if (!sim->node[i].killed)
			workload_disconnect(&sim->node[i]);
		node_pump(&sim->node[i]);
	}
}

/* A paused process handles its events later, but bytes still cross the link. */
static bool sim_is_paused(struct sim *sim, const struct event *e)
{
	struct node *n = &sim->node[e->node % 2], *first = &sim->node[0];

	if (e->kind == EV_DIALED && sim->node[1].paused_until > first->paused_until)
		first = &sim->node[1];
	n = e->kind == EV_DIALED ? first : n;
	if (n->paused_until <= sim->world->now || e->kind == EV_ARRIVE || e->kind == EV_CUT ||
	    e->kind >= EV_IMPATIENT)
		return false;
	sim_at(sim, n->paused_until, e->kind, e->node % 2, e->arg);
	return true;
}

void sim_do_event(struct sim *sim, const struct event *e)
{
	int index = e->node % 2;
	struct node *n = &sim->node[index];

	switch (e->kind) {
	case EV_DIALED:
		sim_on_dialed(sim);
		break;
	case EV_ARRIVE:
		link_on_arrival(&sim->link, index, e->arg);
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
	case EV_MEET:
		rings_on_packet(n);
		break;
	case EV_RESUME:
	case EV_GO_ON:
		break; /* reconnect_on_event() handles these events */
	case EV_CUT:
		sim_on_cut(sim);
		break;
	case EV_IMPATIENT:
		sim_on_timeout(sim);
		break;
	case EV_GIVE_UP:
		sim_violate(sim,
			    "hang: not everything ended, although both sides disconnected (%s, %s)",
			    stream_state_str(stream_state(sim->node[0].stream)),
			    stream_state_str(stream_state(sim->node[1].stream)));
		break;
	}
}

void sim_on_event(struct sim *sim, const struct event *e)
{
	if (sim->world->reconnect)
		reconnect_on_event(sim, e);
	else if (sim->world->windows)
		windows_on_event(sim, e);
	else if (!sim_is_paused(sim, e))
		sim_do_event(sim, e);
}

/* A responder that got no request has no connection to end. */
bool sim_is_over(struct sim *sim)
{
	for (int i = 0; i < 2; i++) {
		struct node *n = &sim->node[i];
		bool idle = stream_state(n->stream) == STREAM_IDLE && sim->node[0].ended;

		if (n->killed)
			continue;
		if (!(n->ended || idle) || !cq_is_empty(&n->send_cq) || !cq_is_empty(&n->recv_cq) ||
		    n->job.running || (n->dereg_since && *node_dereg_mr(n)))
			return false;
	}
	return true;
}
