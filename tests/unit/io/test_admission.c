/* SPDX-License-Identifier: BSD-3-Clause */
/* test_admission.c -- a listener holds back connections from addresses that guess: how many, and
 * until when. */
#include "lib/unit.h"

#include <stdlib.h>

#include "base/clock.h"
#include "softrnic/io/admission.h"
#include "softrnic/io/rate_limit.h"

#define INTERVAL (NSEC_PER_SEC / 10) /* the default of SOFTRNIC_VIOLATIONS_PER_S is 10 */
#define START    (1000 * NSEC_PER_SEC)

static struct admission admission;

static struct link_addr violator(unsigned char host)
{
	struct link_addr addr = {.family = LINK_IPV4, .bytes = {10, 0, 0, host}};

	for (int i = 0; i < RATE_LIMIT_BURST; i++)
		admission_count_violation(&addr, START);
	return addr;
}

/* A link whose only operation is close(), which it counts. */
struct counted_link {
	struct link link;
	int number;
};
static int open_links, links_made, last_closed;

static void counted_close(struct link *l)
{
	last_closed = ((struct counted_link *)l)->number;
	free(l);
	open_links--;
}

static const struct link_ops counted = {.close = counted_close};

static struct link *open_link(void)
{
	struct counted_link *l = calloc(1, sizeof(*l));

	assert_non_null(l);
	l->link.ops = &counted;
	l->number = ++links_made;
	open_links++;
	return &l->link;
}

static int setup(void **state)
{
	admission_init(&admission);
	return 0;
}

static int teardown(void **state)
{
	admission_fini(&admission);
	return 0;
}

static void the_innocent_need_not_wait(void **state)
{
	struct link_addr peer = {.family = LINK_IPV4};
	uint64_t until;
	struct link *link = open_link();

	assert_false(admission_hold(&admission, link, &peer, START, &until));
	assert_int_equal(open_links, 1);
	counted_close(link);
	assert_null(admission_next(&admission, START, &until));
	assert_true(until == CLOCK_NEVER);
}

/* admission_next() returns the connection whose time has come first, and the time of the next one.
 * So the listener wakes only at these times, and need not check all held connections. */
static void each_gets_the_time_of_its_turn(void **state)
{
	struct link_addr peer = violator(1), worse = violator(2);
	uint64_t until, until_worse, next;
	struct link *link = open_link(), *other = open_link();

	admission_count_violation(&worse, START);
	assert_true(admission_hold(&admission, other, &worse, START, &until_worse));
	assert_true(admission_hold(&admission, link, &peer, START, &until));
	assert_true(until > START && until <= START + INTERVAL);
	assert_true(until_worse == until + INTERVAL);
	assert_null(admission_next(&admission, START, &next));
	assert_true(next == until);
	assert_null(admission_next(&admission, until - 1, &next));
	assert_ptr_equal(admission_next(&admission, until, &next), link);
	assert_null(admission_next(&admission, until, &next));
	assert_true(next == until_worse);
	assert_ptr_equal(admission_next(&admission, until_worse, &next), other);
	counted_close(link);
	counted_close(other);
}

static void the_longest_wait_ends_for_the_newest(void **state)
{
	struct link_addr peer = violator(3);
	int first = links_made + 1;
	uint64_t until;

	for (int i = 0; i < ADMISSION_MAX; i++)
		assert_true(admission_hold(&admission, open_link(), &peer, START, &until));
	assert_int_equal(open_links, ADMISSION_MAX);
	assert_true(admission_hold(&admission, open_link(), &peer, START, &until));
	assert_int_equal(open_links, ADMISSION_MAX);
	assert_int_equal(last_closed, first);
	admission_fini(&admission);
	assert_int_equal(open_links, 0);
	assert_int_equal(admission.n_held, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_innocent_need_not_wait, setup, teardown),
		cmocka_unit_test_setup_teardown(each_gets_the_time_of_its_turn, setup, teardown),
		cmocka_unit_test_setup_teardown(the_longest_wait_ends_for_the_newest, setup,
						teardown),
	};

	return cmocka_run_group_tests_name("admission", tests, NULL, NULL);
}
