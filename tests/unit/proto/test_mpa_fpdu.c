/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/unit.h"

#include <string.h>

#include "softrnic/proto/ddp.h"
#include "softrnic/proto/mpa.h"
#include "softrnic/proto/rdmap.h"

static void an_fpdu_is_padded_to_a_multiple_of_four(void **state)
{
	for (size_t len = 0; len <= 65535; len++) {
		size_t fpdu = mpa_fpdu_len(len);

		assert_int_equal(fpdu % 4, 0);
		assert_int_equal(fpdu, 2 + len + mpa_pad(len) + 4);
		assert_true(mpa_pad(len) < 4);
	}
}

static void the_usual_messages_have_the_known_sizes(void **state)
{
	assert_int_equal(mpa_fpdu_len(DDP_TAGGED_HDR), 20);
	assert_int_equal(mpa_fpdu_len(DDP_UNTAGGED_HDR), 24);
	assert_int_equal(mpa_fpdu_len(DDP_UNTAGGED_HDR + RDMAP_READ_REQ_LEN), 52);
	assert_int_equal(mpa_fpdu_len(DDP_UNTAGGED_HDR + RDMAP_ATOMIC_REQ_LEN), 76);
	assert_int_equal(mpa_fpdu_len(DDP_UNTAGGED_HDR + RDMAP_ATOMIC_RESP_LEN), 36);
	assert_int_equal(mpa_fpdu_len(DDP_TAGGED_HDR + 8), 28);
	assert_int_equal(mpa_fpdu_len(DDP_UNTAGGED_HDR + 4), 28);
}

/* The example of RFC 5044 appendix A.3, without the markers of its figure. */
static void the_rfc_5044_example_has_its_crc(void **state)
{
	uint8_t fpdu[48] = {0x00, 0x2a, 0x41, 0x43, [15] = 1, [44] = 0xb7, 0x24, 0x3e, 0xc3};
	struct iovec parts[] = {{fpdu, 2}, {fpdu + 2, 0}, {fpdu + 2, 17}, {fpdu + 19, 29}};
	uint8_t crc[MPA_CRC_LEN];

	assert_int_equal(mpa_fpdu_len(0x2a), sizeof(fpdu));
	assert_true(mpa_fpdu_is_intact(fpdu, sizeof(fpdu)));
	mpa_crc_encode(crc, mpa_crc(parts, 4, 44));
	assert_memory_equal(crc, fpdu + 44, MPA_CRC_LEN);
	assert_int_equal(mpa_crc_decode(crc), 0xc33e24b7);
	for (unsigned bit = 0; bit < 8 * sizeof(fpdu); bit++) {
		fpdu[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_false(mpa_fpdu_is_intact(fpdu, sizeof(fpdu)));
		fpdu[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}

static void an_fpdu_of_mulpdu_fits_the_segment(void **state)
{
	assert_int_equal(mpa_mulpdu(1460, false), 1454);
	assert_int_equal(mpa_mulpdu(1448, false), 1442);
	assert_int_equal(mpa_mulpdu(1447, false), 1438);
	assert_int_equal(mpa_mulpdu(1460, true), 1454 - 12);
	assert_int_equal(mpa_mulpdu(9000, true), 8994 - 72);
	for (uint32_t emss = 400; emss < 64000; emss++) {
		uint32_t markers = 4 * ((emss + 511) / 512);

		assert_true(mpa_fpdu_len(mpa_mulpdu(emss, false)) <= emss);
		assert_true(mpa_fpdu_len(mpa_mulpdu(emss, false)) + 4 > emss);
		assert_true(mpa_fpdu_len(mpa_mulpdu(emss, true)) + markers <= emss);
	}
}

static void mulpdu_has_a_floor_and_a_ceiling(void **state)
{
	assert_int_equal(mpa_mulpdu(0, false), MPA_MULPDU_MIN);
	assert_int_equal(mpa_mulpdu(3, true), MPA_MULPDU_MIN);
	assert_int_equal(mpa_mulpdu(133, false), MPA_MULPDU_MIN);
	assert_int_equal(mpa_mulpdu(65535, false), MPA_ULPDU_MAX);
	assert_int_equal(mpa_mulpdu(UINT32_MAX, true), MPA_ULPDU_MAX);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_fpdu_is_padded_to_a_multiple_of_four),
		cmocka_unit_test(the_usual_messages_have_the_known_sizes),
		cmocka_unit_test(the_rfc_5044_example_has_its_crc),
		cmocka_unit_test(an_fpdu_of_mulpdu_fits_the_segment),
		cmocka_unit_test(mulpdu_has_a_floor_and_a_ceiling),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
