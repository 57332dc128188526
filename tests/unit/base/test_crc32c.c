/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/unit.h"

#include <string.h>

#include "base/crc32c.h"

static uint32_t crc_of(const void *buf, size_t len)
{
	return crc32c_final(crc32c_update(CRC32C_INIT, buf, len));
}

/* Vectors of RFC 3720 appendix B.4, whose values are in wire order, low byte first. */
static void the_iscsi_vectors_match(void **state)
{
	uint8_t buf[32] = {0};

	assert_int_equal(crc_of(buf, sizeof(buf)), 0x8a9136aa);
	memset(buf, 0xff, sizeof(buf));
	assert_int_equal(crc_of(buf, sizeof(buf)), 0x62a8ab43);
	for (unsigned i = 0; i < sizeof(buf); i++)
		buf[i] = (uint8_t)i;
	assert_int_equal(crc_of(buf, sizeof(buf)), 0x46dd794e);
	for (unsigned i = 0; i < sizeof(buf); i++)
		buf[i] = (uint8_t)(31 - i);
	assert_int_equal(crc_of(buf, sizeof(buf)), 0x113fdb5c);
	assert_int_equal(crc_of("123456789", 9), 0xe3069283);
}

/* Compute the CRC one bit at a time, with the reflected polynomial. */
static uint32_t crc_by_bits(const uint8_t *p, size_t len)
{
	uint32_t crc = ~0u;

	while (len--) {
		crc ^= *p++;
		for (int bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ 0x82f63b78u : crc >> 1;
	}
	return ~crc;
}

static void any_length_and_alignment_matches_the_definition(void **state)
{
	uint8_t buf[300];
	uint64_t seed = 1;

	for (unsigned i = 0; i < sizeof(buf); i++)
		buf[i] = (uint8_t)test_random(&seed);
	for (unsigned at = 0; at < 9; at++)
		for (unsigned len = 0; at + len <= sizeof(buf); len += 1 + len / 8)
			assert_int_equal(crc_of(buf + at, len), crc_by_bits(buf + at, len));
}

static void pieces_give_what_the_whole_gives(void **state)
{
	const char text[] = "the quick brown fox jumps over the lazy dog";
	uint32_t whole = crc_of(text, sizeof(text));

	for (size_t cut = 0; cut <= sizeof(text); cut++) {
		uint32_t crc = crc32c_update(CRC32C_INIT, text, cut);

		crc = crc32c_update(crc, text + cut, sizeof(text) - cut);
		assert_int_equal(crc32c_final(crc), whole);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_iscsi_vectors_match),
		cmocka_unit_test(any_length_and_alignment_matches_the_definition),
		cmocka_unit_test(pieces_give_what_the_whole_gives),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
