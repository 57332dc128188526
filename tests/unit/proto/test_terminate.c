/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/unit.h"

#include <errno.h>
#include <string.h>

#include "softrnic/proto/terminate.h"

static const unsigned errors[] = {
#define X(name, layer, etype, code, text) TERM_##name,
	TERM_ERRORS(X)
#undef X
};

static const struct ddp_hdr read_hdr = {.last = true, .version = 1, .ulp = 0x41, .qn = 1, .msn = 7};
static const struct ddp_hdr write_hdr = {
	.tagged = true, .last = true, .version = 1, .ulp = 0x40, .stag = 0xabcd, .to = 0x1000};
static const struct rdmap_read_req read_req = {1, 2, 3, 4, 5};

static void errors_have_the_numbers_of_the_rfcs(void **state)
{
	assert_int_equal(TERM_RDMAP_ACCESS, 0x0102);
	assert_int_equal(TERM_RDMAP_UNEXPECTED_OPCODE, 0x0206);
	assert_int_equal(TERM_DDP_STAG_NOT_ASSOCIATED, 0x1102);
	assert_int_equal(TERM_DDP_NO_BUFFER, 0x1202);
	assert_int_equal(TERM_MPA_CRC, 0x2002);
	assert_int_equal(TERM_MPA_NO_RTR, 0x2007);
}

static void every_error_has_its_own_name(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(errors); i++) {
		assert_string_not_equal(term_str(errors[i]), "unknown error");
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(term_str(errors[i]), term_str(errors[k]));
	}
	assert_string_equal(term_str(0x2042), "unknown error");
	assert_string_equal(term_str(UINT32_MAX), "unknown error");
	assert_string_equal(term_str(0x0042), term_str(TERM_RDMAP_LOCAL_CATASTROPHIC));
	assert_string_equal(term_str(0x1302), "DDP: error of the LLP");
}

static void a_crc_error_is_four_bytes(void **state)
{
	struct terminate t = terminate_of(TERM_MPA_CRC);
	uint8_t buf[TERM_MAX_LEN];

	terminate_echo(&t, &write_hdr, 100, NULL);
	assert_int_equal(terminate_encode(buf, sizeof(buf), &t), TERM_CTRL_LEN);
	assert_memory_equal(buf, "\x20\x02\x00\x00", 4);
}

static void a_tagged_error_echoes_the_ddp_header(void **state)
{
	static const uint8_t wire[] = {0x11, 0x01, 0xc0, 0x00, 0x00, 0x16, 0xc1, 0x40, 0x00, 0x00,
				       0xab, 0xcd, 0,    0,    0,    0,    0,    0,    0x10, 0x00};
	struct terminate t = terminate_of(TERM_DDP_BASE_BOUNDS);
	uint8_t buf[TERM_MAX_LEN];

	terminate_echo(&t, &write_hdr, 22, NULL);
	assert_int_equal(terminate_encode(buf, sizeof(buf), &t), sizeof(wire));
	assert_memory_equal(buf, wire, sizeof(wire));
	assert_int_equal(terminate_encode(buf, sizeof(wire) - 1, &t), -ENOSPC);
}

static void a_refused_read_echoes_both_headers(void **state)
{
	struct terminate t = terminate_of(TERM_RDMAP_ACCESS), back;
	uint8_t buf[TERM_MAX_LEN];

	terminate_echo(&t, &read_hdr, 46, &read_req);
	assert_int_equal(terminate_encode(buf, sizeof(buf), &t), TERM_MAX_LEN);
	assert_memory_equal(buf, "\x01\x02\xe0\x00\x00\x2e\x41\x41", 8);
	assert_int_equal(terminate_decode(buf, sizeof(buf), &back), 0);
	assert_int_equal(terminate_error(&back), TERM_RDMAP_ACCESS);
	assert_true(back.has_ddp && back.has_read_req && back.has_segment_len);
	assert_int_equal(back.segment_len, 46);
	assert_int_equal(back.ddp.msn, 7);
	assert_int_equal(back.read_req.src_to, 5);
}

/* RFC 5040 s4.8: which part of the failed message is sent back depends only on the kind of
 * error. */
static void each_layer_echoes_what_the_rfc_says(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(errors); i++) {
		struct terminate t = terminate_of(errors[i]);
		unsigned type = errors[i] >> 8;

		terminate_echo(&t, &read_hdr, 46, &read_req);
		assert_int_equal(t.has_ddp, type != 0x00 && type != 0x20);
		assert_int_equal(t.has_segment_len, t.has_ddp);
		assert_int_equal(t.has_read_req, type == 0x01);
		terminate_echo(&t, NULL, 0, NULL);
		assert_false(t.has_ddp || t.has_segment_len || t.has_read_req);
	}
}

