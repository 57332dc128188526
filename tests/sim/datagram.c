/* SPDX-License-Identifier: BSD-3-Clause */
/* datagram.c -- a run of datagrams: its events, its end, and coverage. */
#include "datagram.h"

#include <stdlib.h>
#include <string.h>

static struct datagrams datagrams;
struct datagram_coverage datagram_seen;

struct prng *dg_rng(struct datagrams *d)
{
	return &d->world->rng;
}

void dg_at(struct datagrams *d, uint64_t delay, enum event_kind kind, unsigned node, uint64_t arg)
{
	sched_add(&d->world->sched, d->world->now + delay, kind, (int)node, arg);
}

void dg_violate(struct datagrams *d, const struct dg_qp *q, const char *what)
{
	if (q)
		world_violate(d->world, "host %u, queue pair %u: %s", q->host->index, q->index,
			      what);
	else
		world_violate(d->world, "%s", what);
}

enum ibv_qp_state dg_state(const struct dg_qp *q)
{
	return ud_qp_ibv(q->qp)->state;
}

static struct dg_qp *dg_qp_at(struct datagrams *d, int node)
{
	return &d->host[node / DG_QPS].qp[node % DG_QPS];
}

static struct dg_port *dg_port_at(struct datagrams *d, int node)
{
	return &d->host[node / DG_PORTS].port[node % DG_PORTS];
}

/* The node of an event is the number of a queue pair, a port or a host. */
static void dg_on_event(struct datagrams *d, const struct event *e)
{
	switch (e->kind) {
	case EV_APP:
		dg_tick(d, dg_qp_at(d, e->node));
		break;
	case EV_ARRIVE:
		dg_on_arrival(d, &d->flight[e->arg]);
		break;
	case EV_PUMP:
		dg_on_read(d, dg_port_at(d, e->node));
		break;
	case EV_TIME:
		dg_on_time(d, dg_port_at(d, e->node), false);
		break;
	case EV_RESUME:
		dg_on_time(d, dg_port_at(d, e->node), true);
		break;
	case EV_DEREG:
		dg_deregister(d, &d->host[e->node]);
		break;
	default:
		dg_violate(d, NULL, "an event of another kind of run");
		break;
	}
}

/* No event is left, so a request that is still posted would never end. */
static void dg_check_end(struct datagrams *d)
{
	for (int i = 0; i < DG_ALL; i++) {
		struct dg_qp *q = dg_qp_at(d, i);

		dg_poll_sends(d, q);
		if (dg_state(q) == IBV_QPS_RTS && q->left != q->posted)
			dg_violate(d, q, "a Send never left");
		datagram_seen.silences += q->index == 0 ? q->port->flows.silences : 0;
	}
}

static void dg_prepare(struct world *w, uint64_t seed)
{
	w->seed = seed;
	w->rng = (struct prng){.state = seed * 0x2545f4914f6cdd1dull + 1};
	w->now = w->events = w->cuts = 0;
	w->cut_often = w->powered_off = w->violated = false;
	w->reconnect = NULL;
	w->conns = 0;
	sched_clear(&w->sched);
	datagrams.world = w;
}

bool datagram_run(struct world *w, uint64_t seed, const struct sim_options *opt)
{
	struct event e;

	dg_prepare(w, seed);
	dg_start(&datagrams, opt);
	while (!w->violated && sched_pop(&w->sched, &e)) {
		w->now = e.at;
		w->events++;
		dg_on_event(&datagrams, &e);
	}
	if (!w->violated)
		dg_check_end(&datagrams);
	datagram_seen.runs++;
	datagram_seen.events += w->events;
	dg_stop(&datagrams);
	return !w->violated;
}

void datagram_fini(void)
{
	for (int i = 0; i < 2; i++) {
		free(datagrams.host[i].arena);
		free(datagrams.host[i].shadow);
		datagrams.host[i].arena = datagrams.host[i].shadow = NULL;
	}
}

void datagram_print(FILE *to)
{
	fprintf(to, "%llu runs, %llu events\n", datagram_seen.runs, datagram_seen.events);
#define X(name) fprintf(to, "  %-16s %llu\n", #name, datagram_seen.name);
	DATAGRAM_COVERAGE(X)
#undef X
}

bool datagram_is_complete(FILE *to)
{
	bool complete = true;

#define X(name)                                                                                    \
	if (datagram_seen.name == 0) {                                                             \
		complete = false;                                                                  \
		fprintf(to, "never happened: %s\n", #name);                                        \
	}
	DATAGRAM_COVERAGE(X)
#undef X
	return complete;
}

void datagram_report(FILE *to)
{
	const struct dg_plan *p = &datagrams.plan;

	fprintf(to,
		"datagrams: %u ports, payload up to %u, socket %u packets, lost %u %%, doubled %u %%, "
		"forged %u %%%s%s%s\n",
		p->ports, p->len_max, p->socket, p->loss, p->doubles, p->forged,
		p->restarts ? ", restarts" : "", p->pauses ? ", pauses" : "",
		p->deregisters ? ", deregisters" : "");
}
