/* SPDX-License-Identifier: BSD-3-Clause */
/* The numbers of queue pairs that belong to rdma_cm ids. */
#include <errno.h>

#include "lib/unit.h"

#include "softrnic/verbs/id_qp_num.h"
#include "softrnic/verbs/qp_make.h"

#define ALL (QP_NUM_PLAIN - 2)

static uint32_t taken(void)
{
	uint32_t num;

	assert_int_equal(id_qp_num_take(&num), 0);
	assert_in_range(num, 2, QP_NUM_PLAIN - 1);
	return num;
}

/* One connection keeps its number while other connections begin and end. */
static void a_number_in_use_is_passed_over(void **state)
{
	uint32_t kept = taken();

	for (uint32_t i = 0; i < 2 * ALL; i++) {
		uint32_t num = taken();

		assert_int_not_equal(num, kept);
		id_qp_num_give(num);
	}
	id_qp_num_give(kept);
}

static void a_number_returns_late(void **state)
{
	uint32_t num = taken();

	id_qp_num_give(num);
	assert_int_not_equal(taken(), num);
}

static void all_of_them_can_be_taken_and_no_more(void **state)
{
	static bool seen[QP_NUM_PLAIN];
	uint32_t num, n = 0;

	while (!id_qp_num_take(&num)) {
		assert_false(seen[num]);
		seen[num] = true;
		n++;
	}
	assert_true(n >= ALL - 1); /* an earlier test still uses one number */
	id_qp_num_give(2 + ALL / 2);
	assert_int_equal(taken(), 2 + ALL / 2);
	assert_int_equal(id_qp_num_take(&num), -ENOMEM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_number_in_use_is_passed_over),
		cmocka_unit_test(a_number_returns_late),
		cmocka_unit_test(all_of_them_can_be_taken_and_no_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