static void assert_same(const struct terminate *a, const struct terminate *b)
{
	assert_int_equal(terminate_error(a), terminate_error(b));
	assert_int_equal(a->siw_layout, b->siw_layout);
	assert_int_equal(a->has_segment_len, b->has_segment_len);
	assert_int_equal(a->segment_len, b->segment_len);
	assert_int_equal(a->has_ddp, b->has_ddp);
	assert_int_equal(a->ddp.tagged, b->ddp.tagged);
	assert_int_equal(a->ddp.msn, b->ddp.msn);
	assert_int_equal(a->ddp.to, b->ddp.to);
	assert_int_equal(a->has_read_req, b->has_read_req);
	assert_int_equal(a->read_req.size, b->read_req.size);
}

static void every_error_survives_a_round_trip_in_both_layouts(void **state)
{
	for (size_t i = 0; i < 2 * ARRAY_LEN(errors); i++) {
		struct terminate t = terminate_of(errors[i / 2]), back;
		uint8_t buf[TERM_MAX_LEN];
		int len;

		terminate_echo(&t, i & 1 ? &read_hdr : &write_hdr, 46, i & 1 ? &read_req : NULL);
		len = terminate_encode(buf, sizeof(buf), &t);
		assert_int_equal(terminate_decode(buf, (size_t)len, &back), 0);
		assert_same(&t, &back);

		/* siw's layout can only be recognized if the Terminate has a DDP header. */
		if (!t.has_ddp)
			continue;
		t.siw_layout = true;
		len = terminate_encode(buf, sizeof(buf), &t);
		assert_int_equal(terminate_decode(buf, (size_t)len, &back), 0);
		assert_same(&t, &back);
	}
}

static unsigned error_in(const char *wire, size_t len)
{
	struct terminate t;

	assert_int_equal(terminate_decode(wire, len, &t), 0);
	return terminate_error(&t);
}

static void siws_swapped_words_are_understood(void **state)
{
	/* A CRC error in siw's layout. By RFC 5040 this is an operation error with an unknown
	 * code. */
	assert_int_equal(error_in("\x02\x02\x00\x00", 4), TERM_MPA_CRC);
	/* Remote protection errors in siw's layout, with the bits M and D at the low end. */
	assert_int_equal(error_in("\x10\x02\x03\x00\x00\x16", 6), TERM_RDMAP_ACCESS);
	assert_int_equal(error_in("\x10\x00\x03\x00\x00\x16", 6), TERM_RDMAP_INVALID_STAG);
	/* Errors whose code is the same in both layouts. */
	assert_int_equal(error_in("\x11\x01\x03\x00", 4), TERM_DDP_BASE_BOUNDS);
	/* An unexpected opcode, without and with the header control bits. */
	assert_int_equal(error_in("\x20\x06\x03\x00", 4), TERM_RDMAP_UNEXPECTED_OPCODE);
	/* Errors in the RFC's layout. */
	assert_int_equal(error_in("\x20\x02\x00\x00", 4), TERM_MPA_CRC);
	assert_int_equal(error_in("\x20\x06\x00\x00", 4), TERM_MPA_INSUFFICIENT_IRD);
	assert_int_equal(error_in("\x01\x02\xc0\x00", 4), TERM_RDMAP_ACCESS);
	assert_int_equal(error_in("\x12\x02\x80\x00", 4), TERM_DDP_NO_BUFFER);
}

static void an_echo_cut_short_costs_only_the_echo(void **state)
{
	struct terminate t = terminate_of(TERM_RDMAP_ACCESS), back;
	uint8_t buf[TERM_MAX_LEN];

	terminate_echo(&t, &read_hdr, 46, &read_req);
	terminate_encode(buf, sizeof(buf), &t);
	for (size_t len = 0; len <= sizeof(buf); len++) {
		if (len < TERM_CTRL_LEN) {
			assert_int_equal(terminate_decode(buf, len, &back), -EBADMSG);
			continue;
		}
		assert_int_equal(terminate_decode(buf, len, &back), 0);
		assert_int_equal(terminate_error(&back), TERM_RDMAP_ACCESS);
		assert_int_equal(back.has_segment_len, len >= 6);
		assert_int_equal(back.has_ddp, len >= 24);
		assert_int_equal(back.has_read_req, len >= 52);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(errors_have_the_numbers_of_the_rfcs),
		cmocka_unit_test(every_error_has_its_own_name),
		cmocka_unit_test(a_crc_error_is_four_bytes),
		cmocka_unit_test(a_tagged_error_echoes_the_ddp_header),
		cmocka_unit_test(a_refused_read_echoes_both_headers),
		cmocka_unit_test(each_layer_echoes_what_the_rfc_says),
		cmocka_unit_test(every_error_survives_a_round_trip_in_both_layouts),
		cmocka_unit_test(siws_swapped_words_are_understood),
		cmocka_unit_test(an_echo_cut_short_costs_only_the_echo),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
