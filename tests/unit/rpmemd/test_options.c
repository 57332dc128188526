/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of rpmemd. */
#include "lib/unit.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "rpmemd/options.h"

static struct options opts;
static struct settings settings;
static struct error err;

/* Parse the arguments in a line as options, and apply them. */
static int parse(const char *line)
{
	static char words[512];
	char program[] = "rpmemd", *argv[32] = {program}, *at = words, *word;
	int argc = 1, rc;

	strcpy(words, line);
	while ((word = strsep(&at, " ")))
		if (*word)
			argv[argc++] = word;
	rc = options_parse(&opts, argc, argv, &err);
	settings_init(&settings, "/h");
	return rc ? rc : options_apply(&opts, &settings, &err);
}

static void without_options_one_pool_is_served(void **state)
{
	assert_int_equal(parse(""), 0);
	assert_int_equal(opts.task, OPTIONS_CONTROL);
	assert_null(opts.config);
	assert_int_equal(opts.set_count, 0);
}

static void removal_takes_a_set_and_its_flags(void **state)
{
	assert_int_equal(parse("--remove a.set --force --pool-set"), 0);
	assert_int_equal(opts.task, OPTIONS_REMOVE);
	assert_string_equal(opts.remove_set, "a.set");
	assert_true(opts.force && opts.pool_set);
	assert_int_equal(parse("-r b -f"), 0);
	assert_string_equal(opts.remove_set, "b");
	assert_true(opts.force && !opts.pool_set);
}

static void settings_are_overridden_in_order(void **state)
{
	assert_int_equal(parse("-c x --log-file /l --log-level debug --persist-apm --use-syslog "
			       "--poolset-dir /p -t 3 --nthreads=4 --port-range 5-6 "
			       "--persist-native=no --allow-volatile"),
			 0);
	assert_string_equal(opts.config, "x");
	assert_string_equal(settings.log_file, "/l");
	assert_true(settings.use_syslog);
	assert_int_equal(settings.log_level, LOG_LVL_DEBUG);
	assert_true(settings.persist_apm && settings.persist_general && settings.allow_volatile);
	assert_false(settings.persist_native);
	assert_string_equal(settings.poolset_dir, "/p");
	assert_int_equal(settings.nthreads, 4);
	assert_int_equal(settings.ports.last, 6);
}

static void listening_takes_an_address_in_three_ways(void **state)
{
	static const char *const lines[] = {"--listen 192.0.2.1:5", "--listen=192.0.2.1:5",
					    "-l192.0.2.1:5"};

	for (unsigned i = 0; i < ARRAY_LEN(lines); i++) {
		assert_int_equal(parse(lines[i]), 0);
		assert_int_equal(opts.task, OPTIONS_LISTEN);
		assert_string_equal(settings.listen.host, "192.0.2.1");
		assert_string_equal(settings.listen.port, "5");
	}
	assert_int_equal(parse("--listen"), 0);
	assert_int_equal(opts.task, OPTIONS_LISTEN);
	assert_string_equal(settings.listen.port, "7205");
	assert_int_equal(parse("--listen=[::1]:0"), 0);
	assert_string_equal(settings.listen.port, "0");
}

static void help_and_version_come_first(void **state)
{
	assert_int_equal(parse("--help --remove x"), 0);
	assert_int_equal(opts.task, OPTIONS_HELP);
	assert_int_equal(parse("-V"), 0);
	assert_int_equal(opts.task, OPTIONS_VERSION);
}

static void what_is_wrong_is_refused(void **state)
{
	static const char *const lines[] = {
		"--nonsense",   "-x",
		"--remove",     "--log-level error",
		"word",         "-t",
		"-t many",      "--persist-apm=maybe",
		"-r a -l",      "--config",
		"--listen a b", "--log-level",
		"--force=1",    "-l nosuch:99999",
	};

	for (unsigned i = 0; i < ARRAY_LEN(lines); i++)
		assert_int_equal(parse(lines[i]), ERROR_ARGUMENT);
}

static void the_help_names_each_key_of_the_list(void **state)
{
	const char *key;
	bool is_switch;

	for (unsigned i = 0; (key = settings_key(i, &is_switch)); i++)
		assert_non_null(strstr(options_help, key));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_options_one_pool_is_served),
		cmocka_unit_test(removal_takes_a_set_and_its_flags),
		cmocka_unit_test(settings_are_overridden_in_order),
		cmocka_unit_test(listening_takes_an_address_in_three_ways),
		cmocka_unit_test(help_and_version_come_first),
		cmocka_unit_test(what_is_wrong_is_refused),
		cmocka_unit_test(the_help_names_each_key_of_the_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
