/* SPDX-License-Identifier: BSD-3-Clause */
/* How connections end: in good order from either side, after a failed queue pair, or with a broken
 * LLP. */
#include "link.h"

#include <errno.h>

#include "base/log.h"

static struct link l;
static struct stream_config a, b;

static int reset(void **state)
{
	a = link_config(STREAM_INITIATOR);
	b = link_config(STREAM_RESPONDER);
	return 0;
}

static void live(void)
{
	link_init(&l, &a, &b);
	side_add_qp(&l.a);
	side_add_qp(&l.b);
	link_establish(&l);
}

static void assert_completion(struct side *side, int64_t wr_id, enum ibv_wc_status expected)
{
	enum ibv_wc_status status = IBV_WC_GENERAL_ERR;

	assert_int_equal(rig_poll(side->rig, &status), wr_id);
	assert_int_equal(status, expected);
}

static void assert_gone(struct side *side)
{
	assert_state(side, CLOSED);
	assert_true(side->closed);
	assert_int_equal(side->seen[STREAM_EV_DISCONNECTED], 1);
	assert_int_equal(side->finals, 1);
	assert_int_equal(stream_deadline(side->s), CLOCK_NEVER);
	assert_int_equal(stream_disconnect(side->s, l.now, &side->u), 0);
	assert_true(qp_is_failed(rig_qp(side->rig)));
}

static void either_side_can_disconnect(void **state)
{
	for (int i = 0; i < 2; i++) {
		struct side *first = i ? &l.b : &l.a;

		live();
		assert_int_equal(stream_disconnect(first->s, l.now, &first->u), 0);
		link_run(&l);
		assert_gone(&l.a);
		assert_gone(&l.b);
		link_fini(&l);
	}
}

static void a_message_right_before_the_disconnect_arrives(void **state)
{
	live();
	assert_int_equal(side_post_recv(&l.b, 1), 0);
	assert_int_equal(side_post_send(&l.a, 2), 0);
	assert_int_equal(stream_disconnect(l.a.s, l.now, &l.a.u), 0);
	assert_state(&l.a, DRAINING);
	l.a.chunk = 3;
	link_run(&l);
	assert_completion(&l.b, 1, IBV_WC_SUCCESS);
	assert_completion(&l.a, 2, IBV_WC_SUCCESS);
	assert_gone(&l.a);
	assert_gone(&l.b);
	link_fini(&l);
}

/*
 * A message that arrived before its receive was posted can still be received after the peer has
 * disconnected, but not after this end has disconnected.
 */
static void parked_messages_wait_until_this_end_disconnects_too(void **state)
{
	live();
	assert_int_equal(side_post_send(&l.a, 1), 0);
	assert_int_equal(side_post_send(&l.a, 2), 0);
	link_run(&l);
	assert_completion(&l.a, 1, IBV_WC_SUCCESS);
	assert_completion(&l.a, 2, IBV_WC_SUCCESS);
	assert_int_equal(stream_disconnect(l.a.s, l.now, &l.a.u), 0);
	link_run(&l);
	assert_state(&l.b, CLOSED);
	assert_int_equal(side_post_recv(&l.b, 3), 0);
	assert_completion(&l.b, 3, IBV_WC_SUCCESS);
	assert_int_equal(stream_disconnect(l.b.s, l.now, &l.b.u), 0);
	assert_int_equal(side_post_recv(&l.b, 4), 0);
	assert_completion(&l.b, 4, IBV_WC_WR_FLUSH_ERR);
	link_fini(&l);
}

