/* SPDX-License-Identifier: BSD-3-Clause */
/* For which view, and for how long, an operator's order to promote is valid. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "mirror/core/promotion.h"

static const struct mirror_view looked_at = {.epoch = {5, 77}, .seq = 3, .primary = 1, .insync = 6};

static struct promotion_order order_of(enum promotion_kind kind)
{
	return (struct promotion_order){.kind = kind, .view = looked_at};
}

static void each_order_counts_for_its_view(void **state)
{
	const struct promotion_order order = order_of(PROMOTION_ORDER);
	const struct promotion_order force = order_of(PROMOTION_FORCE);
	const struct promotion_order none = order_of(PROMOTION_NO_ORDER);

	assert_int_equal(promotion_order_permits(&order, &looked_at), PROMOTION_ORDER);
	assert_int_equal(promotion_order_permits(&force, &looked_at), PROMOTION_FORCE);
	assert_int_equal(promotion_order_permits(&none, &looked_at), PROMOTION_NO_ORDER);
}

static void what_is_over_permits_nothing(void **state)
{
	struct promotion_order order = order_of(PROMOTION_ORDER), force = order_of(PROMOTION_FORCE);

	order.is_over = force.is_over = true;
	assert_int_equal(promotion_order_permits(&order, &looked_at), PROMOTION_NO_ORDER);
	assert_int_equal(promotion_order_permits(&force, &looked_at), PROMOTION_NO_ORDER);
}

/* The lease and the rules of S also hold for a promotion that an operator orders. */
static void without_force_an_order_counts_for_its_epoch(void **state)
{
	const struct promotion_order order = order_of(PROMOTION_ORDER);
	struct mirror_view now = looked_at;

	now.seq++;
	now.insync = 2;
	assert_int_equal(promotion_order_permits(&order, &now), PROMOTION_ORDER);
	now.epoch.number++;
	assert_int_equal(promotion_order_permits(&order, &now), PROMOTION_NO_ORDER);
	now.epoch = (struct mirror_epoch){5, 78};
	assert_int_equal(promotion_order_permits(&order, &now), PROMOTION_NO_ORDER);
}

static void force_counts_for_nothing_but_its_view(void **state)
{
	const struct promotion_order force = order_of(PROMOTION_FORCE);
	struct mirror_view other[] = {looked_at, looked_at, looked_at, looked_at, looked_at};

	other[0].seq++;
	other[1].insync = 2;
	other[2].primary = 2;
	other[3].epoch.number++;
	other[4].epoch.nonce++;
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(promotion_order_permits(&force, &other[i]), PROMOTION_NO_ORDER);
}

static void a_swap_by_force_needs_an_order_by_force(void **state)
{
	const struct mirror_view after = {.forced = true};

	assert_true(promotion_lacks_order(&after, true, PROMOTION_NO_ORDER));
	assert_true(promotion_lacks_order(&after, true, PROMOTION_ORDER));
	assert_false(promotion_lacks_order(&after, false, PROMOTION_FORCE));
}

static void another_swap_needs_one_unless_the_process_may_follow(void **state)
{
	const struct mirror_view after = {.forced = false};

	assert_false(promotion_lacks_order(&after, true, PROMOTION_NO_ORDER));
	assert_true(promotion_lacks_order(&after, false, PROMOTION_NO_ORDER));
	assert_false(promotion_lacks_order(&after, false, PROMOTION_ORDER));
	assert_false(promotion_lacks_order(&after, false, PROMOTION_FORCE));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_order_counts_for_its_view),
		cmocka_unit_test(what_is_over_permits_nothing),
		cmocka_unit_test(without_force_an_order_counts_for_its_epoch),
		cmocka_unit_test(force_counts_for_nothing_but_its_view),
		cmocka_unit_test(a_swap_by_force_needs_an_order_by_force),
		cmocka_unit_test(another_swap_needs_one_unless_the_process_may_follow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
