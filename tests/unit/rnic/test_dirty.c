/* SPDX-License-Identifier: BSD-3-Clause */
/* test_dirty.c -- the record of placed ranges must include each byte until it is written back. */
#include "lib/unit.h"

#include <string.h>

#include "softrnic/rnic/dirty.h"

enum { UNIT = 16384, UNITS = 64, REGIONS = 3, STEPS = 20000 };

static unsigned char memory[REGIONS][16]; /* used only for its addresses: no byte is stored */
static struct mr mrs[REGIONS];
static bool dirty_units[REGIONS][UNITS]; /* the units that the record must cover */
static struct dirty d;

static void *address(int r, size_t unit)
{
	return (void *)((uintptr_t)memory[r] + unit * UNIT);
}

static int setup(void **state)
{
	d = (struct dirty){.region = NULL};
	memset(dirty_units, 0, sizeof(dirty_units));
	for (int r = 0; r < REGIONS; r++) {
		mrs[r] = (struct mr){.start = memory[r]};
		atomic_init(&mrs[r].refs, 1); /* a reference that is never dropped */
	}
	return 0;
}

static int teardown(void **state)
{
	dirty_fini(&d);
	for (int r = 0; r < REGIONS; r++)
		assert_int_equal(atomic_load(&mrs[r].refs), 1);
	return 0;
}

static void note(int r, size_t unit, size_t n)
{
	assert_int_equal(dirty_note(&d, &mrs[r], address(r, unit), n * UNIT), 0);
	for (size_t i = unit; i < unit + n; i++)
		dirty_units[r][i] = true;
}

static void clean(int r, size_t unit, size_t n)
{
	dirty_clean(&d, &mrs[r], address(r, unit), n * UNIT);
	for (size_t i = unit; i < unit + n; i++)
		dirty_units[r][i] = false;
}

/* Take all ranges out of the record, and check that they cover the units. */
static unsigned expect_covered(void)
{
	struct dirty_range range;
	unsigned intervals = 0;
	struct mr *mr;

	while ((mr = dirty_next(&d, &range))) {
		int r = (int)(mr - mrs);

		assert_in_range(r, 0, REGIONS - 1);
		assert_true(range.lo < range.hi && range.hi <= (uint64_t)UNITS * UNIT);
		for (size_t i = range.lo / UNIT; i < range.hi / UNIT; i++)
			dirty_units[r][i] = false;
		mr_unref(mr);
		intervals++;
	}
	for (int r = 0; r < REGIONS; r++)
		for (int i = 0; i < UNITS; i++)
			assert_false(dirty_units[r][i]);
	return intervals;
}

static void whatever_is_placed_is_covered(void **state)
{
	uint32_t x = 1;

	for (int step = 0; step < STEPS; step++) {
		int r;
		size_t unit, n;

		x = x * 1664525 + 1013904223;
		r = (int)(x >> 8) % REGIONS;
		unit = (x >> 12) % UNITS;
		n = 1 + (x >> 20) % 4;
		n = unit + n > UNITS ? UNITS - unit : n;
		if (x >> 30 == 0)
			clean(r, unit, n);
		else
			note(r, unit, n);
		if (x % 97 == 0)
			expect_covered();
	}
	expect_covered();
}

static void what_extends_or_repeats_the_last_write_is_one_interval(void **state)
{
	for (size_t i = 0; i < UNITS; i++)
		note(0, i, 1);
	note(0, 5, 3);
	assert_int_equal(expect_covered(), 1);
}

/* Two streams of writes alternate. */
static void neighbours_far_apart_stay_apart(void **state)
{
	for (size_t i = 0; i < 8; i++) {
		note(0, i, 1);
		note(0, 40 + i, 1);
	}
	assert_int_equal(expect_covered(), 2);
}

/* Ranges that are near become one, because one write-back for both costs less than two. */
static void what_is_near_becomes_one_interval(void **state)
{
	const size_t near = DIRTY_NEAR / UNIT;

	note(0, 0, 1);
	note(0, 1 + near, 1);
	assert_int_equal(expect_covered(), 1);
	note(0, 0, 1);
	note(0, 2 + near, 1);
	assert_int_equal(expect_covered(), 2);
}

static void what_was_cleaned_is_not_in_the_note(void **state)
{
	note(0, 0, 4);
	clean(0, 0, 4);
	note(1, 8, 4);
	clean(1, 8, 2);
	assert_int_equal(d.count, 1);
	assert_int_equal(d.region[0].range[0].lo, 10 * UNIT);
	assert_int_equal(expect_covered(), 1);
}

#define EMPTY(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		EMPTY(whatever_is_placed_is_covered),
		EMPTY(what_extends_or_repeats_the_last_write_is_one_interval),
		EMPTY(neighbours_far_apart_stay_apart),
		EMPTY(what_is_near_becomes_one_interval),
		EMPTY(what_was_cleaned_is_not_in_the_note),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
