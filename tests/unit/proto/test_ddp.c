/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/unit.h"

#include <errno.h>

#include "softrnic/proto/ddp.h"

static void assert_same(const struct ddp_hdr *a, const struct ddp_hdr *b)
{
	assert_int_equal(a->tagged, b->tagged);
	assert_int_equal(a->last, b->last);
	assert_int_equal(a->version, b->version);
	assert_int_equal(a->ulp, b->ulp);
	assert_int_equal(a->ulp_word, b->ulp_word);
	assert_int_equal(a->stag, b->stag);
	assert_int_equal(a->to, b->to);
	assert_int_equal(a->qn, b->qn);
	assert_int_equal(a->msn, b->msn);
	assert_int_equal(a->mo, b->mo);
}

static void a_tagged_header_is_laid_out_as_the_rfc_says(void **state)
{
	static const struct ddp_hdr hdr = {.tagged = true,
					   .last = true,
					   .version = 1,
					   .ulp = 0x40,
					   .stag = 0x01020304,
					   .to = 0x1112131415161718};
	static const uint8_t wire[] = {0xc1, 0x40, 0x01, 0x02, 0x03, 0x04, 0x11,
				       0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18};
	uint8_t buf[DDP_HDR_MAX];
	struct ddp_hdr back;

	assert_int_equal(ddp_encode(buf, sizeof(buf), &hdr), DDP_TAGGED_HDR);
	assert_memory_equal(buf, wire, DDP_TAGGED_HDR);
	assert_int_equal(ddp_decode(wire, sizeof(wire), &back), DDP_TAGGED_HDR);
	assert_same(&hdr, &back);
}

static void an_untagged_header_is_laid_out_as_the_rfc_says(void **state)
{
	static const struct ddp_hdr hdr = {.version = 1,
					   .ulp = 0x44,
					   .ulp_word = 0xa1a2a3a4,
					   .qn = 2,
					   .msn = 0xffffffff,
					   .mo = 0x01020304};
	static const uint8_t wire[] = {0x01, 0x44, 0xa1, 0xa2, 0xa3, 0xa4, 0,    0,    0,
				       2,    0xff, 0xff, 0xff, 0xff, 0x01, 0x02, 0x03, 0x04};
	uint8_t buf[DDP_HDR_MAX];
	struct ddp_hdr back;

	assert_int_equal(ddp_encode(buf, sizeof(buf), &hdr), DDP_UNTAGGED_HDR);
	assert_memory_equal(buf, wire, DDP_UNTAGGED_HDR);
	assert_int_equal(ddp_decode(wire, sizeof(wire), &back), DDP_UNTAGGED_HDR);
	assert_same(&hdr, &back);
}

static void what_is_encoded_is_decoded(void **state)
{
	uint64_t seed = 3;

	for (int round = 0; round < 5000; round++) {
		uint64_t r = test_random(&seed);
		struct ddp_hdr hdr = {.tagged = r & 1, .last = r & 2, .version = r >> 2 & 3};
		struct ddp_hdr back;
		uint8_t buf[DDP_HDR_MAX];
		int len;

		hdr.ulp = (uint8_t)(r >> 8);
		if (hdr.tagged) {
			hdr.stag = (uint32_t)(r >> 32);
			hdr.to = test_random(&seed);
		} else {
			hdr.ulp_word = (uint32_t)(r >> 32);
			hdr.qn = (uint32_t)test_random(&seed);
			hdr.msn = (uint32_t)test_random(&seed);
			hdr.mo = (uint32_t)test_random(&seed);
		}
		len = ddp_encode(buf, sizeof(buf), &hdr);
		assert_int_equal(len, ddp_hdr_len(hdr.tagged));
		assert_int_equal(ddp_decode(buf, (size_t)len, &back), len);
		assert_same(&hdr, &back);
		assert_int_equal(ddp_decode(buf, (size_t)len - 1, &back), -EBADMSG);
		assert_int_equal(ddp_encode(buf, (size_t)len - 1, &hdr), -ENOSPC);
	}
}

static void reserved_bits_are_not_looked_at(void **state)
{
	static const uint8_t wire[DDP_TAGGED_HDR] = {0xfd, 0x40};
	struct ddp_hdr hdr;

	assert_int_equal(ddp_decode(wire, sizeof(wire), &hdr), DDP_TAGGED_HDR);
	assert_true(hdr.tagged && hdr.last);
	assert_int_equal(hdr.version, 1);
}

/* The example of RFC 5041 s5.1: a message of 2048 bytes, cut for a MULPDU of 1500. */
static void the_rfc_5041_examples_are_cut_as_there(void **state)
{
	assert_int_equal(ddp_payload_max(1500, false), 1482);
	assert_int_equal(2048 - ddp_payload_max(1500, false), 566);
	assert_int_equal(ddp_payload_max(1500, true), 1486);
	assert_int_equal(2048 - ddp_payload_max(1500, true), 562);
}

static void messages_are_cut_at_aligned_target_offsets_only(void **state)
{
	uint64_t seed = 11;

	assert_int_equal(ddp_segment(1486, 0, 2048), 1480);
	assert_int_equal(ddp_segment(1486, 3, 2048), 1485);
	assert_int_equal(ddp_segment(1486, 0, 1486), 1486);
	assert_int_equal(ddp_segment(8, 7, 100), 1);
	for (int round = 0; round < 2000; round++) {
		uint32_t max = 8 + (uint32_t)(test_random(&seed) % 3000);
		uint64_t at = test_random(&seed);
		uint32_t left = (uint32_t)(test_random(&seed) % 20000);

		for (;;) {
			uint32_t len = ddp_segment(max, at, left);

			assert_true(len <= max && len <= left);
			assert_true(len + 8 > max || len == left);
			at += len;
			left -= len;
			if (!left)
				break;
			assert_true(len > 0);
			assert_int_equal(at % 8, 0);
		}
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tagged_header_is_laid_out_as_the_rfc_says),
		cmocka_unit_test(an_untagged_header_is_laid_out_as_the_rfc_says),
		cmocka_unit_test(what_is_encoded_is_decoded),
		cmocka_unit_test(reserved_bits_are_not_looked_at),
		cmocka_unit_test(the_rfc_5041_examples_are_cut_as_there),
		cmocka_unit_test(messages_are_cut_at_aligned_target_offsets_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
