/* SPDX-License-Identifier: BSD-3-Clause */
/* Two streams of this implementation, connected to each other: what they agree on, and what they
 * report. */
#include "link.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"

static struct link l;
static struct stream_config a, b;

static int reset(void **state)
{
	a = link_config(STREAM_INITIATOR);
	b = link_config(STREAM_RESPONDER);
	return 0;
}

static const struct qp_stream *agreed(const struct side *side)
{
	return stream_agreed(side->s);
}

static void without_an_announcement_the_user_flushes_by_reading(void **state)
{
	struct stream_config cfg = stream_config_of(STREAM_INITIATOR, true, true);

	assert_false(cfg.user_flushes);
	assert_true(cfg.offer_consent);
}

/* Until the start-up begins, the user of each end may announce native flushes or not. */
static void each_end_announces_for_itself(void **state)
{
	a.user_flushes = b.user_flushes = false;
	for (unsigned announce = 0; announce < 4; announce++) {
		link_init(&l, &a, &b);
		assert_int_equal(stream_set_user_flushes(l.a.s, announce & 1), 0);
		assert_int_equal(stream_set_user_flushes(l.b.s, announce & 2), 0);
		link_establish(&l);
		assert_true(agreed(&l.a)->consent && agreed(&l.b)->consent);
		assert_int_equal(agreed(&l.b)->peer_flushes, !!(announce & 1));
		assert_int_equal(agreed(&l.a)->peer_flushes, !!(announce & 2));
		assert_int_equal(stream_set_user_flushes(l.a.s, true), -EINVAL);
		assert_int_equal(stream_set_user_flushes(l.b.s, true), -EINVAL);
		link_fini(&l);
	}
}

static void two_of_us_consent(void **state)
{
	b.user_flushes = false;
	link_init(&l, &a, &b);
	link_establish(&l);
	assert_true(agreed(&l.a)->consent && agreed(&l.b)->consent);
	assert_false(agreed(&l.a)->peer_flushes);
	assert_true(agreed(&l.b)->peer_flushes);
	assert_false(agreed(&l.a)->hold_tx || agreed(&l.b)->hold_tx);
	assert_false(agreed(&l.a)->markers || agreed(&l.b)->markers);
	assert_int_equal(agreed(&l.a)->mss, LINK_MSS);
	assert_int_equal(agreed(&l.b)->mss, LINK_MSS);
	assert_int_equal(stream_deadline(l.a.s), CLOCK_NEVER);
	assert_int_equal(stream_deadline(l.b.s), CLOCK_NEVER);
	link_fini(&l);
}

static void consent_needs_both(void **state)
{
	for (int i = 1; i < 4; i++) {
		reset(NULL);
		a.offer_consent = !(i & 1);
		b.offer_consent = !(i & 2);
		link_init(&l, &a, &b);
		link_establish(&l);
		assert_false(agreed(&l.a)->consent || agreed(&l.b)->consent);
		assert_false(agreed(&l.a)->peer_flushes || agreed(&l.b)->peer_flushes);
		assert_false(agreed(&l.a)->hold_tx);
		assert_true(agreed(&l.b)->hold_tx);
		link_fini(&l);
	}
}

static void crc_is_used_when_either_side_wishes(void **state)
{
	for (int i = 0; i < 4; i++) {
		a.crc = i & 1;
		b.crc = i & 2;
		link_init(&l, &a, &b);
		link_establish(&l);
		assert_int_equal(agreed(&l.a)->crc, i != 0);
		assert_int_equal(agreed(&l.b)->crc, i != 0);
		link_fini(&l);
	}
}

static struct stream_params params_with(uint8_t len, uint8_t fill)
{
	struct stream_params p = {.ird = 8, .ord = 4, .pdata_len = len};

	memset(p.pdata, fill, len);
	return p;
}

static void private_data_of_every_length_arrive(void **state)
{
	for (int len = 0; len <= STREAM_PDATA_MAX; len++) {
		struct stream_params ask = params_with((uint8_t)len, 0xa5);
		struct stream_params answer = params_with((uint8_t)(STREAM_PDATA_MAX - len), 0x5a);
		const struct stream_params *got;

		link_init(&l, &a, &b);
		l.a.chunk = l.b.chunk = (size_t)len % 7 + 1;
		link_dial(&l, &ask);
		got = stream_remote(l.b.s);
		assert_int_equal(l.b.seen[STREAM_EV_CONNECT_REQUEST], 1);
		assert_int_equal(got->pdata_len, len);
		assert_memory_equal(got->pdata, ask.pdata, (size_t)len);
		assert_int_equal(got->ird, 4);
		assert_int_equal(got->ord, 8);
		assert_int_equal(stream_accept(l.b.s, &answer, LINK_MSS, l.now, &l.b.u), 0);
		link_run(&l);
		got = stream_remote(l.a.s);
		assert_state(&l.a, LIVE);
		assert_int_equal(got->pdata_len, STREAM_PDATA_MAX - len);
		assert_memory_equal(got->pdata, answer.pdata, got->pdata_len);
		link_fini(&l);
	}
}

