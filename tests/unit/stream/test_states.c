/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every event in every state, every pair of events, and long random sequences. The test reads each
 * transition from the log, and looks it up in the table below, which repeats what stream.h
 * promises.
 */
#include "walk.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"

#define BIT(name) (1u << STREAM_##name)

static const unsigned allowed[] = {
	[STREAM_IDLE] = BIT(DIALING) | BIT(REQ_WAIT) | BIT(CLOSED),
	[STREAM_DIALING] = BIT(REQ_SENT) | BIT(CLOSED),
	[STREAM_REQ_SENT] = BIT(HELLO) | BIT(LIVE) | BIT(DIALING) | BIT(CLOSING) | BIT(CLOSED),
	[STREAM_REQ_WAIT] = BIT(REQ_RCVD) | BIT(CLOSING) | BIT(CLOSED),
	[STREAM_REQ_RCVD] = BIT(REP_SENT) | BIT(CLOSING) | BIT(CLOSED),
	[STREAM_REP_SENT] = BIT(HELLO) | BIT(LIVE) | BIT(DRAINING) | BIT(CLOSING) | BIT(CLOSED),
	[STREAM_HELLO] = BIT(LIVE) | BIT(DRAINING) | BIT(CLOSING) | BIT(CLOSED),
	[STREAM_LIVE] = BIT(DRAINING) | BIT(CLOSING) | BIT(CLOSED),
	[STREAM_DRAINING] = BIT(CLOSING) | BIT(LINGERING) | BIT(CLOSED),
	[STREAM_CLOSING] = BIT(LINGERING) | BIT(CLOSED),
	[STREAM_LINGERING] = BIT(CLOSED),
	[STREAM_CLOSED] = 0,
};

static enum stream_state logged;

static enum stream_state state_named(const char *name)
{
	for (enum stream_state state = STREAM_IDLE; state <= STREAM_CLOSED; state++)
		if (!strcmp(name, stream_state_str(state)))
			return state;
	fail_msg("no such state: %s", name);
	return STREAM_CLOSED;
}

static void watch(enum log_level level, const char *file, int line, const char *func,
		  const char *text)
{
	char from[16], to[16];
	void *stream;

	if (sscanf(text, "stream %p: %15[A-Z_] -> %15[A-Z_]", &stream, from, to) != 3)
		return;
	if (!(allowed[state_named(from)] & 1u << state_named(to)))
		fail_msg("%s", text);
	if (stream != walk.me->s)
		return;
	assert_int_equal(state_named(from), logged);
	logged = state_named(to);
}

/* --- sequences of events --------------------------------------------------------------------- */

static void begin(const struct place *place)
{
	struct stream_config cfg = link_config(place->role);

	cfg.liveness_ns = 15 * NSEC_PER_SEC;
	walk.aborted = walk.connected = false;
	logged = STREAM_IDLE;
	if (place->role == STREAM_INITIATOR)
		link_init(&walk.link, &cfg, NULL);
	else
		link_init(&walk.link, NULL, &cfg);
	walk.me = place->role == STREAM_INITIATOR ? &walk.link.a : &walk.link.b;
	side_add_qp(walk.me);
	place->reach();
	assert_int_equal(stream_state(walk.me->s), place->state);
}

/* Work that is due immediately must be done by the next call, and must not be due afterwards. */
static void check_update(void)
{
	struct stream_update look;

	side_events(walk.me);
	if (walk.me->u.deadline == 0)
		stream_on_time(walk.me->s, walk.link.now, &walk.me->u);
	side_events(walk.me);
	assert_int_not_equal(walk.me->u.deadline, 0);
	stream_look(walk.me->s, &look);
	assert_int_equal(look.todo, walk.me->u.todo);
	assert_int_equal(look.deadline, walk.me->u.deadline);
}

static void check_last_states(enum stream_state state)
{
	unsigned todo = walk.me->u.todo;
	struct iovec iov[QP_TX_IOV];
	struct stream_rx rx;

	assert_int_equal(stream_tx_begin(walk.me->s, iov, &walk.me->u), 0);
	assert_false(todo & STREAM_DO_SEND);
	if (state != STREAM_CLOSED)
		return;
	assert_int_equal(walk.me->u.deadline, CLOCK_NEVER);
	assert_false(todo & (STREAM_DO_FIN | STREAM_DO_RECEIVE | STREAM_DO_REDIAL));
	assert_false(stream_rx_begin(walk.me->s, &rx, &walk.me->u));
}

