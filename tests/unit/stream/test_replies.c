/* SPDX-License-Identifier: BSD-3-Clause */
/* The peers of an initiator: stricter, older, refusing, or sending wrong replies. */
#include "link.h"

#include <errno.h>

#include "softrnic/proto/ddp.h"
#include "softrnic/proto/terminate.h"

static struct link l;
static struct stream_config cfg;

static const struct mpa_start plain_reply = {
	.reply = true,
	.revision = 2,
	.enhanced = true,
	.ird = 1,
	.ord = 1,
};

static int as_initiator(void **state)
{
	cfg = link_config(STREAM_INITIATOR);
	return 0;
}

static void dial(void)
{
	link_init(&l, &cfg, NULL);
	link_dial(&l, &link_params);
}

static void answer(struct mpa_start rep)
{
	side_feed_frame(&l.a, &rep);
	link_run(&l);
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
	req = side_next_frame(&l.a);
	assert_true(req.revision == 2 && !req.p2p && req.rtr_send);
	hang_up();
	assert_state(&l.a, DIALING);
	assert_int_equal(l.a.redials, 1);
	stream_on_dialed(l.a.s, LINK_MSS, l.now, &l.a.u);
	link_run(&l);
	req = side_next_frame(&l.a);
	assert_true(req.revision == 2 && req.p2p && !req.rtr_send && req.rtr_write && req.rtr_read);
	stream_rx_end(l.a.s, -ECONNRESET, l.now, &l.a.u); /* a reset means the same as a FIN */
	side_perform(&l.a);
	assert_int_equal(l.a.redials, 2);
	stream_on_dialed(l.a.s, LINK_MSS, l.now, &l.a.u);
	link_run(&l);
	req = side_next_frame(&l.a);
	assert_true(req.revision == 1 && !req.enhanced);
	hang_up();
	assert_state(&l.a, CLOSED);
	assert_int_equal(l.a.redials, 2);
	assert_int_equal(l.a.seen[STREAM_EV_REJECTED], 1);
	assert_int_equal(l.a.status, -ECONNRESET);
	link_fini(&l);
}

static void the_time_limit_covers_all_attempts(void **state)
{
	dial();
	l.now += cfg.connect_ns / 2;
	hang_up();
	stream_on_dialed(l.a.s, LINK_MSS, l.now, &l.a.u);
	l.now += cfg.connect_ns / 2;
	stream_on_time(l.a.s, l.now, &l.a.u);
	side_events(&l.a);
	assert_state(&l.a, CLOSED);
	assert_int_equal(l.a.seen[STREAM_EV_UNREACHABLE], 1);
	assert_int_equal(l.a.status, -ETIME); /* TCP was connected, but no reply came */
	link_fini(&l);
}

/* The first bytes show another protocol. Such a peer sends at most a short line before it waits for
 * an answer. */
static void a_peer_of_another_protocol_is_known_by_its_first_bytes(void **state)
{
	static const char *const lines[] = {"+OK\r\n", "SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n",
					    "MPA IX"};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		dial();
		side_feed(&l.a, lines[i], strlen(lines[i]));
		link_run(&l);
		assert_state(&l.a, CLOSED);
		assert_int_equal(l.a.seen[STREAM_EV_CONNECT_ERROR], 1);
		assert_int_equal(l.a.status, -EPROTONOSUPPORT);
		link_fini(&l);
	}
}

static void one_byte_of_a_reply_ends_the_retries(void **state)
{
	dial();
	side_feed(&l.a, "M", 1);
	hang_up();
	assert_int_equal(l.a.redials, 0);
	assert_int_equal(l.a.seen[STREAM_EV_REJECTED], 1);
	link_fini(&l);
}

static void a_rejected_initiator_does_not_try_again(void **state)
{
	struct mpa_start rep = plain_reply;

	rep.reject = true;
	dial();
	answer(rep);
	side_feed_fin(&l.a);
	link_run(&l);
	assert_int_equal(l.a.redials, 0);
	assert_int_equal(l.a.seen[STREAM_EV_REJECTED], 1);
	assert_int_equal(l.a.status, -EACCES);
	link_fini(&l);
}

static void who_may_not_read_offers_no_read_as_rtr(void **state)
{
	struct stream_params none = {0};
	struct mpa_start req;

	cfg.p2p = true;
	link_init(&l, &cfg, NULL);
	link_dial(&l, &none);
	req = side_next_frame(&l.a);
	assert_true(req.p2p && req.rtr_write && !req.rtr_read);
	assert_int_equal(req.ird, 1);
	link_fini(&l);
}

/* --- initiator: replies ---------------------------------------------------------------------- */

static void a_p2p_reply_is_never_consent(void **state)
{
	struct mpa_start rep = plain_reply;

	rep.p2p = rep.rtr_send = rep.rtr_write = rep.rtr_read = true;
	dial();
	answer(rep);
	assert_state(&l.a, LIVE);
	assert_false(stream_agreed(l.a.s)->consent);
	assert_int_equal(stream_agreed(l.a.s)->rtr_out, QP_RTR_NONE);
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
		answer(rep);
		assert_state(&l.a, LIVE);
		assert_int_equal(stream_agreed(l.a.s)->rtr_out, cases[i].rtr);
		link_fini(&l);
	}
}

/* The request is followed by only one complete FPDU, which is this Terminate, and then by a FIN. */
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
	side_next_frame(&l.a);
	answer(rep);
	assert_terminate(TERM_MPA_NO_RTR, false);
	assert_state(&l.a, CLOSING);
	assert_int_equal(l.a.seen[STREAM_EV_CONNECT_ERROR], 1);
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
	side_next_frame(&l.a);
	answer(rep);
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
		side_next_frame(&l.a);
		answer(rep);
		assert_terminate(TERM_MPA_INSUFFICIENT_IRD, markers);
		link_pass(&l, cfg.drain_ns); /* the end does not wait for the peer */
		assert_true(l.a.closed);
		assert_int_equal(l.a.seen[STREAM_EV_CONNECT_ERROR], 1);
		link_fini(&l);
	}
}

static void markers_are_sent_when_asked_for(void **state)
{
	struct mpa_start rep = plain_reply;

	rep.markers = true;
	dial();
	answer(rep);
	assert_true(stream_agreed(l.a.s)->markers);
	link_fini(&l);
}

static void replies_to_another_question_are_errors(void **state)
{
	struct mpa_start wrong[5];

	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		wrong[i] = plain_reply;
	wrong[0].reply = false; /* the other end sends a request, too */
	wrong[1].revision = 1;
	wrong[1].enhanced = false;
	wrong[2].enhanced = false;
	wrong[3].revision = 3;
	/* permitted by the RFC, but more than a user can receive */
	wrong[4].pd_len = STREAM_PDATA_MAX + 1;
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		dial();
		answer(wrong[i]);
		assert_true(l.a.closed);
		assert_int_equal(l.a.seen[STREAM_EV_CONNECT_ERROR], 1);
		assert_int_equal(l.a.redials, 0);
		link_fini(&l);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_peer_that_hangs_up_is_asked_more_plainly_twice,
				       as_initiator),
		cmocka_unit_test_setup(the_time_limit_covers_all_attempts, as_initiator),
		cmocka_unit_test_setup(one_byte_of_a_reply_ends_the_retries, as_initiator),
		cmocka_unit_test_setup(a_peer_of_another_protocol_is_known_by_its_first_bytes,
				       as_initiator),
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
