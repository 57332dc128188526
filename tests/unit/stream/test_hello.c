/* SPDX-License-Identifier: BSD-3-Clause */
/* If both peers consent, the peer's HELLO establishes the connection or makes this end refuse
 * it. */
#include "link.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "lib/qp_pair.h"
#include "softrnic/proto/ext.h"
#include "softrnic/proto/ext_hello.h"
#include "softrnic/proto/rdmap.h"
#include "softrnic/proto/terminate.h"

static struct link l;
static struct stream_config a, b;

static int reset(void **state)
{
	a = link_config(STREAM_INITIATOR);
	b = link_config(STREAM_RESPONDER);
	return 0;
}

/* Make two ends whose start-up frames are under way; neither end has sent its HELLO. */
static void accepted(void)
{
	link_init(&l, &a, &b);
	side_add_qp(&l.a);
	side_add_qp(&l.b);
	link_dial(&l, &link_params);
	assert_int_equal(stream_accept(l.b.s, &link_params, LINK_MSS, l.now, &l.b.u), 0);
}

/* Make an initiator that has received a consenting reply. The test itself acts as its peer. */
static void initiator_waits(void)
{
	struct mpa_start reply = {.reply = true,
				  .revision = 2,
				  .enhanced = true,
				  .rtr_send = true,
				  .ird = 1,
				  .ord = 1};

	link_init(&l, &a, NULL);
	side_add_qp(&l.a);
	link_dial(&l, &link_params);
	side_next_frame(&l.a);
	side_feed_frame(&l.a, &reply);
	link_run(&l);
	assert_state(&l.a, HELLO);
	assert_true(stream_agreed(l.a.s)->consent);
}

static void feed_fpdu(struct side *to, const struct ddp_hdr *hdr, const void *payload, size_t len)
{
	uint8_t fpdu[256];

	side_feed(to, fpdu, fpdu_make(fpdu, hdr, payload, len, true));
	link_run(&l);
}

static void feed_hello(struct side *to, const struct ext_hello *hello)
{
	struct ddp_hdr hdr = hdr_untagged(RDMAP_EXT_REQ, DDP_QN_CONTROL, 1, 0, true);
	uint8_t bytes[EXT_HELLO_LEN];

	ext_hello_encode(bytes, sizeof(bytes), hello);
	feed_fpdu(to, &hdr, bytes, sizeof(bytes));
}

/* Check what `from` has sent: its HELLO and, if there is an error, a Terminate. */
static void expect_hello_then(struct side *from, unsigned error)
{
	uint8_t bytes[256];
	size_t len = side_take(from, bytes, sizeof(bytes)), first = mpa_fpdu_len(58);
	struct terminate term;

	assert_int_equal(
		len,
		first + (error ? mpa_fpdu_len(DDP_UNTAGGED_HDR + 4 + 2 + DDP_UNTAGGED_HDR) : 0));
	assert_memory_equal(bytes, "\0\x3a\x41\x4c", 4);
	if (!error)
		return;
	assert_int_equal(bytes[first + 3], 0x47);
	assert_int_equal(terminate_decode(bytes + first + MPA_LENGTH_LEN + DDP_UNTAGGED_HDR,
					  len - first - MPA_LENGTH_LEN - DDP_UNTAGGED_HDR, &term),
			 0);
	assert_int_equal(terminate_error(&term), error);
}

static void the_initiator_waits_for_it_and_no_longer(void **state)
{
	accepted();
	l.a.muted = true; /* none of a's bytes reaches the peer, so a gets no answer */
	link_run(&l);
	assert_state(&l.a, LIVE);
	assert_int_equal(l.a.seen[STREAM_EV_ESTABLISHED], 1);
	assert_state(&l.b, HELLO);
	assert_int_equal(l.b.seen[STREAM_EV_ESTABLISHED], 0);
	l.a.muted = false;
	link_run(&l);
	assert_state(&l.b, LIVE);
	assert_int_equal(l.b.seen[STREAM_EV_ESTABLISHED], 1);
	link_fini(&l);
}

static void a_reply_alone_establishes_nothing(void **state)
{
	struct ext_hello hello = {.major = EXT_HELLO_MAJOR, .max_ulpdu = MPA_ULPDU_MAX};

	initiator_waits();
	assert_int_equal(l.a.seen[STREAM_EV_ESTABLISHED], 0);
	expect_hello_then(&l.a, 0);
	feed_hello(&l.a, &hello);
	assert_state(&l.a, LIVE);
	assert_int_equal(l.a.seen[STREAM_EV_ESTABLISHED], 1);
	link_fini(&l);
}

