/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/unit.h"

#include <errno.h>
#include <string.h>

#include "softrnic/proto/rdmap.h"

/* A well-formed last segment of this opcode. */
static struct ddp_hdr segment(enum rdmap_opcode op)
{
	return (struct ddp_hdr){.tagged = rdmap_ops[op].tagged,
				.last = true,
				.version = DDP_VERSION,
				.ulp = rdmap_ctrl(op),
				.qn = rdmap_ops[op].qn,
				.msn = DDP_FIRST_MSN};
}

static void control_bytes_are_those_of_the_rfc(void **state)
{
	assert_int_equal(rdmap_ctrl(RDMAP_WRITE), 0x40);
	assert_int_equal(rdmap_ctrl(RDMAP_TERMINATE), 0x47);
	assert_int_equal(rdmap_ctrl_opcode(0x4b), RDMAP_ATOMIC_RESP);
	assert_int_equal(rdmap_ctrl_version(0x4b), 1);
	assert_int_equal(rdmap_ctrl_version(0xcb), 3);
	assert_int_equal(rdmap_ctrl_opcode(0xff), RDMAP_ENGINE);
	assert_true(rdmap_ctrl_is_solicited(0x49) && rdmap_ctrl_is_solicited(0x5e));
	assert_false(rdmap_ctrl_is_solicited(0x4e) || rdmap_ctrl_is_solicited(0x53));
}

static void the_table_has_the_queues_of_the_rfcs(void **state)
{
	static const int qn[RDMAP_OPCODES] = {-1, 1, -1, 0, 0, 0, 0, 2, 0, 0, 1, 3, 1, 3, 0, 4};

	for (int op = 0; op < RDMAP_OPCODES; op++) {
		const struct rdmap_op *row = &rdmap_ops[op];

		assert_int_equal(row->tagged, qn[op] == -1);
		assert_non_null(row->name);
		if (qn[op] >= 0)
			assert_int_equal(row->qn, qn[op]);
		assert_true(row->hdr_len <= row->max && row->min <= row->max);
		assert_int_equal(row->invalidate, op == RDMAP_SEND_INV || op == RDMAP_SEND_SE_INV);
		assert_int_equal(row->solicited, op == RDMAP_SEND_SE || op == RDMAP_SEND_SE_INV ||
							 op == RDMAP_IMM_SE);
		assert_int_equal(row->immediate, op == RDMAP_SEND_IMM);
	}
}

static void each_level_allows_its_opcodes(void **state)
{
	for (int op = 0; op < RDMAP_OPCODES; op++)
		for (int level = RDMAP_LEVEL_BASE; level <= RDMAP_LEVEL_OURS; level++) {
			struct ddp_hdr hdr = segment((enum rdmap_opcode)op);
			int needs = op < 0x8   ? RDMAP_LEVEL_BASE
				    : op < 0xc ? RDMAP_LEVEL_7306
					       : RDMAP_LEVEL_OURS;
			unsigned error = rdmap_check(&hdr, rdmap_ops[op].min, level);

			if (level >= needs)
				assert_int_equal(error, 0);
			else
				assert_true(error == TERM_RDMAP_UNEXPECTED_OPCODE ||
					    error == TERM_DDP_BAD_QN);
		}
}

static void a_queue_that_the_peer_cannot_know_is_a_bad_qn(void **state)
{
	struct ddp_hdr hdr = segment(RDMAP_SEND);

	hdr.qn = DDP_QN_RESPONSE;
	assert_int_equal(rdmap_check(&hdr, 0, RDMAP_LEVEL_BASE), TERM_DDP_BAD_QN);
	assert_int_equal(rdmap_check(&hdr, 0, RDMAP_LEVEL_7306), TERM_RDMAP_UNEXPECTED_OPCODE);
	hdr.qn = DDP_QN_ENGINE;
	assert_int_equal(rdmap_check(&hdr, 0, RDMAP_LEVEL_7306), TERM_DDP_BAD_QN);
	assert_int_equal(rdmap_check(&hdr, 0, RDMAP_LEVEL_OURS), TERM_RDMAP_UNEXPECTED_OPCODE);
	hdr.qn = DDP_QN_COUNT;
	assert_int_equal(rdmap_check(&hdr, 0, RDMAP_LEVEL_OURS), TERM_DDP_BAD_QN);
	hdr.qn = UINT32_MAX;
	assert_int_equal(rdmap_check(&hdr, 0, RDMAP_LEVEL_OURS), TERM_DDP_BAD_QN);
}

