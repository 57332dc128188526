/* SPDX-License-Identifier: BSD-3-Clause */
/* The parser of target strings. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rpmem/errmsg.h"
#include "rpmem/target.h"

static void every_form_is_understood(void **state)
{
	static const struct {
		const char *text, *user, *host, *port;
	} rows[] = {
		{"host", "", "host", ""},
		{"host:22", "", "host", "22"},
		{"user@host", "user", "host", ""},
		{"user@host:65535", "user", "host", "65535"},
		{"u@v@host", "u@v", "host", ""},
		{"[127.0.0.1]:22", "", "127.0.0.1", "22"},
		{"a_b-c.example", "", "a_b-c.example", ""},
		{"127.0.0.1:1", "", "127.0.0.1", "1"},
		{"[::1]", "", "::1", ""},
		{"[::1]:2222", "", "::1", "2222"},
		{"user@[fe80::1%eth0]:22", "user", "fe80::1%eth0", "22"},
		{"::1", "", "::1", ""},
		{"fe80::1:22", "", "fe80::1:22", ""},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct target t;

		assert_int_equal(target_parse(rows[i].text, &t), 0);
		assert_false(t.direct);
		assert_string_equal(t.user, rows[i].user);
		assert_string_equal(t.host, rows[i].host);
		assert_string_equal(t.port, rows[i].port);
	}
}

static void everything_else_is_refused_with_words(void **state)
{
	char long_host[300], long_user[64];
	const char *rows[] = {"",
			      "@host",
			      "user@",
			      "host:",
			      "host:0",
			      "host:65536",
			      "host:22x",
			      "host: 22",
			      "host:000022",
			      "[::1",
			      "[::1]x",
			      "[]",
			      "[::1]:",
			      "-oProxyCommand=x",
			      "-l@host",
			      "u@-host",
			      "[-oProxyCommand=touch x]",
			      "[-oProxyCommand=x]:22",
			      "u@[-oProxyCommand=x]",
			      "[host]",
			      "u@v@-oProxyCommand=x",
			      "u@v@[-oProxyCommand=x]",
			      "host;reboot",
			      "$(reboot)@host",
			      "::1%`x`",
			      "a host",
			      "host\n",
			      long_host,
			      long_user,
			      "rpma://",
			      "rpma://host:0",
			      "rpma://host:99999"};

	memset(long_host, 'h', 256);
	long_host[256] = '\0';
	memset(long_user, 'u', 33);
	strcpy(long_user + 33, "@h");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct target t;

		assert_int_equal(target_parse(rows[i], &t), EINVAL);
		assert_non_null(strstr(errmsg_text(), "invalid target"));
	}
	assert_int_equal(target_parse(NULL, &(struct target){0}), EINVAL);
}

static void the_direct_way_has_a_port_by_default(void **state)
{
	struct target t;

	assert_int_equal(target_parse("rpma://host", &t), 0);
	assert_true(t.direct);
	assert_string_equal(t.host, "host");
	assert_string_equal(t.port, TARGET_DIRECT_PORT);
	assert_int_equal(target_parse("rpma://[::1]:99", &t), 0);
	assert_string_equal(t.host, "::1");
	assert_string_equal(t.port, "99");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_form_is_understood),
		cmocka_unit_test(everything_else_is_refused_with_words),
		cmocka_unit_test(the_direct_way_has_a_port_by_default),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
