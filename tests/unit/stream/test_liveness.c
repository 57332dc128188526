/* SPDX-License-Identifier: BSD-3-Clause */
/* A peer that is silent for the whole limit is lost; a peer that is slow, busy or not reading is
 * not lost. */
#include <errno.h>

#include "link.h"
#include "softrnic/stream/liveness.h"

#define SEC NSEC_PER_SEC
#define MS  NSEC_PER_MS

/* --- when to check ------------------------------------------------------------------------ */

static struct liveness v;
static struct liveness_view view;

static void begin(uint64_t limit_ns)
{
	view = (struct liveness_view){.rx = 100, .tx = 200};
	liveness_begin(&v, false, limit_ns, &view, 0);
}

/* Check at the time that the last check requested; *now gets that time. */
static enum liveness_act look(uint64_t *now)
{
	*now = v.at;
	return liveness_look(&v, &view, v.at);
}

static void the_silent_are_asked_and_then_lost(void **state)
{
	uint64_t now;

	begin(15 * SEC);
	assert_int_equal(look(&now), LIVENESS_PING);
	assert_int_equal(now, 7500 * MS);
	assert_int_equal(look(&now), LIVENESS_LOST);
	assert_int_equal(now, 15 * SEC);
	assert_int_equal(v.at, CLOCK_NEVER);
}

static void in_a_short_limit_they_are_asked_twice(void **state)
{
	uint64_t now;

	begin(9 * SEC);
	assert_int_equal(look(&now), LIVENESS_PING);
	assert_int_equal(now, 3 * SEC);
	assert_int_equal(look(&now), LIVENESS_PING);
	assert_int_equal(look(&now), LIVENESS_LOST);
	assert_int_equal(now, 9 * SEC);
}

static void after_the_last_byte_it_takes_the_limit_and_a_half_at_most(void **state)
{
	uint64_t now, last;

	for (uint64_t limit = 301 * MS; limit < 30 * SEC; limit += 777 * MS) {
		begin(limit);
		look(&last); /* the byte arrives right after this check */
		view.rx++;
		while (look(&now) != LIVENESS_LOST)
			assert_true(now < 100 * SEC);
		assert_in_range(now - last, limit, limit + limit / (limit < 10 * SEC ? 3 : 2) + 3);
	}
}

/* Open a thousand connections, one each millisecond. Returns how many wake-ups their next checks
 * need. */
static unsigned wake_ups_for(bool second, uint64_t limit, uint64_t *due)
{
	uint64_t last = 0;
	unsigned n = 0;

	view = (struct liveness_view){0};
	for (uint64_t now = 0; now < SEC; now += MS) {
		liveness_begin(&v, second, limit, &view, 777 * SEC + now);
		assert_in_range(v.due, v.at, v.at + limit / 2 / 8);
		n += v.due != last;
		last = *due++ = v.due;
	}
	return n;
}

static void looks_of_many_fall_together_but_not_those_of_both_ends(void **state)
{
	static uint64_t first[1000], second[1000];

	assert_in_range(wake_ups_for(false, 15 * SEC, first), 1, 3);
	assert_in_range(wake_ups_for(true, 15 * SEC, second), 1, 3);
	for (int i = 0; i < 1000; i++)
		for (int j = 0; j < 1000; j++)
			assert_int_not_equal(first[i], second[j]);
}

static void an_end_that_receives_sends_a_sign_unasked(void **state)
{
	uint64_t now;

	begin(15 * SEC);
	for (int i = 0; i < 100; i++) {
		view.rx++;
		assert_int_equal(look(&now), LIVENESS_PONG);
	}
	for (int i = 0; i < 100; i++) {
		view.rx++;
		view.tx++;
		assert_int_equal(look(&now), LIVENESS_NOTHING);
	}
}

static void what_only_we_send_is_no_sign_of_life(void **state)
{
	uint64_t now;

	begin(15 * SEC);
	view.tx += 1000000;
	assert_int_equal(look(&now), LIVENESS_PING);
	view.tx += 1000000;
	assert_int_equal(look(&now), LIVENESS_LOST);
}

static void a_stalled_end_sends_every_second_and_loses_no_peer(void **state)
{
	uint64_t now, before;

	begin(15 * SEC);
	view.stalled = true;
	look(&before);
	for (int i = 0; i < 100; i++) {
		assert_int_equal(look(&now), LIVENESS_PONG);
		assert_int_equal(now - before, SEC);
		before = now;
	}
	view.stalled = false; /* from now on the time without bytes counts again */
	while (look(&now) != LIVENESS_LOST)
		;
	assert_int_equal(now - before, 15 * SEC);
}

