/* SPDX-License-Identifier: BSD-3-Clause */
/* end.c -- the owner of a meeting: it carries out the meeting's requests, and passes events to the
 * meeting. */
#include <stdlib.h>

#include "sim.h"

static struct conn *end_conn_of(struct meeting_inbound *in)
{
	return (struct conn *)((char *)in - offsetof(struct conn, in));
}

void end_come_up(struct end *e)
{
	e->up = true;
	meeting_init(&e->m);
}

/* --- requests of the meeting -------------------------------------------------------------- */

static void end_close_attempt(struct end *e, bool leaves)
{
	struct sim *sim = e->sim;
	struct conn *c = e->conn;

	e->conn = NULL;
	e->self = false;
	if (!c)
		return;
	if (!leaves && c->side[e->i].live)
		sim_violates(sim, "a rule ended a stream that was live");
	if (sim->calm && c->stage == ACCEPTED && end_other(e)->conn == c)
		sim_violates(sim, "two ends accept each other's dial");
	if (leaves && sim->mode == SIM_KEEPS_DIAL)
		return;
	conn_close(c, e);
	if (prng_chance(&sim->prng, 30))
		sim_add(sim, sim_delay(sim), EV_LATE, e->i, NULL,
			e->life << 16 | c->side[e->i].attempt);
}

static void end_reject(struct end *e, const struct meeting_reject *r)
{
	struct conn *c = end_conn_of(r->inbound);

	sim_rejects++;
	if (e->sim->mode == SIM_REPLACED_STAYS && r->reason == MEET_BUSY)
		return;
	conn_close(c, e);
}

static void end_begin_stream(struct end *e)
{
	e->sent = e->acked = e->received = 0;
}

static void end_join_to_itself(struct end *e, uint32_t attempt)
{
	struct meeting_todo todo;

	sim_selves++;
	e->self = true;
	e->waits_for_work = false;
	meeting_on_live(&e->m, attempt, &todo);
	end_perform(e, &todo);
}

static void end_fail(struct end *e)
{
	sim_fails++;
	if (!e->refused && !(e->waits_for_work && e->sim->now == e->fails_at))
		sim_violates(e->sim, "posted work failed at another time than the retry clock's");
	e->waits_for_work = false;
	end_leave(e, MEETING_LEAVE_ERR);
}

/* Break the mode's rule, if a change of the meeting's state breaks it. */
static void end_break(struct end *e, struct meeting_todo *todo)
{
	enum sim_mode mode = e->sim->mode;
	struct meeting *m = &e->m;

	if (mode == SIM_NO_FALLBACK && m->state == MEETING_AWAITING)
		m->dial_at = CLOCK_NEVER;
	if (mode == SIM_NO_YIELD)
		m->yield_at = CLOCK_NEVER;
	if (mode == SIM_GIVES_UP && end_looks(e) && m->dial == MEETING_DIAL_NONE && !m->posted &&
	    e->sim->now - m->since > MEETING_PATIENCE_NS)
		m->dial_at = CLOCK_NEVER;
	if (mode == SIM_STOPPED_CLOCK && m->state == MEETING_GREETING)
		m->retry_at = CLOCK_NEVER;
	todo->deadline = m->retry_at;
	if (end_looks(e) && m->dial_at < todo->deadline)
		todo->deadline = m->dial_at;
	if (end_looks(e) && m->yield_at < todo->deadline)
		todo->deadline = m->yield_at;
}

void end_perform(struct end *e, struct meeting_todo *todo)
{
	struct sim *sim = e->sim;

	if (sim->mode != SIM_HONEST)
		end_break(e, todo);
	if (todo->deadline != CLOCK_NEVER)
		sim_add(sim, todo->deadline > sim->now ? todo->deadline - sim->now : 0, EV_TIMER,
			e->i, NULL, ++e->timer);
	else
		e->timer++;
	if (todo->todo & MEETING_DO_CLOSE)
		end_close_attempt(e, e->m.state == MEETING_NONE);
	for (unsigned i = 0; i < todo->n_rejects; i++)
		end_reject(e, &todo->rejects[i]);
	if (todo->todo & MEETING_DO_ACCEPT) {
		sim_accepts++;
		sim_note(sim, "end %d accepts %d", e->i, end_conn_of(todo->accept)->id);
		end_begin_stream(e);
		conn_accept(e, end_conn_of(todo->accept));
	}
	if (todo->todo & MEETING_DO_DIAL) {
		end_begin_stream(e);
		conn_dial(e);
	}
	if (todo->todo & MEETING_DO_FAIL)
		end_fail(e);
	if (todo->todo & MEETING_DO_SELF)
		end_join_to_itself(e, todo->attempt);
}

