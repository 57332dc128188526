/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/unit.h"

#include <errno.h>
#include <string.h>

#include "softrnic/proto/ud.h"

/* The example of doc/wire.md, section 16. */
static const uint8_t golden[UD_HEADER_LEN] = {
	's',  'R',  'U',  'D',  0x01, 0x01, 0x01, 0x00, 0x00, 0x9c, 0x41, 0x07,
	0x00, 0xc3, 0x50, 0xff, 0x11, 0x11, 0x11, 0x11, 0xde, 0xad, 0xbe, 0xef,
};

static struct ud_header solicited_with_imm(void)
{
	struct ud_header h = {
		.opcode = UD_SEND_IMM,
		.solicited = true,
		.from_qpn = 0x9c4107,
		.to_qpn = 0xc350ff,
		.qkey = 0x11111111,
	};

	memcpy(&h.imm, "\xde\xad\xbe\xef", 4);
	return h;
}

static void a_header_is_laid_out_as_documented(void **state)
{
	struct ud_header h = solicited_with_imm(), got;
	uint8_t buf[UD_HEADER_LEN];

	assert_int_equal(ud_header_encode(buf, sizeof(buf), &h), UD_HEADER_LEN);
	assert_memory_equal(buf, golden, sizeof(golden));
	assert_int_equal(ud_header_encode(buf, sizeof(buf) - 1, &h), -ENOSPC);
	assert_int_equal(ud_header_decode(golden, sizeof(golden), &got), 0);
	assert_int_equal(got.opcode, UD_SEND_IMM);
	assert_true(got.solicited);
	assert_int_equal(got.from_qpn, h.from_qpn);
	assert_int_equal(got.to_qpn, h.to_qpn);
	assert_int_equal(got.qkey, h.qkey);
	assert_int_equal(got.imm, h.imm);
	assert_int_equal(ud_port_of(got.from_qpn), 40001);
}

/* Decode the golden vector with one byte changed. */
static int decode_with(size_t at, uint8_t byte)
{
	uint8_t bytes[UD_HEADER_LEN];
	struct ud_header got;

	memcpy(bytes, golden, sizeof(bytes));
	bytes[at] = byte;
	return ud_header_decode(bytes, sizeof(bytes), &got);
}

static void what_no_end_sends_is_refused(void **state)
{
	static const struct {
		size_t at;
		uint8_t byte;
	} wrong[] = {
		{0, 'S'}, /* magic */
		{4, 2},   /* version */
		{5, 2},   /* opcode of a credit, but with immediate data */
		{5, 3},   /* unknown opcode */
		{5, 0},   /* opcode of a Send without immediate data, but with some */
		{6, 4},   /* unknown flag */
		{8, 1},   /* a queue pair number of more than 24 bits */
		{12, 1},
	};

	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		assert_int_equal(decode_with(wrong[i].at, wrong[i].byte), -EBADMSG);
}

/* The example of a credit in doc/wire.md, section 16. */
static const uint8_t golden_credit[UD_HEADER_LEN] = {
	's',  'R',  'U',  'D',  0x01, 0x02, 0x00, 0x98, 0x00, 0xc3, 0x50, 0xff,
	0x00, 0x9c, 0x41, 0x07, 0x00, 0x00, 0x00, 0x17, 0x00, 0x00, 0x00, 0x00,
};

static void a_credit_is_laid_out_as_documented(void **state)
{
	struct ud_header h = {.opcode = UD_CREDIT,
			      .serial = 152,
			      .from_qpn = 0xc350ff,
			      .to_qpn = 0x9c4107,
			      .qkey = 23};
	uint8_t buf[UD_HEADER_LEN + 1] = {0};
	struct ud_header got;

	assert_int_equal(ud_header_encode(buf, UD_HEADER_LEN, &h), UD_HEADER_LEN);
	assert_memory_equal(buf, golden_credit, sizeof(golden_credit));
	assert_int_equal(ud_header_decode(buf, UD_HEADER_LEN, &got), 0);
	assert_int_equal(got.opcode, UD_CREDIT);
	assert_int_equal(got.serial, 152);
	assert_int_equal(got.qkey, 23);
	assert_int_equal(ud_header_decode(buf, UD_HEADER_LEN + 1, &got), -EBADMSG);
	for (uint8_t flag = 1; flag; flag = (uint8_t)(flag << 1)) {
		buf[6] = flag;
		assert_int_equal(ud_header_decode(buf, UD_HEADER_LEN, &got), -EBADMSG);
	}
}

