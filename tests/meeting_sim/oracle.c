/* SPDX-License-Identifier: BSD-3-Clause */
/* oracle.c -- the rules that must hold at every step, and the rules for the end of a run. */
#include "sim.h"

/* Count the open dials and streams of an end. A parked dial is counted only for the end that
 * dialed. */
static int oracle_attempts(const struct sim *sim, int i)
{
	int n = 0;

	for (int k = 0; k < sim->n_conns; k++) {
		const struct conn *c = &sim->conns[k];

		n += c->side[i].is_open && ((c->dialer == i && !c->stranger) ||
					    c->stage == ACCEPTED || c->stage == AGREED);
	}
	return n;
}

static void oracle_check_end(struct sim *sim, struct end *e)
{
	if (oracle_attempts(sim, e->i) > 1)
		sim_violates(sim, "an end has two dials or streams");
	if (e->waits_for_work && sim->now > e->fails_at)
		sim_violates(sim, "posted work outlives the retry time");
	if (e->m.state == MEETING_MET && !e->self &&
	    !(e->conn && e->conn->side[e->i].is_open && e->conn->side[e->i].live))
		sim_violates(sim, "an end has met without a stream");
	if (e->m.state == MEETING_MET && e->conn && e->conn->stranger)
		sim_violates(sim, "an end has met a stranger");
}

/* Check that the two ends of a stream are each other's peers. */
static void oracle_check_pair(struct sim *sim, const struct end *a, const struct end *b)
{
	const struct conn *c = a->conn;

	if (a->m.state != MEETING_MET || b->m.state != MEETING_MET || !a->conn || !b->conn)
		return;
	if (a->conn != b->conn)
		sim_violates(sim, "two ends have met by two connections");
	else if (c->side[0].incarnation != a->incarnation ||
		 c->side[1].incarnation != b->incarnation)
		sim_violates(sim, "an end has met a former incarnation");
	else if (!meet_end_equals(&a->peer, &b->name) || !meet_end_equals(&b->peer, &a->name))
		sim_violates(sim, "an end has met another one than its peer");
}

void oracle_check(struct sim *sim)
{
	oracle_check_end(sim, &sim->end[0]);
	oracle_check_end(sim, &sim->end[1]);
	oracle_check_pair(sim, &sim->end[0], &sim->end[1]);
}

/* Returns the longest time that two ends are allowed to need to meet in peace. It includes pauses,
 * the fallback, and dials without an answer. */
static uint64_t oracle_limit(const struct sim *sim)
{
	bool open = sim->end[0].route == ROUTE_OPEN && sim->end[1].route == ROUTE_OPEN;

	return (open ? 3 * NSEC_PER_SEC : 50 * NSEC_PER_SEC) + 20 * sim->delay_ns;
}

static bool oracle_exchanged(struct end *e)
{
	if (!e->sent)
		end_post(e);
	return e->acked && e->received;
}

/* In peace: returns true if the ends have met, and a message has arrived in each direction. */
bool oracle_is_done(struct sim *sim)
{
	struct end *a = &sim->end[0], *b = &sim->end[1];
	bool done;

	user_repairs(a);
	user_repairs(b);
	if (sim->resets_in_peace > 20)
		sim_violates(sim, "queue pairs fail again and again");
	if (sim->now - sim->peace_since > oracle_limit(sim))
		sim_violates(sim, "they do not meet");
	if (a->m.state != MEETING_MET || b->m.state != MEETING_MET || a->conn != b->conn)
		return false;
	/* Call the function for both ends, because each call also posts a message. */
	done = oracle_exchanged(a);
	return oracle_exchanged(b) && done;
}
