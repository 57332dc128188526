/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections that are not admitted yet: how many there may be, and which one is dropped at a
 * limit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "service/arrival.h"

#define MAX 8 /* at most 2 of these connections come from one address */

static struct arrivals list;
static struct arrival a, b, c, d, e, others[MAX];

static void wait_from(struct arrival *one, const char *addr, uint64_t deadline)
{
	*one = (struct arrival){.addr = addr, .deadline = deadline};
	arrivals_add(&list, one);
}

static int begin(void **state)
{
	arrivals_init(&list);
	return 0;
}

static void the_oldest_of_an_address_makes_way(void **state)
{
	wait_from(&a, "10.0.0.2", 5);
	wait_from(&b, "10.0.0.1", 6);
	assert_null(arrivals_surplus(&list, "10.0.0.1", MAX));
	wait_from(&c, "10.0.0.1", 7);
	assert_ptr_equal(arrivals_surplus(&list, "10.0.0.1", MAX), &b);
	assert_null(arrivals_surplus(&list, "10.0.0.3", MAX));
}

static void the_oldest_of_all_makes_way(void **state)
{
	static const char *const addrs[MAX] = {"a", "b", "c", "d", "e", "f", "g", "h"};

	for (unsigned i = 0; i < MAX - 1; i++)
		wait_from(&others[i], addrs[i], 5);
	assert_null(arrivals_surplus(&list, "z", MAX));
	wait_from(&others[MAX - 1], addrs[MAX - 1], 5);
	assert_ptr_equal(arrivals_surplus(&list, "z", MAX), &others[0]);
	arrivals_remove(&list, &others[0]);
	assert_int_equal(list.count[ARRIVAL_PENDING], MAX - 1);
	assert_null(arrivals_surplus(&list, "z", MAX));
	wait_from(&e, "z", 5);
	assert_ptr_equal(arrivals_surplus(&list, "y", MAX), &others[1]);
}

/* An address that has its full share displaces only its own connections. */
static void an_address_pushes_out_its_own_first(void **state)
{
	wait_from(&a, "10.0.0.1", 5);
	wait_from(&b, "10.0.0.2", 6);
	wait_from(&c, "10.0.0.2", 7);
	wait_from(&d, "10.0.0.3", 8);
	assert_ptr_equal(arrivals_surplus(&list, "10.0.0.2", MAX), &b);
}

static void a_limit_of_none_permits_one(void **state)
{
	assert_null(arrivals_surplus(&list, "10.0.0.1", 0));
	wait_from(&a, "10.0.0.1", 5);
	assert_ptr_equal(arrivals_surplus(&list, "10.0.0.1", 0), &a);
}

/* Connections whose deadline has passed are found although the list has another order. */
static void the_overdue_are_found(void **state)
{
	uint64_t nearest;

	assert_null(arrivals_overdue(&list, 100, &nearest));
	assert_int_equal(nearest, UINT64_MAX);
	wait_from(&a, "10.0.0.1", 9);
	wait_from(&b, "10.0.0.1", 5);
	wait_from(&c, "10.0.0.1", 7);
	assert_null(arrivals_overdue(&list, 4, &nearest));
	assert_int_equal(nearest, 5);
	assert_ptr_equal(arrivals_overdue(&list, 5, &nearest), &b);
	arrivals_remove(&list, &b);
	assert_ptr_equal(arrivals_overdue(&list, 8, &nearest), &c);
	arrivals_remove(&list, &c);
	assert_null(arrivals_overdue(&list, 8, &nearest));
	assert_int_equal(nearest, 9);
	assert_ptr_equal(arrivals_overdue(&list, 9, &nearest), &a);
}

/* Only pending connections count as pending: not those that were refused or admitted. An admitted
 * connection has no deadline. */
static void each_state_is_counted_for_itself(void **state)
{
	uint64_t nearest;

	wait_from(&a, "10.0.0.1", 5);
	wait_from(&b, "10.0.0.1", 6);
	assert_ptr_equal(arrivals_surplus(&list, "10.0.0.1", MAX), &a);
	arrivals_enter(&list, &a, ARRIVAL_REFUSED);
	assert_null(arrivals_surplus(&list, "10.0.0.1", MAX));
	assert_int_equal(list.count[ARRIVAL_PENDING], 1);
	assert_int_equal(list.count[ARRIVAL_REFUSED], 1);
	assert_ptr_equal(arrivals_overdue(&list, 5, &nearest), &a);
	arrivals_remove(&list, &a);
	arrivals_enter(&list, &b, ARRIVAL_ADMITTED);
	assert_null(arrivals_overdue(&list, 100, &nearest));
	assert_int_equal(nearest, UINT64_MAX);
	c = (struct arrival){.state = ARRIVAL_ADMITTED, .addr = "10.0.0.1", .deadline = 1};
	arrivals_add(&list, &c);
	assert_null(arrivals_overdue(&list, 100, &nearest));
	assert_int_equal(list.count[ARRIVAL_ADMITTED], 2);
	arrivals_remove(&list, &b);
	arrivals_remove(&list, &c);
	assert_int_equal(list.count[ARRIVAL_ADMITTED], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(the_oldest_of_an_address_makes_way, begin),
		cmocka_unit_test_setup(the_oldest_of_all_makes_way, begin),
		cmocka_unit_test_setup(an_address_pushes_out_its_own_first, begin),
		cmocka_unit_test_setup(a_limit_of_none_permits_one, begin),
		cmocka_unit_test_setup(the_overdue_are_found, begin),
		cmocka_unit_test_setup(each_state_is_counted_for_itself, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
