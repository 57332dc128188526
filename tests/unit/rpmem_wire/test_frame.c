/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames of the control stream, plain and sealed. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "rpmem/wire/frame.h"

static uint8_t buf[2 * WIRE_FRAME_MAX];
static const struct wire_key key_a = {{1}}, key_b = {{2}};

static void a_frame_has_its_documented_bytes(void **state)
{
	static const uint8_t want[] = {'R', 'P', 'M', 'M', 1, 9, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0};
	static const uint8_t body[] = {1, 0, 0, 0};
	struct wire_seal tx = {0}, rx = {0};
	struct wire_frame frame;

	assert_int_equal(wire_frame_encode(&tx, WIRE_CLOSE, body, 4, buf), sizeof(want));
	assert_memory_equal(buf, want, sizeof(want));
	for (size_t n = 0; n < sizeof(want); n++)
		assert_int_equal(wire_frame_decode(&rx, buf, n, &frame), 0);
	assert_int_equal(wire_frame_decode(&rx, buf, sizeof(want) + 5, &frame), sizeof(want));
	assert_int_equal(frame.type, WIRE_CLOSE);
	assert_int_equal(frame.len, 4);
	assert_ptr_equal(frame.body, buf + WIRE_HEADER);
}

static void other_protocols_are_refused_at_their_first_byte(void **state)
{
	struct wire_seal rx = {0};
	struct wire_frame frame;

	assert_int_equal(wire_frame_decode(&rx, (const uint8_t *)"\0", 1, &frame), -EPROTO);
	assert_int_equal(wire_frame_decode(&rx, (const uint8_t *)"RPMA", 4, &frame), -EPROTO);
}

static void versions_and_lengths_are_checked_before_the_body_is_there(void **state)
{
	struct wire_seal tx = {0}, rx = {0};
	struct wire_frame frame;

	wire_frame_encode(&tx, WIRE_CLOSE, NULL, 0, buf);
	buf[4] = 2;
	assert_int_equal(wire_frame_decode(&rx, buf, WIRE_HEADER, &frame), -EPROTONOSUPPORT);
	buf[4] = WIRE_VERSION;
	buf[8] = 1;
	buf[9] = WIRE_BODY_MAX >> 8;
	assert_int_equal(wire_frame_decode(&rx, buf, WIRE_HEADER, &frame), -EMSGSIZE);
}

static void sealed_frames_pass_in_order(void **state)
{
	struct wire_seal tx = {0}, rx = {0};
	struct wire_frame frame;
	size_t first, second;

	wire_seal_begin(&tx, &key_a);
	wire_seal_begin(&rx, &key_a);
	first = wire_frame_encode(&tx, WIRE_CLOSE, (const uint8_t *)"abcd", 4, buf);
	assert_int_equal(first, WIRE_HEADER + 4 + WIRE_MAC);
	second = wire_frame_encode(&tx, WIRE_CLOSE, (const uint8_t *)"abcd", 4, buf + first);
	/* the sealed frames differ although their content is the same */
	assert_memory_not_equal(buf, buf + first, first);
	assert_int_equal(wire_frame_decode(&rx, buf, first + second, &frame), first);
	assert_int_equal(wire_frame_decode(&rx, buf + first, second, &frame), second);
	assert_memory_equal(frame.body, "abcd", 4);
}

static void a_repeated_frame_is_refused(void **state)
{
	struct wire_seal tx = {0}, rx = {0};
	struct wire_frame frame;
	size_t len;

	wire_seal_begin(&tx, &key_a);
	wire_seal_begin(&rx, &key_a);
	len = wire_frame_encode(&tx, WIRE_CLOSE, (const uint8_t *)"abcd", 4, buf);
	assert_int_equal(wire_frame_decode(&rx, buf, len, &frame), len);
	assert_int_equal(wire_frame_decode(&rx, buf, len, &frame), -EBADMSG);
}

static void every_flipped_bit_of_a_sealed_frame_is_seen(void **state)
{
	struct wire_seal tx = {0};
	struct wire_frame frame;
	size_t len;

	wire_seal_begin(&tx, &key_a);
	len = wire_frame_encode(&tx, WIRE_CLOSE, (const uint8_t *)"abcd", 4, buf);
	for (size_t bit = 0; bit < len * 8; bit++) {
		struct wire_seal rx = {0};
		int rc;

		wire_seal_begin(&rx, &key_a);
		buf[bit / 8] ^= (uint8_t)(1u << bit % 8);
		rc = wire_frame_decode(&rx, buf, len, &frame);
		buf[bit / 8] ^= (uint8_t)(1u << bit % 8);
		/* 0: the frame claims to be longer, so more bytes are needed */
		assert_true(rc <= 0);
	}
}

static void the_other_directions_key_opens_nothing(void **state)
{
	struct wire_seal tx = {0}, rx = {0};
	struct wire_frame frame;
	size_t len;

	wire_seal_begin(&tx, &key_a);
	wire_seal_begin(&rx, &key_b);
	len = wire_frame_encode(&tx, WIRE_CLOSE, NULL, 0, buf);
	assert_int_equal(wire_frame_decode(&rx, buf, len, &frame), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_frame_has_its_documented_bytes),
		cmocka_unit_test(other_protocols_are_refused_at_their_first_byte),
		cmocka_unit_test(versions_and_lengths_are_checked_before_the_body_is_there),
		cmocka_unit_test(sealed_frames_pass_in_order),
		cmocka_unit_test(a_repeated_frame_is_refused),
		cmocka_unit_test(every_flipped_bit_of_a_sealed_frame_is_seen),
		cmocka_unit_test(the_other_directions_key_opens_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