/* --- the user's calls --------------------------------------------------------------------------- */

void end_rtr(struct end *e, const struct meet_end *peer)
{
	struct meeting_ends ends = {.own = e->name, .peer = *peer};
	struct meeting_todo todo;

	sim_note(e->sim, "end %d (0x%06x) moves to RTR, peer 0x%06x", e->i, e->name.qpn, peer->qpn);
	e->incarnation++;
	e->heard = 0;
	e->peer = *peer;
	if (e->sim->mode == SIM_NO_LOOK)
		e->m.n_parked = 0;
	meeting_on_rtr(&e->m, &ends, e->sim->now, &todo);
	end_perform(e, &todo);
	meeting_on_retry_limits(&e->m, e->retry_ns, e->sim->mode == SIM_NO_FLOOR ? 0 : e->floor_ns,
				e->sim->now, &todo);
	end_perform(e, &todo);
}

void end_leave(struct end *e, enum meeting_leave how)
{
	struct meeting_todo todo;

	sim_note(e->sim, "end %d leaves RTR (%d)", e->i, how);
	e->waits_for_work = false;
	meeting_on_leave(&e->m, how, &todo);
	end_perform(e, &todo);
	if (e->sim->mode != SIM_KEEPS_DIAL && e->conn)
		sim_violates(e->sim, "an attempt outlives its queue pair");
}

static void end_close_all(struct end *e)
{
	for (int i = 0; i < e->sim->n_conns; i++)
		conn_close(&e->sim->conns[i], e);
}

void end_die(struct end *e)
{
	sim_note(e->sim, "the process of end %d dies", e->i);
	e->up = e->self = e->waits_for_work = false;
	e->conn = NULL;
	e->timer++;
	e->life++;
	end_close_all(e);
	meeting_init(&e->m);
}

static void end_expect_failure(struct end *e)
{
	uint64_t ns = e->retry_ns;

	if (e->waits_for_work)
		return;
	if (e->m.state != MEETING_LOST && ns < e->floor_ns)
		ns = e->floor_ns;
	e->waits_for_work = true;
	e->fails_at = ns == CLOCK_NEVER ? CLOCK_NEVER : e->sim->now + ns;
}

void end_post(struct end *e)
{
	struct meeting_todo todo;

	sim_note(e->sim, "end %d posts", e->i);
	if (e->m.state == MEETING_MET) {
		e->sent++;
		if (e->conn)
			conn_send(e->conn, e, EV_MESSAGE);
		return;
	}
	end_expect_failure(e);
	meeting_on_post(&e->m, e->sim->now, &todo);
	end_perform(e, &todo);
}

/* --- events of the network and the clock -------------------------------------------------- */

void end_on_timer(struct end *e, uint32_t timer)
{
	struct meeting_todo todo;

	if (timer != e->timer || !e->up)
		return;
	sim_yields += end_looks(e) && e->m.yield_at <= e->sim->now;
	meeting_on_time(&e->m, e->sim->now, &todo);
	end_perform(e, &todo);
}

void end_on_inbound(struct end *e, struct conn *c)
{
	struct meeting_todo todo;

	c->stage = READ;
	/* this end has no queue pair with the requested number */
	if (c->in.data.to.qpn != e->name.qpn) {
		conn_close(c, e);
		return;
	}
	if (e->sim->mode == SIM_CROSSWISE && e->m.dial == MEETING_DIAL_SENT &&
	    meet_end_equals(&c->in.data.from, &e->peer))
		e->m.dial = MEETING_DIAL_CONNECTING;
	if (e->sim->mode == SIM_ANY_NAME && end_looks(e))
		c->in.data.from = e->m.ends.peer;
	meeting_on_inbound(&e->m, &c->in, e->sim->now, &todo);
	sim_parked += !todo.todo;
	end_perform(e, &todo);
}

