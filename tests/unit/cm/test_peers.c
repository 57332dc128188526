/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers that are stricter, older, wrong, slow or gone. */
#include "link.h"

#include <errno.h>
#include <string.h>

#include "softrnic/proto/ddp.h"
#include "softrnic/proto/mpa.h"
#include "softrnic/proto/terminate.h"

static struct link l;
static struct cm_config cfg;

static int as_initiator(void **state)
{
	cfg = link_config(CM_INITIATOR);
	return 0;
}

static int as_responder(void **state)
{
	cfg = link_config(CM_RESPONDER);
	return 0;
}

/* Our next frame as the peer reads it. */
static struct mpa_start next_frame(struct side *from, const uint8_t **pdata)
{
	static uint8_t frame[MPA_START_MAX];
	size_t len = side_take(from, frame, sizeof(frame));
	struct mpa_start start;

	assert_int_equal(mpa_start_decode(frame, len, &start, pdata), (int)len);
	return start;
}

static struct mpa_start next_request(void)
{
	const uint8_t *pdata;

	return next_frame(&l.a, &pdata);
}

static void feed_frame(struct side *to, struct mpa_start start)
{
	uint8_t frame[MPA_START_MAX], zeros[MPA_PD_MAX] = {0};
	int len = mpa_start_encode(frame, sizeof(frame), &start, zeros);

	assert_true(len > 0);
	side_feed(to, frame, (size_t)len);
	link_run(&l);
}

static const struct mpa_start plain_reply = {
	.reply = true,
	.revision = 2,
	.enhanced = true,
	.ird = 1,
	.ord = 1,
};

static const struct mpa_start plain_request = {.revision = 2, .enhanced = true, .ird = 1, .ord = 1};

static void dial(void)
{
	link_init(&l, &cfg, NULL);
	link_dial(&l, &link_params);
}

static void listen_and_feed(struct mpa_start req)
{
	link_init(&l, NULL, &cfg);
	cm_on_incoming(l.b.s, l.now);
	feed_frame(&l.b, req);
}

static void hang_up(void)
{
	l.a.in.fin_read = false;
	side_feed_fin(&l.a);
	link_run(&l);
	l.a.in.fin = false;
}

/* --- initiator: the retries ------------------------------------------------------------------ */

static void a_peer_that_hangs_up_is_asked_more_plainly_twice(void **state)
{
	struct mpa_start req;

	dial();
	req = next_request();
	assert_true(req.revision == 2 && !req.p2p && req.rtr_send);
	hang_up();
	assert_state(&l.a, DIALING);
	assert_int_equal(l.a.seen[CM_EV_REDIAL], 1);
	cm_on_dialed(l.a.s, LINK_MSS, l.now);
	link_run(&l);
	req = next_request();
	assert_true(req.revision == 2 && req.p2p && !req.rtr_send && req.rtr_write && req.rtr_read);
	cm_rx_error(l.a.s, ECONNRESET, l.now); /* a reset says the same */
	assert_int_equal(l.a.seen[CM_EV_REDIAL], 2);
	cm_on_dialed(l.a.s, LINK_MSS, l.now);
	link_run(&l);
	req = next_request();
	assert_true(req.revision == 1 && !req.enhanced);
	hang_up();
	assert_state(&l.a, CLOSED);
	assert_int_equal(l.a.seen[CM_EV_REDIAL], 2);
	assert_int_equal(l.a.seen[CM_EV_REJECTED], 1);
	assert_int_equal(l.a.status, -ECONNRESET);
	link_fini(&l);
}

static void the_time_limit_covers_all_attempts(void **state)
{
	dial();
	l.now += cfg.connect_ns / 2;
	hang_up();
	cm_on_dialed(l.a.s, LINK_MSS, l.now);
	l.now += cfg.connect_ns / 2;
	cm_on_time(l.a.s, l.now);
	assert_state(&l.a, CLOSED);
	assert_int_equal(l.a.seen[CM_EV_UNREACHABLE], 1);
	assert_int_equal(l.a.status, -ETIMEDOUT);
	link_fini(&l);
}

static void one_byte_of_a_reply_ends_the_retries(void **state)
{
	dial();
	side_feed(&l.a, "M", 1);
	hang_up();
	assert_int_equal(l.a.seen[CM_EV_REDIAL], 0);
	assert_int_equal(l.a.seen[CM_EV_REJECTED], 1);
	link_fini(&l);
}

