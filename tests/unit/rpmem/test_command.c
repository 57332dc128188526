/* SPDX-License-Identifier: BSD-3-Clause */
/* The arguments with which ssh is started. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <librpmem.h>

#include "rpmem/command.h"
#include "rpmem/env.h"

static struct command cmd;

static void expect_argv(const char *const *want)
{
	int i;

	for (i = 0; want[i]; i++)
		assert_string_equal(cmd.argv[i], want[i]);
	assert_null(cmd.argv[i]);
}

static void a_target_with_everything(void **state)
{
	static const char *const want[] = {"my-ssh",          "-p", "2222",    "-T",         "-4",
					   "-oBatchMode=yes", "--", "me@host", "rpmemd --x", NULL};
	struct target t;

	setenv("RPMEM_SSH", "my-ssh", 1);
	setenv("RPMEM_CMD", "rpmemd --x", 1);
	env_read();
	assert_int_equal(target_parse("me@host:2222", &t), 0);
	assert_int_equal(command_serve(&cmd, &t, true), 0);
	expect_argv(want);
}

static void a_target_with_a_name_alone(void **state)
{
	static const char *const want[] = {"ssh",    "-T", "-oBatchMode=yes", "--", "host",
					   "rpmemd", NULL};
	struct target t;

	unsetenv("RPMEM_SSH");
	unsetenv("RPMEM_CMD");
	env_read();
	assert_int_equal(target_parse("host", &t), 0);
	assert_int_equal(command_serve(&cmd, &t, false), 0);
	expect_argv(want);
}

static void expect_remove(const char *set, int flags, const char *want)
{
	struct target t;

	assert_int_equal(target_parse("host", &t), 0);
	assert_int_equal(command_remove(&cmd, &t, false, set, flags), 0);
	assert_string_equal(cmd.text, want);
}

static void removing_has_its_options(void **state)
{
	expect_remove("a/b.set", 0, "rpmemd --remove a/b.set");
	expect_remove("b.set", RPMEM_REMOVE_FORCE, "rpmemd --remove b.set --force");
	expect_remove("b.set", RPMEM_REMOVE_FORCE | RPMEM_REMOVE_POOL_SET,
		      "rpmemd --remove b.set --force --pool-set");
}

static void names_that_a_shell_would_understand_are_quoted(void **state)
{
	expect_remove("my pool.set", 0, "rpmemd --remove 'my pool.set'");
	expect_remove("a;reboot", 0, "rpmemd --remove 'a;reboot'");
	expect_remove("it's", 0, "rpmemd --remove 'it'\\''s'");
	expect_remove("'", 0, "rpmemd --remove ''\\'''");
	expect_remove("~x", 0, "rpmemd --remove '~x'");
}

static void a_name_that_does_not_fit_is_refused(void **state)
{
	static char name[COMMAND_TEXT + 1];
	struct target t;

	memset(name, 'x', sizeof(name) - 1);
	assert_int_equal(target_parse("host", &t), 0);
	assert_int_equal(command_remove(&cmd, &t, false, name, 0), EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_target_with_everything),
		cmocka_unit_test(a_target_with_a_name_alone),
		cmocka_unit_test(removing_has_its_options),
		cmocka_unit_test(names_that_a_shell_would_understand_are_quoted),
		cmocka_unit_test(a_name_that_does_not_fit_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
