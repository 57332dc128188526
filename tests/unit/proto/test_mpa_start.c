/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/unit.h"

#include <errno.h>
#include <string.h>

#include "softrnic/proto/mpa.h"

static const uint8_t *no_pdata;

static void assert_same(const struct mpa_start *a, const struct mpa_start *b)
{
	assert_int_equal(a->reply, b->reply);
	assert_int_equal(a->markers, b->markers);
	assert_int_equal(a->crc, b->crc);
	assert_int_equal(a->reject, b->reject);
	assert_int_equal(a->enhanced, b->enhanced);
	assert_int_equal(a->revision, b->revision);
	assert_int_equal(a->pd_len, b->pd_len);
	assert_int_equal(a->p2p, b->p2p);
	assert_int_equal(a->rtr_send, b->rtr_send);
	assert_int_equal(a->rtr_write, b->rtr_write);
	assert_int_equal(a->rtr_read, b->rtr_read);
	assert_int_equal(a->ird, b->ird);
	assert_int_equal(a->ord, b->ord);
}

static void a_revision_2_request_is_laid_out_as_the_rfcs_say(void **state)
{
	static const struct mpa_start start = {
		.crc = true,
		.enhanced = true,
		.revision = 2,
		.pd_len = 3,
		.p2p = true,
		.rtr_read = true,
		.ird = 0x123,
		.ord = 0x3fff,
	};
	static const uint8_t wire[] = "MPA ID Req Frame"
				      "\x50\x02\x00\x07"
				      "\x81\x23\x7f\xff"
				      "abc";
	uint8_t buf[MPA_START_MAX];

	assert_int_equal(mpa_start_encode(buf, sizeof(buf), &start, "abc"), sizeof(wire) - 1);
	assert_memory_equal(buf, wire, sizeof(wire) - 1);
}

static void a_revision_1_reply_has_no_enhanced_block(void **state)
{
	static const struct mpa_start start = {
		.reply = true, .markers = true, .reject = true, .revision = 1, .pd_len = 2};
	static const uint8_t wire[] = "MPA ID Rep Frame"
				      "\xa0\x01\x00\x02"
				      "no";
	const uint8_t *pdata;
	struct mpa_start back;
	uint8_t buf[MPA_START_MAX];

	assert_int_equal(mpa_start_encode(buf, sizeof(buf), &start, "no"), sizeof(wire) - 1);
	assert_memory_equal(buf, wire, sizeof(wire) - 1);
	assert_int_equal(mpa_start_decode(buf, sizeof(wire) - 1, &back, &pdata), sizeof(wire) - 1);
	assert_same(&start, &back);
	assert_memory_equal(pdata, "no", 2);
}

static void what_is_encoded_is_decoded(void **state)
{
	uint8_t pdata[MPA_PD_MAX], buf[MPA_START_MAX];
	uint64_t seed = 42;

	for (unsigned i = 0; i < sizeof(pdata); i++)
		pdata[i] = (uint8_t)test_random(&seed);
	for (int round = 0; round < 5000; round++) {
		uint64_t r = test_random(&seed);
		struct mpa_start s = {.reply = r & 1, .markers = r & 2, .crc = r & 4}, back;
		const uint8_t *found;
		int len;

		s.reject = s.reply && r & 8;
		s.enhanced = r & 16;
		s.revision = s.enhanced ? 2 : 1;
		s.pd_len = (uint16_t)((r >> 16) % (MPA_PD_MAX - MPA_ENHANCED_LEN + 1));
		if (s.enhanced) {
			s.p2p = r & 32;
			s.rtr_send = r & 64;
			s.rtr_write = r & 128;
			s.rtr_read = r & 256;
			s.ird = r >> 32 & 0x3fff;
			s.ord = r >> 48 & 0x3fff;
		}
		len = mpa_start_encode(buf, sizeof(buf), &s, pdata);
		assert_int_equal(len, MPA_START_HDR + (s.enhanced ? 4 : 0) + s.pd_len);
		assert_int_equal(mpa_start_decode_header(buf), len);
		assert_int_equal(mpa_start_decode(buf, sizeof(buf), &back, &found), len);
		assert_same(&s, &back);
		assert_memory_equal(found, pdata, s.pd_len);
	}
}