static void a_rejected_initiator_does_not_try_again(void **state)
{
	struct mpa_start rep = plain_reply;

	rep.reject = true;
	dial();
	feed_frame(&l.a, rep);
	side_feed_fin(&l.a);
	link_run(&l);
	assert_int_equal(l.a.seen[CM_EV_REDIAL], 0);
	assert_int_equal(l.a.seen[CM_EV_REJECTED], 1);
	assert_int_equal(l.a.status, -ECONNREFUSED);
	link_fini(&l);
}

static void who_may_not_read_offers_no_read_as_rtr(void **state)
{
	struct cm_params none = {0};
	struct mpa_start req;

	cfg.p2p = true;
	link_init(&l, &cfg, NULL);
	link_dial(&l, &none);
	req = next_request();
	assert_true(req.p2p && req.rtr_write && !req.rtr_read);
	assert_int_equal(req.ird, 1);
	link_fini(&l);
}

/* --- initiator: replies ---------------------------------------------------------------------- */

static void a_p2p_reply_is_never_consent(void **state)
{
	struct mpa_start rep = plain_reply;

	rep.p2p = rep.rtr_send = rep.rtr_write = true;
	dial();
	feed_frame(&l.a, rep);
	assert_state(&l.a, LIVE);
	assert_false(cm_stream_agreed(l.a.s)->consent);
	assert_int_equal(cm_stream_agreed(l.a.s)->rtr_out, QP_RTR_NONE);
	link_fini(&l);
}

static void the_rtr_is_one_that_both_named(void **state)
{
	static const struct {
		bool b, c, d;
		enum qp_rtr rtr;
	} cases[] = {
		{false, true, false, QP_RTR_WRITE},
		{false, false, true, QP_RTR_READ},
		{false, true, true, QP_RTR_WRITE},
		{true, false, true, QP_RTR_READ},
	};

	cfg.p2p = true;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct mpa_start rep = plain_reply;

		rep.p2p = true;
		rep.rtr_send = cases[i].b;
		rep.rtr_write = cases[i].c;
		rep.rtr_read = cases[i].d;
		dial();
		feed_frame(&l.a, rep);
		assert_state(&l.a, LIVE);
		assert_int_equal(cm_stream_agreed(l.a.s)->rtr_out, cases[i].rtr);
		link_fini(&l);
	}
}

/* The only thing behind our request is a whole FPDU that is this Terminate, then a FIN. */
static void assert_terminate(unsigned error, bool marker)
{
	uint8_t bytes[64], *fpdu = bytes;
	size_t len = side_take(&l.a, bytes, sizeof(bytes));
	struct terminate term;
	struct ddp_hdr ddp;

	assert_int_equal(len, 28 + (marker ? 4 : 0));
	assert_true(mpa_fpdu_is_intact(bytes, len));
	if (marker) {
		assert_memory_equal(bytes, "\0\0\0\0", 4);
		fpdu += 4;
	}
	assert_memory_equal(fpdu, "\0\x16\x41\x47", 4);
	assert_int_equal(ddp_decode(fpdu + 2, 22, &ddp), DDP_UNTAGGED_HDR);
	assert_true(ddp.last && ddp.qn == DDP_QN_TERMINATE && ddp.msn == 1 && ddp.mo == 0);
	assert_int_equal(terminate_decode(fpdu + 2 + DDP_UNTAGGED_HDR, 4, &term), 0);
	assert_int_equal(terminate_error(&term), error);
	assert_true(l.b.in.fin);
}

static void no_common_rtr_is_answered_by_a_terminate(void **state)
{
	struct mpa_start rep = plain_reply;

	rep.p2p = rep.rtr_send = true;
	cfg.p2p = true;
	dial();
	next_request();
	feed_frame(&l.a, rep);
	assert_terminate(TERM_MPA_NO_RTR, false);
	assert_state(&l.a, CLOSING);
	assert_int_equal(l.a.seen[CM_EV_CONNECT_ERROR], 1);
	assert_int_equal(l.a.status, -EPROTO);
	side_feed(&l.a, "whatever the peer still says", 28);
	side_feed_fin(&l.a);
	link_run(&l);
	assert_true(l.a.closed);
	link_fini(&l);
}

static void a_read_rtr_without_inbound_reads_is_no_rtr(void **state)
{
	struct mpa_start rep = plain_reply;

	rep.p2p = rep.rtr_read = true;
	rep.ird = 0;
	cfg.p2p = true;
	dial();
	next_request();
	feed_frame(&l.a, rep);
	assert_terminate(TERM_MPA_NO_RTR, false);
	link_fini(&l);
}

