/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An initiator names every connection that it has given up, and no living one, in bounded memory.
 */
#include "lib/unit.h"

#include <string.h>

#include "softrnic/stream/former.h"

#define MANY 1000

static const uint8_t target[EXT_ID_LEN] = "a target", other[EXT_ID_LEN] = "another";
static const uint8_t fresh[EXT_ID_LEN] = "me";
static struct formers all;
static struct former f[MANY + 1];
static struct ext_origin named;

static int begin(void **state)
{
	formers_init(&all);
	memset(f, 0, sizeof(f));
	return 0;
}

static int end(void **state)
{
	formers_reset(&all);
	return 0;
}

static void join_to(struct former *x, const uint8_t *instance)
{
	bool dropped;

	assert_int_equal(former_join(&all, x, instance, fresh, &dropped), 0);
	assert_false(dropped);
}

static void join(unsigned from, unsigned to)
{
	for (unsigned i = from; i <= to; i++)
		join_to(&f[i], target);
}

static void lose(unsigned i)
{
	former_give_up(&f[i]);
	former_leave(&all, &f[i], false);
}

static void names(const struct former *x, unsigned n)
{
	former_name(x, &named);
	assert_int_equal(named.n, n);
}

static void range_is(unsigned i, uint64_t first, uint64_t last)
{
	assert_int_equal(named.ranges[i].first, first);
	assert_int_equal(named.ranges[i].last, last);
}

static void nothing_is_named_that_has_ended(void **state)
{
	join(1, 3);
	former_give_up(&f[1]);
	former_leave(&all, &f[1], true);
	names(&f[3], 0);
	assert_int_equal(named.serial, 3);
	assert_memory_equal(named.id, fresh, EXT_ID_LEN);
}

static void what_is_given_up_is_named_before_it_is_closed(void **state)
{
	join(1, 2);
	former_give_up(&f[1]);
	names(&f[2], 1);
	range_is(0, 1, 1);
	former_leave(&all, &f[1], false);
	names(&f[2], 1);
	range_is(0, 1, 1);
}

static void living_ones_are_left_out(void **state)
{
	join(1, 5);
	lose(2);
	lose(4);
	names(&f[5], 2);
	range_is(0, 2, 2);
	range_is(1, 4, 4);
	former_leave(&all, &f[3], true); /* This connection has ended, so two gaps become one. */
	names(&f[5], 1);
	range_is(0, 2, 4);
}

static void a_later_one_names_those_that_began_after_it(void **state)
{
	join(1, 3);
	lose(3);
	names(&f[1], 1);
	range_is(0, 3, 3);
}

static void a_thousand_are_one_interval(void **state)
{
	join(1, MANY);
	for (unsigned i = 1; i < MANY; i++)
		lose(i);
	names(&f[MANY], 1);
	range_is(0, 1, MANY - 1);
}

static void more_than_a_message_takes_are_named_one_message_after_the_other(void **state)
{
	unsigned messages = 0, ranges = 0;

	join(1, MANY);
	for (unsigned i = 1; i < MANY; i += 2)
		lose(i);
	for (former_name(&f[MANY], &named); named.n; former_name(&f[MANY], &named), messages++) {
		ranges += named.n;
		former_fenced(&f[MANY], &named);
	}
	assert_int_equal(ranges, MANY / 2);
	assert_int_equal(messages, (MANY / 2 + EXT_ORIGIN_RANGES - 1) / EXT_ORIGIN_RANGES);
}

static void what_is_fenced_is_forgotten(void **state)
{
	struct ext_origin first;

	join(1, 4);
	lose(1);
	former_give_up(&f[2]);
	former_name(&f[3], &first);
	lose(4); /* the target still works on the first question */
	former_fenced(&f[3], &first);
	names(&f[3], 1);
	range_is(0, 4, 4);
	former_leave(&all, &f[2], false); /* the target has cut this connection */
	names(&f[3], 1);
	range_is(0, 4, 4);
}

static void one_that_was_widened_meanwhile_is_named_again(void **state)
{
	struct ext_origin first;

	join(1, 3);
	lose(1);
	former_name(&f[3], &first);
	lose(2);
	former_fenced(&f[3], &first);
	names(&f[3], 1);
	range_is(0, 1, 2);
}

static void targets_do_not_learn_of_each_other(void **state)
{
	join(1, 2);
	join_to(&f[3], other);
	lose(1);
	names(&f[3], 0);
	assert_int_equal(named.serial, 1);
	names(&f[2], 1);
}

static void what_was_given_up_outlives_the_last_connection(void **state)
{
	join(1, 1);
	lose(1);
	join(2, 2);
	names(&f[2], 1);
	range_is(0, 1, 1);
	assert_int_equal(named.serial, 2);
	former_fenced(&f[2], &named);
	former_leave(&all, &f[2], true);
	assert_int_equal(all.n, 0);
}

static void the_oldest_target_is_dropped_when_there_are_too_many(void **state)
{
	uint8_t instance[EXT_ID_LEN] = {0};
	unsigned drops = 0;

	for (unsigned i = 0; i < FORMER_TARGETS_MAX + 2; i++) {
		bool dropped;

		memcpy(instance, &i, sizeof(i));
		assert_int_equal(former_join(&all, &f[1], instance, fresh, &dropped), 0);
		lose(1);
		drops += dropped;
	}
	assert_int_equal(drops, 2);
	assert_int_equal(all.n, FORMER_TARGETS_MAX);
}

#define TEST(x) cmocka_unit_test_setup_teardown(x, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nothing_is_named_that_has_ended),
		TEST(what_is_given_up_is_named_before_it_is_closed),
		TEST(living_ones_are_left_out),
		TEST(a_later_one_names_those_that_began_after_it),
		TEST(a_thousand_are_one_interval),
		TEST(more_than_a_message_takes_are_named_one_message_after_the_other),
		TEST(what_is_fenced_is_forgotten),
		TEST(one_that_was_widened_meanwhile_is_named_again),
		TEST(targets_do_not_learn_of_each_other),
		TEST(what_was_given_up_outlives_the_last_connection),
		TEST(the_oldest_target_is_dropped_when_there_are_too_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
