/* SPDX-License-Identifier: BSD-3-Clause */
/* When a meeting dials, gives up and times out, which dials of the peer it accepts, and which dial
 * it drops. */
#include "lib/unit.h"

#include "meeting_rig.h"

#define MS  NSEC_PER_MS
#define SEC NSEC_PER_SEC

static struct meeting m;
static struct meeting_todo todo;
static struct meet_end low, high;
static uint64_t now;

static int begin(void **state)
{
	now = 1000 * SEC;
	low = rig_end(0x040001, 1);
	high = rig_end(0x040002, 2);
	meeting_init(&m);
	return 0;
}

static void to_rtr(struct meet_end own, struct meet_end peer)
{
	struct meeting_ends ends = {.own = own, .peer = peer};

	meeting_on_rtr(&m, &ends, now, &todo);
}

static void wait_for_deadline(void)
{
	assert_true(todo.deadline != CLOCK_NEVER);
	now = todo.deadline > now ? todo.deadline : now;
	meeting_on_time(&m, now, &todo);
}

static void refuse(void)
{
	assert_int_equal(todo.todo, MEETING_DO_DIAL);
	meeting_on_end(&m, todo.attempt, MEETING_UNUSED, now, &todo);
	assert_int_equal(todo.todo, 0);
}

static void connect_to_peer(void)
{
	assert_int_equal(m.dial, MEETING_DIAL_CONNECTING);
	meeting_on_established(&m, m.attempt, &todo);
}

static void meet(void)
{
	connect_to_peer();
	meeting_on_reply(&m, m.attempt, &todo);
	meeting_on_live(&m, m.attempt, &todo);
	assert_int_equal(m.state, MEETING_MET);
}

/* --- dialing ----------------------------------------------------------------------------------- */

static void test_pauses_double_up_to_a_second(void **state)
{
	uint64_t pause = MS;

	to_rtr(high, low);
	for (int i = 0; i < 14; i++) {
		uint64_t before = now;

		refuse();
		wait_for_deadline();
		assert_int_equal(now - before, pause);
		pause = pause * 2 < SEC ? pause * 2 : SEC;
	}
}

static void test_it_dials_seldom_after_five_minutes_and_never_stops(void **state)
{
	uint64_t before;

	to_rtr(high, low);
	now += 300 * SEC;
	for (int i = 0; i < 5; i++) {
		refuse();
		before = now;
		wait_for_deadline();
		assert_int_equal(now - before, MEETING_SELDOM_NS);
	}
}

static void test_a_post_ends_the_long_pauses(void **state)
{
	to_rtr(high, low);
	now += 301 * SEC;
	refuse();
	meeting_on_post(&m, now, &todo);
	assert_int_equal(todo.deadline - now, SEC);
	wait_for_deadline();
	refuse();
	assert_true(todo.deadline - now <= SEC);
}

static void test_a_dial_that_nothing_answers_is_repeated(void **state)
{
	uint64_t before = now;

	to_rtr(high, low);
	wait_for_deadline();
	assert_int_equal(now - before, 10 * SEC);
	assert_int_equal(todo.todo, MEETING_DO_CLOSE);
	wait_for_deadline();
	assert_int_equal(todo.todo, MEETING_DO_DIAL);
}

static void test_a_reply_may_take_for_ever(void **state)
{
	to_rtr(high, low);
	connect_to_peer();
	assert_true(todo.deadline == CLOCK_NEVER);
}

static void test_the_lesser_name_awaits_a_second(void **state)
{
	uint64_t before = now;

	to_rtr(low, high);
	assert_int_equal(todo.todo, 0);
	wait_for_deadline();
	assert_int_equal(now - before, SEC);
	refuse();
	wait_for_deadline();
	connect_to_peer();
	assert_int_equal(m.state, MEETING_AWAITING);
}