static void a_responder_that_wants_too_many_reads_gets_a_terminate(void **state)
{
	for (int markers = 0; markers < 2; markers++) {
		struct mpa_start rep = plain_reply;

		rep.ord = 1000;
		rep.markers = markers;
		dial();
		next_request();
		feed_frame(&l.a, rep);
		assert_terminate(TERM_MPA_INSUFFICIENT_IRD, markers);
		link_pass(&l, cfg.drain_ns); /* and is not waited for */
		assert_true(l.a.closed);
		assert_int_equal(l.a.seen[CM_EV_CONNECT_ERROR], 1);
		link_fini(&l);
	}
}

static void markers_are_sent_when_asked_for(void **state)
{
	struct mpa_start rep = plain_reply;

	rep.markers = true;
	dial();
	feed_frame(&l.a, rep);
	assert_true(cm_stream_agreed(l.a.s)->markers);
	link_fini(&l);
}

static void replies_to_another_question_are_errors(void **state)
{
	struct mpa_start wrong[5];

	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		wrong[i] = plain_reply;
	wrong[0].reply = false; /* a second initiator */
	wrong[1].revision = 1;
	wrong[1].enhanced = false;
	wrong[2].enhanced = false;
	wrong[3].revision = 3;
	wrong[4].pd_len = CM_PDATA_MAX + 1; /* legal, but more than a user can be given */
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		dial();
		feed_frame(&l.a, wrong[i]);
		assert_true(l.a.closed);
		assert_int_equal(l.a.seen[CM_EV_CONNECT_ERROR], 1);
		assert_int_equal(l.a.seen[CM_EV_REDIAL], 0);
		link_fini(&l);
	}
}

/* --- frames that are none -------------------------------------------------------------------- */

static const struct {
	const char *bytes;
	size_t len;
} garbage[] = {
	{"GET / HTTP/1.1\r\nHost: example.net\r\n\r\n", 37},
	{"MPA ID Rep frame\0\2\0\0", 20},
	{"MPA ID Rep Frame\x10\2\2\1", 20}, /* PD_Length 513 */
	{"MPA ID Req Frame\x10\2\2\1", 20},
	{"MPA ID Req Frame\x10\2\0\3", 20}, /* enhanced, without room for it */
	{"MPA ID Rep Frame\x10\2\0\3", 20},
};

static void garbage_closes_an_initiator(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(garbage); i++) {
		dial();
		side_feed(&l.a, garbage[i].bytes, garbage[i].len);
		link_run(&l);
		assert_true(l.a.closed);
		assert_int_equal(l.a.seen[CM_EV_CONNECT_ERROR], 1);
		link_fini(&l);
	}
}

static void garbage_closes_a_responder(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(garbage); i++) {
		link_init(&l, NULL, &cfg);
		cm_on_incoming(l.b.s, l.now);
		side_feed(&l.b, garbage[i].bytes, garbage[i].len);
		link_run(&l);
		assert_true(l.b.closed);
		assert_int_equal(l.b.seen[CM_EV_DEAD], 1);
		assert_int_equal(l.b.seen[CM_EV_CONNECT_REQUEST], 0);
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
		assert_int_equal(l.b.seen[CM_EV_DEAD], 1);
		link_fini(&l);
	}
}

static void oversize_private_data_are_rejected(void **state)
{
	struct mpa_start req = plain_request, rep;
	const uint8_t *pdata;

	req.pd_len = MPA_PD_MAX - MPA_ENHANCED_LEN;
	listen_and_feed(req);
	assert_int_equal(l.b.seen[CM_EV_DEAD], 1);
	assert_int_equal(l.b.seen[CM_EV_CONNECT_REQUEST], 0);
	rep = next_frame(&l.b, &pdata);
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
		const uint8_t *pdata;

		req.p2p = true;
		req.rtr_send = bits & 4;
		req.rtr_write = bits & 2;
		req.rtr_read = bits & 1;
		listen_and_feed(req);
		assert_int_equal(cm_stream_accept(l.b.s, &link_params, LINK_MSS, l.now), 0);
		link_run(&l);
		rep = next_frame(&l.b, &pdata);
		assert_true(rep.p2p);
		assert_int_equal(rep.rtr_send + rep.rtr_write + rep.rtr_read, 1);
		assert_int_equal(cm_stream_agreed(l.b.s)->rtr_in, expected[bits]);
		assert_int_equal(rep.rtr_send, expected[bits] == QP_RTR_SEND);
		assert_int_equal(rep.rtr_write, expected[bits] == QP_RTR_WRITE);
		assert_int_equal(rep.rtr_read, expected[bits] == QP_RTR_READ);
		assert_true(cm_stream_agreed(l.b.s)->hold_tx);
		link_fini(&l);
	}
}

static void p2p_without_any_rtr_is_rejected(void **state)
{
	struct mpa_start req = plain_request;

	req.p2p = true;
	listen_and_feed(req);
	assert_int_equal(l.b.seen[CM_EV_DEAD], 1);
	link_fini(&l);
}

