/* SPDX-License-Identifier: BSD-3-Clause */
/* The two negotiations at start-up: consent to the extensions (bits), and IRD and ORD (numbers). */
#include "lib/unit.h"

#include <errno.h>

#include "softrnic/stream/consent.h"
#include "softrnic/stream/depth.h"
#include "softrnic/rnic/rnic.h"

static struct mpa_start enhanced(uint16_t ird, uint16_t ord)
{
	return (struct mpa_start){.revision = 2, .enhanced = true, .ird = ird, .ord = ord};
}

static void consent_survives_the_wire(void **state)
{
	static const enum stream_consent both[] = {STREAM_CONSENT_FLUSHES, STREAM_CONSENT_READS};

	for (unsigned i = 0; i < ARRAY_LEN(both); i++) {
		struct mpa_start start = enhanced(1, 1), back;
		uint8_t frame[MPA_START_MAX];
		const uint8_t *pdata;
		int len;

		stream_consent_put(&start, both[i]);
		len = mpa_start_encode(frame, sizeof(frame), &start, NULL);
		assert_true(len > 0);
		assert_int_equal(mpa_start_decode(frame, (size_t)len, &back, &pdata), len);
		assert_int_equal(stream_consent_get(&back), both[i]);
	}
}

static void consent_bits_are_those_of_the_wire_document(void **state)
{
	struct mpa_start start = enhanced(1, 1);
	uint8_t frame[MPA_START_MAX];

	stream_consent_put(&start, STREAM_CONSENT_FLUSHES);
	mpa_start_encode(frame, sizeof(frame), &start, NULL);
	assert_memory_equal(frame + MPA_START_HDR, "\x40\x01\xc0\x01", 4);
	stream_consent_put(&start, STREAM_CONSENT_READS);
	mpa_start_encode(frame, sizeof(frame), &start, NULL);
	assert_memory_equal(frame + MPA_START_HDR, "\x40\x01\x00\x01", 4);
}

static void no_other_pattern_is_consent(void **state)
{
	for (unsigned bits = 0; bits < 32; bits++) {
		struct mpa_start start = enhanced(1, 1);
		enum stream_consent expected = STREAM_CONSENT_NONE;

		start.enhanced = bits & 16;
		start.p2p = bits & 8;
		start.rtr_send = bits & 4;
		start.rtr_write = bits & 2;
		start.rtr_read = bits & 1;
		if (bits == (16 | 4 | 2 | 1))
			expected = STREAM_CONSENT_FLUSHES;
		else if (bits == (16 | 4))
			expected = STREAM_CONSENT_READS;
		assert_int_equal(stream_consent_get(&start), expected);
	}
}

static void no_consent_clears_every_bit(void **state)
{
	struct mpa_start start = enhanced(1, 1);

	start.p2p = start.rtr_send = start.rtr_write = start.rtr_read = true;
	stream_consent_put(&start, STREAM_CONSENT_NONE);
	assert_false(start.p2p || start.rtr_send || start.rtr_write || start.rtr_read);
}

static void requests_ask_for_at_least_one_inbound_read(void **state)
{
	struct mpa_start req = enhanced(0, 0);
	struct stream_params user = {.ird = 0, .ord = 0};

	stream_depth_ask(&req, &user);
	assert_int_equal(req.ird, 1);
	assert_int_equal(req.ord, 0);
}

static void what_librpma_asks_is_clipped_to_the_device(void **state)
{
	struct mpa_start req = enhanced(0, 0);
	struct stream_params user = {.ird = 0xff, .ord = 0xff};

	stream_depth_ask(&req, &user);
	assert_int_equal(req.ird, RNIC_MAX_RD_ATOM);
	assert_int_equal(req.ord, RNIC_MAX_RD_ATOM);
}

/* For every pair of settings, each end's agreed ORD is at most the other end's IRD (RFC 6581
 * s9). */
static void ord_never_exceeds_the_other_sides_ird(void **state)
{
	static const uint16_t values[] = {0, 1, 2, 16, 127, 128, 129, 255, 0xffff};
	const unsigned n = ARRAY_LEN(values);

	for (unsigned i = 0; i < n * n * n * n; i++) {
		struct stream_params a = {.ird = values[i % n], .ord = values[i / n % n]};
		struct stream_params b = {.ird = values[i / n / n % n],
					  .ord = values[i / n / n / n]};
		struct mpa_start req = enhanced(0, 0), rep = enhanced(0, 0);
		struct qp_stream at_a = {0}, at_b = {0};

		stream_depth_ask(&req, &a);
		stream_depth_answer(&at_b, &rep, &req, &b);
		assert_int_equal(stream_depth_settle(&at_a, &req, &rep), 0);
		assert_true(at_a.ord <= at_b.ird && at_b.ord <= at_a.ird);
		assert_true(at_a.ird <= RNIC_MAX_RD_ATOM && at_b.ird <= RNIC_MAX_RD_ATOM);
		assert_true(at_a.ord <= a.ord && at_b.ord <= b.ord);
	}
}