static void the_t_bit_must_be_the_opcodes(void **state)
{
	for (int op = 0; op < RDMAP_OPCODES; op++) {
		struct ddp_hdr hdr = segment((enum rdmap_opcode)op);

		hdr.tagged = !hdr.tagged;
		assert_int_equal(rdmap_check(&hdr, rdmap_ops[op].min, RDMAP_LEVEL_OURS),
				 TERM_RDMAP_UNEXPECTED_OPCODE);
	}
}

static void versions_are_checked_from_the_lower_layer_up(void **state)
{
	struct ddp_hdr tagged = segment(RDMAP_WRITE), untagged = segment(RDMAP_SEND);

	tagged.ulp = untagged.ulp = 0x03;
	assert_int_equal(rdmap_check(&untagged, 0, RDMAP_LEVEL_BASE), TERM_RDMAP_BAD_VERSION);
	tagged.version = untagged.version = 2;
	assert_int_equal(rdmap_check(&tagged, 0, RDMAP_LEVEL_BASE), TERM_DDP_TAGGED_BAD_VERSION);
	assert_int_equal(rdmap_check(&untagged, 0, RDMAP_LEVEL_BASE),
			 TERM_DDP_UNTAGGED_BAD_VERSION);
}

static void a_message_with_a_header_is_one_segment_of_its_size(void **state)
{
	struct ddp_hdr hdr = segment(RDMAP_READ_REQ);

	assert_int_equal(rdmap_check(&hdr, 28, RDMAP_LEVEL_BASE), 0);
	assert_int_equal(rdmap_check(&hdr, 29, RDMAP_LEVEL_BASE), TERM_DDP_TOO_LONG);
	assert_int_equal(rdmap_check(&hdr, 27, RDMAP_LEVEL_BASE), TERM_RDMAP_STREAM_CATASTROPHIC);
	hdr.last = false;
	assert_int_equal(rdmap_check(&hdr, 28, RDMAP_LEVEL_BASE), TERM_RDMAP_STREAM_CATASTROPHIC);
	hdr.last = true;
	hdr.mo = 4;
	assert_int_equal(rdmap_check(&hdr, 24, RDMAP_LEVEL_BASE), TERM_DDP_BAD_MO);
}

static void a_send_may_be_long_but_not_beyond_32_bits(void **state)
{
	struct ddp_hdr hdr = segment(RDMAP_SEND);

	hdr.mo = UINT32_MAX - 100;
	assert_int_equal(rdmap_check(&hdr, 100, RDMAP_LEVEL_BASE), 0);
	assert_int_equal(rdmap_check(&hdr, 101, RDMAP_LEVEL_BASE), TERM_DDP_TOO_LONG);
}

static void a_read_request_is_laid_out_as_the_rfc_says(void **state)
{
	static const struct rdmap_read_req req = {0x01020304, 0x1112131415161718, 0x21222324,
						  0x31323334, 0x4142434445464748};
	static const uint8_t wire[] = {0x01, 0x02, 0x03, 0x04, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16,
				       0x17, 0x18, 0x21, 0x22, 0x23, 0x24, 0x31, 0x32, 0x33, 0x34,
				       0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48};
	uint8_t buf[RDMAP_READ_REQ_LEN];

	assert_int_equal(rdmap_read_req_encode(buf, sizeof(buf), &req), sizeof(wire));
	assert_memory_equal(buf, wire, sizeof(wire));
}

