/* SPDX-License-Identifier: BSD-3-Clause */
/* How many packets one port may send to another. Credits arrive, are lost, or are forged. */
#include "lib/unit.h"

#include <stdlib.h>
#include <string.h>

#include "softrnic/rnic/ud_flow.h"

static struct ud_flows flows;
static uint64_t now;
static struct ud_packet last; /* the last packet that was taken for sending */
static unsigned taken_all;

static int setup(void **state)
{
	memset(&flows, 0, sizeof(flows));
	now = 10 * UD_PATIENCE_NS;
	taken_all = 0;
	return 0;
}

static bool take_to(uint8_t host, uint16_t port)
{
	struct ud_packet p = {.path.to = {[10] = 0xff, 0xff, 192, 0, 2, host}, .port = port};
	bool taken = ud_flows_take(&flows, &p, now);

	if (taken)
		last = p;
	taken_all += taken;
	return taken;
}

/* Returns how many of n packets the first peer takes. */
static int take(int n)
{
	int taken = 0;

	while (taken < n && take_to(1, 4791))
		taken++;
	return taken;
}

static bool credit(uint8_t serial, uint32_t window)
{
	struct ud_packet p = {.path.from = {[10] = 0xff, 0xff, 192, 0, 2, 1}, .port = 4791};

	return ud_flows_on_credit(&flows, &p, serial, window);
}

static void a_window_is_under_way_until_a_credit_comes(void **state)
{
	assert_int_equal(take(1000), UD_WINDOW);
	assert_true(last.asks);
	assert_int_equal(last.serial, UD_WINDOW);
	assert_int_equal(flows.wait_until, now + UD_PATIENCE_NS);
	assert_true(credit(UD_ASK_EACH, UD_WINDOW));
	assert_int_equal(take(1000), UD_ASK_EACH);
	assert_true(credit(last.serial, 100));
	assert_int_equal(take(1000), 100);
	assert_int_equal(flows.silences, 0);
}

static void one_packet_of_a_few_asks(void **state)
{
	for (int i = 1; i < UD_WINDOW; i++) {
		assert_int_equal(take(1), 1);
		assert_int_equal(last.serial, i);
		assert_int_equal(last.asks, i % UD_ASK_EACH == 0);
	}
}

static void a_window_of_any_size_is_bounded_and_asks(void **state)
{
	static const struct {
		uint32_t told;
		int window;
	} rows[] = {{0, 1}, {1, 1}, {3, 3}, {127, 127}, {128, 127}, {256, 127}, {UINT32_MAX, 127}};

	assert_int_equal(take(1000), UD_WINDOW);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_true(credit(last.serial, rows[i].told));
		assert_int_equal(take(1000), rows[i].window);
		assert_true(last.asks);
	}
}

static void a_window_that_has_become_smaller_is_full_from_then_on(void **state)
{
	assert_int_equal(take(12), 12);
	assert_true(credit(8, 3));
	assert_int_equal(take(1), 0);
	assert_int_equal(flows.wait_until, now + UD_PATIENCE_NS);
	assert_int_equal(flows.silences, 0);
}

static void a_peer_that_sends_no_credit_delays_packets_once(void **state)
{
	assert_int_equal(take(1000), UD_WINDOW);
	now += UD_PATIENCE_NS - 1;
	assert_int_equal(take(1), 0);
	now++;
	assert_int_equal(take(1000), 1000);
	assert_int_equal(flows.silences, 1);
	assert_true(credit(last.serial, UD_WINDOW));
	assert_int_equal(take(1000), UD_WINDOW);
}

static void an_old_credit_ends_silence_and_makes_no_room(void **state)
{
	assert_int_equal(take(1000), UD_WINDOW);
	now += UD_PATIENCE_NS;
	assert_int_equal(take(UD_WINDOW), UD_WINDOW);
	assert_false(credit(1, 100));
	assert_int_equal(take(1), 0);
}

static void credits_for_what_is_not_under_way_have_no_effect(void **state)
{
	struct ud_packet other = {.path.from = {[10] = 0xff, 0xff, 192, 0, 2, 9}, .port = 4791};
	bool made_room = false;

	assert_int_equal(take(1000), UD_WINDOW);
	for (int serial = UD_WINDOW + 1; serial <= 256; serial++)
		made_room |= credit((uint8_t)serial, UD_WINDOW_MAX);
	for (int serial = 0; serial <= 255; serial++)
		made_room |= ud_flows_on_credit(&flows, &other, (uint8_t)serial, UD_WINDOW_MAX);
	assert_false(made_room);
	assert_int_equal(take(1), 0);
	assert_true(credit(UD_WINDOW, UD_WINDOW));
	assert_false(credit(UD_WINDOW, UD_WINDOW)); /* a repeated credit changes nothing */
	assert_int_equal(take(1000), UD_WINDOW);
}

static void what_did_not_leave_is_not_under_way(void **state)
{
	assert_int_equal(take(3), 3);
	ud_flows_give_back(&flows, &last);
	assert_int_equal(take(1), 1);
	assert_int_equal(last.serial, 3);
	assert_int_equal(take(1000), UD_WINDOW - 3);
}

