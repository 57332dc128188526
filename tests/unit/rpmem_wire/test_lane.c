/* SPDX-License-Identifier: BSD-3-Clause */
/* The private data with which a lane begins, and the messages of a lane with the general method. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "rpmem/wire/lane.h"

static const struct wire_key key = {{7}}, other_key = {{8}};
static uint8_t buf[256];

static void a_request_fits_into_infiniband_and_may_be_padded(void **state)
{
	uint32_t lane;

	assert_int_equal(wire_lane_request_encode(&key, 513, 4000, buf), WIRE_LANE_REQUEST);
	assert_true(WIRE_LANE_REQUEST <= 56);
	assert_true(wire_lane_request_decode(&key, 4000, buf, 56, &lane));
	assert_int_equal(lane, 513);
	for (size_t n = 0; n < WIRE_LANE_REQUEST; n++)
		assert_false(wire_lane_request_decode(&key, 4000, buf, n, &lane));
}

static void a_request_proves_its_lane_and_port(void **state)
{
	uint32_t lane;

	wire_lane_request_encode(&key, 1, 4000, buf);
	assert_false(wire_lane_request_decode(&other_key, 4000, buf, WIRE_LANE_REQUEST, &lane));
	assert_false(wire_lane_request_decode(&key, 4001, buf, WIRE_LANE_REQUEST, &lane));
	buf[4] = 2; /* the number of another lane, with the proof of this one */
	assert_false(wire_lane_request_decode(&key, 4000, buf, WIRE_LANE_REQUEST, &lane));
}

static void a_reply_brings_both_descriptors(void **state)
{
	struct wire_lane_reply m = {.mr_len = 21, .pcfg_len = 1}, got;
	size_t len;

	memset(m.mr, 0x11, 21);
	m.pcfg[0] = 1;
	len = wire_lane_reply_encode(&key, 3, 4000, &m, buf);
	assert_int_equal(len, 8 + 1 + 21 + 1 + 1 + WIRE_MAC);
	assert_true(wire_lane_reply_decode(&key, 3, 4000, buf, sizeof(buf), &got));
	assert_memory_equal(&got, &m, sizeof(m));
	for (size_t n = 0; n < len; n++)
		assert_false(wire_lane_reply_decode(&key, 3, 4000, buf, n, &got));
	m.mr_len = m.pcfg_len = WIRE_DESC_MAX;
	assert_true(wire_lane_reply_encode(&key, 3, 4000, &m, buf) <= WIRE_LANE_REPLY);
}

static void a_request_turned_back_is_no_reply(void **state)
{
	struct wire_lane_reply got;

	wire_lane_request_encode(&key, 3, 4000, buf);
	assert_false(wire_lane_reply_decode(&key, 3, 4000, buf, WIRE_LANE_REQUEST, &got));
}

static void a_reply_to_another_lane_is_refused(void **state)
{
	struct wire_lane_reply m = {.status = WIRE_LANE_FAILED}, got;
	size_t len = wire_lane_reply_encode(&key, 3, 4000, &m, buf);

	assert_true(wire_lane_reply_decode(&key, 3, 4000, buf, len, &got));
	assert_int_equal(got.status, WIRE_LANE_FAILED);
	assert_false(wire_lane_reply_decode(&key, 4, 4000, buf, len, &got));
}

static void a_persist_and_its_answer_keep_their_numbers(void **state)
{
	struct wire_persist m = {.id = 77, .offset = 1ull << 40, .length = 4096}, got;
	struct wire_persisted done = {.id = 77, .error = 5}, done_got;

	assert_int_equal(wire_persist_encode(&m, buf), WIRE_PERSIST_REQUEST);
	assert_true(wire_persist_decode(buf, WIRE_PERSIST_REQUEST, &got));
	assert_true(got.id == m.id && got.offset == m.offset && got.length == m.length);
	assert_false(wire_persist_decode(buf, WIRE_PERSIST_REQUEST - 1, &got));
	assert_false(wire_persist_decode(buf, WIRE_PERSIST_REQUEST + 1, &got));
	assert_int_equal(wire_persisted_encode(&done, buf), WIRE_PERSIST_ANSWER);
	assert_true(wire_persisted_decode(buf, WIRE_PERSIST_ANSWER, &done_got));
	assert_memory_equal(&done_got, &done, sizeof(done));
	assert_false(wire_persisted_decode(buf, WIRE_PERSIST_ANSWER - 1, &done_got));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_fits_into_infiniband_and_may_be_padded),
		cmocka_unit_test(a_request_proves_its_lane_and_port),
		cmocka_unit_test(a_reply_brings_both_descriptors),
		cmocka_unit_test(a_request_turned_back_is_no_reply),
		cmocka_unit_test(a_reply_to_another_lane_is_refused),
		cmocka_unit_test(a_persist_and_its_answer_keep_their_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