static void an_atomic_request_is_laid_out_as_the_rfc_says(void **state)
{
	static const struct rdmap_atomic_req req = {.op = RDMAP_CMP_SWAP,
						    .id = 0x01020304,
						    .stag = 0x05060708,
						    .to = 0x1000,
						    .data = 1,
						    .data_mask = UINT64_MAX,
						    .compare = 2,
						    .compare_mask = UINT64_MAX};
	static const uint8_t
		wire[RDMAP_ATOMIC_REQ_LEN] = {0,    0,    0,    2,    1,        2,    3,    4,
					      5,    6,    7,    8,    0,        0,    0,    0,
					      0,    0,    0x10, 0,    0,        0,    0,    0,
					      0,    0,    0,    1,    0xff,     0xff, 0xff, 0xff,
					      0xff, 0xff, 0xff, 0xff, [43] = 2, 0xff, 0xff, 0xff,
					      0xff, 0xff, 0xff, 0xff, 0xff};
	uint8_t buf[RDMAP_ATOMIC_REQ_LEN];

	assert_int_equal(rdmap_atomic_req_encode(buf, sizeof(buf), &req), sizeof(wire));
	assert_memory_equal(buf, wire, sizeof(wire));
}

static void a_flush_is_laid_out_as_documented(void **state)
{
	static const struct rdmap_flush_req req = {.flags =
							   RDMAP_FLUSH_PERSIST | RDMAP_FLUSH_STRICT,
						   .stag = 0x01020304,
						   .to = 0x1112131415161718,
						   .len = 0x2122232425262728};
	static const uint8_t wire[] = {0,    0,    0,    5,    1,    2,    3,    4,
				       0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,
				       0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28};
	static const struct rdmap_flush_resp resp = {RDMAP_FLUSH_FAILED, ENOSPC};
	static const uint8_t answer[] = {0, 0, 0, 1, 0, 0, 0, 28};
	uint8_t buf[RDMAP_FLUSH_REQ_LEN];

	assert_int_equal(rdmap_flush_req_encode(buf, sizeof(buf), &req), sizeof(wire));
	assert_memory_equal(buf, wire, sizeof(wire));
	assert_int_equal(rdmap_flush_resp_encode(buf, sizeof(buf), &resp), sizeof(answer));
	assert_memory_equal(buf, answer, sizeof(answer));
}

static void a_digest_is_laid_out_as_documented(void **state)
{
	static const struct rdmap_flush_req req = {.flags = RDMAP_FLUSH_PERSIST |
							    RDMAP_FLUSH_DIGEST |
							    RDMAP_FLUSH_ALG(VEXT_DIGEST_BLAKE2B),
						   .stag = 1,
						   .to = 2,
						   .len = 3};
	static const uint8_t wire[] = {0, 0, 2, 0x11, 0, 0, 0, 1, 0, 0, 0, 0,
				       0, 0, 0, 2,    0, 0, 0, 0, 0, 0, 0, 3};
	static const struct rdmap_flush_digest digest = {
		.source = 2,
		.durability = VEXT_DURABILITY_FILE,
		.alg = VEXT_DIGEST_CRC32C,
		.len = 0x01020304,
		.bytes = {0xaa, 0xbb, [31] = 0xcc},
	};
	static const uint8_t answer[RDMAP_FLUSH_DIGEST_LEN] = {
		0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 1, 1, 2, 3, 4, 0xaa, 0xbb, [47] = 0xcc};
	uint8_t buf[RDMAP_FLUSH_DIGEST_LEN];

	assert_int_equal(rdmap_flush_req_encode(buf, sizeof(buf), &req), sizeof(wire));
	assert_memory_equal(buf, wire, sizeof(wire));
	assert_int_equal(rdmap_flush_digest_encode(buf, sizeof(buf), &digest), sizeof(answer));
	assert_memory_equal(buf, answer, sizeof(answer));
}

