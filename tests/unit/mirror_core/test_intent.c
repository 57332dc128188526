/* SPDX-License-Identifier: BSD-3-Clause */
/* Records of flushes in a ring: the layout, torn records, and which records count after a fence. */
#include "lib/unit.h"

#include <stdlib.h>
#include <string.h>

#include "mirror/core/intent.h"

#define SIZE (1ull << 46)

static uint8_t *ring;
static struct mirror_range seen[4096];
static unsigned seen_count;

static int setup(void **state)
{
	ring = calloc(1, INTENT_RING_BYTES);
	seen_count = 0;
	return ring ? 0 : -1;
}

static int teardown(void **state)
{
	free(ring);
	return 0;
}

static struct mirror_epoch epoch(uint64_t number)
{
	return (struct mirror_epoch){number, number + 100};
}

static void put(uint64_t number, uint64_t seq, uint64_t acked, struct mirror_range range)
{
	struct intent_head head = {seq, epoch(number), acked, 1};
	uint8_t slot[INTENT_BYTES];
	size_t len = intent_encode(slot, &head, &range);

	assert_int_equal(len, INTENT_HEADER + INTENT_RANGE);
	memcpy(ring + intent_slot_offset(seq), slot, len);
}

static void see(void *arg, const struct mirror_range *range)
{
	assert_true(seen_count < ARRAY_LEN(seen));
	seen[seen_count++] = *range;
}

static uint32_t read_ring(uint64_t from, uint64_t upto)
{
	struct intent_reader reader = {ring, SIZE, from, upto};

	seen_count = 0;
	return intent_read(&reader, see, NULL);
}

static void lies_as_documented(void **state)
{
	struct mirror_range range = {0x0102030405, 0x060708};
	struct intent_head head = {7, {8, 9}, 6, 1};
	uint8_t slot[INTENT_BYTES] = {0};
	static const uint8_t golden[INTENT_HEADER + INTENT_RANGE] = {
		'R', 'I', 'N', 'T', 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0,
		0,   0,   0,   0,   9, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0,
		1,   0,   0,   0,   0, 0, 0, 0, 5, 4, 3, 2, 1, 0, 8, 7, 6, 0, 0, 0};

	assert_int_equal(intent_encode(slot, &head, &range), sizeof(golden));
	assert_memory_equal(slot, golden, 4);
	assert_memory_equal(slot + 8, golden + 8, sizeof(golden) - 8);
	/* Another program computed this checksum of the bytes from offset 8 on. */
	assert_int_equal(slot[4] | slot[5] << 8 | slot[6] << 16 | (uint32_t)slot[7] << 24,
			 0x1b8fcdb8);
}

static void comes_back_as_it_was_for_each_count(void **state)
{
	struct mirror_range ranges[INTENT_RANGES_MAX];
	uint8_t slot[INTENT_BYTES];
	struct intent got;
	uint64_t random = 5;

	assert_int_equal(INTENT_RANGES_MAX, 81);
	for (uint32_t n = 0; n <= INTENT_RANGES_MAX; n++) {
		struct intent_head head = {n + 5, epoch(3), n + 4, n};

		for (uint32_t i = 0; i < n; i++) {
			ranges[i].offset = test_random(&random) >> 19;
			ranges[i].len = test_random(&random) % (SIZE - ranges[i].offset + 1);
		}
		memset(slot, 0xee, sizeof(slot));
		assert_int_equal(intent_encode(slot, &head, ranges), 48 + 12 * n);
		assert_true(intent_decode(slot, SIZE, &got));
		assert_int_equal(got.head.seq, head.seq);
		assert_int_equal(got.head.acked, head.acked);
		assert_int_equal(got.head.count, head.count);
		assert_true(mirror_epoch_is_equal(got.head.epoch, head.epoch));
		assert_memory_equal(got.ranges, ranges, n * sizeof(*ranges));
	}
}

static void each_flipped_bit_and_each_torn_end_is_seen(void **state)
{
	struct mirror_range ranges[3] = {{0, 8}, {64, 64}, {1 << 20, 4096}};
	struct intent_head head = {9, epoch(2), 4, 3};
	uint8_t slot[INTENT_BYTES] = {0}, torn[INTENT_BYTES];
	size_t len = intent_encode(slot, &head, ranges);
	struct intent got;

	for (size_t bit = 0; bit < 8 * len; bit++) {
		slot[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_false(intent_decode(slot, SIZE, &got));
		slot[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	memset(torn, 0, sizeof(torn));
	for (size_t n = 0; n < len / 8 * 8; n += 8) {
		memcpy(torn, slot, n);
		assert_false(intent_decode(torn, SIZE, &got));
	}
	assert_true(intent_decode(slot, SIZE, &got));
}

static void a_range_behind_the_file_is_no_intent(void **state)
{
	struct mirror_range range = {4096, 4097};
	struct intent_head head = {1, epoch(1), 0, 1};
	uint8_t slot[INTENT_BYTES];
	struct intent got;

	intent_encode(slot, &head, &range);
	assert_false(intent_decode(slot, 8192, &got));
	assert_true(intent_decode(slot, 8193, &got));
	range = (struct mirror_range){8192, 0};
	intent_encode(slot, &head, &range);
	assert_true(intent_decode(slot, 8192, &got));
	assert_false(intent_decode(slot, 8191, &got));
}

static void only_what_was_not_acknowledged_counts(void **state)
{
	for (uint64_t seq = 1; seq <= 10; seq++)
		put(5, seq, seq > 3 ? seq - 3 : 0, (struct mirror_range){seq * 100, 10});
	/* The tenth record states that the first seven flushes are on all members. */
	assert_int_equal(read_ring(0, 5), 3);
	assert_int_equal(seen_count, 3);
	assert_int_equal(seen[0].offset, 800);
	assert_int_equal(seen[2].offset, 1000);
}

static void a_ring_that_came_around_counts_as_one(void **state)
{
	for (uint64_t seq = 1; seq <= 3000; seq++)
		put(5, seq, seq - 1, (struct mirror_range){seq, 1});
	assert_int_equal(read_ring(0, 5), 1);
	assert_int_equal(seen[0].offset, 3000);
}

static void epochs_do_not_acknowledge_each_other(void **state)
{
	put(5, 2, 0, (struct mirror_range){1, 1});
	put(6, 9, 8, (struct mirror_range){2, 1});
	assert_int_equal(read_ring(0, 6), 2);
	assert_int_equal(read_ring(6, 6), 1); /* records of earlier epochs are retired */
	assert_int_equal(seen[0].offset, 2);
	assert_int_equal(read_ring(0, 5), 1); /* no primary of this epoch was promised */
	assert_int_equal(seen[0].offset, 1);
	assert_int_equal(read_ring(7, 9), 0);
}

static void the_last_number_is_found(void **state)
{
	struct intent_reader reader = {ring, SIZE, 0, 5};

	assert_int_equal(intent_last(&reader), 0);
	put(5, 1027, 1026, (struct mirror_range){1, 1});
	put(5, 5, 4, (struct mirror_range){1, 1});
	assert_int_equal(intent_last(&reader), 1027);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(lies_as_documented),
		TEST(comes_back_as_it_was_for_each_count),
		TEST(each_flipped_bit_and_each_torn_end_is_seen),
		TEST(a_range_behind_the_file_is_no_intent),
		TEST(only_what_was_not_acknowledged_counts),
		TEST(a_ring_that_came_around_counts_as_one),
		TEST(epochs_do_not_acknowledge_each_other),
		TEST(the_last_number_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
