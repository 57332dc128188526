/* SPDX-License-Identifier: BSD-3-Clause */
/* test_timers.c -- timers expire in the order of their deadlines, whichever timers were set, moved
 * and removed before. */
#include "lib/unit.h"

#include "base/clock.h"
#include "softrnic/io/timers.h"

enum { MANY = 200, ROUNDS = 20000, LATEST = 1000 };

static struct timers timers;
static struct eng_timer timer[MANY];

static int setup(void **state)
{
	timers = (struct timers){0};
	for (int i = 0; i < MANY; i++)
		timer[i] = (struct eng_timer){.at = CLOCK_NEVER};
	return 0;
}

static uint64_t earliest(void)
{
	uint64_t at = CLOCK_NEVER;

	for (int i = 0; i < MANY; i++)
		at = timer[i].at < at ? timer[i].at : at;
	return at;
}

static void nothing_is_due_where_nothing_is_set(void **state)
{
	assert_int_equal(timers_next(&timers), CLOCK_NEVER);
	assert_null(timers_expired(&timers, LATEST));
}

static void a_deadline_comes_once_and_not_too_early(void **state)
{
	timers_set(&timers, &timer[0], 10);
	assert_null(timers_expired(&timers, 9));
	assert_ptr_equal(timers_expired(&timers, 10), &timer[0]);
	assert_int_equal(timer[0].at, CLOCK_NEVER);
	assert_null(timers_expired(&timers, LATEST));
}

static void a_timer_that_is_moved_counts_once(void **state)
{
	timers_set(&timers, &timer[0], 10);
	timers_set(&timers, &timer[0], 30);
	timers_set(&timers, &timer[1], 20);
	assert_ptr_equal(timers_expired(&timers, 30), &timer[1]);
	assert_ptr_equal(timers_expired(&timers, 30), &timer[0]);
	assert_null(timers_expired(&timers, 30));
}

static void a_timer_that_is_taken_out_never_comes(void **state)
{
	timers_set(&timers, &timer[0], 10);
	timers_set(&timers, &timer[1], 20);
	timers_set(&timers, &timer[0], CLOCK_NEVER);
	timers_set(&timers, &timer[0], CLOCK_NEVER);
	assert_ptr_equal(timers_expired(&timers, LATEST), &timer[1]);
	assert_null(timers_expired(&timers, LATEST));
}

static void the_earliest_is_always_known(void **state)
{
	uint64_t seed = 7;

	for (int round = 0; round < ROUNDS; round++) {
		struct eng_timer *t = &timer[test_random(&seed) % MANY];
		uint64_t at = test_random(&seed) % LATEST;

		if (at % 8 == 0) {
			at = timers_next(&timers);
			t = timers_expired(&timers, at);
			if (t)
				assert_int_equal(t->at, CLOCK_NEVER);
		} else {
			timers_set(&timers, t, at % 8 == 1 ? CLOCK_NEVER : at);
		}
		assert_int_equal(timers_next(&timers), earliest());
	}
}

static void all_come_in_order(void **state)
{
	uint64_t seed = 11, last = 0;
	int count = 0;

	for (int i = 0; i < MANY; i++)
		timers_set(&timers, &timer[i], test_random(&seed) % LATEST);
	for (; timers_next(&timers) != CLOCK_NEVER; count++) {
		uint64_t at = timers_next(&timers);

		assert_in_range(at, last, LATEST);
		assert_non_null(timers_expired(&timers, at));
		last = at;
	}
	assert_int_equal(count, MANY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(nothing_is_due_where_nothing_is_set, setup),
		cmocka_unit_test_setup(a_deadline_comes_once_and_not_too_early, setup),
		cmocka_unit_test_setup(a_timer_that_is_moved_counts_once, setup),
		cmocka_unit_test_setup(a_timer_that_is_taken_out_never_comes, setup),
		cmocka_unit_test_setup(the_earliest_is_always_known, setup),
		cmocka_unit_test_setup(all_come_in_order, setup),
	};

	return cmocka_run_group_tests_name("timers", tests, NULL, NULL);
}
