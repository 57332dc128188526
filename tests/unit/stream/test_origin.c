/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The barrier: a connection is established only after the target has closed the connections that
 * the initiator has given up.
 */
#include "link.h"

#include <errno.h>
#include <string.h>

#include "lib/qp_pair.h"

static struct link l;
static struct stream_config a, b;

static int reset(void **state)
{
	a = link_config(STREAM_INITIATOR);
	b = link_config(STREAM_RESPONDER);
	a.takes_part = b.takes_part = true;
	memcpy(b.instance, "0123456789abcdef", EXT_ID_LEN);
	return 0;
}

/* The reply is under way, and the initiator names this many former connections. */
static void accepted(unsigned names, enum stream_fence verdict)
{
	link_init(&l, &a, &b);
	side_add_qp(&l.a);
	side_add_qp(&l.b);
	l.a.names = names;
	l.b.verdict = verdict;
	link_dial(&l, &link_params);
	assert_int_equal(stream_accept(l.b.s, &link_params, LINK_MSS, l.now, &l.b.u), 0);
}

static void expect_established(unsigned at_a, unsigned at_b)
{
	assert_int_equal(l.a.seen[STREAM_EV_ESTABLISHED], at_a);
	assert_int_equal(l.b.seen[STREAM_EV_ESTABLISHED], at_b);
}

static void without_former_ones_nobody_waits(void **state)
{
	accepted(0, STREAM_FENCE_DONE);
	l.a.muted = true; /* the initiator's ORIGIN is not sent, so no answer can be expected */
	link_run(&l);
	assert_state(&l.a, LIVE);
	l.a.muted = false;
	link_run(&l);
	expect_established(1, 1);
	assert_int_equal(l.b.questions, 0);
	assert_int_equal(l.b.came.serial, 7);
	assert_memory_equal(l.b.came.id, b.instance, EXT_ID_LEN);
	link_fini(&l);
}

static void it_is_established_after_the_answer(void **state)
{
	enum ibv_wc_status status;

	accepted(EXT_ORIGIN_RANGES, STREAM_FENCE_WAIT);
	assert_int_equal(side_post_recv(&l.b, 5), 0);
	link_run(&l);
	assert_int_equal(side_post_send(&l.a, 6), 0);
	link_run(&l);
	expect_established(0, 0);
	assert_int_equal(l.b.questions, 1);
	assert_int_equal(l.b.came.n, EXT_ORIGIN_RANGES);
	assert_int_equal(rig_poll(l.b.rig, &status), -1); /* the user gets no bytes */
	stream_fence_end(l.b.s, l.now, &l.b.u);
	link_run(&l);
	expect_established(1, 1);
	assert_int_equal(rig_poll(l.b.rig, &status), 5);
	assert_int_equal(l.a.fenced, 1);
	assert_false(l.b.came.asks); /* the last Origin asks nothing */
	link_fini(&l);
}

static void those_that_were_over_cost_one_answer(void **state)
{
	accepted(2, STREAM_FENCE_DONE);
	link_run(&l);
	expect_established(1, 1);
	assert_int_equal(l.b.questions, 1);
	assert_int_equal(l.a.fenced, 1);
	link_fini(&l);
}

static void what_cannot_be_ended_makes_the_connect_fail(void **state)
{
	accepted(1, STREAM_FENCE_WAIT);
	link_run(&l);
	link_pass(&l, a.connect_ns / 2 - NSEC_PER_MS);
	expect_established(0, 0);
	assert_int_equal(l.a.finals, 0);
	link_pass(&l, NSEC_PER_MS);
	link_run(&l);
	expect_established(0, 0);
	assert_int_equal(l.a.seen[STREAM_EV_CONNECT_ERROR], 1);
	assert_int_equal(l.a.status, -EBUSY);
	assert_int_equal(l.a.fenced, 0); /* the next Origin names the former connections again */
	assert_true(stream_is_over(l.a.s));
	stream_fence_end(l.b.s, l.now, &l.b.u); /* the answer is too late */
	link_run(&l);
	assert_int_equal(l.b.seen[STREAM_EV_ESTABLISHED], 0);
	link_fini(&l);
}

static void a_target_that_is_busy_makes_it_fail_at_once(void **state)
{
	accepted(1, STREAM_FENCE_BUSY);
	link_run(&l);
	assert_int_equal(l.a.seen[STREAM_EV_CONNECT_ERROR], 1);
	assert_int_equal(l.a.status, -EBUSY);
	link_fini(&l);
}

static void one_that_a_later_one_named_executes_nothing(void **state)
{
	enum ibv_wc_status status;

	accepted(0, STREAM_FENCE_CUT);
	assert_int_equal(side_post_recv(&l.b, 5), 0);
	l.a.muted = true;
	link_run(&l);
	assert_int_equal(side_post_send(&l.a, 6), 0); /* posted right after the ORIGIN */
	l.a.muted = false;
	link_run(&l);
	expect_established(1, 0);
	assert_int_equal(l.b.seen[STREAM_EV_CONNECT_ERROR], 1);
	assert_int_equal(rig_poll(l.b.rig, &status), 5);
	assert_int_equal(status, IBV_WC_WR_FLUSH_ERR);
	link_fini(&l);
}