/* This process was stopped, and answers of the peer may still be in the socket, so the time begins
 * again. */
static void an_end_that_did_not_run_begins_anew(void **state)
{
	uint64_t now;

	begin(15 * SEC);
	look(&now);
	now += 3600 * SEC;
	assert_int_equal(liveness_look(&v, &view, now), LIVENESS_PING);
	view.rx++;
	assert_int_equal(look(&now), LIVENESS_PONG);
}

static void an_end_without_a_limit_still_sends(void **state)
{
	uint64_t now;

	begin(CLOCK_NEVER);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(look(&now), LIVENESS_NOTHING);
	view.rx++;
	assert_int_equal(look(&now), LIVENESS_PONG);
	assert_int_equal(now, 1001 * 7500 * MS);
}

static void the_peers_shorter_limit_is_met(void **state)
{
	uint64_t now, before;

	begin(15 * SEC);
	liveness_on_peer_limit(&v, 1500, 0);
	look(&before);
	view.rx++;
	assert_int_equal(look(&now), LIVENESS_PONG);
	assert_int_equal(now - before, 500 * MS);
	/* even an absurdly short limit must not use up the CPU */
	liveness_on_peer_limit(&v, 1, now);
	look(&before);
	look(&now);
	assert_int_equal(now - before, 100 * MS);
}

/*
 * The peer's ping may be stuck behind other bytes for longer than the peer's limit. So this end
 * must send before the check that its own limit would schedule.
 */
static void a_shorter_limit_counts_as_soon_as_it_is_announced(void **state)
{
	begin(15 * SEC);
	liveness_on_peer_limit(&v, 0, SEC); /* a ping without a limit */
	assert_int_equal(v.at, 7500 * MS);
	liveness_on_peer_limit(&v, 900, SEC);
	assert_int_equal(v.at, 1300 * MS);
	liveness_on_peer_limit(&v, 900, 1200 * MS); /* a repeated announcement changes nothing */
	assert_int_equal(v.at, 1300 * MS);
	view.rx++;
	assert_int_equal(liveness_look(&v, &view, v.at), LIVENESS_PONG);
	liveness_off(&v);
	liveness_on_peer_limit(&v, 300, SEC);
	assert_int_equal(v.at, CLOCK_NEVER);
}

/* --- streams ------------------------------------------------------------------------------ */

static struct link l;
static struct stream_config a, b;

static int reset(void **state)
{
	a = link_config(STREAM_INITIATOR);
	b = link_config(STREAM_RESPONDER);
	a.liveness_ns = b.liveness_ns = 15 * SEC;
	return 0;
}

static void live(void)
{
	link_init(&l, &a, &b);
	side_add_qp(&l.a);
	side_add_qp(&l.b);
	link_establish(&l);
}

/* Advance the time to the next deadline of either side. */
static void tick(void)
{
	uint64_t at = stream_deadline(l.a.s), other = stream_deadline(l.b.s);

	at = at < other ? at : other;
	assert_true(at != CLOCK_NEVER && at >= l.now);
	link_pass(&l, at - l.now);
}

static void idle_connections_live(void **state)
{
	uint64_t begun, messages;
	int ticks = 0;

	live();
	begun = l.now;
	for (; l.now < begun + 300 * SEC; ticks++)
		tick();
	assert_state(&l.a, LIVE);
	assert_state(&l.b, LIVE);
	messages = qp_counters(rig_qp(l.a.rig))->tx_fpdus + qp_counters(rig_qp(l.b.rig))->tx_fpdus;
	/* 40 half limits have passed since the HELLOs, each up to an eighth longer. */
	assert_in_range(messages, 20, 82);
	assert_in_range(ticks, 35, 84);
	link_fini(&l);
}