static void every_cut_of_a_frame_asks_for_more(void **state)
{
	static const struct mpa_start start = {.enhanced = true, .revision = 2, .pd_len = 30};
	struct mpa_start back;
	const uint8_t *pdata;
	uint8_t buf[MPA_START_MAX], zeros[30] = {0};
	int len = mpa_start_encode(buf, sizeof(buf), &start, zeros);

	for (int cut = 0; cut < len; cut++)
		assert_int_equal(mpa_start_decode(buf, (size_t)cut, &back, &pdata), -EAGAIN);
	assert_int_equal(mpa_start_decode(buf, (size_t)len, &back, &pdata), len);
}

static void each_malformed_frame_has_its_error(void **state)
{
	uint8_t buf[MPA_START_MAX] = "MPA ID Req Frame";
	struct mpa_start back;
	const uint8_t *pdata;

	buf[17] = 2;
	buf[18] = 2; /* 512 bytes of private data */
	assert_int_equal(mpa_start_decode_header(buf), MPA_START_MAX);
	buf[19] = 1; /* 513 bytes of private data */
	assert_int_equal(mpa_start_decode_header(buf), -EMSGSIZE);
	assert_int_equal(mpa_start_decode(buf, sizeof(buf), &back, &pdata), -EMSGSIZE);
	buf[16] = 0x10; /* the flag S announces a block of 4 bytes, but there are only 3 */
	buf[18] = 0;
	buf[19] = 3;
	assert_int_equal(mpa_start_decode_header(buf), -EPROTO);
	buf[19] = 4;
	assert_int_equal(mpa_start_decode_header(buf), 24);
	buf[9] = 'x';
	assert_int_equal(mpa_start_decode_header(buf), -EBADMSG);
}

static void bits_without_meaning_are_not_looked_at(void **state)
{
	uint8_t buf[MPA_START_HDR + 1] = "MPA ID Req Frame";
	struct mpa_start back;
	const uint8_t *pdata;

	/* The flag R in a request, the flag S in revision 1, and the reserved bits. */
	buf[16] = 0x3f;
	buf[17] = 1;
	buf[19] = 1;
	buf[20] = 'p';
	assert_int_equal(mpa_start_decode(buf, sizeof(buf), &back, &pdata), 21);
	assert_same(&back, &(struct mpa_start){.revision = 1, .pd_len = 1});
	assert_int_equal(*pdata, 'p');
}

static void values_that_do_not_fit_are_refused(void **state)
{
	uint8_t buf[MPA_START_MAX], pd[MPA_PD_MAX + 1] = {0};
	struct mpa_start s = {.revision = 1, .pd_len = MPA_PD_MAX};

	assert_int_equal(mpa_start_encode(buf, sizeof(buf), &s, pd), MPA_START_MAX);
	assert_int_equal(mpa_start_encode(buf, sizeof(buf) - 1, &s, pd), -ENOSPC);
	s.pd_len++;
	assert_int_equal(mpa_start_encode(buf, sizeof(buf), &s, pd), -EINVAL);
	s = (struct mpa_start){.revision = 2, .enhanced = true, .pd_len = MPA_PD_MAX - 3};
	assert_int_equal(mpa_start_encode(buf, sizeof(buf), &s, pd), -EINVAL);
	s = (struct mpa_start){.revision = 1, .enhanced = true};
	assert_int_equal(mpa_start_encode(buf, sizeof(buf), &s, no_pdata), -EINVAL);
	s = (struct mpa_start){.revision = 2, .enhanced = true, .ird = 0x4000};
	assert_int_equal(mpa_start_encode(buf, sizeof(buf), &s, no_pdata), -EINVAL);
	s = (struct mpa_start){.revision = 2, .enhanced = true, .ord = 0x4000};
	assert_int_equal(mpa_start_encode(buf, sizeof(buf), &s, no_pdata), -EINVAL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_revision_2_request_is_laid_out_as_the_rfcs_say),
		cmocka_unit_test(a_revision_1_reply_has_no_enhanced_block),
		cmocka_unit_test(what_is_encoded_is_decoded),
		cmocka_unit_test(every_cut_of_a_frame_asks_for_more),
		cmocka_unit_test(each_malformed_frame_has_its_error),
		cmocka_unit_test(bits_without_meaning_are_not_looked_at),
		cmocka_unit_test(values_that_do_not_fit_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
