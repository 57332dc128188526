/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/unit.h"

#include <errno.h>
#include <string.h>

#include "softrnic/proto/meet.h"

/* The example of doc/wire.md, section 15. */
static const uint8_t golden[MEET_LEN] = {
	's',  'R',  'Q',  'P',  0x01, 0x00, 0x00, 0x00, 0x00, 0x9c, 0x41, 0x07, 0x00,
	0xc3, 0x50, 0xff, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0xff, 0xff, 0xc0, 0x00, 0x02, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0xff, 0xff, 0xc0, 0x00, 0x02, 0x02, 0x00, 0x12, 0x34, 0x56,
	0xff, 0xff, 0xff, 0xff, 0x03, 0x10, 0xff, 0x00, 0x00, 0x00, 0x00, 0x00,
};

static const struct meet_data request = {
	.from = {.qpn = 0x9c4107, .gid = {[10] = 0xff, 0xff, 192, 0, 2, 1}},
	.to = {.qpn = 0xc350ff, .gid = {[10] = 0xff, 0xff, 192, 0, 2, 2}},
	.rq_psn = 0x123456,
	.sq_psn = MEET_NO_PSN,
	.path_mtu = 3,
	.max_dest_rd_atomic = 16,
	.max_rd_atomic = MEET_NO_RD,
};

static void assert_meets(const struct meet_data *a, const struct meet_data *b)
{
	assert_int_equal(a->uc, b->uc);
	assert_true(meet_end_equals(&a->from, &b->from) && meet_end_equals(&a->to, &b->to));
	assert_int_equal(a->rq_psn, b->rq_psn);
	assert_int_equal(a->sq_psn, b->sq_psn);
	assert_int_equal(a->path_mtu, b->path_mtu);
	assert_int_equal(a->max_dest_rd_atomic, b->max_dest_rd_atomic);
	assert_int_equal(a->max_rd_atomic, b->max_rd_atomic);
	assert_int_equal(a->reason, b->reason);
}

static void a_request_is_laid_out_as_documented(void **state)
{
	uint8_t buf[MEET_LEN];
	struct meet_data got;
	const char *why;

	assert_int_equal(meet_data_encode(buf, sizeof(buf), &request), MEET_LEN);
	assert_memory_equal(buf, golden, MEET_LEN);
	assert_int_equal(meet_data_encode(buf, MEET_LEN - 1, &request), -ENOSPC);
	assert_int_equal(meet_data_decode(golden, MEET_LEN, &got, &why), 0);
	assert_meets(&got, &request);
}

static void a_reject_of_an_unreliable_pair_has_its_reason(void **state)
{
	struct meet_data reject = request, got;
	uint8_t buf[MEET_LEN];
	const char *why;

	reject.uc = true;
	reject.reason = MEET_NOT_PEER;
	assert_int_equal(meet_data_encode(buf, sizeof(buf), &reject), MEET_LEN);
	assert_int_equal(buf[5], 1);
	assert_int_equal(buf[59], 2);
	assert_int_equal(meet_data_decode(buf, MEET_LEN, &got, &why), 0);
	assert_meets(&got, &reject);
}

/* Decode the golden vector with one byte changed; the decoder must give this reason. */
static void assert_refused(size_t at, uint8_t byte, const char *reason)
{
	uint8_t bytes[MEET_LEN];
	struct meet_data got;
	const char *why;

	memcpy(bytes, golden, MEET_LEN);
	bytes[at] = byte;
	assert_int_equal(meet_data_decode(bytes, MEET_LEN, &got, &why), -EBADMSG);
	assert_non_null(strstr(why, reason));
}

static void what_no_end_sends_is_refused(void **state)
{
	assert_refused(0, 'S', "sRQP");
	assert_refused(4, 2, "version");
	assert_refused(5, 2, "flag");
	assert_refused(7, 1, "flag");
	assert_refused(8, 1, "24 bits");
	assert_refused(12, 1, "24 bits");
	assert_refused(48, 1, "24 bits");
	assert_refused(52, 1, "24 bits");
	assert_refused(56, 6, "MTU");
	assert_refused(59, 5, "reason");
	for (size_t at = 60; at < MEET_LEN; at++)
		assert_refused(at, 1, "last 4");
}

static void fewer_or_more_bytes_are_refused(void **state)
{
	uint8_t *bytes;
	struct meet_data got;
	const char *why;

	for (size_t len = 0; len <= MEET_LEN + 1; len++) {
		if (len == MEET_LEN)
			continue;
		bytes = test_malloc(len + 1);
		memset(bytes, 0, len + 1);
		memcpy(bytes, golden, len < MEET_LEN ? len : MEET_LEN);
		assert_int_equal(meet_data_decode(bytes, len, &got, &why), -EBADMSG);
		test_free(bytes);
	}
}

static void each_reason_has_a_text_of_its_own(void **state)
{
	for (uint8_t a = MEET_REASON_NONE; a <= MEET_MALFORMED; a++)
		for (uint8_t b = a + 1; b <= MEET_MALFORMED; b++)
			assert_string_not_equal(meet_reason_str(a), meet_reason_str(b));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_is_laid_out_as_documented),
		cmocka_unit_test(a_reject_of_an_unreliable_pair_has_its_reason),
		cmocka_unit_test(what_no_end_sends_is_refused),
		cmocka_unit_test(fewer_or_more_bytes_are_refused),
		cmocka_unit_test(each_reason_has_a_text_of_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
