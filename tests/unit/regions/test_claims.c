/* SPDX-License-Identifier: BSD-3-Clause */
/* A claim of a range holds until a newer claim includes a byte of the range; then it never holds
 * again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "regions/claims.h"

static struct claim_id add(struct claims *c, uint64_t from, uint64_t to)
{
	return claims_add(c, from, to, (uint64_t)rand(), 7);
}

static void each_claim_has_the_next_generation(void **state)
{
	struct claims c = {.newest = 0};

	for (uint64_t i = 1; i <= 3 * CLAIMS_MAX; i++)
		assert_int_equal(add(&c, i % 5, i % 5 + i % 3).generation, i);
	assert_int_equal(c.newest, 3 * CLAIMS_MAX);
	assert_true(claims_are_sound(&c));
}

static void a_claim_holds_until_a_newer_one_has_a_byte_of_it(void **state)
{
	struct claims c = {.newest = 0};
	struct claim_id first = add(&c, 100, 200), second;

	assert_true(claims_hold(&c, 100, 200, first));
	second = add(&c, 200, 300);
	assert_true(claims_hold(&c, 100, 200, first));
	assert_true(claims_hold(&c, 200, 300, second));
	add(&c, 0, 101);
	assert_false(claims_hold(&c, 100, 200, first));
	assert_int_equal(claims_last(&c, 100, 200)->id.generation, 3);
	assert_int_equal(claims_last(&c, 150, 200)->id.generation, 1);
	assert_null(claims_last(&c, 300, 400));
	assert_true(claims_hold(&c, 200, 300, second));
	add(&c, 0, 1000);
	assert_int_equal(c.count, 1);
	assert_false(claims_hold(&c, 200, 300, second));
}

/* The generation alone is not enough: it can be from a lost record, or guessed. */
static void only_the_very_claim_holds(void **state)
{
	struct claims c = {.newest = 0};
	struct claim_id id = add(&c, 100, 200);

	assert_false(claims_hold(&c, 99, 200, id));
	assert_false(claims_hold(&c, 100, 201, id));
	assert_false(claims_hold(&c, 300, 301, id));
	/* an empty range always holds, because no byte can be written in it */
	assert_true(claims_hold(&c, 120, 120, id));
	id.key ^= 1;
	assert_false(claims_hold(&c, 100, 200, id));
	id.key ^= 1;
	id.generation++;
	assert_false(claims_hold(&c, 100, 200, id));
	assert_false(claims_hold(&c, 100, 200, (struct claim_id){UINT64_MAX, 0}));
}

/*
 * Compare with a model that has one generation for each byte: a claim that is void in the model
 * must be void here.
 */
static void too_many_claims_make_old_ones_void_and_none_valid(void **state)
{
	enum { BYTES = 1000, CLAIMS = 2000 };
	static uint64_t newest[BYTES];
	static struct {
		uint64_t from, to;
		struct claim_id id;
	} all[CLAIMS];
	struct claims c = {.newest = 0};
	unsigned held = 0;

	srand(1);
	for (unsigned i = 0; i < CLAIMS; i++) {
		uint64_t from = (uint64_t)rand() % BYTES, to = from + 1 + (uint64_t)rand() % 9;

		to = to > BYTES ? BYTES : to;
		all[i].from = from;
		all[i].to = to;
		all[i].id = add(&c, from, to);
		for (uint64_t at = from; at < to; at++)
			newest[at] = all[i].id.generation;
		assert_true(claims_are_sound(&c));
		assert_true(claims_hold(&c, from, to, all[i].id));
	}
	for (unsigned i = 0; i < CLAIMS; i++) {
		if (!claims_hold(&c, all[i].from, all[i].to, all[i].id))
			continue;
		held++;
		for (uint64_t at = all[i].from; at < all[i].to; at++)
			assert_int_equal(newest[at], all[i].id.generation);
	}
	assert_in_range(held, 30, CLAIMS_MAX);
}

static void what_was_never_made_is_not_sound(void **state)
{
	struct claims good = {.newest = 0}, bad;

	add(&good, 0, 10);
	add(&good, 10, 20);
	bad = good;
	bad.count = CLAIMS_MAX + 1;
	assert_false(claims_are_sound(&bad));
	bad = good;
	bad.newest = 1;
	assert_false(claims_are_sound(&bad));
	bad = good;
	bad.list[1].id.generation = 1;
	assert_false(claims_are_sound(&bad));
	bad = good;
	bad.list[0].id.generation = 0;
	assert_false(claims_are_sound(&bad));
	bad = good;
	bad.list[0].from = 11;
	assert_false(claims_are_sound(&bad));
	assert_true(claims_are_sound(&good));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_claim_has_the_next_generation),
		cmocka_unit_test(a_claim_holds_until_a_newer_one_has_a_byte_of_it),
		cmocka_unit_test(only_the_very_claim_holds),
		cmocka_unit_test(too_many_claims_make_old_ones_void_and_none_valid),
		cmocka_unit_test(what_was_never_made_is_not_sound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
