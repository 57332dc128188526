/* SPDX-License-Identifier: BSD-3-Clause */
/* Compare lists of ranges with a map that has one byte for each byte of a small file. */
#include "mirror/core/ranges.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SIZE = 5 * MIRROR_BLOCK + 1000, COUNT = 12, ROUNDS = 2000 };

struct map {
	uint8_t bytes[SIZE];
};

static void map_fill(struct map *map, const struct mirror_range *v, uint32_t n)
{
	memset(map, 0, sizeof(*map));
	for (uint32_t i = 0; i < n; i++)
		memset(map->bytes + v[i].offset, 1, v[i].len);
}

static void assert_normal(const struct mirror_range *v, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		assert_true(v[i].len > 0);
		if (i)
			assert_true(v[i].offset > v[i - 1].offset + v[i - 1].len);
	}
}

static uint32_t make_ranges(struct mirror_range *v, unsigned seed)
{
	uint32_t n = rand_r(&seed) % (COUNT + 1);

	for (uint32_t i = 0; i < n; i++) {
		v[i].offset = rand_r(&seed) % SIZE;
		v[i].len = rand_r(&seed) % 3 ? rand_r(&seed) % 300 : rand_r(&seed) % SIZE;
		if (v[i].len > SIZE - v[i].offset)
			v[i].len = SIZE - v[i].offset;
	}
	return n;
}

static void test_normal_lists_have_the_same_bytes(void **state)
{
	struct map before, after;
	struct mirror_range v[COUNT];

	for (unsigned seed = 0; seed < ROUNDS; seed++) {
		uint32_t n = make_ranges(v, seed);

		map_fill(&before, v, n);
		n = ranges_normalise(v, n);
		map_fill(&after, v, n);
		assert_normal(v, n);
		assert_memory_equal(&before, &after, sizeof(before));
	}
}

static void test_rounding_covers_whole_blocks_and_no_more(void **state)
{
	struct map exact, round;
	struct mirror_range v[COUNT];

	for (unsigned seed = 0; seed < ROUNDS; seed++) {
		uint32_t n = make_ranges(v, seed);

		map_fill(&exact, v, n);
		n = ranges_round(v, n, MIRROR_BLOCK, SIZE);
		map_fill(&round, v, n);
		assert_normal(v, n);
		for (size_t block = 0; block < SIZE; block += MIRROR_BLOCK) {
			size_t len = SIZE - block < MIRROR_BLOCK ? SIZE - block : MIRROR_BLOCK;
			bool touched = memchr(exact.bytes + block, 1, len) != NULL;

			assert_int_equal(round.bytes[block], touched);
			assert_int_equal(round.bytes[block + len - 1], touched);
		}
	}
}

static void test_fewer_ranges_cover_the_same(void **state)
{
	struct map before, after;
	struct mirror_range v[COUNT];

	for (unsigned seed = 0; seed < ROUNDS; seed++) {
		uint32_t max = 1 + seed % 4, n = make_ranges(v, seed), normal;

		normal = ranges_normalise(v, n);
		map_fill(&before, v, normal);
		n = ranges_coarsen(v, normal, max, SIZE);
		map_fill(&after, v, n);
		assert_true(n <= max);
		assert_true(!n || v[n - 1].offset + v[n - 1].len <= SIZE);
		assert_normal(v, n);
		for (size_t i = 0; i < SIZE; i++)
			assert_true(after.bytes[i] >= before.bytes[i]);
		if (normal <= max) /* without a merge the result must be exact */
			assert_memory_equal(&before, &after, sizeof(before));
	}
}

static void test_overlap(void **state)
{
	struct map x, y;
	struct mirror_range a[COUNT], b[COUNT];

	for (unsigned seed = 0; seed < ROUNDS; seed++) {
		uint32_t an = ranges_normalise(a, make_ranges(a, seed));
		uint32_t bn = ranges_normalise(b, make_ranges(b, seed + ROUNDS));
		bool both = false;

		map_fill(&x, a, an);
		map_fill(&y, b, bn);
		for (size_t i = 0; i < SIZE; i++)
			both = both || (x.bytes[i] && y.bytes[i]);
		assert_int_equal(ranges_overlap(a, an, b, bn), both);
	}
}

static void test_what_is_behind_the_end_is_cut_off(void **state)
{
	struct mirror_range v[] = {{0, 10},  {90, 10},         {95, 20},
				   {100, 1}, {99, UINT64_MAX}, {500, 0}};

	assert_int_equal(ranges_clip(v, sizeof(v) / sizeof(v[0]), 100), 4);
	assert_int_equal(v[0].len, 10);
	assert_int_equal(v[1].len, 10);
	assert_int_equal(v[2].offset, 95);
	assert_int_equal(v[2].len, 5);
	assert_int_equal(v[3].offset, 99);
	assert_int_equal(v[3].len, 1);
	assert_int_equal(ranges_clip(v, 0, 100), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_normal_lists_have_the_same_bytes),
		cmocka_unit_test(test_rounding_covers_whole_blocks_and_no_more),
		cmocka_unit_test(test_fewer_ranges_cover_the_same),
		cmocka_unit_test(test_what_is_behind_the_end_is_cut_off),
		cmocka_unit_test(test_overlap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
