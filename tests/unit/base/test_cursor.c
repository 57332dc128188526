/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/unit.h"

#include "base/cursor.h"

static void fields_come_back_as_written_and_in_network_order(void **state)
{
	static const uint8_t wire[] = {0xab, 0x12, 0x34, 0xde, 0xad, 0xbe, 0xef, 0x01,
				       0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 'x'};
	uint8_t buf[sizeof(wire)];
	struct wcursor w = wcursor_init(buf, sizeof(buf));
	struct rcursor r = rcursor_init(buf, sizeof(buf));

	wcursor_u8(&w, 0xab);
	wcursor_be16(&w, 0x1234);
	wcursor_be32(&w, 0xdeadbeef);
	wcursor_be64(&w, 0x0123456789abcdef);
	wcursor_bytes(&w, "x", 1);
	assert_false(w.bad);
	assert_int_equal(wcursor_len(&w), sizeof(wire));
	assert_memory_equal(buf, wire, sizeof(wire));

	assert_int_equal(rcursor_u8(&r), 0xab);
	assert_int_equal(rcursor_be16(&r), 0x1234);
	assert_int_equal(rcursor_be32(&r), 0xdeadbeef);
	assert_int_equal(rcursor_be64(&r), 0x0123456789abcdef);
	assert_memory_equal(rcursor_bytes(&r, 1), "x", 1);
	assert_int_equal(rcursor_left(&r), 0);
	assert_false(r.bad);
}

static void a_read_past_the_end_gives_zero_and_stays_bad(void **state)
{
	static const uint8_t ones[] = {0xff, 0xff, 0xff};
	struct rcursor r = rcursor_init(ones, sizeof(ones));

	assert_null(rcursor_bytes(&r, 4));
	assert_true(r.bad);
	assert_int_equal(rcursor_u8(&r), 0);
	assert_int_equal(rcursor_be64(&r), 0);
	assert_int_equal(rcursor_left(&r), 0);
	assert_true(r.bad);
}

static void a_write_past_the_end_is_dropped(void **state)
{
	uint8_t buf[4] = {1, 2, 3, 4};
	struct wcursor w = wcursor_init(buf, 3);

	wcursor_be32(&w, 0xffffffff);
	assert_true(w.bad);
	assert_int_equal(wcursor_len(&w), 0);
	assert_int_equal(buf[0], 1);
	assert_int_equal(buf[3], 4);
	wcursor_be16(&w, 0xaabb);
	assert_int_equal(wcursor_len(&w), 2);
	assert_true(w.bad);
}

static void nothing_can_be_read_from_nothing(void **state)
{
	uint8_t byte = 0xff;
	struct rcursor r = rcursor_init(&byte, 0);
	struct wcursor w = wcursor_init(&byte, 0);

	assert_int_equal(rcursor_left(&r), 0);
	assert_int_equal(rcursor_be32(&r), 0);
	assert_true(r.bad);
	wcursor_bytes(&w, NULL, 0);
	assert_false(w.bad);
	wcursor_u8(&w, 1);
	assert_true(w.bad);
	assert_int_equal(byte, 0xff);
}

static void little_endian_fields_come_back(void **state)
{
	static const uint8_t want[] = {0x44, 0x33, 0x22, 0x11, 0x07, 0x88, 0x77,
				       0x66, 0x55, 0x44, 0x33, 0x22, 0x11};
	uint8_t buf[sizeof(want)];
	struct wcursor w = wcursor_init(buf, sizeof(buf));
	struct rcursor r = rcursor_init(buf, sizeof(buf));

	wcursor_le(&w, 0x11223344, 4);
	wcursor_le(&w, 7, 1);
	wcursor_le(&w, 0x1122334455667788, 8);
	assert_false(w.bad);
	assert_memory_equal(buf, want, sizeof(want));
	assert_int_equal(rcursor_le(&r, 4), 0x11223344);
	assert_int_equal(rcursor_le(&r, 1), 7);
	assert_int_equal(rcursor_le(&r, 8), 0x1122334455667788);
	assert_false(r.bad);
	assert_int_equal(rcursor_le(&r, 2), 0);
	assert_true(r.bad);
	wcursor_le(&w, 1, 1);
	assert_true(w.bad);
}

static void a_boolean_is_0_or_1(void **state)
{
	static const uint8_t bytes[] = {0, 1, 0, 0, 0, 2, 0, 1};
	struct rcursor r = rcursor_init(bytes, 5), two = rcursor_init(bytes + 5, 1);
	struct rcursor high = rcursor_init(bytes + 6, 2);

	assert_false(rcursor_bool(&r, 1));
	assert_true(rcursor_bool(&r, 4));
	assert_false(r.bad);
	rcursor_bool(&two, 1);
	assert_true(two.bad);
	rcursor_bool(&high, 2);
	assert_true(high.bad);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(little_endian_fields_come_back),
		cmocka_unit_test(a_boolean_is_0_or_1),
		cmocka_unit_test(fields_come_back_as_written_and_in_network_order),
		cmocka_unit_test(a_read_past_the_end_gives_zero_and_stays_bad),
		cmocka_unit_test(a_write_past_the_end_is_dropped),
		cmocka_unit_test(nothing_can_be_read_from_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