static void depth_left_to_the_ulp_is_mirrored_and_limits_nothing(void **state)
{
	struct mpa_start req = enhanced(MPA_DEPTH_ULP, MPA_DEPTH_ULP), rep = enhanced(0, 0);
	struct stream_params user = {.ird = 7, .ord = 9}, remote;
	struct qp_stream agreed = {0};

	stream_depth_answer(&agreed, &rep, &req, &user);
	assert_int_equal(rep.ird, MPA_DEPTH_ULP);
	assert_int_equal(rep.ord, MPA_DEPTH_ULP);
	assert_int_equal(agreed.ird, 7);
	assert_int_equal(agreed.ord, 9);
	stream_depth_offered(&remote, &req);
	assert_int_equal(remote.ird, RNIC_MAX_RD_ATOM);
	assert_int_equal(remote.ord, RNIC_MAX_RD_ATOM);

	req = enhanced(3, 4);
	assert_int_equal(stream_depth_settle(&agreed, &req, &rep), 0);
	assert_int_equal(agreed.ird, 3);
	assert_int_equal(agreed.ord, 4);
}

static void initiator_raises_its_ird_to_what_the_responder_needs(void **state)
{
	struct mpa_start req = enhanced(1, 4), rep = enhanced(2, 5);
	struct qp_stream agreed = {0};

	assert_int_equal(stream_depth_settle(&agreed, &req, &rep), 0);
	assert_int_equal(agreed.ird, 5);
	assert_int_equal(agreed.ord, 2);
	rep.ord = RNIC_MAX_RD_ATOM + 1;
	assert_int_equal(stream_depth_settle(&agreed, &req, &rep), -ENOSPC);
}

static void responder_raises_its_ird_for_a_read_rtr(void **state)
{
	struct mpa_start req = enhanced(1, 1), rep = enhanced(0, 0);
	struct qp_stream agreed = {.rtr_in = QP_RTR_READ};
	struct stream_params user = {.ird = 0, .ord = 0};

	stream_depth_answer(&agreed, &rep, &req, &user);
	assert_int_equal(agreed.ird, 1);
	assert_int_equal(rep.ird, 1);
}

static void the_user_sees_depths_from_his_side(void **state)
{
	struct mpa_start req = enhanced(3, 5);
	struct stream_params remote;

	stream_depth_offered(&remote, &req);
	/* The peer will have that many requests outstanding, and this end must accept them. */
	assert_int_equal(remote.ird, 5);
	assert_int_equal(remote.ord, 3);
}

static void revision_1_uses_what_the_own_user_asked(void **state)
{
	struct mpa_start req = {.revision = 1}, rep = {.reply = true, .revision = 1};
	struct stream_params a = {.ird = 4, .ord = 200}, b = {.ird = 6, .ord = 5};
	struct qp_stream at_a = {0}, at_b = {0};

	stream_depth_ask(&req, &a);
	stream_depth_answer(&at_b, &rep, &req, &b);
	assert_int_equal(stream_depth_settle(&at_a, &req, &rep), 0);
	assert_int_equal(at_a.ird, 4);
	assert_int_equal(at_a.ord, RNIC_MAX_RD_ATOM);
	assert_int_equal(at_b.ird, 6);
	assert_int_equal(at_b.ord, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(consent_survives_the_wire),
		cmocka_unit_test(consent_bits_are_those_of_the_wire_document),
		cmocka_unit_test(no_other_pattern_is_consent),
		cmocka_unit_test(no_consent_clears_every_bit),
		cmocka_unit_test(requests_ask_for_at_least_one_inbound_read),
		cmocka_unit_test(what_librpma_asks_is_clipped_to_the_device),
		cmocka_unit_test(ord_never_exceeds_the_other_sides_ird),
		cmocka_unit_test(depth_left_to_the_ulp_is_mirrored_and_limits_nothing),
		cmocka_unit_test(initiator_raises_its_ird_to_what_the_responder_needs),
		cmocka_unit_test(responder_raises_its_ird_for_a_read_rtr),
		cmocka_unit_test(the_user_sees_depths_from_his_side),
		cmocka_unit_test(revision_1_uses_what_the_own_user_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
