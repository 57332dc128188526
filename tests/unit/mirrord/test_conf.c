/* SPDX-License-Identifier: BSD-3-Clause */
/* rpmirrord.conf: the texts that are accepted, and the line that an error names. */
#include "lib/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mirrord/conf.h"

static struct conf conf; /* static, because the structure is large */

static int parse(const char *text, struct error *err)
{
	int rc;

	conf_init(&conf);
	rc = conf_parse(&conf, text, strlen(text), "x.conf", err);
	if (!rc)
		rc = conf_check(&conf, err);
	for (unsigned i = 0; !rc && i < conf.set_count; i++)
		rc = conf_check_files(&conf, &conf.sets[i], err);
	return rc;
}

#define SET "[set s]\nmember = a\ndata = /d\nregister = file:/r\n"

static void every_key_is_taken(void **state)
{
	struct error err;
	int rc = parse("# a comment\n"
		       "listen = 192.0.2.1:99\n"
		       " socket=/run/x # behind it\n"
		       "peer-timeout = 1500\t\r\n"
		       "register-timeout = 2500\n"
		       "max-connections = 5\n"
		       "max-pending = 6\n"
		       "log-level = debug\n"
		       "[set orders]\n"
		       "member = a\n"
		       "data = /pm/orders\n"
		       "meta = /pm/m\n"
		       "register = etcd://h1:2379,h2:2379?user=u\n"
		       "secret-file = /s\n"
		       "user = app\n"
		       "user = 1000\n"
		       "auto = yes\n"
		       "scrub = 36h\n"
		       "scrub-rate = 20\n"
		       "on-promote = /bin/start\n"
		       "on-promote-timeout = 1000\n"
		       "fence-agent = /bin/fence\n"
		       "fence-timeout = 2000\n"
		       "\n" SET,
		       &err);

	assert_int_equal(rc, 0);
	assert_string_equal(conf.listen.host, "192.0.2.1");
	assert_string_equal(conf.listen.port, "99");
	assert_string_equal(conf.socket, "/run/x");
	assert_int_equal(conf.peer_timeout_ms, 1500);
	assert_int_equal(conf.register_timeout_ms, 2500);
	assert_int_equal(conf.max_connections, 5);
	assert_int_equal(conf.max_pending, 6);
	assert_int_equal(conf.log_level, LOG_LVL_DEBUG);
	assert_int_equal(conf.set_count, 2);
	assert_string_equal(conf.sets[0].name, "orders");
	assert_string_equal(conf.sets[0].member, "a");
	assert_string_equal(conf.sets[0].data, "/pm/orders");
	assert_string_equal(conf.sets[0].meta, "/pm/m");
	assert_string_equal(conf.sets[0].register_uri, "etcd://h1:2379,h2:2379?user=u");
	assert_string_equal(conf.sets[0].secret_file, "/s");
	assert_int_equal(conf.sets[0].user_count, 2);
	assert_string_equal(conf.sets[0].users[1], "1000");
	assert_true(conf.sets[0].automatic);
	assert_int_equal(conf.sets[0].scrub_s, 36 * 3600);
	assert_int_equal(conf.sets[0].scrub_rate, 20 << 20);
	assert_string_equal(conf.sets[0].on_promote, "/bin/start");
	assert_int_equal(conf.sets[0].promote_timeout_ms, 1000);
	assert_string_equal(conf.sets[0].fence_agent, "/bin/fence");
	assert_int_equal(conf.sets[0].fence_timeout_ms, 2000);
	assert_int_equal(conf.sets[1].fence_timeout_ms, CONF_PROGRAM_MS);
	assert_string_equal(conf.sets[1].name, "s");
	assert_false(conf.sets[1].automatic);
	assert_int_equal(conf.sets[1].scrub_s, CONF_SCRUB_S);
}

static void the_port_may_be_a_free_one(void **state)
{
	struct error err;

	assert_int_equal(parse("listen = 192.0.2.1:0\n", &err), 0);
	assert_string_equal(conf.listen.host, "192.0.2.1");
	assert_string_equal(conf.listen.port, "0");
	/* This address only looks as if it ended in a port. */
	assert_int_equal(parse("listen = ::0\n", &err), 0);
	assert_string_equal(conf.listen.host, "::0");
	assert_string_equal(conf.listen.port, CONF_DEFAULT_PORT);
}

static void a_period_has_a_unit_or_is_never(void **state)
{
	static const struct {
		const char *text;
		unsigned seconds;
	} cases[] = {
		{SET "scrub = never\n", 0},
		{SET "scrub = 1s\n", 1},
		{SET "scrub = 2m\n", 120},
		{SET "scrub = 7d\n", 7 * 86400},
		{SET "scrub = 1000w\n", 1000 * 604800},
	};
	struct error err;

	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		assert_int_equal(parse(cases[i].text, &err), 0);
		assert_int_equal(conf.sets[0].scrub_s, cases[i].seconds);
	}
}

static void nothing_is_a_configuration_without_sets(void **state)
{
	struct error err;

	assert_int_equal(parse("", &err), 0);
	assert_int_equal(conf.set_count, 0);
	assert_string_equal(conf.socket, CONF_SOCKET);
	assert_string_equal(conf.listen.port, CONF_DEFAULT_PORT);
}

