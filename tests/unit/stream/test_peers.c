/* SPDX-License-Identifier: BSD-3-Clause */
/* Other programs that connect to the port, the peers of a responder, and LLPs that break. */
#include "link.h"

#include <errno.h>

static struct link l;
static struct stream_config cfg;

static const struct mpa_start plain_request = {.revision = 2, .enhanced = true, .ird = 1, .ord = 1};

static int as_initiator(void **state)
{
	cfg = link_config(STREAM_INITIATOR);
	return 0;
}

static int as_responder(void **state)
{
	cfg = link_config(STREAM_RESPONDER);
	return 0;
}

static void listen_and_feed(struct mpa_start req)
{
	link_init(&l, NULL, &cfg);
	stream_on_incoming(l.b.s, l.now, &l.b.u);
	side_feed_frame(&l.b, &req);
	link_run(&l);
}

/* --- bytes that are no start-up frame -------------------------------------------------------- */

static const struct {
	const char *bytes;
	size_t len;
} garbage[] = {
	{"GET / HTTP/1.1\r\nHost: example.net\r\n\r\n", 37},
	{"MPA ID Rep frame\0\2\0\0", 20},
	{"MPA ID Rep Frame\x10\2\2\1", 20}, /* private data of 513 bytes */
	{"MPA ID Req Frame\x10\2\2\1", 20},
	/* an enhanced request, but without space for its block */
	{"MPA ID Req Frame\x10\2\0\3", 20},
	{"MPA ID Rep Frame\x10\2\0\3", 20},
};

static void garbage_closes_an_initiator(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(garbage); i++) {
		link_init(&l, &cfg, NULL);
		link_dial(&l, &link_params);
		side_feed(&l.a, garbage[i].bytes, garbage[i].len);
		link_run(&l);
		assert_true(l.a.closed);
		assert_int_equal(l.a.seen[STREAM_EV_CONNECT_ERROR], 1);
		link_fini(&l);
	}
}

static void garbage_closes_a_responder(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(garbage); i++) {
		link_init(&l, NULL, &cfg);
		stream_on_incoming(l.b.s, l.now, &l.b.u);
		side_feed(&l.b, garbage[i].bytes, garbage[i].len);
		link_run(&l);
		assert_true(l.b.closed);
		assert_int_equal(l.b.seen[STREAM_EV_DEAD], 1);
		assert_int_equal(l.b.seen[STREAM_EV_CONNECT_REQUEST], 0);
		assert_int_equal(l.a.in.tail, 0);
		link_fini(&l);
	}
}

/* --- responder ------------------------------------------------------------------------------- */

static void unknown_revisions_are_hung_up_on(void **state)
{
	static const uint8_t revisions[] = {0, 3, 255};

	for (size_t i = 0; i < ARRAY_LEN(revisions); i++) {
		struct mpa_start req = plain_request;

		req.enhanced = false;
		req.revision = revisions[i];
		listen_and_feed(req);
		assert_true(l.b.closed);
		assert_int_equal(l.b.seen[STREAM_EV_DEAD], 1);
		link_fini(&l);
	}
}

static void oversize_private_data_are_rejected(void **state)
{
	struct mpa_start req = plain_request, rep;

	req.pd_len = MPA_PD_MAX - MPA_ENHANCED_LEN;
	listen_and_feed(req);
	assert_int_equal(l.b.seen[STREAM_EV_DEAD], 1);
	assert_int_equal(l.b.seen[STREAM_EV_CONNECT_REQUEST], 0);
	rep = side_next_frame(&l.b);
	assert_true(rep.reply && rep.reject && rep.enhanced);
	side_feed_fin(&l.b);
	link_run(&l);
	assert_true(l.b.closed);
	link_fini(&l);
}

static void one_offered_rtr_is_accepted(void **state)
{
	static const enum qp_rtr expected[] = {
		[1] = QP_RTR_READ, [2] = QP_RTR_WRITE, [3] = QP_RTR_WRITE, [4] = QP_RTR_SEND,
		[5] = QP_RTR_READ, [6] = QP_RTR_WRITE, [7] = QP_RTR_WRITE,
	};

	for (unsigned bits = 1; bits < 8; bits++) {
		struct mpa_start req = plain_request, rep;

		req.p2p = true;
		req.rtr_send = bits & 4;
		req.rtr_write = bits & 2;
		req.rtr_read = bits & 1;
		listen_and_feed(req);
		assert_int_equal(stream_accept(l.b.s, &link_params, LINK_MSS, l.now, &l.b.u), 0);
		link_run(&l);
		rep = side_next_frame(&l.b);
		assert_true(rep.p2p);
		assert_int_equal(rep.rtr_send + rep.rtr_write + rep.rtr_read, 1);
		assert_int_equal(stream_agreed(l.b.s)->rtr_in, expected[bits]);
		assert_int_equal(rep.rtr_send, expected[bits] == QP_RTR_SEND);
		assert_int_equal(rep.rtr_write, expected[bits] == QP_RTR_WRITE);
		assert_int_equal(rep.rtr_read, expected[bits] == QP_RTR_READ);
		assert_true(stream_agreed(l.b.s)->hold_tx);
		link_fini(&l);
	}
}

