/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/unit.h"

#include <string.h>

#include "softrnic/trace/pcapng.h"

/* The expected bytes are for a little-endian machine; on others only properties are tested. */
static bool little_endian(void)
{
	return *(const uint8_t *)&(uint16_t){1} == 1;
}

static void a_section_has_one_interface_with_nanoseconds(void **state)
{
	/* clang-format off */
	static const uint8_t golden[] = {
		0x0a, 0x0d, 0x0d, 0x0a, 40, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0,
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
		4, 0, 3, 0, 'a', 'p', 'p', 0, 0, 0, 0, 0, 40, 0, 0, 0,
		1, 0, 0, 0, 40, 0, 0, 0, 101, 0, 0, 0, 0, 0, 0, 0,
		2, 0, 4, 0, 'c', 'a', 'r', 'd', 9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0, 40, 0, 0, 0,
	};
	/* clang-format on */
	uint8_t buf[PCAPNG_SECTION_MAX];
	size_t len = pcapng_encode_section(buf, sizeof(buf), "app", "card");

	assert_int_equal(len, sizeof(golden));
	if (little_endian())
		assert_memory_equal(buf, golden, len);
	assert_true(pcapng_is_section(buf));
	assert_int_equal(pcapng_encode_section(buf, len - 1, "app", "card"), 0);
}

static void other_files_are_no_captures(void **state)
{
	static const uint8_t pcap[PCAPNG_MAGIC_LEN] = {0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0};
	uint8_t swapped[PCAPNG_MAGIC_LEN] = {0x0a, 0x0d, 0x0d, 0x0a, 0,    0,
					     0,    28,   0x1a, 0x2b, 0x3c, 0x4d};

	assert_false(pcapng_is_section(pcap));
	assert_false(pcapng_is_section((const uint8_t *)"#!/bin/bash\n"));
	assert_true(pcapng_is_section(swapped));
	swapped[8] = 0;
	assert_false(pcapng_is_section(swapped));
}

static void a_packet_has_time_lengths_and_direction(void **state)
{
	/* clang-format off */
	static const uint8_t golden[] = {
		6, 0, 0, 0, 60, 0, 0, 0, 0, 0, 0, 0, 0x67, 0x45, 0x23, 0x01, 0xef, 0xcd, 0xab, 0x89,
		5, 0, 0, 0, 9, 0, 0, 0, 'b', 'y', 't', 'e', 's', 0, 0, 0,
		1, 0, 2, 0, 'h', 'i', 0, 0, 2, 0, 4, 0, 2, 0, 0, 0, 0, 0, 0, 0, 60, 0, 0, 0,
	};
	/* clang-format on */
	struct pcapng_packet packet = {0x0123456789abcdef, 5, 9, true, "hi"};
	uint8_t block[sizeof(golden) + PCAPNG_TAIL_MAX];
	size_t tail;

	pcapng_encode_head(block, &packet);
	memcpy(block + PCAPNG_HEAD, "bytes", 5);
	tail = pcapng_encode_tail(block + PCAPNG_HEAD + 5, &packet);
	assert_int_equal(PCAPNG_HEAD + 5 + tail, sizeof(golden));
	if (little_endian())
		assert_memory_equal(block, golden, sizeof(golden));
}

static void every_length_is_padded_and_written_twice(void **state)
{
	char comment[PCAPNG_COMMENT_MAX + 2] = {0};

	for (uint32_t len = 0; len < 9; len++)
		for (size_t chars = 0; chars < sizeof(comment) - 1; chars++) {
			struct pcapng_packet packet = {1, len, len, false, comment};
			uint8_t head[PCAPNG_HEAD], tail[PCAPNG_TAIL_MAX];
			uint32_t total, again;
			size_t n;

			memset(comment, 'c', chars);
			comment[chars] = '\0';
			pcapng_encode_head(head, &packet);
			n = pcapng_encode_tail(tail, &packet);
			memcpy(&total, head + 4, 4);
			memcpy(&again, tail + n - 4, 4);
			assert_int_equal(total, PCAPNG_HEAD + len + n);
			assert_int_equal(again, total);
			assert_int_equal(total % 4, 0);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_section_has_one_interface_with_nanoseconds),
		cmocka_unit_test(other_files_are_no_captures),
		cmocka_unit_test(a_packet_has_time_lengths_and_direction),
		cmocka_unit_test(every_length_is_padded_and_written_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