static void a_message_may_ask_for_a_credit(void **state)
{
	struct ud_header h = solicited_with_imm(), got;
	uint8_t buf[UD_HEADER_LEN];

	h.asks = true;
	h.serial = 152;
	assert_int_equal(ud_header_encode(buf, sizeof(buf), &h), UD_HEADER_LEN);
	assert_int_equal(buf[6], 3);
	assert_int_equal(buf[7], 152);
	assert_int_equal(ud_header_decode(buf, sizeof(buf), &got), 0);
	assert_true(got.asks && got.solicited);
	assert_int_equal(got.serial, 152);
}

static void a_datagram_has_a_header_and_at_most_4096_bytes(void **state)
{
	static uint8_t bytes[UD_DATAGRAM_MAX + 1];
	struct ud_header got;

	memcpy(bytes, golden, sizeof(golden));
	for (size_t len = 0; len < UD_HEADER_LEN; len++)
		assert_int_equal(ud_header_decode(bytes, len, &got), -EBADMSG);
	assert_int_equal(ud_header_decode(bytes, UD_DATAGRAM_MAX, &got), 0);
	assert_int_equal(ud_header_decode(bytes, UD_DATAGRAM_MAX + 1, &got), -EBADMSG);
}

/* RFC 1071: a header with a right checksum has the sum 0xffff. */
static uint32_t sum_of(const uint8_t *bytes, size_t len)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < len; i += 2)
		sum += (uint32_t)bytes[i] << 8 | bytes[i + 1];
	return (sum & 0xffff) + (sum >> 16);
}

static void an_ipv4_header_is_in_the_second_half_of_the_grh(void **state)
{
	static const uint8_t zeros[20];
	static const uint8_t begin[10] = {0x45, 0x68, 0, 20 + 8 + 24 + 100, 0, 0, 0, 0, 64, 17};
	static const uint8_t ends[8] = {192, 0, 2, 1, 192, 0, 2, 2};
	struct ud_path path = {
		.from = {[10] = 0xff, 0xff, 192, 0, 2, 1},
		.to = {[10] = 0xff, 0xff, 192, 0, 2, 2},
		.traffic_class = 0x68,
		.hop_limit = 64,
	};
	uint8_t grh[UD_GRH_LEN];

	memset(grh, 0xaa, sizeof(grh));
	ud_grh_encode(grh, &path, 100);
	assert_memory_equal(grh, zeros, sizeof(zeros));
	assert_memory_equal(grh + 20, begin, sizeof(begin));
	assert_memory_equal(grh + 32, ends, sizeof(ends));
	assert_int_equal(sum_of(grh + 20, 20), 0xffff);
}

static void an_ipv6_header_is_all_of_the_grh(void **state)
{
	static const uint8_t begin[8] = {0x66, 0x80, 0, 0, 0, 8 + 24, 17, 255};
	struct ud_path path = {
		.from = {0xfd, [15] = 1},
		.to = {0xfd, [15] = 2},
		.traffic_class = 0x68,
		.hop_limit = 255,
	};
	uint8_t grh[UD_GRH_LEN];

	ud_grh_encode(grh, &path, 0);
	assert_memory_equal(grh, begin, sizeof(begin));
	assert_memory_equal(grh + 8, path.from, 16);
	assert_memory_equal(grh + 24, path.to, 16);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_header_is_laid_out_as_documented),
		cmocka_unit_test(what_no_end_sends_is_refused),
		cmocka_unit_test(a_credit_is_laid_out_as_documented),
		cmocka_unit_test(a_message_may_ask_for_a_credit),
		cmocka_unit_test(a_datagram_has_a_header_and_at_most_4096_bytes),
		cmocka_unit_test(an_ipv4_header_is_in_the_second_half_of_the_grh),
		cmocka_unit_test(an_ipv6_header_is_all_of_the_grh),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