static void check(void)
{
	enum stream_state state;

	check_update();
	state = stream_state(walk.me->s);
	assert_int_equal(state, logged);
	assert_true(walk.me->finals <= 1);
	assert_true(walk.me->seen[STREAM_EV_ESTABLISHED] <= 1);
	assert_true(walk.me->seen[STREAM_EV_CONNECT_REQUEST] <= 1);
	assert_true(walk.me->redials <= 2);
	assert_int_equal(!!(walk.me->u.todo & STREAM_DO_CLOSE),
			 state == STREAM_CLOSED && !walk.me->closed);
	if (state != STREAM_CLOSED && state != STREAM_LINGERING)
		return;
	check_last_states(state);
	if (walk.aborted)
		return;
	/* A call to connect must get an outcome, or the end of the connection. */
	if (walk.connected)
		assert_int_equal(walk.me->finals, 1);
	if (walk.me->seen[STREAM_EV_ESTABLISHED])
		assert_int_equal(
			walk.me->seen[STREAM_EV_DISCONNECTED] + walk.me->seen[STREAM_EV_LOST], 1);
	else if (!walk.me->seen[STREAM_EV_CONNECT_REQUEST])
		assert_int_equal(walk.me->seen[STREAM_EV_DISCONNECTED], 0);
}

static void step(void (*event)(void))
{
	event();
	check();
}

/* Only in these states the stream waits for its user instead of the peer, so only these states may
 * last without a limit. */
static void end(void)
{
	enum stream_state state;

	for (int i = 0; i < 3; i++) {
		ev_late();
		check();
	}
	state = stream_state(walk.me->s);
	assert_true(state == STREAM_IDLE || state == STREAM_REQ_RCVD || state == STREAM_LIVE ||
		    state == STREAM_CLOSED);
	link_fini(&walk.link);
}

static void every_event_in_every_state(void **state)
{
	for (size_t p = 0; p < walk_n_places; p++)
		for (size_t e = 0; e < walk_n_events; e++) {
			begin(&walk_places[p]);
			step(walk_events[e]);
			end();
		}
}

static void every_pair_of_events_in_every_state(void **state)
{
	const size_t n = walk_n_events;

	for (size_t p = 0; p < walk_n_places; p++)
		for (size_t e = 0; e < n * n; e++) {
			begin(&walk_places[p]);
			step(walk_events[e / n]);
			step(walk_events[e % n]);
			end();
		}
}

static void long_walks(void **state)
{
	uint64_t seed = 0x5eed;

	for (int n = 0; n < 3000; n++) {
		begin(&walk_places[test_random(&seed) % walk_n_places]);
		for (int i = 0; i < 20; i++)
			step(walk_events[test_random(&seed) % walk_n_events]);
		end();
	}
}

static void silence_ends_only_what_may_be_judged(void **state)
{
	unsigned lost = 0, live = 0;

	for (size_t p = 0; p < walk_n_places; p++) {
		begin(&walk_places[p]);
		step(ev_silence);
		if (walk.me->seen[STREAM_EV_LOST]) {
			assert_int_equal(walk_places[p].state, STREAM_LIVE);
			assert_true(stream_agreed(walk.me->s)->consent);
			lost++;
		}
		live += stream_state(walk.me->s) == STREAM_LIVE;
		end();
	}
	assert_true(lost > 0 && live > 0); /* lost peers and live peers must both have occurred */
}

static int listen_to_the_log(void **state)
{
	log_set(watch, LOG_LVL_INFO);
	return 0;
}

static int stop_listening(void **state)
{
	log_set(NULL, LOG_LVL_OFF);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_event_in_every_state),
		cmocka_unit_test(every_pair_of_events_in_every_state),
		cmocka_unit_test(long_walks),
		cmocka_unit_test(silence_ends_only_what_may_be_judged),
	};

	return cmocka_run_group_tests(tests, listen_to_the_log, stop_listening);
}
