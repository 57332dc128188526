/* SPDX-License-Identifier: BSD-3-Clause */
/* net.c -- connections: data arrive late but in order, and a reset can overtake data. */
#include <stdlib.h>

#include "sim.h"

struct conn *conn_new(struct sim *sim, int dialer, const struct meet_end *from,
		      const struct meet_end *to)
{
	struct conn *c;

	if (sim->n_conns == CONNS_MAX) {
		sim_violates(sim, "an end dials without end");
		return NULL;
	}
	c = &sim->conns[sim->n_conns];
	*c = (struct conn){.id = sim->n_conns++, .dialer = dialer};
	c->in.data.from = *from;
	c->in.data.to = *to;
	return c;
}

void conn_dial(struct end *e)
{
	struct sim *sim = e->sim;
	struct conn *c = conn_new(sim, e->i, &e->m.ends.own, &e->m.ends.peer);

	if (!c)
		return;
	sim_dials++;
	sim_note(sim, "end %d dials by %d", e->i, c->id);
	e->conn = c;
	c->side[e->i] = (struct side){
		.is_open = true, .incarnation = e->incarnation, .attempt = e->m.attempt};
	if (e->route != ROUTE_SILENT)
		sim_add(sim, sim_delay(sim), EV_CONNECT, e->i, c, 0);
}

void conn_send(struct conn *c, struct end *from, enum event_kind kind)
{
	struct sim *sim = from->sim;
	struct side *to = &c->side[1 - from->i];
	uint64_t at = sim->now + sim_delay(sim);

	to->last = at > to->last ? at : to->last;
	sim_add(sim, to->last - sim->now, kind, 1 - from->i, c, from->incarnation);
}

/* Close with a reset, unless the other end does not yet take part in the connection. */
void conn_close(struct conn *c, struct end *e)
{
	struct sim *sim = e->sim;

	if (!c->side[e->i].is_open)
		return;
	sim_note(sim, "end %d closes %d", e->i, c->id);
	c->side[e->i].is_open = false;
	if (c->side[1 - e->i].is_open)
		sim_add(sim, sim_delay(sim), EV_RESET, 1 - e->i, c, 0);
}

void conn_accept(struct end *e, struct conn *c)
{
	c->stage = ACCEPTED;
	c->side[e->i].incarnation = e->incarnation;
	c->side[e->i].attempt = e->m.attempt;
	e->conn = c;
	if (c->stranger)
		return;
	conn_send(c, e, EV_REPLY);
	if (prng_chance(&e->sim->prng, 50)) {
		c->side[e->i].said_hello = true;
		conn_send(c, e, EV_HELLO);
	}
}

static void conn_on_connect(struct end *e, struct conn *c)
{
	struct sim *sim = e->sim;
	struct end *other = end_other(e);

	c->nowhere = e->route == ROUTE_ELSEWHERE;
	if (!c->nowhere && !other->up) {
		conn_close(c, e);
		end_on_reset(e, c);
		return;
	}
	c->stage = SENT;
	c->side[1 - e->i].is_open = !c->nowhere;
	end_on_established(e, c);
	if (!c->nowhere)
		conn_send(c, e, EV_REQUEST);
	else if (prng_chance(&sim->prng, 20))
		sim_add(sim, prng_below(&sim->prng, 20 * sim->delay_ns), EV_RESET, e->i, c, 0);
}

static void conn_on_hello(struct end *e, struct conn *c)
{
	struct side *own = &c->side[e->i];

	own->live = true;
	if (!own->said_hello && c->stage == AGREED) {
		own->said_hello = true;
		conn_send(c, e, EV_HELLO);
	}
	end_on_live(e, c);
}

static void conn_on_reply(struct end *e, struct conn *c)
{
	c->stage = AGREED;
	end_on_reply(e, c);
	if (!c->side[e->i].is_open)
		return;
	c->side[e->i].said_hello = true;
	conn_send(c, e, EV_HELLO);
}

static void conn_on_reset(struct end *e, struct conn *c)
{
	conn_close(c, e);
	end_on_reset(e, c);
}

void conn_on(struct sim *sim, const struct sim_event *ev)
{
	struct conn *c = ev->conn;
	struct end *e = &sim->end[ev->end];

	if (!c->side[e->i].is_open)
		return;
	if (ev->kind == EV_CONNECT)
		conn_on_connect(e, c);
	else if (ev->kind == EV_REQUEST)
		end_on_inbound(e, c);
	else if (ev->kind == EV_REPLY)
		conn_on_reply(e, c);
	else if (ev->kind == EV_HELLO)
		conn_on_hello(e, c);
	else if (ev->kind == EV_MESSAGE)
		end_on_message(e, c, ev->arg);
	else if (ev->kind == EV_ACK)
		e->acked += e->conn == c;
	else
		conn_on_reset(e, c);
}
