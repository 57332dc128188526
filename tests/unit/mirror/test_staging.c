/* SPDX-License-Identifier: BSD-3-Clause */
/* Flushes copy their data into a ring before they send them. The ring's memory is allocated on
 * first use. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "mirror/staging.h"

#define SIZE (1u << 20)

static uint64_t take(struct staging *s, uint64_t len)
{
	uint64_t at = UINT64_MAX;

	assert_true(staging_take(s, len, &at));
	assert_true(at + len <= SIZE);
	return at;
}

/* The library reuses freed pages: new pages would have to be allocated, and are not in the CPU's
 * cache. */
static void test_flushes_one_after_the_other_stay_near_the_beginning(void **state)
{
	struct staging s = {.size = SIZE};

	(void)state;
	for (int i = 0; i < 10000; i++) {
		assert_true(take(&s, 4160) <= 64u << 10);
		staging_free(&s, s.end);
	}
}

static void test_what_is_in_use_is_not_given_away(void **state)
{
	struct staging s = {.size = SIZE};
	uint64_t first = take(&s, SIZE / 2), upto = s.end, second = take(&s, SIZE / 4), at;

	(void)state;
	assert_true(first + SIZE / 2 <= second);
	staging_free(&s, upto);
	take(&s, SIZE / 4);
	assert_int_equal(take(&s, SIZE / 2), first);
	assert_false(staging_take(&s, 64, &at));
	staging_free(&s, s.end);
	assert_int_equal(take(&s, SIZE / 2), first);
}

static void test_what_was_not_used_is_taken_again(void **state)
{
	struct staging s = {.size = SIZE};
	uint64_t first = take(&s, SIZE / 2), second;

	(void)state;
	second = take(&s, SIZE / 4);
	staging_return(&s, second);
	assert_int_equal(take(&s, SIZE / 4), second);
	staging_return(&s, second);
	staging_return(&s, first);
	assert_int_equal(take(&s, SIZE / 2), first);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_flushes_one_after_the_other_stay_near_the_beginning),
		cmocka_unit_test(test_what_is_in_use_is_not_given_away),
		cmocka_unit_test(test_what_was_not_used_is_taken_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
