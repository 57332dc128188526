/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A receive that takes its time: the memory is the link's until its end, whatever happens to the
 * stream meanwhile, and bytes that came for a target of the past go where they belong.
 */
#include <errno.h>
#include <string.h>

#include "link.h"

static struct link l;
static struct stream_config a, b;

static int reset(void **state)
{
	a = link_config(STREAM_INITIATOR);
	b = link_config(STREAM_RESPONDER);
	return 0;
}

static struct stream_rx begin(struct side *side)
{
	struct stream_rx rx;

	assert_true(stream_rx_begin(side->s, &rx, &side->u));
	stream_look(side->s, &side->u);
	assert_false(side->u.todo & STREAM_DO_RECEIVE);
	return rx;
}

static void end(struct side *side, ssize_t got)
{
	stream_rx_end(side->s, got, l.now, &side->u);
	side_events(side);
}

static void a_byte_that_was_asked_for_before_the_accept_is_the_queue_pairs(void **state)
{
	enum ibv_wc_status status;
	struct stream_rx rx;

	link_init(&l, &a, &b);
	side_add_qp(&l.a);
	side_add_qp(&l.b);
	link_dial(&l, &link_params);
	assert_state(&l.b, REQ_RCVD);
	rx = begin(&l.b);
	assert_int_equal(rx.iov[0].iov_len, 1);
	assert_int_equal(side_post_recv(&l.b, 1), 0);
	assert_int_equal(stream_accept(l.b.s, &link_params, LINK_MSS, l.now, &l.b.u), 0);
	assert_true(l.b.u.todo & STREAM_DO_CANCEL_RECEIVE);
	l.b.in_use = true; /* the link receives nothing else meanwhile */
	link_run(&l);
	assert_state(&l.b, HELLO);
	assert_int_equal(side_post_send(&l.a, 2), 0);
	link_run(&l);
	assert_int_equal(side_take(&l.a, rx.iov[0].iov_base, 1), 1);
	end(&l.b, 1);
	l.b.in_use = false;
	link_run(&l);
	assert_state(&l.b, LIVE);
	assert_int_equal(rig_poll(l.b.rig, &status), 1);
	assert_int_equal(status, IBV_WC_SUCCESS);
	link_fini(&l);
}

static void a_start_up_that_ended_leaves_the_memory_to_the_receive(void **state)
{
	struct stream_rx rx;

	link_init(&l, NULL, &b);
	stream_on_incoming(l.b.s, l.now, &l.b.u);
	rx = begin(&l.b);
	l.now += b.request_ns;
	stream_on_time(l.b.s, l.now, &l.b.u);
	assert_state(&l.b, CLOSED);
	memset(rx.iov[0].iov_base, 'M', rx.iov[0].iov_len);
	end(&l.b, (ssize_t)rx.iov[0].iov_len);
	assert_state(&l.b, CLOSED);
	link_fini(&l);
}

static void what_is_discarded_has_a_place_until_the_end(void **state)
{
	struct stream_rx rx;

	link_init(&l, &a, &b);
	link_establish(&l);
	assert_int_equal(stream_disconnect(l.a.s, l.now, &l.a.u), 0);
	assert_state(&l.a, CLOSING);
	rx = begin(&l.a);
	stream_abort(l.a.s, &l.a.u);
	assert_true(l.a.u.todo & STREAM_DO_CANCEL_RECEIVE);
	memset(rx.iov[0].iov_base, 0, rx.iov[0].iov_len);
	end(&l.a, -ECANCELED);
	assert_false(l.a.u.todo & STREAM_DO_CANCEL_RECEIVE);
	link_fini(&l);
}

