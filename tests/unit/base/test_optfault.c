/* SPDX-License-Identifier: BSD-3-Clause */
/* The reason why getopt_long() does not take an option. */
#include "lib/unit.h"

#include <string.h>

#include "base/optfault.h"

static const struct option table[] = {{"config", required_argument, NULL, 'c'},
				      {"check", no_argument, NULL, 'k'},
				      {"pool-set", no_argument, NULL, 300},
				      {0}};

/* Returns the reason for the first option that is not taken; "": all options are taken. */
static const char *fault_of(const char *a, const char *b)
{
	char words[3][40] = {"daemon"}, *argv[] = {words[0], words[1], words[2], NULL};
	static char text[160];
	int c, argc = b ? 3 : 2;

	strcpy(words[1], a);
	strcpy(words[2], b ? b : "");
	argv[argc] = NULL;
	text[0] = '\0';
	opterr = 0;
	optind = 0;
	while (!text[0] && (c = getopt_long(argc, argv, ":c:kV", table, NULL)) != -1)
		if (c == '?' || c == ':')
			optfault_explain(c, argv, table, text, sizeof(text));
	return text;
}

static void a_long_option_is_explained(void **state)
{
	assert_string_equal(fault_of("--config", "x"), "");
	assert_string_equal(fault_of("--chekc", NULL),
			    "unrecognized option '--chekc' (did you mean '--check'?)");
	assert_string_equal(fault_of("--cofnig=x", NULL),
			    "unrecognized option '--cofnig' (did you mean '--config'?)");
	assert_string_equal(fault_of("--nonsense", NULL), "unrecognized option '--nonsense'");
	assert_string_equal(fault_of("--config", NULL), "option '--config' needs a value");
	assert_string_equal(fault_of("--check=1", NULL), "option '--check' takes no value");
	assert_string_equal(fault_of("--pool-set=1", NULL), "option '--pool-set' takes no value");
	assert_string_equal(fault_of("--c", NULL), "option '--c' is ambiguous");
}

static void a_letter_is_explained(void **state)
{
	assert_string_equal(fault_of("-x", NULL), "unrecognized option '-x'");
	assert_string_equal(fault_of("-c", NULL), "option '-c' needs a value");
	assert_string_equal(fault_of("-kc", NULL), "option '-c' needs a value");
	/* The argument before the letters is correct. */
	assert_string_equal(fault_of("--check", "-xV"), "unrecognized option '-x'");
	assert_string_equal(fault_of("--config=x", "-qV"), "unrecognized option '-q'");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_long_option_is_explained),
		cmocka_unit_test(a_letter_is_explained),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
