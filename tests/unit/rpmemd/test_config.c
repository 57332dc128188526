/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Configuration files: which texts are accepted, which line an error names, and which file takes
 * precedence.
 */
#include "lib/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rpmemd/config.h"

static int parse(struct settings *s, const char *text, struct error *err)
{
	settings_init(s, "/home/u");
	return config_parse(s, text, strlen(text), "x.conf", err);
}

static void every_key_is_taken(void **state)
{
	struct settings s;
	struct error err;
	int rc = parse(&s,
		       "log-file = /l # behind it\n"
		       "  poolset-dir=$HOME/sets\t\n"
		       "#persist-apm = maybe\n"
		       "\n"
		       "persist-apm = yes\r\n"
		       "persist-general = no\n"
		       "persist-native = no\n"
		       "use-syslog = yes\n"
		       "log-level = debug\n"
		       "nthreads = 3\n"
		       "max-lanes = 7\n"
		       "port-range = 4000-4010\n"
		       "listen = [::1]:99\n"
		       "secret-file = $HOME/s\n"
		       "max-pools = 5\n"
		       "max-per-address = 4\n"
		       "max-pending = 3\n"
		       "allow-volatile = yes",
		       &err);

	assert_int_equal(rc, 0);
	assert_int_equal(settings_finish(&s, "/home/u", &err), 0);
	assert_string_equal(s.log_file, "/l");
	assert_string_equal(s.poolset_dir, "/home/u/sets");
	assert_string_equal(s.secret_file, "/home/u/s");
	assert_true(s.persist_apm && !s.persist_general && !s.persist_native && s.use_syslog);
	assert_int_equal(s.log_level, LOG_LVL_DEBUG);
	assert_int_equal(s.nthreads, 3);
	assert_int_equal(s.max_lanes, 7);
	assert_int_equal(s.ports.first, 4000);
	assert_int_equal(s.ports.last, 4010);
	assert_string_equal(s.listen.host, "::1");
	assert_string_equal(s.listen.port, "99");
	assert_int_equal(s.max_pools, 5);
	assert_int_equal(s.max_per_address, 4);
	assert_int_equal(s.max_pending, 3);
	assert_true(s.allow_volatile);
}

static void the_defaults_are_those_of_the_manual(void **state)
{
	struct settings s;

	assert_int_equal(parse(&s, "", NULL), 0);
	assert_string_equal(s.log_file, "/var/log/rpmemd.log");
	assert_string_equal(s.poolset_dir, "/home/u");
	assert_true(s.use_syslog && s.persist_general && s.persist_native);
	assert_false(s.persist_apm || s.allow_volatile);
	assert_int_equal(s.log_level, LOG_LVL_ERROR);
	assert_int_equal(s.nthreads, 0);
	assert_int_equal(s.ports.last, 0);
	assert_string_equal(s.listen.host, "127.0.0.1");
	assert_string_equal(s.listen.port, "7205");
}

static void a_log_file_switches_syslog_off(void **state)
{
	struct settings s;

	assert_int_equal(parse(&s, "log-file = /l", NULL), 0);
	assert_false(s.use_syslog);
	assert_int_equal(parse(&s, "log-file = /l\nuse-syslog = yes", NULL), 0);
	assert_true(s.use_syslog);
}

static void each_malformed_line_is_named(void **state)
{
	static const char *const lines[] = {
		"log-file",
		"log-file =",
		"= /l",
		"=",
		"log-file # = /l",
		"log-files = /l",
		"Log-File = /l",
		"log-file /l",
		"persist-apm = Yes",
		"persist-apm = 1",
		"use-syslog = true",
		"log-level = error",
		"log-level = 4",
		"nthreads = -1",
		"nthreads = 1025",
		"nthreads = 1 2",
		"nthreads = 99999999999999999999",
		"max-lanes = 0",
		"max-lanes = 1025",
		"port-range = 10-9",
		"port-range = 1-65536",
		"port-range = 0-5",
		"port-range = 5-",
		"port-range = -5",
		"port-range = 5-6-7",
		"port-range = a-b",
		"listen = [::1",
		"listen = host:70000",
		"listen = host:0x",
		"max-pools = 0",
		"max-pending = x",
		"max-per-address = ",
		"allow-volatile = on",
		"remove = x",
	};

	for (unsigned i = 0; i < ARRAY_LEN(lines); i++) {
		struct settings s;
		struct error err = {0};
		char text[256];

		snprintf(text, sizeof(text), "# first\nlog-level = info\n%s\nnthreads = 2\n",
			 lines[i]);
		assert_int_equal(parse(&s, text, &err), ERROR_ARGUMENT);
		assert_int_equal(err.cause, EINVAL);
		assert_ptr_equal(strstr(err.text, "Invalid config file line at x.conf:3: "),
				 err.text);
		assert_int_equal(s.nthreads, 0);
	}
}