#define BLAKE (0x10u | 2u << 8)
#define CRC   (0x10u | 1u << 8)

static void a_flush_request_asks_for_one_thing(void **state)
{
	static const struct {
		enum rdmap_flush_kind kind;
		struct rdmap_flush_req req;
	} cases[] = {
		{RDMAP_FLUSH_KIND_RANGE, {.flags = 1, .stag = 9, .len = 8}},
		{RDMAP_FLUSH_KIND_RANGE, {.flags = 2}},
		{RDMAP_FLUSH_KIND_RANGE, {.flags = 3, .len = UINT64_MAX}},
		{RDMAP_FLUSH_KIND_RANGE, {.flags = 5, .len = 8}},
		{RDMAP_FLUSH_KIND_BAD, {.flags = 0, .len = 8}},
		{RDMAP_FLUSH_KIND_BAD, {.flags = 4, .len = 8}},
		{RDMAP_FLUSH_KIND_BAD, {.flags = 6, .len = 8}},
		{RDMAP_FLUSH_KIND_BAD, {.flags = 1 | 0x40, .len = 8}},
		{RDMAP_FLUSH_KIND_BAD, {.flags = 1 | 0x80000000, .len = 8}},
		{RDMAP_FLUSH_KIND_BAD, {.flags = 1 | 1 << 8, .len = 8}}, /* no DIGEST */
		{RDMAP_FLUSH_KIND_QUERY, {.flags = 8, .stag = 9, .len = 8}},
		{RDMAP_FLUSH_KIND_BAD, {.flags = 8, .stag = 9, .len = 0}},
		{RDMAP_FLUSH_KIND_BAD, {.flags = 9, .stag = 9, .len = 8}},
		{RDMAP_FLUSH_KIND_BAD, {.flags = 8 | 0x20}},
		{RDMAP_FLUSH_KIND_DIGEST, {.flags = 1 | CRC, .len = 8}},
		{RDMAP_FLUSH_KIND_DIGEST, {.flags = 5 | BLAKE, .len = UINT32_MAX}},
		{RDMAP_FLUSH_KIND_BAD, {.flags = 1 | BLAKE, .len = 1ull << 32}},
		{RDMAP_FLUSH_KIND_BAD, {.flags = 1 | BLAKE, .len = 0}},
		{RDMAP_FLUSH_KIND_BAD, {.flags = 2 | BLAKE, .len = 8}},
		{RDMAP_FLUSH_KIND_BAD, {.flags = 1 | 0x10, .len = 8}},
		{RDMAP_FLUSH_KIND_BAD, {.flags = 1 | 0x10 | 3 << 8, .len = 8}},
		{RDMAP_FLUSH_KIND_BAD, {.flags = 1 | BLAKE | 0x10000, .len = 8}},
		{RDMAP_FLUSH_KIND_BAD, {.flags = 1 | BLAKE | 0x20, .len = 8}},
		{RDMAP_FLUSH_KIND_ALL, {.flags = 0x21}},
		{RDMAP_FLUSH_KIND_ALL, {.flags = 0x22}},
		{RDMAP_FLUSH_KIND_ALL, {.flags = 0x25}},
		{RDMAP_FLUSH_KIND_BAD, {.flags = 0x20}},
		{RDMAP_FLUSH_KIND_BAD, {.flags = 0x21, .stag = 1}},
		{RDMAP_FLUSH_KIND_BAD, {.flags = 0x21, .to = 1}},
		{RDMAP_FLUSH_KIND_BAD, {.flags = 0x21, .len = 1}},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		if (rdmap_flush_kind(&cases[i].req) != cases[i].kind)
			fail_msg("flags %#x, length %#llx", cases[i].req.flags,
				 (unsigned long long)cases[i].req.len);
}

static void a_flush_response_has_one_of_two_lengths(void **state)
{
	struct ddp_hdr hdr = {.version = DDP_VERSION,
			      .last = true,
			      .ulp = rdmap_ctrl(RDMAP_FLUSH_RESP),
			      .qn = DDP_QN_RESPONSE,
			      .msn = 1};

	for (size_t len = 0; len < 70; len++) {
		unsigned error = rdmap_check(&hdr, len, RDMAP_LEVEL_OURS);

		if (len == 8 || len == 56)
			assert_int_equal(error, 0);
		else
			assert_int_equal(error, len > 56 ? TERM_DDP_TOO_LONG
							 : TERM_RDMAP_STREAM_CATASTROPHIC);
	}
}

static uint8_t noise[64];

/* Random bytes, decoded and encoded, are themselves: nothing is lost and nothing shifts.
 * Reserved bytes, sent as zero, are zeroed before. */
#define ROUND_TRIP(name, length, zero_at, zero_len)                                                \
	do {                                                                                       \
		struct rdmap_##name msg;                                                           \
		uint8_t buf[sizeof(noise)];                                                        \
                                                                                                   \
		memset(noise + (zero_at), 0, (zero_len));                                          \
		assert_int_equal(rdmap_##name##_decode(noise, sizeof(noise), &msg), (length));     \
		assert_int_equal(rdmap_##name##_encode(buf, sizeof(buf), &msg), (length));         \
		assert_memory_equal(buf, noise, (length));                                         \
		assert_int_equal(rdmap_##name##_encode(buf, (length)-1, &msg), -ENOSPC);           \
		assert_int_equal(rdmap_##name##_decode(noise, (length)-1, &msg), -EBADMSG);        \
	} while (0)

static void every_header_survives_a_round_trip(void **state)
{
	uint64_t seed = 5;

	for (int round = 0; round < 200; round++) {
		for (size_t i = 0; i < sizeof(noise); i++)
			noise[i] = (uint8_t)test_random(&seed);
		ROUND_TRIP(read_req, RDMAP_READ_REQ_LEN, 0, 0);
		ROUND_TRIP(imm, RDMAP_IMM_LEN, 0, 0);
		ROUND_TRIP(atomic_resp, RDMAP_ATOMIC_RESP_LEN, 0, 0);
		ROUND_TRIP(flush_req, RDMAP_FLUSH_REQ_LEN, 0, 0);
		ROUND_TRIP(flush_resp, RDMAP_FLUSH_RESP_LEN, 0, 0);
		ROUND_TRIP(flush_digest, RDMAP_FLUSH_DIGEST_LEN, 0, 0);
		noise[3] &= 0xf;
		ROUND_TRIP(atomic_req, RDMAP_ATOMIC_REQ_LEN, 0, 3);
		ROUND_TRIP(engine, RDMAP_ENGINE_LEN, 0, 0);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(control_bytes_are_those_of_the_rfc),
		cmocka_unit_test(the_table_has_the_queues_of_the_rfcs),
		cmocka_unit_test(each_level_allows_its_opcodes),
		cmocka_unit_test(a_queue_that_the_peer_cannot_know_is_a_bad_qn),
		cmocka_unit_test(the_t_bit_must_be_the_opcodes),
		cmocka_unit_test(versions_are_checked_from_the_lower_layer_up),
		cmocka_unit_test(a_message_with_a_header_is_one_segment_of_its_size),
		cmocka_unit_test(a_send_may_be_long_but_not_beyond_32_bits),
		cmocka_unit_test(a_read_request_is_laid_out_as_the_rfc_says),
		cmocka_unit_test(an_atomic_request_is_laid_out_as_the_rfc_says),
		cmocka_unit_test(a_flush_is_laid_out_as_documented),
		cmocka_unit_test(a_digest_is_laid_out_as_documented),
		cmocka_unit_test(a_flush_request_asks_for_one_thing),
		cmocka_unit_test(a_flush_response_has_one_of_two_lengths),
		cmocka_unit_test(every_header_survives_a_round_trip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