static void what_is_wrong_is_refused_with_its_line(void **state)
{
	static const struct {
		const char *text, *in_error;
	} cases[] = {
		{"listen\n", "x.conf:1: 'listen' is not 'key = value'"},
		{"\n\nspeed = 3\n", "x.conf:3: there is no key 'speed' before the first section"},
		{"data = /d\n", "x.conf:1: there is no key 'data' before the first section"},
		{SET "socket = /x\n", "x.conf:5: there is no key 'socket' in a set's section"},
		{"socket = x\n", "the value must be an absolute path"},
		{"peer-timeout = 3s\n", "milliseconds, from 50"},
		{"peer-timeout = 49\n", "milliseconds, from 50"},
		{"max-pending = 0\n", "a number from 1"},
		{"max-pending = -1\n", "a number from 1"},
		{"max-pending = 99999999999999999999\n", "a number from 1"},
		{"log-level = loud\n", "err, warn"},
		{"listen = :0\n", "HOST or HOST:PORT"},
		{"listen = h:70000\n", "HOST or HOST:PORT"},
		{"socket = /x\nsocket = /y\n", "x.conf:2: 'socket' is set twice"},
		{"[sets x]\n", "x.conf:1: a section is '[set NAME]'"},
		{"[set ]\n", "is no name of a set"},
		{"[set a/b]\n", "is no name of a set"},
		{"[set a b]\n", "is no name of a set"},
		{SET SET, "x.conf:5: set 's' is configured twice"},
		{SET "auto = maybe\n", "yes or no"},
		{SET "scrub =\n", "never, or a number"},
		{SET "scrub = 7\n", "never, or a number"},
		{SET "scrub = d\n", "never, or a number"},
		{SET "scrub = 0d\n", "never, or a number"},
		{SET "scrub = 1001d\n", "never, or a number"},
		{SET "scrub = 0000000000000000007d\n", "never, or a number"},
		{SET "scrub-rate = 0\n", "MiB a second"},
		{SET "fence-agent = fence\n", "an absolute path"},
		{SET "fence-timeout = 0\n", "milliseconds, from 50"},
		{SET "member = b\n", "x.conf:5: 'member' is set twice"},
		{SET "member =\n", "'member' is set twice"},
		{SET "user =\n", "the name or number of a user"},
		{"[set s]\ndata = /d\nregister = r\n", "set 's' has no 'member'"},
		{"[set s]\nmember = a\nregister = r\n", "set 's' has no 'data'"},
		{"[set s]\nmember = a\ndata = /d\n", "set 's' has no 'register'"},
		{SET "[set t]\nmember = a\ndata = /d\nregister = r\n", "are the same file"},
	};

	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		struct error err = {0};

		assert_int_equal(parse(cases[i].text, &err), ERROR_ARGUMENT);
		if (!strstr(err.text, cases[i].in_error))
			fail_msg("'%s' does not contain '%s'", err.text, cases[i].in_error);
	}
}

static void lines_that_are_no_text_are_refused(void **state)
{
	static char text[5000];
	struct error err;

	memset(text, 'x', sizeof(text) - 1);
	assert_int_equal(parse(text, &err), ERROR_ARGUMENT);
	conf_init(&conf);
	assert_int_equal(conf_parse(&conf, "a\0b", 3, "x", &err), ERROR_ARGUMENT);
}

static void too_many_are_refused(void **state)
{
	static char text[32768];
	struct error err;
	size_t n = 0;

	for (unsigned i = 0; i <= CONF_SETS_MAX; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n,
				      "[set s%u]\nmember=a\ndata=/d%u\nregister=r\n", i, i);
	assert_int_equal(parse(text, &err), ERROR_ARGUMENT);
	assert_non_null(strstr(err.text, "more than 64 sets"));
	n = (size_t)snprintf(text, sizeof(text), SET);
	for (unsigned i = 0; i <= CONF_USERS_MAX; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "user = u%u\n", i);
	assert_int_equal(parse(text, &err), ERROR_ARGUMENT);
	assert_non_null(strstr(err.text, "x.conf:13:"));
}

static void a_file_that_cannot_be_read_is_named_with_its_reason(void **state)
{
	static const struct {
		const char *path;
		int cause;
	} cases[] = {{"/nowhere/x.conf", ENOENT}, {"/dev", EISDIR}, {"/dev/zero", EFBIG}};

	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		struct error err = {0};

		assert_int_equal(conf_load(&conf, cases[i].path, &err), ERROR_LOCAL);
		assert_int_equal(err.cause, cases[i].cause);
		assert_non_null(strstr(err.text, cases[i].path));
		assert_non_null(strstr(err.text, strerror(cases[i].cause)));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_key_is_taken),
		cmocka_unit_test(the_port_may_be_a_free_one),
		cmocka_unit_test(a_period_has_a_unit_or_is_never),
		cmocka_unit_test(nothing_is_a_configuration_without_sets),
		cmocka_unit_test(what_is_wrong_is_refused_with_its_line),
		cmocka_unit_test(lines_that_are_no_text_are_refused),
		cmocka_unit_test(too_many_are_refused),
		cmocka_unit_test(a_file_that_cannot_be_read_is_named_with_its_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
