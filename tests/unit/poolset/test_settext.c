/* SPDX-License-Identifier: BSD-3-Clause */
/* Each rule for the text of a pool set file. The text of an error names the line. */
#include "lib/unit.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "poolset/settext.h"

#define HEAD "PMEMPOOLSET\n"
#define PART "16M /p0\n"

static struct settext set;
static struct error err;

static int parse_bytes(const char *text, size_t len)
{
	/* Parse a copy on the heap, so that a sanitizer reports a read past its end. */
	char *copy = malloc(len ? len : 1);
	int rc;

	assert_non_null(copy);
	memcpy(copy, text, len);
	err = (struct error){0};
	rc = settext_parse(&set, "a.set", copy, len, &err);
	free(copy);
	return rc;
}

static void expect_set(const char *text, unsigned nparts)
{
	if (parse_bytes(text, strlen(text)))
		fail_msg("%s: %s", text, err.text);
	assert_int_equal(set.nparts, nparts);
}

static void expect_bad(const char *text, const char *words)
{
	assert_int_equal(parse_bytes(text, strlen(text)), ERROR_LOCAL);
	settext_fini(&set);
	assert_int_equal(err.cause, EINVAL);
	if (!strstr(err.text, words))
		fail_msg("\"%s\" is not in \"%s\"", words, err.text);
}

static void parts_have_a_size_and_a_path(void **state)
{
	expect_set(HEAD "16M /p0\n \t2097152 \t /dir/p1 \nAUTO /dev/dax0.0", 3);
	assert_int_equal(set.parts[0].size, 16 << 20);
	assert_string_equal(set.parts[0].path, "/p0");
	assert_int_equal(set.parts[0].line, 2);
	assert_int_equal(set.parts[1].size, 2 << 20);
	assert_string_equal(set.parts[1].path, "/dir/p1");
	assert_int_equal(set.parts[2].size, 0);
	assert_int_equal(set.parts[2].line, 4);
	assert_int_equal(set.nreplicas, 1);
	assert_int_equal(set.nremotes, 0);
	assert_int_equal(set.options, 0);
	settext_fini(&set);

	expect_bad(HEAD "16M\n", "a.set:2: a size and a path");
	expect_bad(HEAD PART "16M /p1 junk\n", "a.set:3: 'junk' is one word too many");
	expect_bad(HEAD "16M p0\n", "a.set:2: 'p0' is no absolute path");
	expect_bad(HEAD "16X /p0\n", "a.set:2: '16X' is no size");
	expect_bad(HEAD "auto /p0\n", "'auto' is no size");
}

static void the_first_line_is_the_word_and_nothing_else(void **state)
{
	expect_set("PMEMPOOLSET\r\n" PART, 1);
	settext_fini(&set);
	expect_bad("", "a.set:1: the first line must be PMEMPOOLSET");
	expect_bad("\n", "a.set:1: the first line");
	expect_bad("PMEMPOOLSET", "a.set:1: the first line");
	expect_bad("PMEMPOOLSET \n" PART, "a.set:1: the first line");
	expect_bad("PMEMPOOLSET # x\n" PART, "a.set:1: the first line");
	expect_bad("\nPMEMPOOLSET\n" PART, "a.set:1: the first line");
	expect_bad("PMEMPOOLSETS\n" PART, "a.set:1: the first line");
}

static void comments_and_empty_lines_are_skipped(void **state)
{
	expect_set(HEAD "\n# a comment\n\r\n16M /p0#glued\r\n16M /p1 # apart\n#", 2);
	assert_string_equal(set.parts[0].path, "/p0");
	assert_string_equal(set.parts[1].path, "/p1");
	settext_fini(&set);
	expect_bad(HEAD "  \n" PART, "a.set:2: a size and a path");
	expect_bad(HEAD " # indented\n" PART, "a.set:2: a size and a path");
}

