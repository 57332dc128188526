/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/unit.h"

#include "base/list.h"

struct item {
	int value;
	struct list link;
};

static int value_of(struct list *l)
{
	return container_of(l, struct item, link)->value;
}

static void nodes_keep_the_order_they_were_added_in(void **state)
{
	struct list head = LIST_INIT(head);
	struct item a = {.value = 1}, b = {.value = 2}, c = {.value = 3};
	struct list *it;
	int sum = 0;

	assert_true(list_empty(&head));
	assert_null(list_first(&head));
	list_add_tail(&head, &a.link);
	list_add_tail(&head, &b.link);
	list_add_tail(&head, &c.link);
	list_for_each (it, &head)
		sum = 10 * sum + value_of(it);
	assert_int_equal(sum, 123);
	assert_int_equal(value_of(list_pop(&head)), 1);
	assert_int_equal(value_of(list_first(&head)), 2);
}

static void deleting_twice_is_harmless(void **state)
{
	struct list head = LIST_INIT(head);
	struct item a = {.value = 1}, b = {.value = 2};

	list_add_tail(&head, &a.link);
	list_add_tail(&head, &b.link);
	list_del(&a.link);
	list_del(&a.link);
	assert_ptr_equal(list_first(&head), &b.link);
	assert_ptr_equal(list_pop(&head), &b.link);
	assert_null(list_pop(&head));
}

static void nodes_may_be_deleted_while_walking(void **state)
{
	struct list head = LIST_INIT(head);
	struct item items[5];
	struct list *it, *next;

	for (int i = 0; i < 5; i++) {
		items[i].value = i;
		list_add_tail(&head, &items[i].link);
	}
	list_for_each_safe (it, next, &head)
		if (value_of(it) % 2)
			list_del(it);
	assert_int_equal(value_of(list_pop(&head)), 0);
	assert_int_equal(value_of(list_pop(&head)), 2);
	assert_int_equal(value_of(list_pop(&head)), 4);
	assert_true(list_empty(&head));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(nodes_keep_the_order_they_were_added_in),
		cmocka_unit_test(deleting_twice_is_harmless),
		cmocka_unit_test(nodes_may_be_deleted_while_walking),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