static void test_numbers_are_compared_before_gids(void **state)
{
	to_rtr(rig_end(0x040002, 1), rig_end(0x040001, 2));
	assert_int_equal(m.state, MEETING_DIALING);
	begin(state);
	to_rtr(rig_end(0x040001, 1), rig_end(0x040001, 2));
	assert_int_equal(m.state, MEETING_AWAITING);
	begin(state);
	to_rtr(rig_end(0x040001, 2), rig_end(0x040001, 1));
	assert_int_equal(m.state, MEETING_DIALING);
}

static void test_it_meets_itself(void **state)
{
	to_rtr(low, low);
	assert_int_equal(todo.todo, MEETING_DO_SELF);
	meeting_on_live(&m, todo.attempt, &todo);
	assert_int_equal(m.state, MEETING_MET);
	assert_true(todo.deadline == CLOCK_NEVER);
}

static void test_states_have_names(void **state)
{
	assert_string_equal(meeting_state_str(MEETING_LOST), "LOST");
	assert_string_equal(meeting_state_str(MEETING_LOST + 1), "?");
}

/* --- dials of the peer -------------------------------------------------------------------- */

static void test_a_dial_without_reply_gives_way_after_five_seconds(void **state)
{
	struct meeting_inbound in = rig_inbound(low, high);
	uint64_t before = now;

	to_rtr(high, low);
	connect_to_peer();
	meeting_on_inbound(&m, &in, now, &todo);
	assert_int_equal(todo.todo, 0);
	wait_for_deadline();
	assert_int_equal(now - before, 5 * SEC);
	assert_int_equal(todo.todo, MEETING_DO_CLOSE | MEETING_DO_ACCEPT);
	assert_ptr_equal(todo.accept, &in);
}

static void test_it_keeps_its_dial_when_the_peers_ends(void **state)
{
	struct meeting_inbound in = rig_inbound(low, high);

	to_rtr(high, low);
	connect_to_peer();
	meeting_on_inbound(&m, &in, now, &todo);
	meeting_on_parked_end(&m, &in, &todo);
	assert_true(todo.deadline == CLOCK_NEVER);
	assert_int_equal(m.state, MEETING_DIALING);
}

static void assert_rejected(struct meet_end from, struct meet_end to, bool uc)
{
	struct meeting_inbound in = rig_inbound(from, to);

	in.data.uc = uc;
	meeting_on_inbound(&m, &in, now, &todo);
	assert_int_equal(todo.todo, MEETING_DO_REJECT);
	assert_int_equal(todo.n_rejects, 1);
	assert_ptr_equal(todo.rejects[0].inbound, &in);
	assert_int_equal(todo.rejects[0].reason, MEET_NOT_PEER);
}

static void test_each_part_of_both_names_counts(void **state)
{
	to_rtr(low, high);
	assert_rejected(rig_end(0x040003, 2), low, false);
	assert_rejected(rig_end(0x040002, 1), low, false);
	assert_rejected(high, rig_end(0x040001, 2), false);
	assert_rejected(high, rig_end(0x040003, 1), false);
	assert_rejected(high, low, true);
	assert_int_equal(m.state, MEETING_AWAITING);
}

/* --- parked dials ------------------------------------------------------------------------------ */

static void test_rtr_takes_the_parked_peer_and_keeps_the_others(void **state)
{
	struct meeting_inbound stranger = rig_inbound(rig_end(0x040007, 7), high);
	struct meeting_inbound peer = rig_inbound(low, high);

	meeting_on_inbound(&m, &stranger, now, &todo);
	meeting_on_inbound(&m, &peer, now, &todo);
	to_rtr(high, low);
	assert_int_equal(todo.todo, MEETING_DO_ACCEPT);
	assert_ptr_equal(todo.accept, &peer);
	assert_int_equal(m.n_parked, 1);
}

