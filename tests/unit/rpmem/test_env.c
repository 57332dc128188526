/* SPDX-License-Identifier: BSD-3-Clause */
/* Environment variables that librpmem reads. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rpmem/env.h"
#include "rpmem/errmsg.h"

static int clear(void **state)
{
	static const char *const names[] = {"RPMEM_CMD",
					    "RPMEM_SSH",
					    "RPMEM_MAX_NLANES",
					    "RPMEM_WORK_QUEUE_SIZE",
					    "RPMEM_ENABLE_SOCKETS",
					    "RPMEM_ENABLE_VERBS",
					    "RPMEM_TIMEOUT_MS",
					    "RPMEM_SECRET_FILE",
					    "RPMEM_LOG_LEVEL",
					    "RPMEM_LOG_FILE"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unsetenv(names[i]);
	env_read();
	return 0;
}

static void expect_command(const char *want)
{
	char got[4096];

	assert_true(env_next_command(got, sizeof(got)));
	assert_string_equal(got, want);
}

static void defaults_are_those_of_the_manual(void **state)
{
	expect_command("rpmemd");
	expect_command("rpmemd");
	assert_string_equal(env_ssh(), "ssh");
	assert_int_equal(env_max_lanes(), UINT_MAX);
	assert_int_equal(env_work_queue_size(), 50);
	assert_false(env_sockets_allowed());
	assert_true(env_verbs_allowed());
	assert_int_equal(env_timeout_ms(), 30000);
}

static void commands_are_taken_in_turn(void **state)
{
	setenv("RPMEM_CMD", "a --x|b|c d", 1);
	env_read();
	expect_command("a --x");
	expect_command("b");
	expect_command("c d");
	expect_command("a --x");
}

static void commands_are_read_when_the_library_is_loaded(void **state)
{
	setenv("RPMEM_CMD", "changed", 1);
	expect_command("rpmemd");
}

static unsigned taken[2];

static void *take_commands(void *arg)
{
	for (int i = 0; i < 1000; i++) {
		char got[64];

		if (env_next_command(got, sizeof(got)))
			__atomic_add_fetch(&taken[got[0] == 'b'], 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void threads_share_the_turn(void **state)
{
	pthread_t threads[4];

	taken[0] = taken[1] = 0;
	setenv("RPMEM_CMD", "a|b", 1);
	env_read();
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, take_commands, NULL), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(taken[0], 2000);
	assert_int_equal(taken[1], 2000);
}

static void a_command_that_is_too_long_is_not_cut(void **state)
{
	static char text[5000];
	char got[4096];

	memset(text, 'x', sizeof(text) - 1);
	setenv("RPMEM_CMD", text, 1);
	env_read();
	assert_false(env_next_command(got, sizeof(got)));
}

static void malformed_numbers_count_as_not_set(void **state)
{
	static const char *const bad[] = {"", "x", "1x", "0", "-1", "99999999999999999999"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		setenv("RPMEM_MAX_NLANES", bad[i], 1);
		setenv("RPMEM_WORK_QUEUE_SIZE", bad[i], 1);
		setenv("RPMEM_TIMEOUT_MS", bad[i], 1);
		env_read();
		assert_int_equal(env_max_lanes(), UINT_MAX);
		assert_int_equal(env_work_queue_size(), 50);
		assert_int_equal(env_timeout_ms(), 30000);
	}
	setenv("RPMEM_ENABLE_SOCKETS", "yes", 1);
	assert_false(env_sockets_allowed());
}

/* A script may set a variable to an empty text, which counts as not set. */
static void an_empty_number_is_not_set_and_no_error(void **state)
{
	struct stat st;

	setenv("RPMEM_LOG_FILE", "env-log", 1);
	setenv("RPMEM_LOG_LEVEL", "1", 1);
	setenv("RPMEM_MAX_NLANES", "", 1);
	setenv("RPMEM_WORK_QUEUE_SIZE", "", 1);
	env_read();
	assert_int_equal(env_max_lanes(), UINT_MAX);
	assert_int_equal(stat("env-log", &st), 0);
	assert_int_equal(st.st_size, 0);
	setenv("RPMEM_MAX_NLANES", "x", 1);
	env_read();
	assert_int_equal(stat("env-log", &st), 0);
	assert_int_not_equal(st.st_size, 0);
	unlink("env-log");
}

static void numbers_are_kept_in_their_limits(void **state)
{
	setenv("RPMEM_MAX_NLANES", "7", 1);
	setenv("RPMEM_WORK_QUEUE_SIZE", "1", 1);
	setenv("RPMEM_ENABLE_SOCKETS", "-1", 1);
	setenv("RPMEM_ENABLE_VERBS", "0", 1);
	env_read();
	assert_int_equal(env_max_lanes(), 7);
	assert_int_equal(env_work_queue_size(), 2);
	assert_true(env_sockets_allowed());
	assert_false(env_verbs_allowed());
	setenv("RPMEM_WORK_QUEUE_SIZE", "1000000", 1);
	env_read();
	assert_int_equal(env_work_queue_size(), 4096);
}

static void the_secret_is_below_home_by_default(void **state)
{
	char path[100];

	setenv("HOME", "/home/x", 1);
	assert_true(env_secret_file(path, sizeof(path)));
	assert_string_equal(path, "/home/x/.rpmem/secret");
	setenv("RPMEM_SECRET_FILE", "/s", 1);
	assert_true(env_secret_file(path, sizeof(path)));
	assert_string_equal(path, "/s");
}

static void the_log_file_may_carry_the_process_number(void **state)
{
	char path[64], line[512] = "";
	FILE *f;

	setenv("RPMEM_LOG_LEVEL", "1", 1);
	setenv("RPMEM_LOG_FILE", "unit_rpmem_env.log-", 1);
	env_read();
	errmsg_fail(EINVAL, "an error to be logged");
	snprintf(path, sizeof(path), "unit_rpmem_env.log-%d", (int)getpid());
	f = fopen(path, "r");
	assert_non_null(f);
	assert_non_null(fgets(line, sizeof(line), f));
	fclose(f);
	unlink(path);
	assert_non_null(strstr(line, "an error to be logged"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(defaults_are_those_of_the_manual, clear),
		cmocka_unit_test_setup(commands_are_taken_in_turn, clear),
		cmocka_unit_test_setup(commands_are_read_when_the_library_is_loaded, clear),
		cmocka_unit_test_setup(threads_share_the_turn, clear),
		cmocka_unit_test_setup(a_command_that_is_too_long_is_not_cut, clear),
		cmocka_unit_test_setup(malformed_numbers_count_as_not_set, clear),
		cmocka_unit_test_setup(an_empty_number_is_not_set_and_no_error, clear),
		cmocka_unit_test_setup(numbers_are_kept_in_their_limits, clear),
		cmocka_unit_test_setup(the_secret_is_below_home_by_default, clear),
		cmocka_unit_test_setup(the_log_file_may_carry_the_process_number, clear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