static void messages_cross_when_both_disconnect(void **state)
{
	live();
	l.a.chunk = 5;
	l.b.chunk = 3;
	assert_int_equal(side_post_recv(&l.a, 1), 0);
	assert_int_equal(side_post_recv(&l.b, 2), 0);
	assert_int_equal(side_post_send(&l.a, 3), 0);
	assert_int_equal(side_post_send(&l.b, 4), 0);
	assert_int_equal(stream_disconnect(l.a.s, l.now, &l.a.u), 0);
	assert_int_equal(stream_disconnect(l.b.s, l.now, &l.b.u), 0);
	link_run(&l);
	assert_gone(&l.a);
	assert_gone(&l.b);
	for (int i = 0; i < 2; i++) {
		enum ibv_wc_status status;

		while (rig_poll(l.a.rig, &status) >= 0)
			assert_int_equal(status, IBV_WC_SUCCESS);
		while (rig_poll(l.b.rig, &status) >= 0)
			assert_int_equal(status, IBV_WC_SUCCESS);
	}
	link_fini(&l);
}

/* The peer's FIN arrives before this end has sent all its bytes; the peer still reads. */
static void draining_goes_on_after_the_peers_fin(void **state)
{
	live();
	assert_int_equal(side_post_recv(&l.b, 1), 0);
	assert_int_equal(side_post_send(&l.a, 2), 0);
	assert_int_equal(stream_disconnect(l.a.s, l.now, &l.a.u), 0);
	assert_int_equal(stream_disconnect(l.b.s, l.now, &l.b.u), 0);
	l.a.muted = true;
	link_run(&l);
	assert_state(&l.a, DRAINING);
	assert_state(&l.b, CLOSING);
	assert_true(l.a.in.fin_read);
	l.a.muted = false;
	link_run(&l);
	assert_completion(&l.b, 1, IBV_WC_SUCCESS);
	assert_completion(&l.a, 2, IBV_WC_SUCCESS);
	assert_gone(&l.a);
	assert_gone(&l.b);
	link_fini(&l);
}

static void receives_are_flushed_before_the_event(void **state)
{
	live();
	assert_int_equal(side_post_recv(&l.a, 1), 0);
	assert_int_equal(side_post_recv(&l.b, 2), 0);
	assert_int_equal(stream_disconnect(l.a.s, l.now, &l.a.u), 0);
	link_run(&l);
	assert_completion(&l.a, 1, IBV_WC_WR_FLUSH_ERR);
	assert_completion(&l.b, 2, IBV_WC_WR_FLUSH_ERR);
	link_fini(&l);
}

static void a_peer_that_never_closes_is_not_waited_for(void **state)
{
	live();
	l.b.muted = true;
	struct stream *silent = l.b.s;
	l.b.s = NULL;
	assert_int_equal(side_post_recv(&l.a, 1), 0);
	assert_int_equal(stream_disconnect(l.a.s, l.now, &l.a.u), 0);
	link_run(&l);
	assert_state(&l.a, CLOSING);
	assert_int_equal(l.a.seen[STREAM_EV_DISCONNECTED], 0);
	link_pass(&l, a.drain_ns);
	assert_state(&l.a, LINGERING);
	assert_int_equal(l.a.seen[STREAM_EV_DISCONNECTED], 1);
	assert_completion(&l.a, 1, IBV_WC_WR_FLUSH_ERR);
	l.b.s = silent;
	link_fini(&l);
}

