/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of written ranges that may not be durable, compared with an array of bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "regions/file_ranges.h"

#define BYTES 4096

/* For each byte the ticket of the sync that makes it durable; 0: the byte is durable. */
struct model {
	uint64_t ticket[BYTES];
};

static void note(struct file_ranges *r, struct model *m, uint64_t from, uint64_t len,
		 uint64_t ticket)
{
	file_ranges_note(r, from, len, ticket);
	for (uint64_t i = from; i < from + len; i++)
		m->ticket[i] = ticket;
}

static void decide(struct file_ranges *r, struct model *m, uint64_t from, uint64_t len,
		   uint64_t ticket)
{
	struct rpma_file_range range = {from, len};

	if (len == BYTES)
		file_ranges_decide_all(r, ticket);
	else
		file_ranges_decide(r, &range, ticket);
	for (uint64_t i = from; i < from + len; i++)
		if (m->ticket[i] <= ticket)
			m->ticket[i] = 0;
}

static int is_noted(const struct file_ranges *r, uint64_t byte)
{
	for (unsigned i = 0; i < r->count; i++)
		if (byte >= r->noted[i].from && byte < r->noted[i].to)
			return 1;
	return 0;
}

static void assert_nothing_is_missing(const struct file_ranges *r, const struct model *m)
{
	for (uint64_t i = 0; i < BYTES; i++)
		if (m->ticket[i])
			assert_true(is_noted(r, i));
}

static void assert_nothing_is_too_much(const struct file_ranges *r, const struct model *m)
{
	for (uint64_t i = 0; i < BYTES; i++)
		assert_int_equal(is_noted(r, i), m->ticket[i] != 0);
}

static void a_sync_decides_what_was_written_before(void **state)
{
	struct file_ranges *r = calloc(1, sizeof(*r));
	struct model m = {0};

	note(r, &m, 0, 100, 1);
	note(r, &m, 100, 50, 1);
	assert_int_equal(r->count, 1); /* adjacent ranges become one */
	note(r, &m, 10, 10, 2);
	decide(r, &m, 0, BYTES, 1);
	assert_nothing_is_too_much(r, &m);
	assert_int_equal(r->count, 1);
	assert_int_equal(r->noted[0].from, 10);
	decide(r, &m, 0, BYTES, 2);
	assert_int_equal(r->count, 0);
	free(r);
}

static void a_sync_of_a_range_leaves_what_is_beside_it(void **state)
{
	struct file_ranges *r = calloc(1, sizeof(*r));
	struct model m = {0};

	note(r, &m, 100, 300, 1);
	decide(r, &m, 200, 50, 1);
	assert_int_equal(r->count, 2);
	assert_nothing_is_too_much(r, &m);
	decide(r, &m, 0, 150, 1);
	decide(r, &m, 350, 1000, 1);
	assert_nothing_is_too_much(r, &m);
	note(r, &m, 160, 10, 3);
	decide(r, &m, 100, 300, 2);
	assert_int_equal(r->count, 1);
	assert_nothing_is_too_much(r, &m);
	free(r);
}

static void writes_at_random_are_all_noted(void **state)
{
	for (unsigned seed = 1; seed <= 40; seed++) {
		struct file_ranges *r = calloc(1, sizeof(*r));
		struct model m = {0};
		uint64_t ticket = 0;

		srand(seed);
		for (int i = 0; i < 300; i++) {
			uint64_t from = (uint64_t)rand() % (BYTES - 1);
			uint64_t len = 1 + (uint64_t)rand() % (BYTES - from) % 200;

			if (rand() % 3)
				note(r, &m, from, len, ticket + 1);
			else if (rand() % 4)
				decide(r, &m, from, len, ticket += (uint64_t)rand() % 2);
			else
				decide(r, &m, 0, BYTES, ticket);
			assert_nothing_is_missing(r, &m);
		}
		file_ranges_merge(r, ticket + 1);
		assert_nothing_is_missing(r, &m);
		decide(r, &m, 0, BYTES, ticket + 1);
		assert_int_equal(r->count, 0);
		free(r);
	}
}

/* The number of ranges is limited: some ranges grow, but no byte is dropped. */
static void very_many_ranges_become_fewer_and_larger(void **state)
{
	struct file_ranges *r = calloc(1, sizeof(*r));
	uint64_t end = 0;

	for (unsigned i = 0; i < 10 * FILE_RANGES_MAX; i++) {
		file_ranges_note(r, (uint64_t)i * 100, 10, 1 + i / 100);
		assert_true(r->count < FILE_RANGES_MAX);
		end = (uint64_t)i * 100 + 10;
	}
	for (uint64_t byte = 0; byte < end; byte += 100)
		assert_true(is_noted(r, byte) && is_noted(r, byte + 9));
	file_ranges_decide_all(r, 1 + 10 * FILE_RANGES_MAX / 100);
	assert_int_equal(r->count, 0);
	free(r);
}

/* Cutting a range in two needs space for one more range. Without it the range stays whole, and its
 * durable part counts as not durable. */
static void a_range_is_not_cut_in_two_without_room_for_one_more(void **state)
{
	struct file_ranges *r = calloc(1, sizeof(*r));
	struct rpma_file_range middle = {4, 2};

	for (unsigned i = 0; i < FILE_RANGES_MAX - 2; i++)
		file_ranges_note(r, (uint64_t)i * 100, 10, 1);
	file_ranges_decide(r, &middle, 1);
	assert_int_equal(r->count, FILE_RANGES_MAX - 1);
	assert_false(is_noted(r, 4));
	middle.offset += 100;
	file_ranges_decide(r, &middle, 1);
	assert_int_equal(r->count, FILE_RANGES_MAX - 1);
	assert_true(is_noted(r, 104));
	file_ranges_note(r, 1, 1, 2);
	assert_true(r->count < FILE_RANGES_MAX);
	free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sync_decides_what_was_written_before),
		cmocka_unit_test(a_sync_of_a_range_leaves_what_is_beside_it),
		cmocka_unit_test(writes_at_random_are_all_noted),
		cmocka_unit_test(very_many_ranges_become_fewer_and_larger),
		cmocka_unit_test(a_range_is_not_cut_in_two_without_room_for_one_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
