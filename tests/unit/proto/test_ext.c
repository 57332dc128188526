/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/unit.h"

#include <errno.h>
#include <string.h>

#include "softrnic/proto/ext.h"

static void the_table_says_what_each_kind_is(void **state)
{
	static const struct {
		uint8_t kind;
		bool control;
		unsigned request, response, result;
	} rows[] = {
		{EXT_HELLO, true, 4, 0, 0},          {EXT_HEARTBEAT, true, 16, 16, 0},
		{EXT_FLUSH, false, 24, 8, 0},        {EXT_FLUSH_ALL, false, 4, 8, 0},
		{EXT_VERIFY, false, 24, 8, 48},      {EXT_QUERY, false, 24, 8, 0},
		{EXT_ATOMIC_WRITE, false, 24, 8, 0}, {EXT_LINK, true, 20, 0, 0},
		{EXT_ORIGIN, true, 48, 8, 0},        {EXT_LEAVE, true, 4, 0, 0},
		{EXT_ACK, true, 12, 0, 0},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct ext_row *row = ext_row(rows[i].kind);

		assert_int_equal(rows[i].kind, i + 1); /* the numbers are those on the wire */
		assert_non_null(row);
		assert_non_null(row->name);
		assert_int_equal(row->control, rows[i].control);
		assert_int_equal(row->request, rows[i].request);
		assert_int_equal(row->response, rows[i].response);
		assert_int_equal(row->result, rows[i].result);
		assert_true(row->request <= EXT_MAX && row->response + row->result <= EXT_MAX);
	}
	assert_null(ext_row(0));
	assert_int_equal(ARRAY_LEN(rows), EXT_KINDS - 1);
	assert_null(ext_row(EXT_KINDS));
	assert_null(ext_row(255));
}

static void the_word_has_a_kind_and_24_bits(void **state)
{
	static const uint8_t wire[] = {0x9a, 0x01, 0x02, 0x03};
	struct ext_word word = ext_word_of(wire);
	uint8_t buf[EXT_WORD_LEN];

	assert_int_equal(word.kind, 0x9a);
	assert_int_equal(word.arg, 0x010203);
	assert_int_equal(ext_word_encode(buf, sizeof(buf), &word), sizeof(wire));
	assert_memory_equal(buf, wire, sizeof(wire));
	/* a number that does not fit its field must not become another kind */
	word.arg = 0xff010203;
	assert_int_equal(ext_word_encode(buf, sizeof(buf), &word), sizeof(wire));
	assert_memory_equal(buf, wire, sizeof(wire));
}

static void a_range_is_laid_out_as_documented(void **state)
{
	static const struct ext_range req = {
		.word = {EXT_FLUSH, EXT_FLUSH_PERSIST | EXT_FLUSH_STRICT},
		.stag = 0x01020304,
		.to = 0x1112131415161718,
		.len = 0x2122232425262728};
	static const uint8_t wire[] = {3,    0,    0,    5,    1,    2,    3,    4,
				       0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,
				       0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28};
	static const struct ext_answer answer = {{EXT_FLUSH, EXT_FAILED}, ENOSPC};
	static const uint8_t failed[] = {3, 0, 0, 1, 0, 0, 0, 28};
	uint8_t buf[EXT_RANGE_LEN];

	assert_int_equal(ext_range_encode(buf, sizeof(buf), &req), sizeof(wire));
	assert_memory_equal(buf, wire, sizeof(wire));
	assert_int_equal(ext_answer_encode(buf, sizeof(buf), &answer), sizeof(failed));
	assert_memory_equal(buf, failed, sizeof(failed));
}

static void a_digest_is_laid_out_as_documented(void **state)
{
	static const struct vext_digest digest = {
		.source = 2,
		.durability = VEXT_DURABILITY_FILE,
		.alg = VEXT_DIGEST_CRC32C,
		.len = 0x01020304,
		.bytes = {0xaa, 0xbb, [31] = 0xcc},
	};
	static const uint8_t wire[EXT_DIGEST_LEN] = {0, 0, 0, 2, 0, 0, 0,    2,    0,          0,
						     0, 1, 1, 2, 3, 4, 0xaa, 0xbb, [47] = 0xcc};
	uint8_t buf[EXT_DIGEST_LEN];

	assert_int_equal(ext_digest_encode(buf, sizeof(buf), &digest), sizeof(wire));
	assert_memory_equal(buf, wire, sizeof(wire));
}

