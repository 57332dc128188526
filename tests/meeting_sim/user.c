/* SPDX-License-Identifier: BSD-3-Clause */
/* user.c -- the actions of the users and the network before peace begins. */
#include <string.h>

#include "sim.h"

static struct meet_end user_name(struct sim *sim, int i)
{
	struct meet_end name = {.qpn = 0x040000 + (uint32_t)prng_below(&sim->prng, 3)};

	/* Two hosts often use the same queue pair numbers. */
	memset(name.gid, i + 1, sizeof(name.gid));
	return name;
}

static enum route user_route(struct sim *sim)
{
	return prng_chance(&sim->prng, 50) ? ROUTE_SILENT : ROUTE_ELSEWHERE;
}

static uint64_t user_retry_ns(struct sim *sim)
{
	static const uint8_t timeouts[] = {0, 1, 14, 18, 20};

	return meeting_retry_ns(timeouts[prng_below(&sim->prng, sizeof(timeouts))],
				(uint8_t)prng_below(&sim->prng, 8));
}

static void user_set_up(struct sim *sim, int i)
{
	struct end *e = &sim->end[i];

	*e = (struct end){.sim = sim, .i = i, .name = user_name(sim, i)};
	e->troubles_left = (unsigned)prng_below(&sim->prng, 8);
	e->retry_ns = user_retry_ns(sim);
	e->floor_ns = 2 * NSEC_PER_SEC;
	end_come_up(e);
	sim_add(sim, prng_below(&sim->prng, sim->scale_ns), EV_TROUBLE, i, NULL, 0);
}

void user_plan(struct sim *sim)
{
	static const uint64_t delays[] = {NSEC_PER_MS / 10, 50 * NSEC_PER_MS, 2 * NSEC_PER_SEC};
	static const uint64_t scales[] = {10 * NSEC_PER_MS, 2 * NSEC_PER_SEC, 250 * NSEC_PER_SEC};

	sim->delay_ns = delays[prng_below(&sim->prng, 3)];
	sim->scale_ns = scales[prng_below(&sim->prng, 3)];
	sim->calm = prng_chance(&sim->prng, 20);
	user_set_up(sim, 0);
	user_set_up(sim, 1);
	sim_add(sim, 4 * sim->scale_ns, EV_PEACE, 0, NULL, 0);
	if (sim->calm)
		return;
	if (prng_chance(&sim->prng, 30))
		sim->end[prng_below(&sim->prng, 2)].route = user_route(sim);
	for (uint64_t n = prng_below(&sim->prng, 6); n > 0; n--)
		sim_add(sim, prng_below(&sim->prng, 4 * sim->scale_ns), EV_STRANGER,
			(int)prng_below(&sim->prng, 2), NULL, 0);
}

/* A program that is not the peer sends a request, with random names or with the peer's address. */
void user_stranger(struct sim *sim, struct end *e)
{
	struct meet_end from = user_name(sim, (int)prng_below(&sim->prng, 3)), to = e->name;
	struct conn *c;

	if (!e->up)
		return;
	from.qpn += 0x10;
	if (prng_chance(&sim->prng, 20))
		to.gid[0]++;
	c = conn_new(sim, 1 - e->i, &from, &to);
	if (!c)
		return;
	c->stranger = true;
	c->side[e->i].is_open = true;
	end_on_inbound(e, c);
}

static void user_cuts(struct sim *sim)
{
	struct conn *c;

	if (!sim->n_conns)
		return;
	c = &sim->conns[sim->n_conns - 1];
	sim_note(sim, "the network resets %d", c->id);
	for (int i = 0; i < 2; i++)
		if (c->side[i].is_open)
			sim_add(sim, sim_delay(sim), EV_RESET, i, c, 0);
}

static void user_moves_on(struct end *e)
{
	struct sim *sim = e->sim;
	struct meet_end wrong = user_name(sim, (int)prng_below(&sim->prng, 2));

	if (e->m.state != MEETING_NONE)
		end_leave(e, prng_chance(&sim->prng, 50) ? MEETING_LEAVE_RESET : MEETING_LEAVE_ERR);
	else if (prng_chance(&sim->prng, 10))
		end_rtr(e, &wrong);
	else if (prng_chance(&sim->prng, 5))
		end_rtr(e, &e->name);
	else
		end_rtr(e, &end_other(e)->name);
}

static void user_dies(struct end *e)
{
	struct sim *sim = e->sim;

	end_die(e);
	if (prng_chance(&sim->prng, 50))
		e->name = user_name(sim, e->i);
	sim_add(sim, prng_below(&sim->prng, sim->scale_ns), EV_COME_AGAIN, e->i, NULL, 0);
}

void user_trouble(struct end *e)
{
	struct sim *sim = e->sim;
	uint64_t choice = prng_below(&sim->prng, 100);

	if (sim->calm) {
		if (e->m.state == MEETING_NONE)
			end_rtr(e, &end_other(e)->name);
		return;
	}
	if (sim->peace || e->troubles_left-- == 0) {
		e->troubles_left = 0;
		return;
	}
	if (!e->up)
		;
	else if (choice < 55 || e->m.state == MEETING_NONE)
		user_moves_on(e);
	else if (choice < 80)
		end_post(e);
	else if (choice < 90)
		user_cuts(sim);
	else
		user_dies(e);
	sim_add(sim, prng_below(&sim->prng, sim->scale_ns), EV_TROUBLE, e->i, NULL, 0);
}

/* --- peace -------------------------------------------------------------------------------------- */

/* Returns true if a stream with messages has ended, or the queue pair has failed. */
static bool user_has_to_reset(const struct end *e)
{
	return !e->up || e->m.state == MEETING_NONE ||
	       (e->m.state == MEETING_LOST && e->sent + e->received);
}

static bool user_is_spoilt(const struct end *e)
{
	return user_has_to_reset(e) || e->self ||
	       !meet_end_equals(&e->peer, &e->sim->end[1 - e->i].name);
}

static void user_starts_anew(struct end *e)
{
	struct sim *sim = e->sim;

	if (!e->up)
		end_come_up(e);
	if (e->m.state != MEETING_NONE)
		end_leave(e, MEETING_LEAVE_RESET);
	sim->peace_since = sim->now;
	end_rtr(e, &end_other(e)->name);
}

/* A message that was sent before peace can still cause a queue pair to fail. If so, reset it. */
void user_repairs(struct end *e)
{
	if (user_has_to_reset(e)) {
		e->sim->resets_in_peace++;
		user_starts_anew(e);
	}
}

/* Bring both ends to RTR. If one end has to reset a stream with messages, reset the other end as
 * well. */
void user_makes_peace(struct sim *sim)
{
	bool both = sim->end[0].heard || sim->end[1].heard || sim->end[0].sent || sim->end[1].sent;

	sim_note(sim, "peace");
	sim->peace = true;
	sim->peace_since = sim->now;
	for (int i = 0; i < 2; i++)
		if (both || user_is_spoilt(&sim->end[i]))
			user_starts_anew(&sim->end[i]);
}