static void p2p_without_any_rtr_is_rejected(void **state)
{
	struct mpa_start req = plain_request;

	req.p2p = true;
	listen_and_feed(req);
	assert_int_equal(l.b.seen[STREAM_EV_DEAD], 1);
	link_fini(&l);
}

static void others_get_a_reply_without_our_bits(void **state)
{
	struct mpa_start rep;

	listen_and_feed(plain_request);
	assert_int_equal(stream_accept(l.b.s, &link_params, LINK_MSS, l.now, &l.b.u), 0);
	link_run(&l);
	rep = side_next_frame(&l.b);
	assert_false(rep.p2p || rep.rtr_send || rep.rtr_write || rep.rtr_read || rep.markers);
	assert_int_equal(rep.ord, 1);
	link_fini(&l);
}

static void bytes_behind_a_request_are_an_error(void **state)
{
	link_init(&l, NULL, &cfg);
	stream_on_incoming(l.b.s, l.now, &l.b.u);
	side_feed(&l.b, "MPA ID Req Frame\0\1\0\0x", 21);
	link_run(&l);
	assert_true(l.b.closed);
	assert_int_equal(l.b.seen[STREAM_EV_CONNECT_REQUEST], 1);
	assert_int_equal(stream_accept(l.b.s, &link_params, LINK_MSS, l.now, &l.b.u), -ECONNRESET);
	link_fini(&l);
}

static void a_request_has_to_be_complete_in_time(void **state)
{
	link_init(&l, NULL, &cfg);
	stream_on_incoming(l.b.s, l.now, &l.b.u);
	side_feed(&l.b, "MPA ID Req Frame\0\1\0", 19);
	link_pass(&l, cfg.request_ns - 1);
	assert_state(&l.b, REQ_WAIT);
	link_pass(&l, 1);
	assert_true(l.b.closed);
	assert_int_equal(l.b.seen[STREAM_EV_DEAD], 1);
	link_fini(&l);
}

/* --- the LLP --------------------------------------------------------------------------------- */

static const struct {
	int err;
	enum stream_event event;
} llp_errors[] = {
	{ECONNREFUSED, STREAM_EV_REJECTED},       {ETIMEDOUT, STREAM_EV_UNREACHABLE},
	{EHOSTUNREACH, STREAM_EV_UNREACHABLE},    {ENETUNREACH, STREAM_EV_UNREACHABLE},
	{EADDRNOTAVAIL, STREAM_EV_CONNECT_ERROR}, {ENOMEM, STREAM_EV_CONNECT_ERROR},
};

static void failed_dials_become_the_events_of_rdma_cm(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(llp_errors); i++) {
		link_init(&l, &cfg, NULL);
		assert_int_equal(stream_connect(l.a.s, &link_params, l.now, &l.a.u), 0);
		stream_on_dial_failed(l.a.s, llp_errors[i].err, l.now, &l.a.u);
		side_events(&l.a);
		assert_int_equal(l.a.seen[llp_errors[i].event], 1);
		assert_int_equal(l.a.status, -llp_errors[i].err);
		assert_true((l.a.u.todo & STREAM_DO_CLOSE));
		link_fini(&l);
	}
}

static void a_dial_that_takes_too_long_is_unreachable(void **state)
{
	link_init(&l, &cfg, NULL);
	assert_int_equal(stream_connect(l.a.s, &link_params, l.now, &l.a.u), 0);
	assert_int_equal(stream_deadline(l.a.s), l.now + cfg.connect_ns);
	link_pass(&l, cfg.connect_ns);
	assert_int_equal(l.a.seen[STREAM_EV_UNREACHABLE], 1);
	stream_on_dialed(l.a.s, LINK_MSS, l.now, &l.a.u); /* the dial completes too late */
	assert_state(&l.a, CLOSED);
	link_fini(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(garbage_closes_an_initiator, as_initiator),
		cmocka_unit_test_setup(garbage_closes_a_responder, as_responder),
		cmocka_unit_test_setup(unknown_revisions_are_hung_up_on, as_responder),
		cmocka_unit_test_setup(oversize_private_data_are_rejected, as_responder),
		cmocka_unit_test_setup(one_offered_rtr_is_accepted, as_responder),
		cmocka_unit_test_setup(p2p_without_any_rtr_is_rejected, as_responder),
		cmocka_unit_test_setup(others_get_a_reply_without_our_bits, as_responder),
		cmocka_unit_test_setup(bytes_behind_a_request_are_an_error, as_responder),
		cmocka_unit_test_setup(a_request_has_to_be_complete_in_time, as_responder),
		cmocka_unit_test_setup(failed_dials_become_the_events_of_rdma_cm, as_initiator),
		cmocka_unit_test_setup(a_dial_that_takes_too_long_is_unreachable, as_initiator),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
