/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The messages of control connections: each message is decoded as it was encoded, and no other
 * bytes are accepted.
 */
#include "lib/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mirror/wire/message.h"

static struct mirror_view sample_view(void)
{
	return (struct mirror_view){.epoch = {3, 4},
				    .seq = 5,
				    .phase = MIRROR_PHASE_SERVING,
				    .primary = 1,
				    .forced = true,
				    .insync = 0x83};
}

static struct message_desc sample_desc(uint8_t byte)
{
	struct message_desc desc = {.len = 21};

	memset(desc.bytes, byte, desc.len);
	return desc;
}

static void sample_fill_grant(struct message_grant *grant)
{
	*grant = (struct message_grant){.status = GREETING_OK,
					.copy = MIRROR_COPY_INSYNC,
					.durability = 2,
					.size = 1ull << 40,
					.ring_slots = 1024,
					.peer_cfg = sample_desc(1),
					.data = sample_desc(2),
					.ring = sample_desc(3)};
	memset(grant->mac, 0xee, sizeof(grant->mac));
}

static void sample_fill_ranges(struct message_ranges *ranges)
{
	*ranges = (struct message_ranges){.index = 12, .total = 24, .count = MESSAGE_RANGES_MAX};
	for (unsigned i = 0; i < MESSAGE_RANGES_MAX; i++)
		ranges->ranges[i] = (struct mirror_range){i * 8192, MIRROR_SIZE_MAX};
}

static void sample_fill_status(struct message_status *status)
{
	*status = (struct message_status){.role = MIRROR_ROLE_PRIMARY,
					  .health = MIRROR_HEALTH_DEGRADED,
					  .copy = MIRROR_COPY_INSYNC,
					  .flags = MESSAGE_STATUS_HELD | MESSAGE_STATUS_DIFFERS,
					  .pid = 4711,
					  .flushes = 1ull << 50,
					  .acked = 1ull << 49,
					  .p50_us = 21,
					  .p99_us = 60};
	for (unsigned i = 0; i < MIRROR_MEMBERS_MAX; i++)
		status->members[i] = (struct message_member){.copy = MIRROR_COPY_SYNCING,
							     .link = MIRROR_LINK_CONNECTED,
							     .flow = MIRROR_FLOW_JOINING,
							     .remaining = i << 20,
							     .rate = i << 10,
							     .p99_us = i};
}

static struct message sample(enum message_type type)
{
	struct message m = {.type = type, .id = 0x01020304, .epoch = {5, 6}};

	memset(m.uuid.bytes, 0x77, sizeof(m.uuid.bytes));
	switch (type) {
	case MESSAGE_PROVE:
		memset(&m.prove, 0x55, sizeof(m.prove));
		break;
	case MESSAGE_GRANT:
		sample_fill_grant(&m.grant);
		break;
	case MESSAGE_PROMISED:
		m.promised = (struct message_promised){.copy = MIRROR_COPY_STALE,
						       .flags = MESSAGE_REPORT_HELD,
						       .ranges = 3,
						       .copy_id = 4,
						       .size = 5,
						       .revision = 6,
						       .seen = sample_view(),
						       .copy_epoch = {7, 8},
						       .source_id = 9};
		break;
	case MESSAGE_GET_RANGES:
	case MESSAGE_RANGES:
	case MESSAGE_RECORD_RANGES:
		sample_fill_ranges(&m.ranges);
		break;
	case MESSAGE_RESYNC_BEGIN:
		m.resync = (struct message_resync){.source = 7, .flags = MESSAGE_RESYNC_WHOLE};
		break;
	case MESSAGE_VIEW:
		m.view = (struct message_view){.revision = 9, .view = sample_view()};
		break;
	case MESSAGE_STATUS:
		sample_fill_status(&m.status);
		break;
	case MESSAGE_DONE:
		m.done = (struct message_done){
			.to = MESSAGE_RETIRE, .status = GREETING_EPOCH, .known = {1, 2}};
		break;
	case MESSAGE_RESERVE:
		m.reserve = (struct message_reserve){.size = 8192};
		break;
	case MESSAGE_RESERVED:
		m.reserve = (struct message_reserve){
			.size = 8192, .state = MESSAGE_RESERVE_FAILED, .error = ENOSPC};
		break;
	case MESSAGE_CLEAR_ERRORS:
		m.clear = (struct message_clear){8192, MESSAGE_CLEAR_MAX};
		break;
	case MESSAGE_ERRORS_CLEARED:
		m.cleared = (struct message_cleared){.blocks = 3, .error = EIO, .offset = 8192};
		break;
	default:
		break;
	}
	return m;
}