static void peers_do_not_wait_for_each_other(void **state)
{
	assert_int_equal(take(1000), UD_WINDOW);
	for (unsigned port = 1024; port < 2048; port++)
		assert_true(take_to(2, (uint16_t)port));
	assert_int_equal(take(1), 0); /* no other port has replaced the first peer's entry */
	now += UD_PATIENCE_NS;
	assert_int_equal(take(1), 1);
	for (unsigned port = 1024; port < 2048; port++)
		assert_true(take_to(2, (uint16_t)port));
}

/* The network loses, delays and repeats credits, with any window. No packet may wait longer than
 * UD_PATIENCE_NS. */
static void whatever_is_lost_the_sender_goes_on(void **state)
{
	uint8_t asked[UD_WINDOW_MAX];
	unsigned seed = 1, n = 0;

	for (int sent = 0; sent < 100000;) {
		uint64_t began = now;

		while (!take(1)) {
			now = flows.wait_until;
			assert_true(now - began <= UD_PATIENCE_NS);
		}
		sent++;
		if (last.asks && rand_r(&seed) % 4 && n < UD_WINDOW_MAX)
			asked[n++] = last.serial;
		if (n && rand_r(&seed) % 8 == 0) {
			(void)credit(asked[rand_r(&seed) % n], (uint32_t)rand_r(&seed) % 200);
			n = rand_r(&seed) % 2 ? 0 : n;
		}
		now += 1000;
	}
}

/* Send packets to a peer that answers each one as `answer` does. Returns the total time that
 * packets waited. */
static uint64_t waits_of(int packets, void (*answer)(void))
{
	uint64_t waited = 0;

	assert_int_equal(take(1000), UD_WINDOW);
	for (int i = 0; i < packets; i++) {
		uint64_t began = now;

		while (!take(1))
			answer();
		waited += now - began;
	}
	return waited;
}

static void answer_in_the_last_moment(void)
{
	now = flows.wait_until - 1;
	credit(last.serial, 0);
}

/* When the peer is silent, answer with an old credit. */
static void answer_when_it_is_silent(void)
{
	now = flows.wait_until;
	assert_int_equal(take(1), 1);
	credit((uint8_t)(last.serial - 1), 0);
}

/* Answer late, unless the peer is silent before that time. */
static void answer_after_most_of_a_second(void)
{
	static unsigned steps;

	now += UD_PATIENCE_NS / 10;
	if (now > flows.wait_until)
		now = flows.wait_until;
	if (++steps % 9 == 0)
		credit(last.serial, 0);
}

static void answer_within_the_share(void)
{
	now += UD_PATIENCE_SHARE_NS;
	credit(last.serial, 1);
}

/* Packets to other peers wait behind the packets to this peer. */
static void a_peer_that_dawdles_is_not_waited_for_for_ever(void **state)
{
	static const struct {
		void (*answer)(void);
		bool silent;
	} rows[] = {{answer_in_the_last_moment, false},
		    {answer_when_it_is_silent, true},
		    {answer_after_most_of_a_second, true}};
	uint64_t waited;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		setup(state);
		waited = waits_of(1000, rows[i].answer);
		assert_in_range(waited, UD_PATIENCE_NS,
				UD_PATIENCE_NS + taken_all * UD_PATIENCE_SHARE_NS);
		assert_int_equal(flows.silences > 0, rows[i].silent);
	}
}

static void a_slow_peer_with_a_window_of_one_is_waited_for(void **state)
{
	assert_in_range(waits_of(1000, answer_within_the_share), 999 * UD_PATIENCE_SHARE_NS,
			1000 * UD_PATIENCE_SHARE_NS);
	assert_int_equal(flows.silences, 0);
}

/* Another peer needs the entry of a peer that no longer answers. */
static void a_peer_that_is_gone_gives_its_place_up(void **state)
{
	uint16_t port = 1024;

	assert_int_equal(take(UD_ASK_EACH), UD_ASK_EACH);
	while (take_to(2, port) && last.serial)
		port++;
	assert_int_equal(last.serial, 0);
	now += UD_PATIENCE_NS;
	assert_true(take_to(2, port));
	assert_int_not_equal(last.serial, 0);
}

#define CASE(name) cmocka_unit_test_setup(name, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_window_is_under_way_until_a_credit_comes),
		CASE(one_packet_of_a_few_asks),
		CASE(a_window_of_any_size_is_bounded_and_asks),
		CASE(a_window_that_has_become_smaller_is_full_from_then_on),
		CASE(a_peer_that_sends_no_credit_delays_packets_once),
		CASE(an_old_credit_ends_silence_and_makes_no_room),
		CASE(credits_for_what_is_not_under_way_have_no_effect),
		CASE(what_did_not_leave_is_not_under_way),
		CASE(peers_do_not_wait_for_each_other),
		CASE(whatever_is_lost_the_sender_goes_on),
		CASE(a_peer_that_dawdles_is_not_waited_for_for_ever),
		CASE(a_slow_peer_with_a_window_of_one_is_waited_for),
		CASE(a_peer_that_is_gone_gives_its_place_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
