/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/unit.h"

#include <string.h>

#include "base/digest.h"
#include "verbs_ext/values.h"

static void digest_of(bool strong, const void *buf, size_t len, uint8_t bytes[DIGEST_BYTES])
{
	struct digest d;

	digest_init(&d, strong);
	digest_update(&d, buf, len);
	digest_final(&d, bytes);
}

static void crc32c_is_four_bytes_the_highest_first(void **state)
{
	static const uint8_t want[DIGEST_BYTES] = {0xe3, 0x06, 0x92, 0x83};
	uint8_t bytes[DIGEST_BYTES];

	memset(bytes, 0xff, sizeof(bytes));
	digest_of(false, "123456789", 9, bytes);
	assert_memory_equal(bytes, want, sizeof(want));
}

/* The digest that `printf abc | b2sum -l 256` prints. */
static void blake2b_has_256_bits_and_no_key(void **state)
{
	static const uint8_t abc[DIGEST_BYTES] = {
		0xbd, 0xdd, 0x81, 0x3c, 0x63, 0x42, 0x39, 0x72, 0x31, 0x71, 0xef,
		0x3f, 0xee, 0x98, 0x57, 0x9b, 0x94, 0x96, 0x4e, 0x3b, 0xb1, 0xcb,
		0x3e, 0x42, 0x72, 0x62, 0xc8, 0xc0, 0x68, 0xd5, 0x23, 0x19,
	};
	uint8_t bytes[DIGEST_BYTES];

	digest_of(true, "abc", 3, bytes);
	assert_memory_equal(bytes, abc, sizeof(abc));
}

static void pieces_give_what_the_whole_gives(void **state)
{
	uint8_t buf[1000], whole[DIGEST_BYTES], pieces[DIGEST_BYTES];
	uint64_t seed = 1;

	for (size_t i = 0; i < sizeof(buf); i++)
		buf[i] = (uint8_t)test_random(&seed);
	for (int strong = 0; strong <= 1; strong++)
		for (size_t cut = 0; cut <= sizeof(buf); cut += 1 + cut / 4) {
			struct digest d;

			digest_of(strong, buf, sizeof(buf), whole);
			digest_init(&d, strong);
			digest_update(&d, buf, cut);
			digest_update(&d, buf + cut, sizeof(buf) - cut);
			digest_final(&d, pieces);
			assert_memory_equal(pieces, whole, sizeof(whole));
		}
}

static void the_length_picks_the_algorithm_where_none_is_named(void **state)
{
	assert_int_equal(vext_digest_pick(VEXT_DIGEST_AUTO, 0), VEXT_DIGEST_CRC32C);
	assert_int_equal(vext_digest_pick(VEXT_DIGEST_AUTO, 4096), VEXT_DIGEST_CRC32C);
	assert_int_equal(vext_digest_pick(VEXT_DIGEST_AUTO, 4097), VEXT_DIGEST_BLAKE2B);
	assert_int_equal(vext_digest_pick(VEXT_DIGEST_CRC32C, 4097), VEXT_DIGEST_CRC32C);
	assert_int_equal(vext_digest_pick(VEXT_DIGEST_BLAKE2B, 1), VEXT_DIGEST_BLAKE2B);
	assert_int_equal(vext_digest_pick(7, 1), 7);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(crc32c_is_four_bytes_the_highest_first),
		cmocka_unit_test(blake2b_has_256_bits_and_no_key),
		cmocka_unit_test(pieces_give_what_the_whole_gives),
		cmocka_unit_test(the_length_picks_the_algorithm_where_none_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