static void test_rtr_rejects_strangers_if_the_peer_is_not_parked(void **state)
{
	struct meeting_inbound stranger = rig_inbound(rig_end(0x040007, 7), high);

	meeting_on_inbound(&m, &stranger, now, &todo);
	to_rtr(high, low);
	assert_int_equal(todo.todo, MEETING_DO_REJECT | MEETING_DO_DIAL);
	assert_int_equal(todo.rejects[0].reason, MEET_NOT_PEER);
	assert_int_equal(m.n_parked, 0);
}

static void test_four_are_parked_and_the_oldest_goes(void **state)
{
	struct meeting_inbound in[6];

	for (uint32_t i = 0; i < 6; i++) {
		in[i] = rig_inbound(rig_end(0x040010 + i, 1), high);
		meeting_on_inbound(&m, &in[i], now, &todo);
		assert_int_equal(todo.todo, i < 4 ? 0 : MEETING_DO_REJECT);
		if (i < 4)
			continue;
		assert_ptr_equal(todo.rejects[0].inbound, &in[i - 4]);
		assert_int_equal(todo.rejects[0].reason, MEET_BUSY);
	}
	assert_int_equal(m.n_parked, 4);
	meeting_on_leave(&m, MEETING_LEAVE_RESET, &todo);
	assert_int_equal(m.n_parked, 4);
	meeting_on_leave(&m, MEETING_LEAVE_DESTROY, &todo);
	assert_int_equal(todo.n_rejects, 4);
	assert_int_equal(todo.rejects[3].reason, MEET_NO_QP);
	assert_int_equal(m.n_parked, 0);
}

static void test_a_newer_dial_replaces_that_of_the_same_sender(void **state)
{
	struct meeting_inbound in[2] = {rig_inbound(low, high), rig_inbound(low, high)};

	meeting_on_inbound(&m, &in[0], now, &todo);
	meeting_on_inbound(&m, &in[1], now, &todo);
	assert_ptr_equal(todo.rejects[0].inbound, &in[0]);
	to_rtr(high, low);
	assert_ptr_equal(todo.accept, &in[1]);
}

/* The peer was reset and dials again before this end has noticed the end of its former stream. */
static void test_an_unused_stream_gives_way_to_the_next_dial(void **state)
{
	struct meeting_inbound in = rig_inbound(high, low);
	struct meeting_inbound next = rig_inbound(high, low);

	to_rtr(low, high);
	meeting_on_inbound(&m, &in, now, &todo);
	meeting_on_live(&m, todo.attempt, &todo);
	meeting_on_inbound(&m, &next, now, &todo);
	assert_int_equal(todo.todo, 0);
	meeting_on_end(&m, m.attempt, MEETING_UNUSED, now, &todo);
	assert_int_equal(todo.todo, MEETING_DO_ACCEPT);
	assert_ptr_equal(todo.accept, &next);
}

/* If a dial is accepted but its stream ends immediately, the dial is repeated only after a
 * pause. */
static void test_pauses_grow_while_greetings_fail(void **state)
{
	uint64_t pause = MS;

	to_rtr(high, low);
	for (int i = 0; i < 5; i++, pause *= 2) {
		connect_to_peer();
		meeting_on_reply(&m, m.attempt, &todo);
		meeting_on_end(&m, m.attempt, MEETING_UNUSED, now, &todo);
		assert_int_equal(todo.deadline - now, pause);
		wait_for_deadline();
	}
}

static void test_pauses_begin_anew_once_it_has_met(void **state)
{
	to_rtr(high, low);
	for (int i = 0; i < 5; i++) {
		refuse();
		wait_for_deadline();
	}
	meet();
	now += 301 * SEC;
	meeting_on_end(&m, m.attempt, MEETING_UNUSED, now, &todo);
	assert_int_equal(todo.deadline - now, MS);
}

static void test_the_lesser_name_awaits_another_second(void **state)
{
	struct meeting_inbound in = rig_inbound(high, low);

	to_rtr(low, high);
	meeting_on_inbound(&m, &in, now, &todo);
	meeting_on_end(&m, m.attempt, MEETING_UNUSED, now, &todo);
	assert_int_equal(m.state, MEETING_AWAITING);
	assert_int_equal(todo.deadline - now, SEC);
}