static void a_peer_that_takes_nothing_does_not_hold_up_the_drain(void **state)
{
	live();
	l.a.muted = true;
	assert_int_equal(side_post_send(&l.a, 1), 0);
	assert_int_equal(stream_disconnect(l.a.s, l.now, &l.a.u), 0);
	link_run(&l);
	assert_state(&l.a, DRAINING);
	l.now += a.drain_ns;
	stream_on_time(l.a.s, l.now, &l.a.u);
	side_events(&l.a);
	assert_state(&l.a, LINGERING);
	assert_completion(&l.a, 1, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(l.a.seen[STREAM_EV_DISCONNECTED], 1);
	assert_true((l.a.u.todo & STREAM_DO_FIN));
	link_fini(&l);
}

static struct stream *stopped;

/* The time limit has passed: the end is reported, although the peer has not read all bytes. */
static void linger(void)
{
	live();
	stopped = l.b.s;
	l.b.s = NULL;
	assert_int_equal(stream_disconnect(l.a.s, l.now, &l.a.u), 0);
	link_run(&l);
	assert_state(&l.a, CLOSING);
	link_pass(&l, a.drain_ns);
	assert_state(&l.a, LINGERING);
	assert_int_equal(l.a.finals, 1);
}

static void forget(void)
{
	l.b.s = stopped;
	link_fini(&l);
}

/*
 * If this end closed the socket with unread bytes, or before further bytes arrive, its host would
 * send a reset. The peer could see the reset before it has read the sent bytes.
 */
static void after_the_time_limit_input_is_dropped_until_the_fin(void **state)
{
	static const uint8_t late[1000];

	linger();
	side_feed(&l.a, late, sizeof(late));
	link_run(&l);
	assert_int_equal(l.a.in.head, l.a.in.tail);
	assert_state(&l.a, LINGERING);
	side_feed_fin(&l.a);
	link_run(&l);
	assert_gone(&l.a);
	forget();
}

static void after_the_time_limit_a_reset_is_no_news(void **state)
{
	linger();
	stream_rx_end(l.a.s, -ECONNRESET, l.now, &l.a.u);
	link_run(&l);
	assert_gone(&l.a);
	forget();
}

/* An end lingers as long as a silent peer counts as alive. Without a liveness limit it lingers for
 * a minute. */
static void lingering_ends(void **state)
{
	static const uint64_t limits[][2] = {{0, 60 * NSEC_PER_SEC},
					     {CLOCK_NEVER, 60 * NSEC_PER_SEC},
					     {7 * NSEC_PER_SEC, 7 * NSEC_PER_SEC}};

	for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
		a.liveness_ns = limits[i][0];
		linger();
		assert_int_equal(stream_deadline(l.a.s), l.now + limits[i][1]);
		l.now += limits[i][1];
		stream_on_time(l.a.s, l.now, &l.a.u);
		link_run(&l);
		assert_gone(&l.a);
		forget();
	}
}

/* A connection that was never established has no sent bytes to deliver, so its end does not
 * linger. */
static void nobody_lingers_for_a_stranger(void **state)
{
	link_init(&l, NULL, &b);
	stream_on_incoming(l.b.s, l.now, &l.b.u);
	side_feed_frame(&l.b, &(struct mpa_start){.revision = MPA_REVISION_1, .crc = true});
	link_run(&l);
	assert_state(&l.b, REQ_RCVD);
	assert_int_equal(stream_reject(l.b.s, NULL, 0, l.now, &l.b.u), 0);
	link_run(&l);
	assert_state(&l.b, CLOSING);
	link_pass(&l, b.drain_ns);
	assert_true(l.b.closed);
	link_fini(&l);
}

static void a_reset_ends_it_at_once(void **state)
{
	live();
	assert_int_equal(side_post_recv(&l.a, 1), 0);
	stream_rx_end(l.a.s, -ECONNRESET, l.now, &l.a.u);
	link_run(&l);
	assert_gone(&l.a);
	assert_completion(&l.a, 1, IBV_WC_WR_FLUSH_ERR);
	assert_gone(&l.b);
	link_fini(&l);
}

/* If the peer's bytes break a rule, the peer gets a Terminate with the reason, and then a FIN. */
static void a_protocol_error_is_answered_by_a_terminate(void **state)
{
	/* an FPDU with the unknown opcode 0xd */
	static const uint8_t nonsense[24] = {0, 18, 0x41, 0x4d};
	const struct terminate *term;
	bool sent = true;

	live();
	side_feed(&l.a, nonsense, sizeof(nonsense));
	link_run(&l);
	assert_gone(&l.a);
	assert_gone(&l.b);
	term = qp_terminate(rig_qp(l.b.rig), &sent);
	assert_non_null(term);
	assert_false(sent);
	link_fini(&l);
}