static unsigned warnings;

static void count_warnings(enum log_level level, const char *file, int line, const char *func,
			   const char *text)
{
	warnings += level == LOG_LVL_WARNING;
}

/*
 * A request goes to an unknown peer, so long private data cause a warning. A reply causes a warning
 * only if the peer is another implementation.
 */
static void private_data_that_others_refuse_are_warned_of(void **state)
{
	static const struct {
		uint8_t request, reply;
		bool consent;
		unsigned warnings;
	} cases[] = {
		{251, 251, false, 0},
		{252, 0, true, 1},
		{0, 252, true, 0},
		{0, 252, false, 1},
	};

	log_set(count_warnings, LOG_LVL_WARNING);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct stream_params ask = params_with(cases[i].request, 1);
		struct stream_params answer = params_with(cases[i].reply, 2);

		warnings = 0;
		a.offer_consent = cases[i].consent;
		link_init(&l, &a, &b);
		link_dial(&l, &ask);
		assert_int_equal(stream_accept(l.b.s, &answer, LINK_MSS, l.now, &l.b.u), 0);
		link_run(&l);
		assert_state(&l.a, LIVE);
		assert_int_equal(warnings, cases[i].warnings);
		link_fini(&l);
	}
	log_set(NULL, LOG_LVL_OFF);
}

static void reject_carries_private_data_and_closes(void **state)
{
	link_init(&l, &a, &b);
	link_dial(&l, &link_params);
	assert_int_equal(stream_reject(l.b.s, "no, thanks", 10, l.now, &l.b.u), 0);
	link_run(&l);
	assert_int_equal(l.a.seen[STREAM_EV_REJECTED], 1);
	assert_int_equal(l.a.status, -EACCES);
	assert_int_equal(stream_remote(l.a.s)->pdata_len, 10);
	assert_memory_equal(stream_remote(l.a.s)->pdata, "no, thanks", 10);
	assert_true(l.a.closed && l.b.closed);
	assert_int_equal(l.a.redials, 0);
	assert_int_equal(l.b.finals, 0);
	link_fini(&l);
}

static void reject_is_understood_by_every_kind_of_initiator(void **state)
{
	for (int i = 0; i < 3; i++) {
		reset(NULL);
		a.revision = i == 1 ? 1 : 2;
		a.p2p = i == 2;
		link_init(&l, &a, &b);
		link_dial(&l, &link_params);
		assert_int_equal(stream_reject(l.b.s, NULL, 0, l.now, &l.b.u), 0);
		link_run(&l);
		assert_int_equal(l.a.seen[STREAM_EV_REJECTED], 1);
		assert_int_equal(l.a.redials, 0);
		link_fini(&l);
	}
}

static void a_rejecting_responder_does_not_wait_for_ever(void **state)
{
	link_init(&l, NULL, &b);
	stream_on_incoming(l.b.s, l.now, &l.b.u);
	side_feed(&l.b, "MPA ID Req Frame\0\1\0\0", 20);
	link_run(&l);
	assert_int_equal(stream_reject(l.b.s, NULL, 0, l.now, &l.b.u), 0);
	link_run(&l);
	assert_state(&l.b, CLOSING);
	link_pass(&l, b.drain_ns);
	assert_state(&l.b, CLOSED);
	assert_int_equal(l.b.finals, 0);
	link_fini(&l);
}

static void revision_1_works_without_consent(void **state)
{
	a.revision = 1;
	link_init(&l, &a, &b);
	link_establish(&l);
	assert_false(agreed(&l.a)->consent || agreed(&l.b)->consent);
	assert_true(agreed(&l.b)->hold_tx);
	assert_int_equal(agreed(&l.a)->ord, 16);
	assert_int_equal(agreed(&l.b)->ird, 16);
	link_fini(&l);
}

static void p2p_agrees_on_one_rtr(void **state)
{
	a.p2p = true;
	link_init(&l, &a, &b);
	side_add_qp(&l.a);
	side_add_qp(&l.b);
	link_establish(&l);
	assert_int_equal(agreed(&l.a)->rtr_out, QP_RTR_WRITE);
	assert_int_equal(agreed(&l.b)->rtr_in, QP_RTR_WRITE);
	assert_false(agreed(&l.a)->consent || agreed(&l.b)->consent);
	link_fini(&l);
}

