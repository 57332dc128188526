/* SPDX-License-Identifier: BSD-3-Clause */
/* test_digest.c -- digests of local memory, their comparison, and the names of durability
 * classes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>
#include <librpma.h>

/* The values are from RFC 3720 B.4 for CRC32C, and of "abc" by the algorithm of RFC 7693 with 32
 * bytes. */
static void the_known_values_come_out(void **state)
{
	static const uint8_t crc[4] = {0xe3, 0x06, 0x92, 0x83};
	static const uint8_t blake[32] = {0xbd, 0xdd, 0x81, 0x3c, 0x63, 0x42, 0x39, 0x72,
					  0x31, 0x71, 0xef, 0x3f, 0xee, 0x98, 0x57, 0x9b,
					  0x94, 0x96, 0x4e, 0x3b, 0xb1, 0xcb, 0x3e, 0x42,
					  0x72, 0x62, 0xc8, 0xc0, 0x68, 0xd5, 0x23, 0x19};
	static const uint8_t zeros[28];
	struct rpma_digest d;

	assert_int_equal(rpma_digest_compute(RPMA_DIGEST_CRC32C, "123456789", 9, &d), 0);
	assert_int_equal(d.alg, RPMA_DIGEST_CRC32C);
	assert_int_equal(d.len, 9);
	assert_memory_equal(d.bytes, crc, 4);
	assert_memory_equal(d.bytes + 4, zeros, sizeof(zeros));
	assert_int_equal(d.source, RPMA_DIGEST_FROM_MEMORY);
	assert_int_equal(d.durability, RPMA_DURABILITY_UNKNOWN);
	assert_int_equal(rpma_digest_compute(RPMA_DIGEST_BLAKE2B, "abc", 3, &d), 0);
	assert_int_equal(d.alg, RPMA_DIGEST_BLAKE2B);
	assert_int_equal(d.len, 3);
	assert_memory_equal(d.bytes, blake, 32);
}

static void auto_takes_the_short_one_for_short_ranges(void **state)
{
	static char buf[RPMA_DIGEST_SMALL + 1];
	struct rpma_digest d;

	assert_int_equal(rpma_digest_compute(RPMA_DIGEST_AUTO, NULL, 0, &d), 0);
	assert_int_equal(d.alg, RPMA_DIGEST_CRC32C);
	assert_int_equal(rpma_digest_compute(RPMA_DIGEST_AUTO, buf, RPMA_DIGEST_SMALL, &d), 0);
	assert_int_equal(d.alg, RPMA_DIGEST_CRC32C);
	assert_int_equal(rpma_digest_compute(RPMA_DIGEST_AUTO, buf, RPMA_DIGEST_SMALL + 1, &d), 0);
	assert_int_equal(d.alg, RPMA_DIGEST_BLAKE2B);
}

static void equal_digests_have_the_same_algorithm_and_bytes(void **state)
{
	struct rpma_digest a, b;

	assert_int_equal(rpma_digest_compute(RPMA_DIGEST_CRC32C, "one", 3, &a), 0);
	b = a;
	b.source = RPMA_DIGEST_FROM_MEDIUM;
	b.durability = RPMA_DURABILITY_FILE;
	assert_true(rpma_digest_equal(&a, &b));
	b.bytes[3] ^= 1;
	assert_false(rpma_digest_equal(&a, &b));
	b = a;
	b.alg = RPMA_DIGEST_BLAKE2B;
	assert_false(rpma_digest_equal(&a, &b));
	b = a;
	b.len = 4;
	assert_false(rpma_digest_equal(&a, &b));
	assert_false(rpma_digest_equal(NULL, &b));
	assert_false(rpma_digest_equal(&a, NULL));
	assert_false(rpma_digest_equal(NULL, NULL));
}

static void each_class_has_its_name(void **state)
{
	assert_string_equal(rpma_utils_durability_2str(RPMA_DURABILITY_VOLATILE), "volatile");
	assert_string_equal(rpma_utils_durability_2str(RPMA_DURABILITY_FILE), "file");
	assert_string_equal(rpma_utils_durability_2str(RPMA_DURABILITY_DAX), "dax");
	assert_string_equal(rpma_utils_durability_2str(RPMA_DURABILITY_UNKNOWN), "unknown");
	assert_string_equal(rpma_utils_durability_2str((enum rpma_durability)77), "unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_known_values_come_out),
		cmocka_unit_test(auto_takes_the_short_one_for_short_ranges),
		cmocka_unit_test(equal_digests_have_the_same_algorithm_and_bytes),
		cmocka_unit_test(each_class_has_its_name),
	};

	return cmocka_run_group_tests_name("digests", tests, NULL, NULL);
}