static void options_stand_anywhere_and_repeat(void **state)
{
	expect_set(HEAD PART "OPTION SINGLEHDR\n", 1);
	assert_int_equal(set.options, SETTEXT_SINGLEHDR);
	settext_fini(&set);
	expect_set(HEAD "OPTION\tNOHDRS  NOHDRS \nOPTION NOHDRS#x\n" PART, 1);
	assert_int_equal(set.options, SETTEXT_NOHDRS);
	settext_fini(&set);

	expect_bad(HEAD "OPTION\n" PART, "a.set:2: OPTION without");
	expect_bad(HEAD "OPTION  \n" PART, "a.set:2: OPTION without");
	expect_bad(HEAD "OPTION singlehdr\n" PART, "'singlehdr' is no option");
	expect_bad(HEAD "OPTION SINGLEHDR NOHDRS\n" PART, "exclude each other");
	expect_bad(HEAD "OPTION NOHDRS\n" PART "OPTION SINGLEHDR\n", "a.set:4: SINGLEHDR and");
	expect_bad(HEAD " OPTION SINGLEHDR\n" PART, "a.set:2: 'OPTION' is no size");
	expect_bad(HEAD "OPTIONSINGLEHDR\n" PART, "a.set:2: a size and a path");
}

static void replicas_are_recognised(void **state)
{
	expect_set(HEAD PART "REPLICA\n16M /r0\n16M /r1\nREPLICA host:22 dir/b.set\n", 3);
	assert_int_equal(set.nreplicas, 3);
	assert_int_equal(set.nremotes, 1);
	assert_int_equal(set.replica_line, 3);
	assert_int_equal(set.parts[0].replica, 0);
	assert_int_equal(set.parts[2].replica, 1);
	settext_fini(&set);
	expect_set(HEAD PART "REPLICA h s\nREPLICA#x\n16M /p1", 2);
	settext_fini(&set);

	expect_bad(HEAD PART "REPLICA\n", "a.set:4: the replica that ends here has no parts");
	expect_bad(HEAD PART "REPLICA\nREPLICA\n16M /p\n", "a.set:4: the replica");
	expect_bad(HEAD PART "REPLICA host\n", "a.set:3: REPLICA alone, or with");
	expect_bad(HEAD PART "REPLICA host /abs\n", "'/abs' is an absolute path");
	expect_bad(HEAD PART "REPLICA host name x\n", "'x' is one word too many");
	expect_bad(HEAD PART "REPLICA h s\n" PART, "a.set:4: a remote replica has no parts");
	expect_bad(HEAD PART "REPLICAS\n" PART, "a.set:3: a size and a path");
	expect_bad(HEAD "REPLICA\n" PART, "a.set:2: the pool set has no parts");
	expect_bad(HEAD "# nothing\n", "a.set:3: the pool set has no parts");
}

struct size_case {
	const char *word;
	uint64_t size; /* 0: the size is refused */
};

static void sizes_have_suffixes_and_do_not_overflow(void **state)
{
	static const struct size_case cases[] = {
		{"1", 1},
		{"17B", 17},
		{"016", 16},
		{"3K", 3 << 10},
		{"3KiB", 3 << 10},
		{"3kB", 3000},
		{"3M", 3 << 20},
		{"3MiB", 3 << 20},
		{"3MB", 3000000},
		{"3G", 3ull << 30},
		{"3GiB", 3ull << 30},
		{"3GB", 3000000000},
		{"3T", 3ull << 40},
		{"3TiB", 3ull << 40},
		{"3TB", 3000000000000},
		{"3P", 3ull << 50},
		{"3PiB", 3ull << 50},
		{"3PB", 3000000000000000},
		{"18446744073709551615", UINT64_MAX},
		{"16383P", 16383ull << 50},
		{"18446744073709551616", 0},
		{"99999999999999999999999999", 0},
		{"16384P", 0},
		{"0", 0},
		{"0K", 0},
		{"", 0},
		{"K", 0},
		{"-1", 0},
		{"+1", 0},
		{"0x10", 0},
		{"1.5G", 0},
		{"1 ", 0},
		{"3k", 0},
		{"3KB", 0},
		{"3kiB", 0},
		{"3Ki", 0},
		{"3Kib", 0},
		{"3KiBB", 0},
		{"3m", 0},
		{"3E", 0},
		{"3BB", 0},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint64_t size = 0;
		bool good = settext_size(cases[i].word, strlen(cases[i].word), &size);

		if (good != (cases[i].size != 0) || size != cases[i].size)
			fail_msg("%s", cases[i].word);
	}
	assert_false(settext_size("3\0", 2, &(uint64_t){0}));
}