/* --- the retry clock --------------------------------------------------------------------------- */

static void test_retry_times_of_verbs(void **state)
{
	assert_true(meeting_retry_ns(0, 7) == CLOCK_NEVER);
	assert_int_equal(meeting_retry_ns(1, 0), 8192);
	assert_int_equal(meeting_retry_ns(14, 7), 536870912);   /* half a second */
	assert_int_equal(meeting_retry_ns(20, 7), 34359738368); /* half a minute */
	assert_int_equal(meeting_retry_ns(31, 7), 8 * (4096ull << 31));
}

/* Refuse each dial until the queue pair fails. Returns the time until then. */
static uint64_t time_to_fail(void)
{
	uint64_t before = now;

	while (!(todo.todo & MEETING_DO_FAIL)) {
		if (todo.todo & MEETING_DO_DIAL)
			refuse();
		wait_for_deadline();
	}
	assert_int_equal(m.state, MEETING_NONE);
	return now - before;
}

static void test_posted_work_fails_in_time(void **state)
{
	to_rtr(high, low);
	meeting_on_end(&m, todo.attempt, MEETING_UNUSED, now, &todo);
	meeting_on_retry_limits(&m, 8 * SEC, 2 * SEC, now, &todo);
	meeting_on_post(&m, now, &todo);
	now += SEC;
	meeting_on_post(&m, now, &todo);
	assert_int_equal(time_to_fail(), 7 * SEC);
}

static void test_a_peer_that_was_never_met_gets_the_least_time(void **state)
{
	to_rtr(low, high);
	meeting_on_retry_limits(&m, SEC / 2, 2 * SEC, now, &todo);
	meeting_on_post(&m, now, &todo);
	assert_int_equal(time_to_fail(), 2 * SEC);
	assert_int_equal(todo.todo, MEETING_DO_FAIL);
}

static void test_a_lost_peer_does_not(void **state)
{
	to_rtr(high, low);
	meet();
	meeting_on_retry_limits(&m, SEC / 2, 2 * SEC, now, &todo);
	meeting_on_end(&m, m.attempt, MEETING_USED, now, &todo);
	assert_true(todo.deadline == CLOCK_NEVER);
	meeting_on_post(&m, now, &todo);
	assert_int_equal(time_to_fail(), SEC / 2);
}

/* The requests were sent and are not acknowledged. A new peer would not get them. */
static void test_requests_of_a_lost_stream_have_the_time_of_the_retries(void **state)
{
	struct meeting_inbound next = rig_inbound(low, high);

	to_rtr(high, low);
	meeting_on_retry_limits(&m, 8 * SEC, 2 * SEC, now, &todo);
	meeting_on_post(&m, now, &todo);
	meet();
	now += 7 * SEC;
	meeting_on_end(&m, m.attempt, MEETING_USED, now, &todo);
	assert_int_equal(todo.todo, 0);
	meeting_on_post(&m, now, &todo);
	meeting_on_inbound(&m, &next, now + SEC, &todo);
	assert_int_equal(todo.todo, 0);
	meeting_on_post(&m, now + 2 * SEC, &todo);
	assert_int_equal(time_to_fail(), 8 * SEC);
}

static void test_a_failed_queue_pair_has_no_further_time(void **state)
{
	to_rtr(high, low);
	meet();
	meeting_on_retry_limits(&m, 8 * SEC, 2 * SEC, now, &todo);
	meeting_on_end(&m, m.attempt, MEETING_FAILED, now, &todo);
	assert_int_equal(todo.todo, MEETING_DO_FAIL);
	assert_int_equal(m.state, MEETING_NONE);
	assert_true(todo.deadline == CLOCK_NEVER);
}