static void others_get_a_reply_without_our_bits(void **state)
{
	struct mpa_start rep;
	const uint8_t *pdata;

	listen_and_feed(plain_request);
	assert_int_equal(cm_stream_accept(l.b.s, &link_params, LINK_MSS, l.now), 0);
	link_run(&l);
	rep = next_frame(&l.b, &pdata);
	assert_false(rep.p2p || rep.rtr_send || rep.rtr_write || rep.rtr_read || rep.markers);
	assert_int_equal(rep.ord, 1);
	link_fini(&l);
}

static void bytes_behind_a_request_are_an_error(void **state)
{
	link_init(&l, NULL, &cfg);
	cm_on_incoming(l.b.s, l.now);
	side_feed(&l.b, "MPA ID Req Frame\0\1\0\0x", 21);
	link_run(&l);
	assert_true(l.b.closed);
	assert_int_equal(l.b.seen[CM_EV_CONNECT_REQUEST], 1);
	assert_int_equal(cm_stream_accept(l.b.s, &link_params, LINK_MSS, l.now), -ECONNRESET);
	link_fini(&l);
}

static void a_request_has_to_be_complete_in_time(void **state)
{
	link_init(&l, NULL, &cfg);
	cm_on_incoming(l.b.s, l.now);
	side_feed(&l.b, "MPA ID Req Frame\0\1\0", 19);
	link_pass(&l, cfg.request_ns - 1);
	assert_state(&l.b, REQ_WAIT);
	link_pass(&l, 1);
	assert_true(l.b.closed);
	assert_int_equal(l.b.seen[CM_EV_DEAD], 1);
	link_fini(&l);
}

/* --- the LLP --------------------------------------------------------------------------------- */

static const struct {
	int err;
	enum cm_stream_event event;
} llp_errors[] = {
	{ECONNREFUSED, CM_EV_REJECTED},       {ETIMEDOUT, CM_EV_UNREACHABLE},
	{EHOSTUNREACH, CM_EV_UNREACHABLE},    {ENETUNREACH, CM_EV_UNREACHABLE},
	{EADDRNOTAVAIL, CM_EV_CONNECT_ERROR}, {ENOMEM, CM_EV_CONNECT_ERROR},
};

static void failed_dials_become_the_events_of_rdma_cm(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(llp_errors); i++) {
		link_init(&l, &cfg, NULL);
		assert_int_equal(cm_stream_connect(l.a.s, &link_params, l.now), 0);
		cm_on_dial_failed(l.a.s, llp_errors[i].err, l.now);
		assert_int_equal(l.a.seen[llp_errors[i].event], 1);
		assert_int_equal(l.a.status, -llp_errors[i].err);
		assert_true(cm_wants_close(l.a.s));
		link_fini(&l);
	}
}

static void a_dial_that_takes_too_long_is_unreachable(void **state)
{
	link_init(&l, &cfg, NULL);
	assert_int_equal(cm_stream_connect(l.a.s, &link_params, l.now), 0);
	assert_int_equal(cm_deadline(l.a.s), l.now + cfg.connect_ns);
	link_pass(&l, cfg.connect_ns);
	assert_int_equal(l.a.seen[CM_EV_UNREACHABLE], 1);
	cm_on_dialed(l.a.s, LINK_MSS, l.now); /* too late */
	assert_state(&l.a, CLOSED);
	link_fini(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_peer_that_hangs_up_is_asked_more_plainly_twice,
				       as_initiator),
		cmocka_unit_test_setup(the_time_limit_covers_all_attempts, as_initiator),
		cmocka_unit_test_setup(one_byte_of_a_reply_ends_the_retries, as_initiator),
		cmocka_unit_test_setup(a_rejected_initiator_does_not_try_again, as_initiator),
		cmocka_unit_test_setup(who_may_not_read_offers_no_read_as_rtr, as_initiator),
		cmocka_unit_test_setup(a_p2p_reply_is_never_consent, as_initiator),
		cmocka_unit_test_setup(the_rtr_is_one_that_both_named, as_initiator),
		cmocka_unit_test_setup(no_common_rtr_is_answered_by_a_terminate, as_initiator),
		cmocka_unit_test_setup(a_read_rtr_without_inbound_reads_is_no_rtr, as_initiator),
		cmocka_unit_test_setup(a_responder_that_wants_too_many_reads_gets_a_terminate,
				       as_initiator),
		cmocka_unit_test_setup(markers_are_sent_when_asked_for, as_initiator),
		cmocka_unit_test_setup(replies_to_another_question_are_errors, as_initiator),
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