static void hostile_texts_are_bounded(void **state)
{
	size_t len = SETTEXT_BYTES_MAX + 1;
	char *text = malloc(len);
	char *at;

	assert_non_null(text);
	memset(text, '\n', len);
	memcpy(text, HEAD, strlen(HEAD));
	assert_int_equal(parse_bytes(text, len), ERROR_LOCAL);
	assert_non_null(strstr(err.text, "too long"));

	memset(text, '/', len);
	memcpy(text, HEAD "1 ", strlen(HEAD "1 "));
	assert_int_equal(parse_bytes(text, len - 1), ERROR_LOCAL);
	settext_fini(&set);
	assert_non_null(strstr(err.text, "a.set:2"));
	assert_non_null(strstr(err.text, "too long for a path"));

	/* A path of PATH_MAX bytes has no space for the NUL at its end. */
	memcpy(text + strlen(HEAD "1M ") + PATH_MAX, "\n", 1);
	memcpy(text, HEAD "1M ", strlen(HEAD "1M "));
	assert_int_equal(parse_bytes(text, strlen(HEAD "1M ") + PATH_MAX + 1), ERROR_LOCAL);
	settext_fini(&set);
	assert_non_null(strstr(err.text, "too long for a path"));

	at = text + sprintf(text, HEAD);
	for (unsigned i = 0; i <= SETTEXT_PARTS_MAX; i++) {
		if (i == SETTEXT_PARTS_MAX) {
			assert_int_equal(parse_bytes(text, (size_t)(at - text)), 0);
			assert_int_equal(set.nparts, SETTEXT_PARTS_MAX);
			settext_fini(&set);
		}
		at += sprintf(at, "1 /p%u\n", i);
	}
	assert_int_equal(parse_bytes(text, (size_t)(at - text)), ERROR_LOCAL);
	assert_non_null(strstr(err.text, "too many parts"));
	settext_fini(&set);
	free(text);
}

static void what_is_no_text_is_refused_and_printed_without_control_characters(void **state)
{
	static const char zero[] = HEAD "16M /p0\0x\n";

	assert_int_equal(parse_bytes(zero, sizeof(zero) - 1), ERROR_LOCAL);
	assert_non_null(strstr(err.text, "a zero byte"));
	settext_fini(&set);
	expect_bad(HEAD "1\033[2J /p0\n", "'1?[2J' is no size");
}

static void every_cut_and_every_changed_byte_is_survived(void **state)
{
	static const char good[] = HEAD "OPTION SINGLEHDR\n16M /p0 # x\r\n2GiB /p1\nREPLICA\n"
					"AUTO /dev/dax1.0\nREPLICA host dir/b.set\n";
	char text[sizeof(good)];

	for (size_t len = 0; len < sizeof(good); len++) {
		parse_bytes(good, len);
		settext_fini(&set);
	}
	for (size_t at = 0; at < sizeof(good) - 1; at++) {
		for (int byte = 0; byte < 256; byte++) {
			memcpy(text, good, sizeof(good));
			text[at] = (char)byte;
			if (parse_bytes(text, sizeof(good) - 1)) {
				assert_int_equal(err.cause, EINVAL);
				assert_non_null(strstr(err.text, "a.set:"));
			}
			settext_fini(&set);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_have_a_size_and_a_path),
		cmocka_unit_test(the_first_line_is_the_word_and_nothing_else),
		cmocka_unit_test(comments_and_empty_lines_are_skipped),
		cmocka_unit_test(options_stand_anywhere_and_repeat),
		cmocka_unit_test(replicas_are_recognised),
		cmocka_unit_test(sizes_have_suffixes_and_do_not_overflow),
		cmocka_unit_test(hostile_texts_are_bounded),
		cmocka_unit_test(what_is_no_text_is_refused_and_printed_without_control_characters),
		cmocka_unit_test(every_cut_and_every_changed_byte_is_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