/* The user destroys the failed QP when its end is reported, before the Terminate is sent. */
static void a_terminate_outlives_its_qp(void **state)
{
	static const uint8_t nonsense[24] = {0, 18, 0x41, 0x4d};
	const struct terminate *term;
	bool sent = true;

	live();
	l.a.muted = true;
	side_feed(&l.a, nonsense, sizeof(nonsense));
	link_run(&l);
	assert_state(&l.a, CLOSING);
	assert_int_equal(l.a.seen[STREAM_EV_DISCONNECTED], 1);
	side_detach_qp(&l.a);
	link_run(&l);
	assert_state(&l.a, CLOSING);
	l.a.muted = false;
	l.a.chunk = 7;
	link_run(&l);
	assert_gone(&l.a);
	assert_gone(&l.b);
	term = qp_terminate(rig_qp(l.b.rig), &sent);
	assert_non_null(term);
	assert_false(sent);
	link_fini(&l);
}

static void after_an_error_input_is_discarded_until_the_fin(void **state)
{
	static uint8_t nonsense[100000] = {0, 18, 0x41, 0x4d};

	live();
	l.b.muted = true;
	struct stream *silent = l.b.s;
	l.b.s = NULL;
	side_feed(&l.a, nonsense, sizeof(nonsense));
	link_run(&l);
	assert_state(&l.a, CLOSING);
	assert_int_equal(l.a.in.head, l.a.in.tail);
	side_feed_fin(&l.a);
	link_run(&l);
	assert_gone(&l.a);
	l.b.s = silent;
	link_fini(&l);
}

static void a_qp_that_its_user_fails_closes_the_stream(void **state)
{
	live();
	stream_fail_qp(l.a.s, &l.a.u);
	link_run(&l);
	assert_gone(&l.a);
	assert_gone(&l.b);
	link_fini(&l);
}

static void a_destroyed_qp_closes_the_stream(void **state)
{
	live();
	side_detach_qp(&l.a);
	link_run(&l);
	assert_true(l.a.closed);
	assert_int_equal(l.a.seen[STREAM_EV_DISCONNECTED], 1);
	assert_gone(&l.b);
	link_fini(&l);
}

static void an_abort_is_silent_here_and_seen_there(void **state)
{
	live();
	assert_int_equal(side_post_recv(&l.a, 1), 0);
	stream_abort(l.a.s, &l.a.u);
	link_run(&l);
	assert_true(l.a.closed);
	assert_int_equal(l.a.finals, 0);
	assert_completion(&l.a, 1, IBV_WC_WR_FLUSH_ERR);
	assert_gone(&l.b);
	link_fini(&l);
}

static void a_disconnect_before_the_reply_is_out_still_ends_orderly(void **state)
{
	link_init(&l, &a, &b);
	side_add_qp(&l.a);
	side_add_qp(&l.b);
	link_dial(&l, &link_params);
	assert_int_equal(stream_accept(l.b.s, &link_params, LINK_MSS, l.now, &l.b.u), 0);
	assert_int_equal(stream_disconnect(l.b.s, l.now, &l.b.u), 0);
	link_run(&l);
	assert_int_equal(l.a.seen[STREAM_EV_ESTABLISHED], 1);
	assert_gone(&l.a);
	assert_gone(&l.b);
	link_fini(&l);
}

static unsigned notices;

static void count_notices(enum log_level level, const char *file, int line, const char *func,
			  const char *text)
{
	notices += level == LOG_LVL_NOTICE;
}

