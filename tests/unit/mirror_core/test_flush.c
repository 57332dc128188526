/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirror/core/flush.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define A MIRROR_BIT(0)
#define B MIRROR_BIT(1)
#define C MIRROR_BIT(2)

static struct flush_core f;

static int setup(void **state)
{
	flush_init(&f);
	flush_member_begin(&f, 1, false);
	flush_member_begin(&f, 2, false);
	return 0;
}

static void test_settled_when_all_members_have_it(void **state)
{
	uint64_t seq = flush_begin(&f);

	assert_int_equal(seq, 1);
	assert_int_equal(flush_members(&f), B | C);
	assert_int_equal(flush_lacking(&f, seq, B | C), B | C);
	flush_on_done(&f, 1, seq);
	assert_int_equal(flush_lacking(&f, seq, B | C), C);
	assert_int_equal(flush_acked(&f, B | C), 0);
	flush_on_done(&f, 2, seq);
	assert_int_equal(flush_lacking(&f, seq, B | C), 0);
	assert_false(flush_local_done(&f, seq));
	assert_int_equal(flush_acked(&f, B | C), 0);
	flush_on_local(&f, seq, false);
	assert_int_equal(flush_acked(&f, B | C), 1);
}

static void test_completion_of_one_includes_the_earlier(void **state)
{
	for (int i = 0; i < 3; i++)
		flush_begin(&f);
	flush_on_done(&f, 1, 3);
	assert_int_equal(flush_lacking(&f, 1, B), 0);
	/* a late answer with a smaller number does not undo the acknowledgement */
	flush_on_done(&f, 1, 2);
	assert_int_equal(flush_lacking(&f, 3, B), 0);
}

static void test_local_write_backs_end_in_any_order(void **state)
{
	for (int i = 0; i < 3; i++)
		flush_begin(&f);
	flush_on_done(&f, 1, 3);
	flush_on_local(&f, 3, false);
	assert_false(flush_local_done(&f, 3)); /* an earlier write-back is still running */
	assert_int_equal(flush_acked(&f, B), 0);
	flush_on_local(&f, 1, false);
	assert_int_equal(flush_acked(&f, B), 1);
	flush_on_local(&f, 2, false);
	assert_int_equal(flush_acked(&f, B), 3);
}

/* The kernel reports a failure only once. If write-backs overlap, each may have failed although the
 * kernel reported the error to another one. */
static void test_a_local_write_back_is_certain_when_those_beside_it_have_ended(void **state)
{
	for (int i = 0; i < 3; i++)
		flush_begin(&f);
	flush_on_done(&f, 1, 4);
	flush_on_local(&f, 1, true);
	/* write-backs 1 to 3 overlap, so any of them may have failed */
	assert_int_equal(flush_acked(&f, B), 0);
	flush_on_local(&f, 2, true);
	assert_int_equal(flush_acked(&f, B), 0);
	flush_begin(&f); /* begins after the ends of write-backs 1 and 2 */
	flush_on_local(&f, 3, true);
	assert_int_equal(flush_acked(&f, B), 2); /* write-back 4 overlaps with 3 */
	flush_on_local(&f, 4, true);
	assert_int_equal(flush_acked(&f, B), 4);
}

static void test_a_member_that_is_gone_lacks_everything(void **state)
{
	uint64_t seq = flush_begin(&f);

	flush_on_done(&f, 1, seq);
	flush_on_done(&f, 2, seq);
	flush_on_local(&f, seq, false);
	flush_retire(&f, flush_acked(&f, B | C));
	flush_begin(&f);
	flush_on_local(&f, 2, false);
	flush_on_done(&f, 2, 2);
	flush_member_end(&f, 1);
	assert_int_equal(flush_members(&f), C);
	assert_int_equal(flush_lacking(&f, 2, B | C), B);
	/* flush 2 counts only after the member is excluded */
	assert_int_equal(flush_acked(&f, B | C), 1);
	assert_int_equal(flush_acked(&f, C), 2);
}

/* A flush that began before a member joined does not wait for the member, because the member's
 * resync carries the flush. */
static void test_a_joining_member_has_the_later_ones_only(void **state)
{
	uint64_t before = flush_begin(&f), after;

	flush_member_end(&f, 1);
	flush_member_begin(&f, 1, false);
	after = flush_begin(&f);
	assert_int_equal(flush_lacking(&f, before, B), 0);
	assert_int_equal(flush_lacking(&f, after, B), B);
}

/*
 * A member that returns while it is still in the in-sync set delays flushes: no flush is
 * acknowledged before the member's copy is equal.
 */
static void test_a_member_that_came_back_owes_the_earlier_ones(void **state)
{
	uint64_t before = flush_begin(&f);

	flush_on_local(&f, before, false);
	flush_member_end(&f, 1);
	flush_member_begin(&f, 1, true);
	assert_int_equal(flush_lacking(&f, before, B), B);
	assert_int_equal(flush_acked(&f, B), 0);
	flush_member_paid(&f, 1);
	assert_int_equal(flush_lacking(&f, before, B), 0);
	assert_int_equal(flush_acked(&f, B), 1);
}

static void expect_cover(unsigned slot, uint64_t offset, uint64_t len)
{
	struct mirror_range span = flush_cover(&f, slot);

	assert_int_equal(span.len, len);
	if (len)
		assert_int_equal(span.offset, offset);
}

/*
 * Each member has one number for all its flushes: a flush operation between two parts of another
 * flush also covers the first part.
 */
static void test_a_flush_operation_covers_all_that_was_placed_before(void **state)
{
	expect_cover(1, 0, 0);
	flush_on_placed(&f, 1, (struct mirror_range){8192, 100});
	flush_on_placed(&f, 1, (struct mirror_range){0, 10});
	expect_cover(1, 0, 8292);
	expect_cover(1, 0, 0);
	flush_on_placed(&f, 1, (struct mirror_range){5000, 100});
	expect_cover(1, 5000, 100);
	expect_cover(2, 0, 0); /* no byte was placed at this member */
	flush_on_placed(&f, 1, (struct mirror_range){0, 10});
	flush_member_end(&f, 1);
	flush_member_begin(&f, 1, false); /* on a new connection */
	expect_cover(1, 0, 0);
}

static void test_numbers_are_used_again_only_when_retired(void **state)
{
	for (int i = 0; i < FLUSH_MAX; i++)
		assert_int_equal(flush_begin(&f), i + 1);
	assert_int_equal(flush_begin(&f), 0);
	flush_on_local(&f, 1, false);
	flush_on_done(&f, 1, 1);
	flush_retire(&f, flush_acked(&f, B));
	assert_int_equal(flush_begin(&f), FLUSH_MAX + 1);
	assert_false(flush_local_done(&f, FLUSH_MAX + 1));
	assert_int_equal(flush_begin(&f), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_settled_when_all_members_have_it, setup),
		cmocka_unit_test_setup(test_completion_of_one_includes_the_earlier, setup),
		cmocka_unit_test_setup(test_local_write_backs_end_in_any_order, setup),
		cmocka_unit_test_setup(
			test_a_local_write_back_is_certain_when_those_beside_it_have_ended, setup),
		cmocka_unit_test_setup(test_a_member_that_is_gone_lacks_everything, setup),
		cmocka_unit_test_setup(test_a_joining_member_has_the_later_ones_only, setup),
		cmocka_unit_test_setup(test_a_member_that_came_back_owes_the_earlier_ones, setup),
		cmocka_unit_test_setup(test_a_flush_operation_covers_all_that_was_placed_before,
				       setup),
		cmocka_unit_test_setup(test_numbers_are_used_again_only_when_retired, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
