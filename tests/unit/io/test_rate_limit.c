/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_rate_limit.c -- an address that makes many wrong guesses has to wait in the long run; other
 * addresses need not.
 */
#include "lib/unit.h"

#include <arpa/inet.h>
#include <stdio.h>

#include "base/clock.h"
#include "softrnic/io/link_sockaddr.h"
#include "softrnic/io/rate_limit.h"

#define RATE     10
#define INTERVAL (NSEC_PER_SEC / RATE)
#define START    (1000 * NSEC_PER_SEC)

static struct rate_limit limit;

static int setup(void **state)
{
	rate_limit_init(&limit, RATE);
	return 0;
}

static const struct link_addr *address(const char *text)
{
	static struct link_addr addr;
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
	struct sockaddr_in in = {.sin_family = AF_INET};

	if (inet_pton(AF_INET, text, &in.sin_addr) == 1) {
		addr = link_addr_from((struct sockaddr *)&in);
		return &addr;
	}
	assert_int_equal(inet_pton(AF_INET6, text, &in6.sin6_addr), 1);
	addr = link_addr_from((struct sockaddr *)&in6);
	return &addr;
}

static void violate(const char *who, int times, uint64_t now)
{
	for (int i = 0; i < times; i++)
		rate_limit_count(&limit, address(who), now);
}

static uint64_t wait_of(const char *who, uint64_t now)
{
	return rate_limit_until(&limit, address(who), now) - now;
}

static void an_idle_user_does_not_wait(void **state)
{
	assert_int_equal(wait_of("192.0.2.1", START), 0);
	assert_int_equal(wait_of("2001:db8::1", START), 0);
}

static void mistakes_up_to_the_burst_are_free(void **state)
{
	violate("192.0.2.1", RATE_LIMIT_BURST - 1, START);
	assert_int_equal(wait_of("192.0.2.1", START), 0);
	violate("192.0.2.1", 1, START);
	assert_int_not_equal(wait_of("192.0.2.1", START), 0);
}

static void the_wait_is_as_long_as_announced(void **state)
{
	uint64_t wait;

	violate("192.0.2.1", RATE_LIMIT_BURST, START);
	wait = wait_of("192.0.2.1", START);
	assert_true(wait <= INTERVAL);
	assert_int_equal(wait_of("192.0.2.1", START + wait - 1), 1);
	assert_int_equal(wait_of("192.0.2.1", START + wait), 0);
}

/* Guess as soon as the last wait is over, for an hour. */
static void the_rate_holds_in_the_long_run(void **state)
{
	uint64_t now = START, end = START + 3600 * NSEC_PER_SEC;
	unsigned long guesses = 0;

	while ((now += wait_of("192.0.2.1", now)) < end) {
		violate("192.0.2.1", 1, now);
		guesses++;
	}
	assert_in_range(guesses, 3600 * RATE, RATE_LIMIT_BURST + 3600 * RATE);
}

/*
 * Connections that exist already are not cut, so all of them can guess at the same time. Afterwards
 * the address has to wait for all of these guesses.
 */
static void a_crowd_at_once_pays_afterwards(void **state)
{
	uint64_t now = START;
	unsigned long guesses = 0;

	while ((now += wait_of("192.0.2.1", now)) < START + 3600 * NSEC_PER_SEC) {
		violate("192.0.2.1", 1000, now);
		guesses += 1000;
	}
	assert_true(guesses <= RATE_LIMIT_BURST + 3600 * RATE + 1000);
}

static void a_quiet_address_is_forgiven(void **state)
{
	violate("192.0.2.1", RATE_LIMIT_BURST, START);
	violate("192.0.2.1", RATE_LIMIT_BURST - 1, START + RATE_LIMIT_BURST * INTERVAL);
	assert_int_equal(wait_of("192.0.2.1", START + RATE_LIMIT_BURST * INTERVAL), 0);
}

static void others_do_not_wait(void **state)
{
	violate("192.0.2.1", 10 * RATE_LIMIT_BURST, START);
	assert_int_equal(wait_of("192.0.2.2", START), 0);
	assert_int_equal(wait_of("2001:db8::1", START), 0);
	assert_int_equal(wait_of("::1", START), 0);
}

static void a_v6_neighbourhood_is_one_address(void **state)
{
	violate("2001:db8:0:1::1", RATE_LIMIT_BURST, START);
	assert_int_not_equal(wait_of("2001:db8:0:1:ffff::2", START), 0);
	assert_int_equal(wait_of("2001:db8:0:2::1", START), 0);
}

/* A socket for both families shows IPv4 peers as IPv4-mapped addresses. */
static void a_mapped_v4_address_is_itself(void **state)
{
	violate("::ffff:192.0.2.1", RATE_LIMIT_BURST, START);
	assert_int_not_equal(wait_of("192.0.2.1", START), 0);
	assert_int_equal(wait_of("::ffff:192.0.2.2", START), 0);
}

/* The table is full of addresses with few guesses. The addresses with most guesses stay in it. */
static void the_worst_are_remembered(void **state)
{
	char text[16];

	violate("192.0.2.1", 2 * RATE_LIMIT_BURST, START);
	for (int i = 0; i < 4 * RATE_LIMIT_HOSTS; i++) {
		snprintf(text, sizeof(text), "10.0.%d.%d", i >> 8, i & 0xff);
		violate(text, 1, START);
	}
	assert_int_not_equal(wait_of("192.0.2.1", START), 0);
	/* A new address can still enter the table. */
	violate("192.0.2.2", RATE_LIMIT_BURST, START);
	assert_int_not_equal(wait_of("192.0.2.2", START), 0);
}

static void no_limit_is_no_limit(void **state)
{
	rate_limit_init(&limit, 0);
	violate("192.0.2.1", 100 * RATE_LIMIT_BURST, START);
	assert_int_equal(wait_of("192.0.2.1", START), 0);
}

static void an_unknown_family_is_left_alone(void **state)
{
	struct link_addr none = {.family = LINK_NONE};

	for (int i = 0; i < 2 * RATE_LIMIT_BURST; i++)
		rate_limit_count(&limit, &none, START);
	assert_int_equal(rate_limit_until(&limit, &none, START), START);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(an_idle_user_does_not_wait, setup),
		cmocka_unit_test_setup(mistakes_up_to_the_burst_are_free, setup),
		cmocka_unit_test_setup(the_wait_is_as_long_as_announced, setup),
		cmocka_unit_test_setup(the_rate_holds_in_the_long_run, setup),
		cmocka_unit_test_setup(a_crowd_at_once_pays_afterwards, setup),
		cmocka_unit_test_setup(a_quiet_address_is_forgiven, setup),
		cmocka_unit_test_setup(others_do_not_wait, setup),
		cmocka_unit_test_setup(a_v6_neighbourhood_is_one_address, setup),
		cmocka_unit_test_setup(a_mapped_v4_address_is_itself, setup),
		cmocka_unit_test_setup(the_worst_are_remembered, setup),
		cmocka_unit_test_setup(no_limit_is_no_limit, setup),
		cmocka_unit_test_setup(an_unknown_family_is_left_alone, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