static void why_a_server_must_not_send_first_is_logged_once(void **state)
{
	enum ibv_wc_status status;

	notices = 0;
	log_set(count_notices, LOG_LVL_NOTICE);
	a.offer_consent = false;
	live();
	assert_int_equal(side_post_send(&l.b, 1), 0);
	/* a post does not advance the time, so the work is due immediately */
	assert_int_equal(l.b.u.deadline, 0);
	link_run(&l);
	assert_int_equal(stream_deadline(l.b.s), l.now + NSEC_PER_SEC);
	link_pass(&l, NSEC_PER_SEC - 1);
	assert_int_equal(notices, 0);
	link_pass(&l, 1);
	assert_int_equal(notices, 1);
	link_pass(&l, 10 * NSEC_PER_SEC);
	assert_int_equal(notices, 1);
	assert_int_equal(stream_deadline(l.b.s), CLOCK_NEVER);
	assert_int_equal(rig_poll(l.b.rig, &status), -1);
	/* When the client sends, the server sends the bytes that it held back. */
	assert_int_equal(side_post_recv(&l.a, 2), 0);
	assert_int_equal(side_post_recv(&l.b, 3), 0);
	assert_int_equal(side_post_send(&l.a, 4), 0);
	link_run(&l);
	assert_completion(&l.a, 4, IBV_WC_SUCCESS);
	assert_completion(&l.a, 2, IBV_WC_SUCCESS);
	log_set(NULL, LOG_LVL_OFF);
	link_fini(&l);
}

static void nothing_is_logged_when_the_client_sends_in_time(void **state)
{
	notices = 0;
	log_set(count_notices, LOG_LVL_NOTICE);
	a.offer_consent = false;
	live();
	assert_int_equal(side_post_send(&l.b, 1), 0);
	assert_int_equal(side_post_recv(&l.b, 2), 0);
	assert_int_equal(side_post_recv(&l.a, 3), 0);
	assert_int_equal(side_post_send(&l.a, 4), 0);
	link_pass(&l, NSEC_PER_SEC / 2);
	assert_int_equal(stream_deadline(l.b.s), CLOCK_NEVER);
	link_pass(&l, NSEC_PER_SEC);
	assert_int_equal(notices, 0);
	log_set(NULL, LOG_LVL_OFF);
	link_fini(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(either_side_can_disconnect, reset),
		cmocka_unit_test_setup(a_message_right_before_the_disconnect_arrives, reset),
		cmocka_unit_test_setup(parked_messages_wait_until_this_end_disconnects_too, reset),
		cmocka_unit_test_setup(messages_cross_when_both_disconnect, reset),
		cmocka_unit_test_setup(draining_goes_on_after_the_peers_fin, reset),
		cmocka_unit_test_setup(receives_are_flushed_before_the_event, reset),
		cmocka_unit_test_setup(a_peer_that_never_closes_is_not_waited_for, reset),
		cmocka_unit_test_setup(a_peer_that_takes_nothing_does_not_hold_up_the_drain, reset),
		cmocka_unit_test_setup(after_the_time_limit_input_is_dropped_until_the_fin, reset),
		cmocka_unit_test_setup(after_the_time_limit_a_reset_is_no_news, reset),
		cmocka_unit_test_setup(lingering_ends, reset),
		cmocka_unit_test_setup(nobody_lingers_for_a_stranger, reset),
		cmocka_unit_test_setup(a_reset_ends_it_at_once, reset),
		cmocka_unit_test_setup(a_protocol_error_is_answered_by_a_terminate, reset),
		cmocka_unit_test_setup(a_terminate_outlives_its_qp, reset),
		cmocka_unit_test_setup(after_an_error_input_is_discarded_until_the_fin, reset),
		cmocka_unit_test_setup(a_qp_that_its_user_fails_closes_the_stream, reset),
		cmocka_unit_test_setup(a_destroyed_qp_closes_the_stream, reset),
		cmocka_unit_test_setup(an_abort_is_silent_here_and_seen_there, reset),
		cmocka_unit_test_setup(a_disconnect_before_the_reply_is_out_still_ends_orderly,
				       reset),
		cmocka_unit_test_setup(why_a_server_must_not_send_first_is_logged_once, reset),
		cmocka_unit_test_setup(nothing_is_logged_when_the_client_sends_in_time, reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
