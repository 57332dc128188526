/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/unit.h"

#include <errno.h>
#include <string.h>

#include "softrnic/proto/ext.h"
#include "softrnic/proto/rdmap.h"

/* Make a well-formed last segment with this opcode. */
static struct ddp_hdr segment(enum rdmap_opcode op)
{
	return (struct ddp_hdr){.tagged = rdmap_ops[op].tagged,
				.last = true,
				.version = DDP_VERSION,
				.ulp = rdmap_ctrl(op),
				.qn = rdmap_ops[op].qn,
				.msn = DDP_FIRST_MSN};
}

/* The bytes after a DDP header: the kind of an extension message, and zeros. */
static uint8_t bytes[EXT_MAX + 1];

static unsigned check(const struct ddp_hdr *hdr, size_t len, enum rdmap_level level)
{
	return rdmap_check(rdmap_op_of(hdr), hdr, bytes, len, level);
}

static void control_bytes_are_those_of_the_rfc(void **state)
{
	assert_int_equal(rdmap_ctrl(RDMAP_WRITE), 0x40);
	assert_int_equal(rdmap_ctrl(RDMAP_TERMINATE), 0x47);
	assert_int_equal(rdmap_ctrl_opcode(0x4b), RDMAP_ATOMIC_RESP);
	assert_int_equal(rdmap_ctrl_version(0x4b), 1);
	assert_int_equal(rdmap_ctrl_version(0xcb), 3);
	assert_int_equal(rdmap_ctrl_opcode(0xfe), RDMAP_SEND_IMM);
	assert_true(rdmap_ctrl_is_solicited(0x49) && rdmap_ctrl_is_solicited(0x5e));
	assert_false(rdmap_ctrl_is_solicited(0x4e) || rdmap_ctrl_is_solicited(0x53));
}

static void the_table_has_the_queues_of_the_rfcs(void **state)
{
	static const int qn[RDMAP_OPCODES] = {-1, 1, -1, 0, 0, 0, 0, 2, 0, 0, 1, 3, 1, 3, 0};

	for (int op = 0; op < RDMAP_UNASSIGNED; op++) {
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
		assert_int_equal(row->extension, op == RDMAP_EXT_REQ || op == RDMAP_EXT_RESP);
	}
	assert_null(rdmap_ops[RDMAP_UNASSIGNED].name);
}

/* Returns the least length of a Flush of all bytes, or of its response. */
static size_t least(int op)
{
	return op == RDMAP_EXT_RESP ? EXT_ANSWER_LEN : rdmap_ops[op].min;
}