static void test_no_clock_runs_once_it_has_met(void **state)
{
	to_rtr(high, low);
	meeting_on_retry_limits(&m, 8 * SEC, 2 * SEC, now, &todo);
	meeting_on_post(&m, now, &todo);
	meet();
	assert_true(todo.deadline == CLOCK_NEVER);
}

/* A reply just before the limit does not stop the clock; only an established stream does. */
static void test_the_clock_runs_while_they_greet(void **state)
{
	to_rtr(high, low);
	meeting_on_retry_limits(&m, 8 * SEC, 2 * SEC, now, &todo);
	connect_to_peer();
	meeting_on_post(&m, now, &todo);
	meeting_on_reply(&m, m.attempt, &todo);
	assert_int_equal(todo.deadline, now + 8 * SEC);
	wait_for_deadline();
	assert_int_equal(todo.todo, MEETING_DO_CLOSE | MEETING_DO_FAIL);
}

static void test_without_a_timeout_it_waits_for_ever(void **state)
{
	to_rtr(high, low);
	meeting_on_retry_limits(&m, meeting_retry_ns(0, 7), 2 * SEC, now, &todo);
	connect_to_peer();
	meeting_on_post(&m, now, &todo);
	assert_true(todo.deadline == CLOCK_NEVER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_pauses_double_up_to_a_second, begin),
		cmocka_unit_test_setup(test_it_dials_seldom_after_five_minutes_and_never_stops,
				       begin),
		cmocka_unit_test_setup(test_a_post_ends_the_long_pauses, begin),
		cmocka_unit_test_setup(test_a_dial_that_nothing_answers_is_repeated, begin),
		cmocka_unit_test_setup(test_a_reply_may_take_for_ever, begin),
		cmocka_unit_test_setup(test_the_lesser_name_awaits_a_second, begin),
		cmocka_unit_test_setup(test_numbers_are_compared_before_gids, begin),
		cmocka_unit_test_setup(test_it_meets_itself, begin),
		cmocka_unit_test(test_states_have_names),
		cmocka_unit_test_setup(test_a_dial_without_reply_gives_way_after_five_seconds,
				       begin),
		cmocka_unit_test_setup(test_it_keeps_its_dial_when_the_peers_ends, begin),
		cmocka_unit_test_setup(test_each_part_of_both_names_counts, begin),
		cmocka_unit_test_setup(test_rtr_takes_the_parked_peer_and_keeps_the_others, begin),
		cmocka_unit_test_setup(test_rtr_rejects_strangers_if_the_peer_is_not_parked, begin),
		cmocka_unit_test_setup(test_four_are_parked_and_the_oldest_goes, begin),
		cmocka_unit_test_setup(test_a_newer_dial_replaces_that_of_the_same_sender, begin),
		cmocka_unit_test_setup(test_an_unused_stream_gives_way_to_the_next_dial, begin),
		cmocka_unit_test_setup(test_pauses_grow_while_greetings_fail, begin),
		cmocka_unit_test_setup(test_pauses_begin_anew_once_it_has_met, begin),
		cmocka_unit_test_setup(test_the_lesser_name_awaits_another_second, begin),
		cmocka_unit_test_setup(test_retry_times_of_verbs, begin),
		cmocka_unit_test_setup(test_posted_work_fails_in_time, begin),
		cmocka_unit_test_setup(test_a_peer_that_was_never_met_gets_the_least_time, begin),
		cmocka_unit_test_setup(test_a_lost_peer_does_not, begin),
		cmocka_unit_test_setup(test_requests_of_a_lost_stream_have_the_time_of_the_retries,
				       begin),
		cmocka_unit_test_setup(test_a_failed_queue_pair_has_no_further_time, begin),
		cmocka_unit_test_setup(test_no_clock_runs_once_it_has_met, begin),
		cmocka_unit_test_setup(test_the_clock_runs_while_they_greet, begin),
		cmocka_unit_test_setup(test_without_a_timeout_it_waits_for_ever, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