static void who_did_not_consent_is_not_waited_for(void **state)
{
	a.offer_consent = false;
	accepted();
	l.a.muted = true;
	link_run(&l);
	assert_state(&l.a, LIVE);
	assert_state(&l.b, LIVE);
	link_fini(&l);
}

static void requests_posted_before_it_follow_it(void **state)
{
	enum ibv_wc_status status;

	accepted();
	assert_int_equal(side_post_recv(&l.a, 7), 0);
	assert_int_equal(side_post_send(&l.b, 8), 0);
	l.a.muted = true;
	link_run(&l);
	assert_int_equal(rig_poll(l.a.rig, &status), -1);
	l.a.muted = false;
	link_run(&l);
	assert_int_equal(rig_poll(l.a.rig, &status), 7);
	assert_int_equal(status, IBV_WC_SUCCESS);
	assert_int_equal(rig_poll(l.b.rig, &status), 8);
	link_fini(&l);
}

static void an_initiator_waits_within_its_time_limit(void **state)
{
	initiator_waits();
	link_pass(&l, a.connect_ns - 1);
	assert_state(&l.a, HELLO);
	link_pass(&l, 1);
	assert_state(&l.a, CLOSED);
	assert_int_equal(l.a.seen[STREAM_EV_UNREACHABLE], 1);
	assert_int_equal(l.a.status, -ETIMEDOUT);
	assert_int_equal(l.a.redials, 0);
	assert_true(qp_is_failed(rig_qp(l.a.rig)));
	link_fini(&l);
}

static void a_responder_waits_no_longer_than_for_a_request(void **state)
{
	accepted();
	l.a.muted = true;
	link_run(&l);
	link_pass(&l, b.request_ns - 1);
	assert_state(&l.b, HELLO);
	link_pass(&l, 1);
	assert_int_equal(l.b.seen[STREAM_EV_CONNECT_ERROR], 1);
	assert_int_equal(l.b.status, -ETIMEDOUT);
	assert_int_equal(l.b.seen[STREAM_EV_ESTABLISHED], 0);
	assert_true(l.b.closed);
	link_fini(&l);
}

static void a_peer_that_hangs_up_instead_is_an_error(void **state)
{
	initiator_waits();
	side_feed_fin(&l.a);
	link_run(&l);
	assert_true(l.a.closed);
	assert_int_equal(l.a.seen[STREAM_EV_CONNECT_ERROR], 1);
	assert_int_equal(l.a.status, -ECONNRESET);
	assert_int_equal(l.a.redials, 0);
	link_fini(&l);
}

static void a_broken_link_is_an_error(void **state)
{
	static const struct {
		int err;
		enum stream_event event;
	} cases[] = {
		{ECONNRESET, STREAM_EV_CONNECT_ERROR},
		{EPIPE, STREAM_EV_CONNECT_ERROR},
		{ETIMEDOUT, STREAM_EV_UNREACHABLE},
		{EHOSTUNREACH, STREAM_EV_UNREACHABLE},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		initiator_waits();
		stream_rx_end(l.a.s, -cases[i].err, l.now, &l.a.u);
		link_run(&l);
		assert_int_equal(l.a.seen[cases[i].event], 1);
		assert_int_equal(l.a.status, -cases[i].err);
		link_fini(&l);
	}
}

static char logged[4096];

static void keep_log(enum log_level level, const char *file, int line, const char *func,
		     const char *text)
{
	strncat(logged, text, sizeof(logged) - strlen(logged) - 1);
}

static void one_that_is_not_understood_ends_the_start_up(void **state)
{
	struct ext_hello later = {.major = 3, .max_ulpdu = MPA_ULPDU_MAX};

	logged[0] = 0;
	log_set(keep_log, LOG_LVL_WARNING);
	initiator_waits();
	feed_hello(&l.a, &later);
	log_set(NULL, LOG_LVL_OFF);
	expect_hello_then(&l.a, TERM_RDMAP_STREAM_CATASTROPHIC);
	assert_int_equal(l.a.seen[STREAM_EV_CONNECT_ERROR], 1);
	assert_int_equal(l.a.status, -EPROTO);
	assert_int_equal(l.a.seen[STREAM_EV_ESTABLISHED], 0);
	assert_non_null(strstr(logged, "HELLO is refused"));
	assert_non_null(strstr(logged, "another version"));
	link_fini(&l);
}

