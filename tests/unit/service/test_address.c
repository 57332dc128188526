/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses of servers as users write them. */
#include <netdb.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "service/address.h"

static void check_address(const char *text, const char *host, const char *port)
{
	struct address addr;
	struct error err;

	assert_int_equal(address_parse(text, "7204", &addr, &err), 0);
	assert_string_equal(addr.host, host);
	assert_string_equal(addr.port, port);
}

static void addresses_are_taken_apart(void **state)
{
	check_address("host", "host", "7204");
	check_address("host:1", "host", "1");
	check_address("192.0.2.1:65535", "192.0.2.1", "65535");
	check_address("::1", "::1", "7204");
	check_address("2001:db8::7", "2001:db8::7", "7204");
	check_address("[::1]", "::1", "7204");
	check_address("fe80::1%eth0", "fe80::1%eth0", "7204");
	check_address("[fe80::1%eth0]:9", "fe80::1%eth0", "9");
	check_address("[::1]:99", "::1", "99");
}

static void bad_addresses_are_explained(void **state)
{
	static const char *const bad[] = {"",     ":1", "host:",  "host:0", "host:x", "host:65536",
					  "[::1", "[]", "[host]", "[::1]x", "[::1]:"};
	struct address addr;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct error err = {0};

		assert_int_equal(address_parse(bad[i], "7204", &addr, &err), ERROR_ARGUMENT);
		assert_int_equal(err.kind, ERROR_ARGUMENT);
		assert_memory_equal(err.text, "'", 1);
		assert_non_null(strstr(err.text, bad[i]));
	}
}

static void a_server_may_have_port_0(void **state)
{
	static const char *const good[][3] = {
		{"host:0", "host", "0"}, {"[::1]:0", "::1", "0"},  {"::0", "::0", "7204"},
		{"host:5", "host", "5"}, {"host", "host", "7204"},
	};
	static const char *const bad[] = {"", ":0", "host:5:0", "[::1:0", "host:0:0", "host:00"};
	struct address addr;
	struct error err;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(address_parse_listen(good[i][0], "7204", &addr, &err), 0);
		assert_string_equal(addr.host, good[i][1]);
		assert_string_equal(addr.port, good[i][2]);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		err.text[0] = '\0';
		assert_int_equal(address_parse_listen(bad[i], "7204", &addr, &err), ERROR_ARGUMENT);
		assert_non_null(strstr(err.text, bad[i]));
	}
}

static void a_port_may_be_the_name_of_a_service(void **state)
{
	struct servent *known = getservbyname("https", "tcp");
	struct address addr;

	if (!known)
		skip(); /* the machine has no services(5) */
	assert_int_equal(address_parse("host:https", "7204", &addr, NULL), 0);
	assert_string_equal(addr.port, "443");
	assert_int_equal(address_parse("[::1]:https", "7204", &addr, NULL), 0);
	assert_string_equal(addr.port, "443");
}

static void an_address_is_shown_as_it_is_written(void **state)
{
	static const char *const written[] = {"host:1", "192.0.2.1:7204", "[::1]:99"};
	char text[ADDRESS_TEXT];
	struct address addr;

	for (size_t i = 0; i < sizeof(written) / sizeof(written[0]); i++) {
		assert_int_equal(address_parse(written[i], "7204", &addr, NULL), 0);
		assert_string_equal(address_show(&addr, text), written[i]);
	}
}

static void an_unknown_host_is_an_error_that_names_it(void **state)
{
	struct address addr = {"nobody.invalid", "1"}, found[2];
	struct error err;
	int count;

	assert_int_equal(address_resolve(&addr, found, 2, &count, &err), ERROR_UNREACHED);
	assert_non_null(strstr(err.text, "'nobody.invalid'"));
}

static void loopback_is_told_from_everything_else(void **state)
{
	static const char *const ours[] = {"127.0.0.1", "127.200.0.3", "::1", "localhost",
					   "::ffff:127.0.0.1"};
	static const char *const others[] = {"0.0.0.0",       "::",          "192.0.2.1",
					     "128.0.0.1",     "2001:db8::1", "::ffff:192.0.2.1",
					     "nobody.invalid"};
	struct address addr = {.port = "7204"};

	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
		strcpy(addr.host, ours[i]);
		assert_true(address_is_loopback(&addr));
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		strcpy(addr.host, others[i]);
		assert_false(address_is_loopback(&addr));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_are_taken_apart),
		cmocka_unit_test(bad_addresses_are_explained),
		cmocka_unit_test(a_server_may_have_port_0),
		cmocka_unit_test(a_port_may_be_the_name_of_a_service),
		cmocka_unit_test(an_address_is_shown_as_it_is_written),
		cmocka_unit_test(loopback_is_told_from_everything_else),
		cmocka_unit_test(an_unknown_host_is_an_error_that_names_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