void end_on_established(struct end *e, struct conn *c)
{
	struct meeting_todo todo;

	meeting_on_established(&e->m, c->side[e->i].attempt, &todo);
	end_perform(e, &todo);
}

void end_on_reply(struct end *e, struct conn *c)
{
	struct meeting_todo todo;

	meeting_on_reply(&e->m, c->side[e->i].attempt, &todo);
	end_perform(e, &todo);
}

void end_on_live(struct end *e, struct conn *c)
{
	struct meeting_todo todo;

	meeting_on_live(&e->m, c->side[e->i].attempt, &todo);
	end_perform(e, &todo);
	if (e->m.state == MEETING_MET) {
		sim_note(e->sim, "end %d has met by %d", e->i, c->id);
		/* The ends have met, so send the work that was posted earlier. */
		if (e->waits_for_work)
			end_post(e);
		e->waits_for_work = false;
	}
}

/* Between two resets a queue pair must receive messages from only one incarnation of its peer. */
void end_on_message(struct end *e, struct conn *c, uint32_t sender)
{
	if (e->conn != c)
		return;
	sim_note(e->sim, "end %d receives a message", e->i);
	if (e->heard && e->heard != sender)
		sim_violates(e->sim, "messages of two incarnations");
	e->heard = sender;
	e->received++;
	conn_send(c, e, EV_ACK);
}

static bool end_owes(const struct end *e, const struct conn *c)
{
	return c->side[e->i].live && e->sent > e->acked;
}

static enum meeting_use end_use(const struct end *e, const struct conn *c)
{
	bool used = c->side[e->i].live && e->sent + e->received;
	enum meeting_use use = used ? MEETING_USED : MEETING_UNUSED;

	if (e->refused || (end_owes(e, c) && e->sim->mode == SIM_LOST_AT_ONCE))
		use = MEETING_FAILED;
	if (e->sim->mode == SIM_UNUSED_LOST && c->side[e->i].live && use == MEETING_UNUSED)
		return MEETING_USED;
	return e->sim->mode == SIM_USED_AGAIN ? MEETING_UNUSED : use;
}

/* Messages without an Ack were lost with their stream. */
static void end_awaits_retries(struct end *e)
{
	struct meeting_todo todo;

	sim_unacknowledged++;
	end_expect_failure(e);
	if (e->sim->mode == SIM_LOST_UNTIMED)
		return;
	meeting_on_post(&e->m, e->sim->now, &todo);
	end_perform(e, &todo);
}

void end_on_reset(struct end *e, struct conn *c)
{
	bool owes = end_owes(e, c);
	enum meeting_use use;
	struct meeting_todo todo;

	if (e->conn != c) {
		meeting_on_parked_end(&e->m, &c->in, &todo);
		end_perform(e, &todo);
		return;
	}
	e->conn = NULL;
	e->refused = owes && prng_chance(&e->sim->prng, 20);
	use = end_use(e, c);
	sim_unused += c->side[e->i].live && use == MEETING_UNUSED;
	meeting_on_end(&e->m, c->side[e->i].attempt, use, e->sim->now, &todo);
	sim_losses += e->m.state == MEETING_LOST;
	end_perform(e, &todo);
	e->refused = false;
	if (e->m.state == MEETING_LOST && owes)
		end_awaits_retries(e);
}

/* Handle an event of an attempt that has been closed. */
void end_on_late(struct end *e, uint32_t arg, uint64_t which)
{
	struct meeting_todo todo;
	uint32_t attempt = arg & 0xffff;

	if (arg >> 16 != e->life)
		return;
	if (e->sim->mode == SIM_LATE_EVENTS)
		attempt = e->m.attempt;
	if (which == 0)
		meeting_on_established(&e->m, attempt, &todo);
	else if (which == 1)
		meeting_on_reply(&e->m, attempt, &todo);
	else if (which == 2)
		meeting_on_live(&e->m, attempt, &todo);
	else
		meeting_on_end(&e->m, attempt, (enum meeting_use)(which - 3), e->sim->now, &todo);
	end_perform(e, &todo);
}