static void a_cut_ends_it_at_once(void **state)
{
	enum ibv_wc_status status;

	link_init(&l, &a, &b);
	side_add_qp(&l.a);
	side_add_qp(&l.b);
	link_establish(&l);
	assert_int_equal(side_post_recv(&l.b, 5), 0);
	assert_int_equal(side_post_send(&l.a, 6), 0);
	side_perform(&l.a);
	stream_cut_off(l.b.s, &l.b.u);
	link_run(&l);
	assert_state(&l.b, CLOSED);
	assert_int_equal(l.b.seen[STREAM_EV_DISCONNECTED], 1);
	assert_int_equal(rig_poll(l.b.rig, &status), 5);
	assert_int_equal(status, IBV_WC_WR_FLUSH_ERR);
	link_fini(&l);
}

static void established(void)
{
	link_init(&l, &a, &b);
	side_add_qp(&l.a);
	side_add_qp(&l.b);
	link_establish(&l);
	assert_false(stream_is_over(l.a.s));
}

/* The target's FIN proves that it has seen this end's FIN. */
static void an_orderly_end_is_over(void **state)
{
	established();
	assert_int_equal(stream_disconnect(l.a.s, l.now, &l.a.u), 0);
	side_perform(&l.a);
	assert_false(stream_is_over(l.a.s));
	link_run(&l);
	assert_state(&l.a, CLOSED);
	assert_true(stream_is_over(l.a.s));
	link_fini(&l);
}

/* The target accepts sent bytes until it sees this end's FIN, and nothing proves that the target
 * has seen this FIN. */
static void one_that_the_target_leaves_first_is_not(void **state)
{
	established();
	assert_int_equal(stream_disconnect(l.b.s, l.now, &l.b.u), 0);
	link_run(&l);
	assert_state(&l.a, CLOSED);
	assert_int_equal(l.a.seen[STREAM_EV_DISCONNECTED], 1);
	assert_false(stream_is_over(l.a.s));
	link_fini(&l);
}

static void two_ends_that_cross_are_not(void **state)
{
	established();
	assert_int_equal(stream_disconnect(l.a.s, l.now, &l.a.u), 0);
	assert_int_equal(stream_disconnect(l.b.s, l.now, &l.b.u), 0);
	link_run(&l);
	assert_state(&l.a, CLOSED);
	assert_false(stream_is_over(l.a.s));
	link_fini(&l);
}

/* The HELLO alone has established the connection at the target, which sends until it gets the
 * FIN. */
static void a_target_that_leaves_before_the_origin_is_not(void **state)
{
	accepted(0, STREAM_FENCE_DONE);
	assert_int_equal(stream_disconnect(l.b.s, l.now, &l.b.u), 0);
	link_run(&l);
	assert_int_equal(l.a.seen[STREAM_EV_ESTABLISHED], 1);
	assert_int_equal(l.a.seen[STREAM_EV_DISCONNECTED], 1);
	assert_false(stream_is_over(l.a.s));
	link_fini(&l);
}

static void a_lost_link_is_not(void **state)
{
	established();
	stream_rx_end(l.a.s, -ECONNRESET, l.now, &l.a.u);
	side_perform(&l.a);
	assert_state(&l.a, CLOSED);
	assert_false(stream_is_over(l.a.s));
	link_fini(&l);
}

/* The target refuses a Read of a region that does not permit reads: its Terminate proves the
 * end. */
static void a_terminate_of_the_target_is_over(void **state)
{
	established();
	rig_mr(l.b.rig)->access = 0;
	assert_int_equal(side_post_read(&l.a, 3), 0);
	link_run(&l);
	assert_int_equal(l.a.finals, 1);
	assert_true(stream_is_over(l.a.s));
	link_fini(&l);
}

static void one_that_does_not_take_part_is_as_before(void **state)
{
	a.takes_part = false;
	accepted(3, STREAM_FENCE_WAIT);
	link_run(&l);
	expect_established(1, 1);
	assert_int_equal(l.b.came.serial, 0);
	assert_int_equal(stream_disconnect(l.b.s, l.now, &l.b.u), 0);
	link_run(&l);
	assert_state(&l.b, CLOSED);
	/* the peer ignores LEAVE as an unknown kind */
	assert_false(qp_peer_leaves(rig_qp(l.a.rig)));
	link_fini(&l);

	reset(NULL);
	b.takes_part = false;
	accepted(3, STREAM_FENCE_WAIT);
	link_run(&l);
	expect_established(1, 1);
	assert_int_equal(l.a.fenced, 0);
	link_fini(&l);
}

#define TEST(x) cmocka_unit_test_setup(x, reset)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(without_former_ones_nobody_waits),
		TEST(it_is_established_after_the_answer),
		TEST(those_that_were_over_cost_one_answer),
		TEST(what_cannot_be_ended_makes_the_connect_fail),
		TEST(a_target_that_is_busy_makes_it_fail_at_once),
		TEST(one_that_a_later_one_named_executes_nothing),
		TEST(a_cut_ends_it_at_once),
		TEST(an_orderly_end_is_over),
		TEST(one_that_the_target_leaves_first_is_not),
		TEST(two_ends_that_cross_are_not),
		TEST(a_target_that_leaves_before_the_origin_is_not),
		TEST(a_lost_link_is_not),
		TEST(a_terminate_of_the_target_is_over),
		TEST(one_that_does_not_take_part_is_as_before),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