static void flags_of_a_flush_have_a_meaning_or_are_refused(void **state)
{
	for (uint32_t flags = 0; flags < 0x2000; flags++) {
		bool good = flags == 1 || flags == 2 || flags == 3 || flags == 5 || flags == 7;

		if (ext_flush_is_valid(flags) != good)
			fail_msg("flags %#x", flags);
	}
	assert_false(ext_flush_is_valid(1 | 0x800000));
}

static void a_verify_asks_for_one_thing(void **state)
{
	static const struct {
		bool good;
		uint32_t arg;
		uint64_t len;
	} cases[] = {
		{true, 0x101, 8},  {true, 0x205, UINT32_MAX},  {true, 0x207, 1},
		{true, 0x103, 1},  {false, 0x201, 1ull << 32}, {false, 0x201, 0},
		{false, 0x202, 8}, {false, 0x206, 8},          {false, 0x001, 8},
		{false, 0x301, 8}, {false, 0x209, 8},          {false, 0x10201, 8},
		{false, 0x200, 8}, {false, 0x100, 8},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct ext_range req = {.word = {EXT_VERIFY, cases[i].arg}, .len = cases[i].len};

		if (ext_verify_is_valid(&req) != cases[i].good)
			fail_msg("flags %#x, length %#llx", cases[i].arg,
				 (unsigned long long)cases[i].len);
	}
}

static void a_query_has_a_range_and_no_flags(void **state)
{
	struct ext_range req = {.word = {.kind = EXT_QUERY}, .len = 1};

	assert_true(ext_query_is_valid(&req));
	req.word.arg = 1;
	assert_false(ext_query_is_valid(&req));
	req.word.arg = 0;
	req.len = 0;
	assert_false(ext_query_is_valid(&req));
}

static uint8_t noise[64];

/* Random bytes that are decoded and encoded must stay the same: no field is lost or moved. */
#define ROUND_TRIP(name, type, length)                                                             \
	do {                                                                                       \
		struct type msg;                                                                   \
		uint8_t buf[sizeof(noise)];                                                        \
                                                                                                   \
		assert_int_equal(ext_##name##_decode(noise, sizeof(noise), &msg), (length));       \
		assert_int_equal(ext_##name##_encode(buf, sizeof(buf), &msg), (length));           \
		assert_memory_equal(buf, noise, (length));                                         \
		assert_int_equal(ext_##name##_encode(buf, (length)-1, &msg), -ENOSPC);             \
		assert_int_equal(ext_##name##_decode(noise, (length)-1, &msg), -EBADMSG);          \
	} while (0)

static void every_header_survives_a_round_trip(void **state)
{
	uint64_t seed = 6;

	for (int round = 0; round < 200; round++) {
		for (size_t i = 0; i < sizeof(noise); i++)
			noise[i] = (uint8_t)test_random(&seed);
		ROUND_TRIP(word, ext_word, EXT_WORD_LEN);
		ROUND_TRIP(range, ext_range, EXT_RANGE_LEN);
		ROUND_TRIP(atomic_write, ext_atomic_write, EXT_ATOMIC_WRITE_LEN);
		ROUND_TRIP(answer, ext_answer, EXT_ANSWER_LEN);
		ROUND_TRIP(digest, vext_digest, EXT_DIGEST_LEN);
		ROUND_TRIP(heartbeat, ext_heartbeat, EXT_HEARTBEAT_LEN);
		ROUND_TRIP(ack, ext_ack, EXT_ACK_LEN);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_table_says_what_each_kind_is),
		cmocka_unit_test(the_word_has_a_kind_and_24_bits),
		cmocka_unit_test(a_range_is_laid_out_as_documented),
		cmocka_unit_test(a_digest_is_laid_out_as_documented),
		cmocka_unit_test(flags_of_a_flush_have_a_meaning_or_are_refused),
		cmocka_unit_test(a_verify_asks_for_one_thing),
		cmocka_unit_test(a_query_has_a_range_and_no_flags),
		cmocka_unit_test(every_header_survives_a_round_trip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