static void anything_else_first_ends_the_start_up(void **state)
{
	struct ddp_hdr write = hdr_tagged(RDMAP_WRITE, 1, 0, true);
	struct ddp_hdr send = hdr_untagged(RDMAP_SEND, DDP_QN_SEND, 1, 0, true);

	for (int i = 0; i < 2; i++) {
		initiator_waits();
		assert_int_equal(side_post_recv(&l.a, 1), 0);
		feed_fpdu(&l.a, i ? &send : &write, "x", i ? 1 : 0);
		assert_int_equal(l.a.seen[STREAM_EV_CONNECT_ERROR], 1);
		assert_int_equal(l.a.status, -EPROTO);
		link_fini(&l);
	}
}

static void a_peer_that_objects_to_ours_is_an_error(void **state)
{
	struct terminate term = terminate_of(TERM_RDMAP_STREAM_CATASTROPHIC);
	struct ddp_hdr hdr = hdr_untagged(RDMAP_TERMINATE, DDP_QN_TERMINATE, 1, 0, true);
	uint8_t bytes[TERM_MAX_LEN];
	int len = terminate_encode(bytes, sizeof(bytes), &term);

	initiator_waits();
	feed_fpdu(&l.a, &hdr, bytes, (size_t)len);
	assert_int_equal(l.a.seen[STREAM_EV_CONNECT_ERROR], 1);
	link_fini(&l);
}

/* A Terminate that arrives in the same bytes as the HELLO is processed. */
static void a_terminate_after_it_ends_an_established_connection(void **state)
{
	struct ext_hello hello = {.major = EXT_HELLO_MAJOR, .max_ulpdu = MPA_ULPDU_MAX};
	struct ddp_hdr first = hdr_untagged(RDMAP_EXT_REQ, DDP_QN_CONTROL, 1, 0, true);
	struct ddp_hdr last = hdr_untagged(RDMAP_TERMINATE, DDP_QN_TERMINATE, 1, 0, true);
	uint8_t bytes[EXT_HELLO_LEN], fpdu[128];

	initiator_waits();
	ext_hello_encode(bytes, sizeof(bytes), &hello);
	side_feed(&l.a, fpdu, fpdu_make(fpdu, &first, bytes, sizeof(bytes), true));
	feed_fpdu(&l.a, &last, "\0\0\0\0", 4);
	assert_int_equal(l.a.seen[STREAM_EV_ESTABLISHED], 1);
	assert_int_equal(l.a.seen[STREAM_EV_DISCONNECTED], 1);
	link_fini(&l);
}

static void a_responder_may_leave_at_once(void **state)
{
	accepted();
	assert_int_equal(stream_disconnect(l.b.s, l.now, &l.b.u), 0);
	link_run(&l);
	assert_int_equal(l.a.seen[STREAM_EV_ESTABLISHED], 1);
	assert_int_equal(l.a.seen[STREAM_EV_DISCONNECTED], 1);
	assert_int_equal(l.b.seen[STREAM_EV_DISCONNECTED], 1);
	assert_true(l.a.closed && l.b.closed);
	link_fini(&l);
}

static void each_looks_as_often_as_the_others_limit_wants(void **state)
{
	a.liveness_ns = 900 * NSEC_PER_MS;
	b.liveness_ns = 15 * NSEC_PER_SEC;
	accepted();
	link_run(&l);
	assert_state(&l.b, LIVE);
	assert_true(stream_deadline(l.b.s) <= l.now + 300 * NSEC_PER_MS * 9 / 8);
	/* No ping was needed before this. */
	assert_int_equal(qp_counters(rig_qp(l.a.rig))->pings_out, 0);
	link_fini(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(the_initiator_waits_for_it_and_no_longer, reset),
		cmocka_unit_test_setup(a_reply_alone_establishes_nothing, reset),
		cmocka_unit_test_setup(who_did_not_consent_is_not_waited_for, reset),
		cmocka_unit_test_setup(requests_posted_before_it_follow_it, reset),
		cmocka_unit_test_setup(an_initiator_waits_within_its_time_limit, reset),
		cmocka_unit_test_setup(a_responder_waits_no_longer_than_for_a_request, reset),
		cmocka_unit_test_setup(a_peer_that_hangs_up_instead_is_an_error, reset),
		cmocka_unit_test_setup(a_broken_link_is_an_error, reset),
		cmocka_unit_test_setup(one_that_is_not_understood_ends_the_start_up, reset),
		cmocka_unit_test_setup(anything_else_first_ends_the_start_up, reset),
		cmocka_unit_test_setup(a_peer_that_objects_to_ours_is_an_error, reset),
		cmocka_unit_test_setup(a_terminate_after_it_ends_an_established_connection, reset),
		cmocka_unit_test_setup(a_responder_may_leave_at_once, reset),
		cmocka_unit_test_setup(each_looks_as_often_as_the_others_limit_wants, reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