static void p2p_responder_is_established_only_by_the_rtr(void **state)
{
	a.p2p = true;
	link_init(&l, &a, &b);
	side_add_qp(&l.a);
	side_add_qp(&l.b);
	link_dial(&l, &link_params);
	assert_int_equal(stream_accept(l.b.s, &link_params, LINK_MSS, l.now, &l.b.u), 0);
	l.a.muted = true;
	link_run(&l);
	assert_state(&l.a, LIVE);
	assert_state(&l.b, REP_SENT);
	assert_int_equal(l.b.seen[STREAM_EV_ESTABLISHED], 0);
	l.a.muted = false;
	link_run(&l);
	assert_state(&l.b, LIVE);
	assert_int_equal(l.b.seen[STREAM_EV_ESTABLISHED], 1);
	link_fini(&l);
}

static void a_missing_rtr_is_not_waited_for_longer_than_a_request(void **state)
{
	a.p2p = true;
	link_init(&l, &a, &b);
	side_add_qp(&l.b);
	link_dial(&l, &link_params);
	assert_int_equal(stream_accept(l.b.s, &link_params, LINK_MSS, l.now, &l.b.u), 0);
	link_run(&l);
	link_pass(&l, b.request_ns);
	assert_state(&l.b, CLOSED);
	assert_int_equal(l.b.seen[STREAM_EV_CONNECT_ERROR], 1);
	assert_int_equal(l.b.status, -ETIMEDOUT);
	assert_true(qp_is_failed(rig_qp(l.b.rig)));
	link_fini(&l);
}

static void the_user_may_take_his_time_to_accept(void **state)
{
	link_init(&l, &a, &b);
	link_dial(&l, &link_params);
	assert_int_equal(stream_deadline(l.b.s), CLOCK_NEVER);
	stream_on_time(l.b.s, l.now + 3600 * NSEC_PER_SEC, &l.b.u);
	assert_state(&l.b, REQ_RCVD);
	link_fini(&l);
}

static void accepting_a_peer_that_left_fails(void **state)
{
	link_init(&l, &a, &b);
	link_dial(&l, &link_params);
	stream_abort(l.a.s, &l.a.u);
	link_run(&l);
	assert_int_equal(stream_accept(l.b.s, &link_params, LINK_MSS, l.now, &l.b.u), -ECONNRESET);
	assert_int_equal(stream_reject(l.b.s, NULL, 0, l.now, &l.b.u), 0);
	assert_true(l.b.closed);
	assert_int_equal(l.a.finals + l.b.finals, 0);
	link_fini(&l);
}

static void data_in_the_same_bytes_as_the_reply_are_the_qps(void **state)
{
	enum ibv_wc_status status;

	link_init(&l, &a, &b);
	side_add_qp(&l.a);
	side_add_qp(&l.b);
	assert_int_equal(side_post_recv(&l.a, 7), 0);
	link_dial(&l, &link_params);
	assert_int_equal(stream_accept(l.b.s, &link_params, LINK_MSS, l.now, &l.b.u), 0);
	assert_int_equal(side_post_send(&l.b, 8), 0);
	/* Let the initiator process its input only after the whole frame has arrived. */
	struct stream *initiator = l.a.s;
	l.a.s = NULL;
	link_run(&l);
	l.a.s = initiator;
	link_run(&l);
	assert_int_equal(rig_poll(l.a.rig, &status), 7);
	assert_int_equal(status, IBV_WC_SUCCESS);
	link_fini(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(without_an_announcement_the_user_flushes_by_reading, reset),
		cmocka_unit_test_setup(each_end_announces_for_itself, reset),
		cmocka_unit_test_setup(two_of_us_consent, reset),
		cmocka_unit_test_setup(consent_needs_both, reset),
		cmocka_unit_test_setup(crc_is_used_when_either_side_wishes, reset),
		cmocka_unit_test_setup(private_data_of_every_length_arrive, reset),
		cmocka_unit_test_setup(private_data_that_others_refuse_are_warned_of, reset),
		cmocka_unit_test_setup(reject_carries_private_data_and_closes, reset),
		cmocka_unit_test_setup(reject_is_understood_by_every_kind_of_initiator, reset),
		cmocka_unit_test_setup(a_rejecting_responder_does_not_wait_for_ever, reset),
		cmocka_unit_test_setup(revision_1_works_without_consent, reset),
		cmocka_unit_test_setup(p2p_agrees_on_one_rtr, reset),
		cmocka_unit_test_setup(p2p_responder_is_established_only_by_the_rtr, reset),
		cmocka_unit_test_setup(a_missing_rtr_is_not_waited_for_longer_than_a_request,
				       reset),
		cmocka_unit_test_setup(the_user_may_take_his_time_to_accept, reset),
		cmocka_unit_test_setup(accepting_a_peer_that_left_fails, reset),
		cmocka_unit_test_setup(data_in_the_same_bytes_as_the_reply_are_the_qps, reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