static void each_level_allows_its_opcodes(void **state)
{
	bytes[0] = EXT_FLUSH_ALL;
	for (int op = 0; op < RDMAP_UNASSIGNED; op++)
		for (int level = RDMAP_LEVEL_BASE; level <= RDMAP_LEVEL_OURS; level++) {
			struct ddp_hdr hdr = segment((enum rdmap_opcode)op);
			int needs = op < 0x8   ? RDMAP_LEVEL_BASE
				    : op < 0xc ? RDMAP_LEVEL_7306
					       : RDMAP_LEVEL_OURS;
			unsigned error = check(&hdr, least(op), level);

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
	assert_int_equal(check(&hdr, 0, RDMAP_LEVEL_BASE), TERM_DDP_BAD_QN);
	assert_int_equal(check(&hdr, 0, RDMAP_LEVEL_7306), TERM_RDMAP_UNEXPECTED_OPCODE);
	hdr.qn = DDP_QN_CONTROL;
	assert_int_equal(check(&hdr, 0, RDMAP_LEVEL_7306), TERM_DDP_BAD_QN);
	assert_int_equal(check(&hdr, 0, RDMAP_LEVEL_OURS), TERM_RDMAP_UNEXPECTED_OPCODE);
	hdr.qn = DDP_QN_COUNT;
	assert_int_equal(check(&hdr, 0, RDMAP_LEVEL_OURS), TERM_DDP_BAD_QN);
	hdr.qn = UINT32_MAX;
	assert_int_equal(check(&hdr, 0, RDMAP_LEVEL_OURS), TERM_DDP_BAD_QN);
}

static void the_t_bit_must_be_the_opcodes(void **state)
{
	bytes[0] = EXT_FLUSH_ALL;
	for (int op = 0; op < RDMAP_UNASSIGNED; op++) {
		struct ddp_hdr hdr = segment((enum rdmap_opcode)op);

		hdr.tagged = !hdr.tagged;
		assert_int_equal(check(&hdr, rdmap_ops[op].min, RDMAP_LEVEL_OURS),
				 TERM_RDMAP_UNEXPECTED_OPCODE);
	}
}

static void versions_are_checked_from_the_lower_layer_up(void **state)
{
	struct ddp_hdr tagged = segment(RDMAP_WRITE), untagged = segment(RDMAP_SEND);

	tagged.ulp = untagged.ulp = 0x03;
	assert_int_equal(check(&untagged, 0, RDMAP_LEVEL_BASE), TERM_RDMAP_BAD_VERSION);
	tagged.version = untagged.version = 2;
	assert_int_equal(check(&tagged, 0, RDMAP_LEVEL_BASE), TERM_DDP_TAGGED_BAD_VERSION);
	assert_int_equal(check(&untagged, 0, RDMAP_LEVEL_BASE), TERM_DDP_UNTAGGED_BAD_VERSION);
}

static void a_message_with_a_header_is_one_segment_of_its_size(void **state)
{
	struct ddp_hdr hdr = segment(RDMAP_READ_REQ);

	assert_int_equal(check(&hdr, 28, RDMAP_LEVEL_BASE), 0);
	assert_int_equal(check(&hdr, 29, RDMAP_LEVEL_BASE), TERM_DDP_TOO_LONG);
	assert_int_equal(check(&hdr, 27, RDMAP_LEVEL_BASE), TERM_RDMAP_STREAM_CATASTROPHIC);
	hdr.last = false;
	assert_int_equal(check(&hdr, 28, RDMAP_LEVEL_BASE), TERM_RDMAP_STREAM_CATASTROPHIC);
	hdr.last = true;
	hdr.mo = 4;
	assert_int_equal(check(&hdr, 24, RDMAP_LEVEL_BASE), TERM_DDP_BAD_MO);
}

static void a_send_may_be_long_but_not_beyond_32_bits(void **state)
{
	struct ddp_hdr hdr = segment(RDMAP_SEND);

	hdr.mo = UINT32_MAX - 100;
	assert_int_equal(check(&hdr, 100, RDMAP_LEVEL_BASE), 0);
	assert_int_equal(check(&hdr, 101, RDMAP_LEVEL_BASE), TERM_DDP_TOO_LONG);
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

static void an_unassigned_opcode_is_unexpected(void **state)
{
	for (unsigned how = 0; how < 2; how++)
		for (uint32_t qn = 0; qn < DDP_QN_COUNT; qn++) {
			struct ddp_hdr hdr = {.tagged = how,
					      .last = true,
					      .version = DDP_VERSION,
					      .ulp = 0x4f,
					      .qn = qn,
					      .msn = DDP_FIRST_MSN};

			assert_int_equal(check(&hdr, 16, RDMAP_LEVEL_OURS),
					 TERM_RDMAP_UNEXPECTED_OPCODE);
		}
}

static struct ddp_hdr extension(enum rdmap_opcode op, uint32_t qn, uint8_t kind)
{
	struct ddp_hdr hdr = segment(op);

	hdr.qn = qn;
	memset(bytes, 0, sizeof(bytes));
	bytes[0] = kind;
	return hdr;
}

/* Returns the error that a message of the right kind gets for this length. */
static unsigned wrong_length(size_t len, size_t right)
{
	if (len < EXT_WORD_LEN || len < right)
		return TERM_RDMAP_STREAM_CATASTROPHIC;
	return len > right ? TERM_DDP_TOO_LONG : 0;
}

static void a_request_has_the_length_of_its_kind(void **state)
{
	for (uint8_t kind = EXT_FLUSH; kind <= EXT_ATOMIC_WRITE; kind++)
		for (size_t len = 0; len < 70; len++) {
			struct ddp_hdr hdr = extension(RDMAP_EXT_REQ, DDP_QN_REQUEST, kind);

			assert_int_equal(check(&hdr, len, RDMAP_LEVEL_OURS),
					 wrong_length(len, ext_row(kind)->request));
		}
}

/* Only a successful Verify has data after the status. */
static void a_response_has_the_length_of_its_kind_and_status(void **state)
{
	for (uint8_t kind = EXT_FLUSH; kind <= EXT_ATOMIC_WRITE; kind++)
		for (size_t len = 0; len < 70; len++)
			for (uint8_t status = 0; status < 3; status++) {
				struct ddp_hdr hdr =
					extension(RDMAP_EXT_RESP, DDP_QN_RESPONSE, kind);
				size_t right = kind == EXT_VERIFY && !status ? 56 : 8;

				bytes[3] = status;
				assert_int_equal(check(&hdr, len, RDMAP_LEVEL_OURS),
						 wrong_length(len, right));
			}
}

static void unknown_kinds_are_refused_but_on_the_control_queue(void **state)
{
	static const uint8_t foreign[] = {
		0, EXT_HELLO, EXT_HEARTBEAT, EXT_LINK, EXT_ACK, EXT_KINDS, 63, 255};
	static const uint8_t elsewhere[] = {0, EXT_FLUSH, EXT_ATOMIC_WRITE, EXT_KINDS, 63, 255};
	struct ddp_hdr hdr;

	for (size_t i = 0; i < ARRAY_LEN(foreign); i++) {
		hdr = extension(RDMAP_EXT_REQ, DDP_QN_REQUEST, foreign[i]);
		assert_int_equal(check(&hdr, 24, RDMAP_LEVEL_OURS), TERM_RDMAP_UNEXPECTED_OPCODE);
		hdr = extension(RDMAP_EXT_RESP, DDP_QN_RESPONSE, foreign[i]);
		assert_int_equal(check(&hdr, 8, RDMAP_LEVEL_OURS), TERM_RDMAP_STREAM_CATASTROPHIC);
	}
	for (size_t i = 0; i < ARRAY_LEN(elsewhere); i++)
		for (size_t len = EXT_WORD_LEN; len <= EXT_MAX; len += 17) {
			hdr = extension(RDMAP_EXT_REQ, DDP_QN_CONTROL, elsewhere[i]);
			assert_int_equal(check(&hdr, len, RDMAP_LEVEL_OURS), 0);
			hdr = extension(RDMAP_EXT_RESP, DDP_QN_CONTROL, elsewhere[i]);
			assert_int_equal(check(&hdr, len, RDMAP_LEVEL_OURS), 0);
		}
}

static void a_control_message_may_grow_within_a_limit(void **state)
{
	static const struct {
		enum rdmap_opcode op;
		uint8_t kind;
		size_t least;
	} cases[] = {
		{RDMAP_EXT_REQ, EXT_HELLO, 4},
		{RDMAP_EXT_REQ, EXT_HEARTBEAT, 16},
		{RDMAP_EXT_RESP, EXT_HEARTBEAT, 16},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct ddp_hdr hdr = extension(cases[i].op, DDP_QN_CONTROL, cases[i].kind);

		assert_int_equal(check(&hdr, cases[i].least - 1, RDMAP_LEVEL_OURS),
				 TERM_RDMAP_STREAM_CATASTROPHIC);
		assert_int_equal(check(&hdr, cases[i].least, RDMAP_LEVEL_OURS), 0);
		assert_int_equal(check(&hdr, EXT_MAX, RDMAP_LEVEL_OURS), 0);
		assert_int_equal(check(&hdr, EXT_MAX + 1, RDMAP_LEVEL_OURS), TERM_DDP_TOO_LONG);
		hdr.last = false;
		assert_int_equal(check(&hdr, EXT_MAX, RDMAP_LEVEL_OURS),
				 TERM_RDMAP_STREAM_CATASTROPHIC);
	}
}

/* The decoder does not read the content of a message, because the content may arrive later. */
static void a_message_above_the_limit_is_refused_by_its_length_alone(void **state)
{
	struct ddp_hdr hdr = segment(RDMAP_EXT_REQ);

	assert_int_equal(rdmap_check(rdmap_op_of(&hdr), &hdr, NULL, EXT_MAX + 1, RDMAP_LEVEL_OURS),
			 TERM_DDP_TOO_LONG);
	assert_int_equal(
		rdmap_check(rdmap_op_of(&hdr), &hdr, NULL, EXT_WORD_LEN - 1, RDMAP_LEVEL_OURS),
		TERM_RDMAP_STREAM_CATASTROPHIC);
}

static uint8_t noise[64];

/*
 * Random bytes that are decoded and encoded must stay the same: no field is lost or moved. Reserved
 * bytes are sent as zero, so the test clears them before.
 */
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
		noise[3] &= 0xf;
		ROUND_TRIP(atomic_req, RDMAP_ATOMIC_REQ_LEN, 0, 3);
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
		cmocka_unit_test(an_unassigned_opcode_is_unexpected),
		cmocka_unit_test(a_request_has_the_length_of_its_kind),
		cmocka_unit_test(a_response_has_the_length_of_its_kind_and_status),
		cmocka_unit_test(unknown_kinds_are_refused_but_on_the_control_queue),
		cmocka_unit_test(a_control_message_may_grow_within_a_limit),
		cmocka_unit_test(a_message_above_the_limit_is_refused_by_its_length_alone),
		cmocka_unit_test(every_header_survives_a_round_trip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