static void the_queue_pairs_receive_is_cancelled_when_it_fails(void **state)
{
	link_init(&l, &a, &b);
	side_add_qp(&l.a);
	side_add_qp(&l.b);
	link_establish(&l);
	begin(&l.a);
	stream_fail_qp(l.a.s, &l.a.u);
	assert_true(l.a.u.todo & STREAM_DO_CANCEL_RECEIVE);
	assert_int_equal(l.a.u.deadline, 0);
	end(&l.a, -ECANCELED);
	assert_state(&l.a, CLOSING);
	link_run(&l);
	assert_state(&l.a, CLOSED);
	assert_state(&l.b, CLOSED);
	link_fini(&l);
}

static void a_cancelled_receive_changes_nothing(void **state)
{
	enum ibv_wc_status status;

	link_init(&l, &a, &b);
	side_add_qp(&l.a);
	side_add_qp(&l.b);
	link_establish(&l);
	begin(&l.b);
	end(&l.b, -ECANCELED);
	assert_state(&l.b, LIVE);
	assert_int_equal(side_post_recv(&l.b, 1), 0);
	assert_int_equal(side_post_send(&l.a, 2), 0);
	link_run(&l);
	assert_int_equal(rig_poll(l.b.rig, &status), 1);
	assert_int_equal(status, IBV_WC_SUCCESS);
	link_fini(&l);
}

/* Begun by the test, with something to send. */
static void begin_send(struct side *side)
{
	struct iovec iov[QP_TX_IOV];

	assert_int_equal(side_post_send(side, 1), 0);
	assert_true(stream_tx_begin(side->s, iov, &side->u) > 0);
}

static void a_link_that_takes_nothing_now_is_not_broken(void **state)
{
	const int later[] = {-EAGAIN, -EINTR};

	for (size_t i = 0; i < ARRAY_LEN(later); i++) {
		link_init(&l, &a, &b);
		side_add_qp(&l.a);
		side_add_qp(&l.b);
		link_establish(&l);
		begin_send(&l.a);
		stream_tx_end(l.a.s, later[i], &l.a.u);
		assert_state(&l.a, LIVE);
		assert_true(l.a.u.todo & STREAM_DO_SEND);
		link_fini(&l);
	}
}

static void a_link_that_breaks_at_a_send_ends_the_stream(void **state)
{
	enum ibv_wc_status status;

	link_init(&l, &a, &b);
	side_add_qp(&l.a);
	side_add_qp(&l.b);
	link_establish(&l);
	begin_send(&l.a);
	stream_tx_end(l.a.s, -ENETDOWN, &l.a.u);
	assert_state(&l.a, CLOSED);
	assert_int_equal(rig_poll(l.a.rig, &status), 1);
	assert_int_equal(status, IBV_WC_WR_FLUSH_ERR);
	link_fini(&l);
}

/* Bytes that are parsed in place would overtake those of the receive. */
static void the_short_way_is_closed_while_a_receive_is_under_way(void **state)
{
	link_init(&l, &a, &b);
	side_add_qp(&l.a);
	side_add_qp(&l.b);
	link_establish(&l);
	assert_true(stream_is_short(l.b.s));
	begin(&l.b);
	assert_false(stream_is_short(l.b.s));
	end(&l.b, -EAGAIN);
	assert_true(stream_is_short(l.b.s));
	link_fini(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(
			a_byte_that_was_asked_for_before_the_accept_is_the_queue_pairs, reset),
		cmocka_unit_test_setup(a_start_up_that_ended_leaves_the_memory_to_the_receive,
				       reset),
		cmocka_unit_test_setup(what_is_discarded_has_a_place_until_the_end, reset),
		cmocka_unit_test_setup(the_queue_pairs_receive_is_cancelled_when_it_fails, reset),
		cmocka_unit_test_setup(a_cancelled_receive_changes_nothing, reset),
		cmocka_unit_test_setup(a_link_that_takes_nothing_now_is_not_broken, reset),
		cmocka_unit_test_setup(a_link_that_breaks_at_a_send_ends_the_stream, reset),
		cmocka_unit_test_setup(the_short_way_is_closed_while_a_receive_is_under_way, reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