static void a_vanished_peer_fails_what_was_posted(void **state)
{
	enum ibv_wc_status status;
	uint64_t begun;

	live();
	begun = l.now;
	l.b.muted = true;
	assert_int_equal(side_post_send(&l.a, 7), 0);
	assert_int_equal(side_post_recv(&l.a, 8), 0);
	link_run(&l);
	assert_int_equal(rig_poll(l.a.rig, &status), 7); /* the LLP has taken the Send */
	while (l.a.finals == 0)
		tick();
	assert_in_range(l.now - begun, 15 * SEC, 24 * SEC);
	assert_int_equal(l.a.seen[STREAM_EV_LOST], 1);
	assert_int_equal(l.a.seen[STREAM_EV_DISCONNECTED], 0);
	assert_int_equal(l.a.status, -ETIMEDOUT);
	assert_state(&l.a, CLOSED);
	assert_true(qp_is_failed(rig_qp(l.a.rig)));
	assert_int_equal(rig_poll(l.a.rig, &status), 8);
	assert_int_equal(status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(stream_deadline(l.a.s), CLOCK_NEVER);
	link_fini(&l);
}

static void a_disconnect_has_its_own_limit(void **state)
{
	live();
	l.b.muted = true;
	assert_int_equal(side_post_send(&l.a, 7), 0);
	assert_int_equal(stream_disconnect(l.a.s, l.now, &l.a.u), 0);
	link_run(&l);
	while (l.a.finals == 0)
		tick();
	assert_int_equal(l.a.seen[STREAM_EV_DISCONNECTED], 1);
	link_fini(&l);
}

static void each_end_may_have_its_own_limit(void **state)
{
	uint64_t begun;

	a.liveness_ns = 900 * MS;
	b.liveness_ns = CLOCK_NEVER;
	live();
	begun = l.now;
	while (l.now < begun + 60 * SEC)
		tick();
	assert_state(&l.a, LIVE);
	assert_int_equal(qp_peer_limit_ms(rig_qp(l.b.rig)), 900);
	assert_int_equal(qp_counters(rig_qp(l.b.rig))->pings_out, 0);
	link_fini(&l);
}

static void the_first_ping_shortens_the_receivers_period(void **state)
{
	a.liveness_ns = 900 * MS;
	live();
	assert_true(stream_deadline(l.b.s) <= l.now + 300 * MS * 9 / 8);
	link_fini(&l);
}

static void limits_can_be_set_until_they_matter(void **state)
{
	a.liveness_ns = 0;
	link_init(&l, &a, &b);
	side_add_qp(&l.a);
	side_add_qp(&l.b);
	assert_int_equal(stream_set_limits(l.a.s, 7 * SEC, 6 * SEC), 0);
	link_dial(&l, &link_params);
	assert_int_equal(stream_deadline(l.a.s), l.now + 7 * SEC);
	assert_int_equal(stream_set_limits(l.a.s, SEC, SEC), -EINVAL);
	assert_int_equal(stream_set_limits(l.b.s, SEC, 3 * SEC), 0);
	assert_int_equal(stream_accept(l.b.s, &link_params, LINK_MSS, l.now, &l.b.u), 0);
	link_run(&l);
	assert_in_range(stream_deadline(l.a.s), l.now + SEC,
			l.now + SEC * 9 / 8); /* b has announced its limit */
	assert_in_range(stream_deadline(l.b.s), l.now + SEC, l.now + SEC * 9 / 8);
	assert_int_equal(stream_set_limits(l.b.s, SEC, SEC), -EINVAL);
	link_fini(&l);
}

static void peers_without_consent_are_not_judged(void **state)
{
	b.offer_consent = false;
	live();
	assert_int_equal(stream_deadline(l.a.s), CLOCK_NEVER);
	assert_int_equal(stream_deadline(l.b.s), CLOCK_NEVER);
	link_fini(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_silent_are_asked_and_then_lost),
		cmocka_unit_test(in_a_short_limit_they_are_asked_twice),
		cmocka_unit_test(after_the_last_byte_it_takes_the_limit_and_a_half_at_most),
		cmocka_unit_test(looks_of_many_fall_together_but_not_those_of_both_ends),
		cmocka_unit_test(an_end_that_receives_sends_a_sign_unasked),
		cmocka_unit_test(what_only_we_send_is_no_sign_of_life),
		cmocka_unit_test(a_stalled_end_sends_every_second_and_loses_no_peer),
		cmocka_unit_test(an_end_that_did_not_run_begins_anew),
		cmocka_unit_test(an_end_without_a_limit_still_sends),
		cmocka_unit_test(the_peers_shorter_limit_is_met),
		cmocka_unit_test(a_shorter_limit_counts_as_soon_as_it_is_announced),
		cmocka_unit_test_setup(idle_connections_live, reset),
		cmocka_unit_test_setup(a_vanished_peer_fails_what_was_posted, reset),
		cmocka_unit_test_setup(a_disconnect_has_its_own_limit, reset),
		cmocka_unit_test_setup(each_end_may_have_its_own_limit, reset),
		cmocka_unit_test_setup(the_first_ping_shortens_the_receivers_period, reset),
		cmocka_unit_test_setup(limits_can_be_set_until_they_matter, reset),
		cmocka_unit_test_setup(peers_without_consent_are_not_judged, reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