static void every_message_comes_back_as_it_went(void **state)
{
	struct message got;
	uint8_t buf[MESSAGE_SIZE];

	for (unsigned type = 1; type < MESSAGE_TYPE_END; type++) {
		struct message m = sample((enum message_type)type);

		message_encode(&m, version_newest(), buf);
		assert_int_equal(message_decode(buf, sizeof(buf), version_newest(), &got), 0);
		assert_memory_equal(&got, &m, sizeof(m));
		assert_string_not_equal(message_type_2str(type), "?");
	}
}

static void a_message_has_its_documented_bytes(void **state)
{
	static const uint8_t want[] = {'R',  'M',  'M',  'G',  2,    MESSAGE_VIEW,
				       80,   0,    4,    3,    2,    1,
				       0x77, 0x77, 0x77, 0x77, 0x77, 0x77,
				       0x77, 0x77, 0x77, 0x77, 0x77, 0x77,
				       0x77, 0x77, 0x77, 0x77, 5,    0,
				       0,    0,    0,    0,    0,    0,
				       6,    0,    0,    0,    0,    0,
				       0,    0,    9,    0,    0,    0,
				       0,    0,    0,    0,    3,    0,
				       0,    0,    0,    0,    0,    0,
				       4,    0,    0,    0,    0,    0,
				       0,    0,    5,    0,    0,    0,
				       0,    0,    0,    0,    2,    1,
				       2,    0x83};
	struct message m = sample(MESSAGE_VIEW);
	uint8_t buf[MESSAGE_SIZE];

	message_encode(&m, version_newest(), buf);
	assert_memory_equal(buf, want, sizeof(want));
	for (size_t i = sizeof(want); i < MESSAGE_SIZE; i++)
		assert_int_equal(buf[i], 0);
}

static void no_other_length_is_taken(void **state)
{
	uint8_t buf[MESSAGE_SIZE + 1] = {0};
	struct message m = sample(MESSAGE_PING);

	message_encode(&m, version_newest(), buf);
	for (size_t len = 0; len < MESSAGE_SIZE; len++)
		assert_int_equal(message_decode(buf, len, version_newest(), &m), -EPROTO);
	assert_int_equal(message_decode(buf, sizeof(buf), version_newest(), &m), -EPROTO);
	for (unsigned said = 0; said <= UINT16_MAX; said++) {
		buf[6] = (uint8_t)said;
		buf[7] = (uint8_t)(said >> 8);
		assert_int_equal(message_decode(buf, MESSAGE_SIZE, version_newest(), &m),
				 said == 44 ? 0 : -EPROTO);
	}
}

/* Every byte of a message has only one meaning, so decoded bytes encode to the same bytes. */
static void a_changed_byte_is_refused_or_changes_the_message(void **state)
{
	uint8_t buf[MESSAGE_SIZE], again[MESSAGE_SIZE];
	struct message got;

	for (unsigned type = 1; type < MESSAGE_TYPE_END; type++) {
		struct message m = sample((enum message_type)type);

		for (unsigned at = 0; at < MESSAGE_SIZE; at++)
			for (unsigned bit = 0; bit < 8; bit++) {
				message_encode(&m, version_newest(), buf);
				buf[at] ^= (uint8_t)(1u << bit);
				if (message_decode(buf, sizeof(buf), version_newest(), &got))
					continue;
				message_encode(&got, version_newest(), again);
				assert_memory_equal(again, buf, sizeof(buf));
			}
	}
}

