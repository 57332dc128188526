/* SPDX-License-Identifier: BSD-3-Clause */
/* nearest_name() suggests the name that the user probably meant. */
#include "lib/unit.h"

#include <string.h>

#include "base/nearest.h"

static void the_distance_counts_single_errors(void **state)
{
	static const struct {
		const char *a, *b;
		unsigned distance;
	} rows[] = {
		{"", "", 0},         {"put", "put", 0},       {"", "put", 3},
		{"pu", "put", 1},    {"putt", "put", 1},      {"pat", "put", 1},
		{"ptu", "put", 1},   {"stauts", "status", 1}, {"sttaus", "status", 1},
		{"abcd", "badc", 2}, {"serve", "verse", 2},   {"kitten", "sitting", 3},
		{"get", "bench", 4},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(nearest_distance(rows[i].a, rows[i].b), rows[i].distance);
		assert_int_equal(nearest_distance(rows[i].b, rows[i].a), rows[i].distance);
	}
}

static void long_texts_are_compared_by_their_beginnings(void **state)
{
	char a[200], b[200];

	memset(a, 'x', sizeof(a));
	memset(b, 'x', sizeof(b));
	a[199] = b[150] = '\0';
	assert_int_equal(nearest_distance(a, b), 0);
	b[3] = 'y';
	assert_int_equal(nearest_distance(a, b), 1);
	assert_int_equal(nearest_distance(a, ""), 31);
}

static const char *hint_of(const char *word)
{
	static const char *const names[] = {"status", "set", "promote", "demote", "pause", "ls"};
	static struct nearest n;

	n = (struct nearest){.word = word, .prefix = ""};
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		nearest_offer(&n, names[i]);
	return nearest_hint(&n);
}

static void the_nearest_name_is_the_hint(void **state)
{
	assert_string_equal(hint_of("stauts"), " (did you mean 'status'?)");
	assert_string_equal(hint_of("promot"), " (did you mean 'promote'?)");
	assert_string_equal(hint_of("demoted"), " (did you mean 'demote'?)");
	assert_string_equal(hint_of("sett"), " (did you mean 'set'?)");
	assert_string_equal(hint_of("l"), " (did you mean 'ls'?)");
}

static void a_word_that_is_near_nothing_has_no_hint(void **state)
{
	assert_string_equal(hint_of("fly"), "");
	assert_string_equal(hint_of(""), "");
	assert_string_equal(hint_of("--status--"), "");
	assert_string_equal(hint_of("xy"), "");
}

static const struct option options[] = {{"size", required_argument, NULL, 's'},
					{"secret-file", required_argument, NULL, 'S'},
					{"create", no_argument, NULL, 'c'},
					{0}};

static const char *unknown_of(const char *first, const char *second)
{
	static char text[128];
	char *argv[] = {(char *)"prog", (char *)first, (char *)second, NULL};

	optind = 1;
	return nearest_option_is_unknown(3, argv, options, text, sizeof(text)) ? text : NULL;
}

static void an_unknown_option_is_found_before_getopt_reads_it(void **state)
{
	assert_string_equal(unknown_of("--sise", "x"),
			    "unrecognized option '--sise' (did you mean '--size'?)");
	assert_string_equal(
		unknown_of("--sceret-file=x", "x"),
		"unrecognized option '--sceret-file=x' (did you mean '--secret-file'?)");
	assert_string_equal(unknown_of("--bogus", "x"), "unrecognized option '--bogus'");
	assert_string_equal(unknown_of("operand", "--bogus"), "unrecognized option '--bogus'");
}

static void what_getopt_accepts_or_reports_itself_is_left_to_it(void **state)
{
	static const char *const rows[][2] = {
		{"--size", "--bogus"}, {"--size=1", "x"}, {"--cr", "x"}, {"--s", "x"},
		{"-x", "--bogus"},     {"--", "--bogus"}, {"a", "b"},    {"-", "b"}};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_null(unknown_of(rows[i][0], rows[i][1]));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_distance_counts_single_errors),
		cmocka_unit_test(long_texts_are_compared_by_their_beginnings),
		cmocka_unit_test(the_nearest_name_is_the_hint),
		cmocka_unit_test(a_word_that_is_near_nothing_has_no_hint),
		cmocka_unit_test(an_unknown_option_is_found_before_getopt_reads_it),
		cmocka_unit_test(what_getopt_accepts_or_reports_itself_is_left_to_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