static void what_is_no_text_is_refused(void **state)
{
	static char line[PATH_MAX + 512];
	struct settings s;
	struct error err;

	settings_init(&s, "/");
	assert_int_equal(config_parse(&s, "log\0file", 8, "x", &err), ERROR_ARGUMENT);
	memset(line, ' ', sizeof(line));
	assert_int_equal(config_parse(&s, line, sizeof(line), "x", &err), ERROR_ARGUMENT);
	memset(line, 'a', sizeof(line));
	memcpy(line, "log-file = ", 11);
	line[PATH_MAX + 100] = '\0';
	assert_int_equal(config_parse(&s, line, PATH_MAX + 100, "x", &err), ERROR_ARGUMENT);
}

static void only_home_alone_is_replaced(void **state)
{
	static const char *const cases[][2] = {
		{"$HOME", "/h"},        {"$HOME/a", "/h/a"},      {"/a$HOME", "/a/h"},
		{"/$HOMES", "/$HOMES"}, {"/a$HOME9", "/a$HOME9"}, {"$HOME$HOME", "/h$HOME"},
		{"/$HOM", "/$HOM"},
	};
	struct settings s;

	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		settings_init(&s, "/h");
		assert_int_equal(settings_set(&s, "poolset-dir", cases[i][0], NULL), 0);
		assert_int_equal(settings_finish(&s, "/h", NULL), 0);
		assert_string_equal(s.poolset_dir, cases[i][1]);
	}
}

static void pool_sets_need_an_absolute_folder(void **state)
{
	struct settings s;
	struct error err;

	settings_init(&s, "/h");
	assert_int_equal(settings_set(&s, "poolset-dir", "sets", NULL), 0);
	assert_int_equal(settings_finish(&s, "/h", &err), ERROR_ARGUMENT);
	assert_int_equal(err.cause, EINVAL);
}

static void put(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static void the_users_file_is_read_unless_one_is_named(void **state)
{
	char home[] = "/tmp/rpmemd-config-XXXXXX", path[64], named[64];
	struct settings s;
	struct error err;

	assert_non_null(mkdtemp(home));
	snprintf(path, sizeof(path), "%s/.rpmemd.conf", home);
	snprintf(named, sizeof(named), "%s/named", home);

	settings_init(&s, home);
	/* a file that does not exist is no error */
	assert_int_equal(config_load(&s, NULL, home, &err), 0);
	put(path, "nthreads = 4\n");
	assert_int_equal(config_load(&s, NULL, home, &err), 0);
	assert_int_equal(s.nthreads, 4);

	settings_init(&s, home);
	assert_int_equal(config_load(&s, named, home, &err), ERROR_LOCAL);
	assert_int_equal(err.cause, ENOENT);
	put(named, "max-lanes = 4\n");
	assert_int_equal(config_load(&s, named, home, &err), 0);
	assert_int_equal(s.max_lanes, 4);
	assert_int_equal(s.nthreads, 0);

	assert_int_equal(config_load(&s, home, home, &err), ERROR_LOCAL);
	assert_int_equal(err.cause, EISDIR);
	unlink(path);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(config_load(&s, NULL, home, &err), ERROR_LOCAL);
	rmdir(path);
	unlink(named);
	rmdir(home);
}

static void an_endless_file_is_refused(void **state)
{
	struct settings s;
	struct error err;

	settings_init(&s, "/");
	assert_int_equal(config_load(&s, "/dev/zero", "/", &err), ERROR_LOCAL);
	assert_int_equal(err.cause, EFBIG);
}

static void the_home_folder_is_found(void **state)
{
	char *home = strdup(getenv("HOME") ? getenv("HOME") : "/");

	setenv("HOME", "/some/where", 1);
	assert_string_equal(config_home(), "/some/where");
	unsetenv("HOME");
	assert_int_equal(config_home()[0], '/');
	setenv("HOME", home, 1);
	free(home);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_key_is_taken),
		cmocka_unit_test(the_defaults_are_those_of_the_manual),
		cmocka_unit_test(a_log_file_switches_syslog_off),
		cmocka_unit_test(each_malformed_line_is_named),
		cmocka_unit_test(what_is_no_text_is_refused),
		cmocka_unit_test(only_home_alone_is_replaced),
		cmocka_unit_test(pool_sets_need_an_absolute_folder),
		cmocka_unit_test(the_users_file_is_read_unless_one_is_named),
		cmocka_unit_test(an_endless_file_is_refused),
		cmocka_unit_test(the_home_folder_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