static void values_outside_of_their_bounds_are_refused(void **state)
{
	static const struct {
		enum message_type type;
		unsigned at; /* offset of the changed byte in the body */
		uint8_t value;
	} cases[] = {
		{MESSAGE_GRANT, 0, GREETING_STATUS_END},
		{MESSAGE_GRANT, 1, MIRROR_COPY_COUNT},
		{MESSAGE_GRANT, 2, 4},
		{MESSAGE_GRANT, 47, MESSAGE_DESC_MAX + 1},
		{MESSAGE_PROMISED, 1, 0x80},
		{MESSAGE_RANGES, 8, MESSAGE_RANGES_MAX + 1},
		{MESSAGE_RANGES, 9 + 7, 1},     /* an offset of 2^56 */
		{MESSAGE_RANGES, 9 + 8 + 6, 1}, /* a length of 2^48 */
		{MESSAGE_RESYNC_BEGIN, 0, 8},
		{MESSAGE_RETIRE, 0, 1}, /* a body in a message that has none */
		{MESSAGE_STATUS, 0, MIRROR_ROLE_COUNT},
		{MESSAGE_DONE, 0, MESSAGE_TYPE_END},
		{MESSAGE_RESERVE, 0, 1},  /* a size that is no multiple of a block */
		{MESSAGE_RESERVE, 1, 0},  /* a size of 0 */
		{MESSAGE_RESERVE, 6, 64}, /* a size of 2^54 */
		{MESSAGE_RESERVED, 8, MESSAGE_RESERVE_FAILED + 1},
		{MESSAGE_CLEAR_ERRORS, 0, 1},   /* an offset that is no multiple of a block */
		{MESSAGE_CLEAR_ERRORS, 6, 64},  /* an offset of 2^54 */
		{MESSAGE_CLEAR_ERRORS, 8, 1},   /* a length that is no multiple of a block */
		{MESSAGE_CLEAR_ERRORS, 10, 0},  /* a length of 0 */
		{MESSAGE_CLEAR_ERRORS, 10, 17}, /* more blocks than one message may request */
		{MESSAGE_CLEAR_ERRORS, 12, 1},  /* a range past the end of the file */
		{MESSAGE_ERRORS_CLEARED, 0, 1}, /* an answer that is both under way and finished */
		{MESSAGE_ERRORS_CLEARED, 0, 2},
		{MESSAGE_ERRORS_CLEARED, 2, 1}, /* more blocks than were requested */
		{MESSAGE_ERRORS_CLEARED, 3, 0}, /* a failed block without an error number */
		{MESSAGE_ERRORS_CLEARED, 5, 1},
	};
	uint8_t buf[MESSAGE_SIZE];

	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		struct message m = sample(cases[i].type);

		message_encode(&m, version_newest(), buf);
		buf[44 + cases[i].at] = cases[i].value;
		assert_int_equal(message_decode(buf, sizeof(buf), version_newest(), &m), -EPROTO);
	}
}

static void an_empty_range_is_none(void **state)
{
	struct message m = {.type = MESSAGE_RECORD_RANGES, .ranges = {.count = 1}};
	uint8_t buf[MESSAGE_SIZE];

	message_encode(&m, version_newest(), buf);
	assert_int_equal(message_decode(buf, sizeof(buf), version_newest(), &m), -EPROTO);
}

/* The previous release refuses a status with a flag that it does not define. */
static void version_1_has_no_flags_of_findings(void **state)
{
	struct message m = sample(MESSAGE_STATUS), got;
	uint8_t buf[MESSAGE_SIZE];

	message_encode(&m, 1, buf);
	assert_int_equal(message_decode(buf, sizeof(buf), 1, &got), 0);
	assert_int_equal(got.status.flags, MESSAGE_STATUS_HELD);
	assert_int_equal(got.status.members[7].p99_us, 7);
}

static void another_version_is_known_as_such(void **state)
{
	struct message m = sample(MESSAGE_PING);
	uint8_t buf[MESSAGE_SIZE];

	message_encode(&m, version_newest(), buf);
	buf[4]++;
	assert_int_equal(message_decode(buf, sizeof(buf), version_newest(), &m), -EPROTONOSUPPORT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_message_comes_back_as_it_went),
		cmocka_unit_test(a_message_has_its_documented_bytes),
		cmocka_unit_test(no_other_length_is_taken),
		cmocka_unit_test(a_changed_byte_is_refused_or_changes_the_message),
		cmocka_unit_test(values_outside_of_their_bounds_are_refused),
		cmocka_unit_test(an_empty_range_is_none),
		cmocka_unit_test(version_1_has_no_flags_of_findings),
		cmocka_unit_test(another_version_is_known_as_such),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
