/* SPDX-License-Identifier: BSD-3-Clause */
/* The errors that functions return, and the text pieces that errors consist of. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/text.h"

static void sizes_are_shown_in_the_largest_exact_unit(void **state)
{
	assert_string_equal(text_size(3 << 20).text, "3 MiB");
	assert_string_equal(text_size(1500).text, "1500 bytes");
	assert_string_equal(text_size(0).text, "0 bytes");
	assert_string_equal(text_size(UINT64_C(5) << 50).text, "5120 TiB");
}

static void control_characters_become_question_marks(void **state)
{
	char text[] = "a\033[31m\n\177\303\251";

	text_make_printable(text);
	assert_string_equal(text, "a?[31m??\303\251");
}

/* The rows have: C1 control characters (as UTF-8, as one byte), overlong NUL and '/', a surrogate,
 * code points beyond U+10FFFF, valid characters, truncated sequences. */
static void what_is_no_valid_utf8_is_made_visible(void **state)
{
	static const struct {
		const char *in, *out;
	} rows[] = {
		{"a\302\233b", "a??b"},
		{"\302\240\302\237", "\302\240??"},
		{"a\233b", "a?b"},
		{"\300\200\300\257", "????"},
		{"\340\200\257", "???"},
		{"\355\240\200", "???"},
		{"\364\220\200\200", "????"},
		{"\365\200\200\200", "????"},
		{"\360\237\230\200", "\360\237\230\200"},
		{"\342\202\254", "\342\202\254"},
		{"\342\202", "??"},
		{"\303", "?"},
		{"\342\202x\377", "??x?"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char text[16];

		strcpy(text, rows[i].in);
		text_make_printable(text);
		assert_string_equal(text, rows[i].out);
	}
}

static void white_space_is_cut_off_at_both_ends(void **state)
{
	char both[] = " \t a b \n", none[] = "ab", only[] = " \t", empty[] = "";

	assert_string_equal(text_trim(both), "a b");
	assert_string_equal(text_trim(none), "ab");
	assert_string_equal(text_trim(only), "");
	assert_string_equal(text_trim(empty), "");
}

static void a_long_text_is_cut_after_a_word(void **state)
{
	static const struct {
		size_t size;
		const char *out;
	} rows[] = {
		{14, "see the value"}, {13, "see the ..."}, {12, "see the ..."}, {11, "see ..."},
		{8, "see ..."},        {7, "see th"},       {4, "see"},          {1, ""},
	};
	char out[16];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		memset(out, 'x', sizeof(out));
		text_cut(out, rows[i].size, "see the value");
		assert_string_equal(out, rows[i].out);
		assert_int_equal(out[rows[i].size], 'x');
	}
	text_cut(out, 9, "onlyoneword");
	assert_string_equal(out, "onlyonew");
}

static void an_error_has_a_kind_a_cause_and_a_text(void **state)
{
	struct error err = {0};

	assert_int_equal(error_set(&err, ERROR_LOCAL, 5, "%s is %d", "it", 7), ERROR_LOCAL);
	assert_int_equal(err.kind, ERROR_LOCAL);
	assert_int_equal(err.cause, 5);
	assert_string_equal(err.text, "it is 7");
	/* The new text may contain the old one. */
	error_set(&err, ERROR_FAILED, 0, "after: %s", err.text);
	assert_string_equal(err.text, "after: it is 7");
	assert_int_equal(error_set(NULL, ERROR_REFUSED, 0, "nobody reads this"), ERROR_REFUSED);
}

static void a_long_text_is_cut(void **state)
{
	char name[2 * ERROR_TEXT];
	struct error err;

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	error_set(&err, ERROR_LOCAL, 0, "%s", name);
	assert_int_equal(strlen(err.text), ERROR_TEXT - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_are_shown_in_the_largest_exact_unit),
		cmocka_unit_test(control_characters_become_question_marks),
		cmocka_unit_test(what_is_no_valid_utf8_is_made_visible),
		cmocka_unit_test(white_space_is_cut_off_at_both_ends),
		cmocka_unit_test(a_long_text_is_cut_after_a_word),
		cmocka_unit_test(an_error_has_a_kind_a_cause_and_a_text),
		cmocka_unit_test(a_long_text_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
