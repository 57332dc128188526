/* SPDX-License-Identifier: BSD-3-Clause */
/* test_stall.c -- a peer sends more Sends than can be parked, and then closes its stream. No
 * receives are posted for these Sends. */
#include "link.h"

#include "softrnic/rnic/rnic.h"

#define SENDS (RNIC_PARK_MSGS + 50)

static struct link l;
static struct stream_config a, b;

static int reset(void **state)
{
	a = link_config(STREAM_INITIATOR);
	b = link_config(STREAM_RESPONDER);
	return 0;
}

static void expect_done(struct side *side, int64_t wr_id, enum ibv_wc_status expected)
{
	enum ibv_wc_status status = IBV_WC_GENERAL_ERR;

	assert_int_equal(rig_poll(side->rig, &status), wr_id);
	assert_int_equal(status, expected);
}

static void live_with_a_stall(void)
{
	link_init(&l, &a, &b);
	side_add_qp(&l.a);
	side_add_qp(&l.b);
	link_establish(&l);
	for (int64_t i = 0; i < SENDS; i++) {
		assert_int_equal(side_post_send(&l.a, (uint64_t)i), 0);
		link_run(&l);
		expect_done(&l.a, i, IBV_WC_SUCCESS);
	}
	assert_true(qp_rx_is_stalled(rig_qp(l.b.rig)));
	assert_true(l.b.in.head < l.b.in.tail);
}

static void disconnect(struct side *side)
{
	assert_int_equal(stream_disconnect(side->s, l.now, &side->u), 0);
	link_run(&l);
}

static void take_sends(int64_t n)
{
	for (int64_t i = 0; i < n; i++) {
		assert_int_equal(side_post_recv(&l.b, (uint64_t)i), 0);
		link_run(&l);
		expect_done(&l.b, i, IBV_WC_SUCCESS);
	}
}

static void the_end_is_reported_once_and_each_send_is_delivered(void **state)
{
	live_with_a_stall();
	disconnect(&l.a);
	link_pass(&l, NSEC_PER_SEC - 1);
	assert_int_equal(l.b.finals, 0);
	link_pass(&l, 1);
	assert_int_equal(l.b.seen[STREAM_EV_DISCONNECTED], 1);
	assert_state(&l.b, LIVE);
	take_sends(SENDS);
	assert_state(&l.b, CLOSED);
	assert_int_equal(l.b.finals, 1);
	assert_int_equal(side_post_recv(&l.b, 1), 0);
	expect_done(&l.b, 1, IBV_WC_WR_FLUSH_ERR);
	link_fini(&l);
}

/* As long as Sends are being delivered, the end after them is not reported to the user. */
static void the_end_waits_while_sends_are_taken_one_by_one(void **state)
{
	live_with_a_stall();
	disconnect(&l.a);
	for (int i = 0; i < 6; i++) {
		link_pass(&l, NSEC_PER_SEC - 1);
		take_sends(1);
		assert_int_equal(l.b.finals, 0);
	}
	link_pass(&l, NSEC_PER_SEC);
	link_pass(&l, NSEC_PER_SEC);
	assert_int_equal(l.b.seen[STREAM_EV_DISCONNECTED], 1);
	link_fini(&l);
}

/* The FIN does not reach this end's host: there are more bytes before it than the host buffers. */
static void a_stall_that_lasts_takes_more_sends_up_to_the_fin(void **state)
{
	live_with_a_stall();
	link_pass(&l, b.drain_ns);
	assert_true(qp_rx_is_stalled(rig_qp(l.b.rig)));
	link_pass(&l, 2 * NSEC_PER_SEC);
	assert_false(qp_rx_is_stalled(rig_qp(l.b.rig)));
	assert_int_equal(l.b.in.head, l.b.in.tail);
	assert_int_equal(l.b.finals, 0);
	disconnect(&l.a);
	assert_int_equal(l.b.seen[STREAM_EV_DISCONNECTED], 1);
	take_sends(SENDS);
	link_fini(&l);
}

static void a_user_that_disconnects_then_takes_no_more(void **state)
{
	live_with_a_stall();
	disconnect(&l.a);
	link_pass(&l, NSEC_PER_SEC);
	disconnect(&l.b);
	assert_state(&l.b, CLOSED);
	assert_state(&l.a, CLOSED);
	assert_int_equal(l.b.finals, 1);
	assert_int_equal(side_post_recv(&l.b, 1), 0);
	expect_done(&l.b, 1, IBV_WC_WR_FLUSH_ERR);
	link_fini(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(the_end_is_reported_once_and_each_send_is_delivered, reset),
		cmocka_unit_test_setup(the_end_waits_while_sends_are_taken_one_by_one, reset),
		cmocka_unit_test_setup(a_stall_that_lasts_takes_more_sends_up_to_the_fin, reset),
		cmocka_unit_test_setup(a_user_that_disconnects_then_takes_no_more, reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
