/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/unit.h"

#include <errno.h>
#include <string.h>

#include "softrnic/proto/ext.h"
#include "softrnic/proto/ext_hello.h"
#include "softrnic/proto/mpa.h"

#define WORD    "\x01\x00\x00\x00"
#define VERSION "\x00\x01\x00\x04\x00\x02\x00\x00"
#define KINDS   "\x00\x02\x00\x08\x00\x00\x00\x00\x00\x00\x00\xf8"
#define LIMIT   "\x00\x03\x00\x04\x00\x00\x3a\x98"
#define INSTANCE                                                                                   \
	"\x00\x05\x00\x10"                                                                         \
	"0123456789abcdef"
#define ULPDU "\x00\x04\x00\x04\x00\x00\xfd\x00"

static const struct ext_hello full = {
	.major = 2, .kinds = 0xf8, .limit_ms = 15000, .max_ulpdu = 64768};

static void assert_hello(const struct ext_hello *a, const struct ext_hello *b)
{
	assert_int_equal(a->major, b->major);
	assert_int_equal(a->minor, b->minor);
	assert_int_equal(a->acks, b->acks);
	assert_true(a->kinds == b->kinds);
	assert_int_equal(a->limit_ms, b->limit_ms);
	assert_int_equal(a->max_ulpdu, b->max_ulpdu);
	assert_int_equal(a->rings, b->rings);
	assert_int_equal(a->has_instance, b->has_instance);
	assert_memory_equal(a->instance, b->instance, EXT_ID_LEN);
}

/* Decode the bytes of a string literal, without the NUL, in a block of exactly their size. */
static int decode(const char *text, size_t len, struct ext_hello *hello, const char **why)
{
	uint8_t *bytes = test_malloc(len + !len);
	int ret;

	memcpy(bytes, text, len);
	ret = ext_hello_decode(bytes, len, hello, why);
	test_free(bytes);
	return ret;
}

#define READS(text, expected)                                                                      \
	do {                                                                                       \
		const char *why_;                                                                  \
		struct ext_hello got_;                                                             \
                                                                                                   \
		assert_int_equal(decode((text), sizeof(text) - 1, &got_, &why_), 0);               \
		assert_null(why_);                                                                 \
		assert_hello(&got_, (expected));                                                   \
	} while (0)

#define REFUSES(text, reason)                                                                      \
	do {                                                                                       \
		const char *why_;                                                                  \
		struct ext_hello got_;                                                             \
                                                                                                   \
		assert_int_equal(decode((text), sizeof(text) - 1, &got_, &why_), -EBADMSG);        \
		assert_non_null(strstr(why_, (reason)));                                           \
	} while (0)

static void a_hello_is_laid_out_as_documented(void **state)
{
	static const char wire[] = WORD VERSION KINDS LIMIT ULPDU;
	uint8_t buf[EXT_HELLO_LEN];

	assert_int_equal(ext_hello_encode(buf, sizeof(buf), &full), EXT_HELLO_LEN);
	assert_int_equal(sizeof(wire) - 1, EXT_HELLO_LEN);
	assert_memory_equal(buf, wire, EXT_HELLO_LEN);
	assert_int_equal(ext_hello_encode(buf, EXT_HELLO_LEN - 1, &full), -ENOSPC);
	READS(WORD VERSION KINDS LIMIT ULPDU, &full);
}

static void an_end_that_has_rings_says_so(void **state)
{
	static const char wire[] =
		WORD VERSION KINDS LIMIT ULPDU "\x00\x10\x00\x04\x00\x00\x00\x01";
	struct ext_hello rings = full;
	uint8_t buf[EXT_HELLO_MAX];

	rings.rings = 1;
	assert_int_equal(ext_hello_encode(buf, sizeof(buf), &rings), sizeof(wire) - 1);
	assert_memory_equal(buf, wire, sizeof(wire) - 1);
	READS(WORD VERSION KINDS LIMIT ULPDU "\x00\x10\x00\x04\x00\x00\x00\x01", &rings);
	REFUSES(WORD VERSION "\x00\x10\x00\x08\x00\x00\x00\x01\x00\x00\x00\x01", "length");
}

static void an_end_that_acknowledges_says_so(void **state)
{
	static const char wire[] =
		WORD VERSION KINDS LIMIT ULPDU "\x00\x20\x00\x04\x00\x00\x00\x01";
	struct ext_hello acks = full;
	uint8_t buf[EXT_HELLO_MAX];

	acks.acks = 1;
	assert_int_equal(ext_hello_encode(buf, sizeof(buf), &acks), sizeof(wire) - 1);
	assert_memory_equal(buf, wire, sizeof(wire) - 1);
	READS(WORD VERSION KINDS LIMIT ULPDU "\x00\x20\x00\x04\x00\x00\x00\x01", &acks);
	REFUSES(WORD VERSION "\x00\x20\x00\x02\x00\x01\x00\x00", "length");
	REFUSES(WORD VERSION "\x00\x20\x00\x04\x00\x00\x00\x01"
			     "\x00\x20\x00\x04\x00\x00\x00\x01",
		"twice");
}

static void an_end_that_takes_part_names_its_process(void **state)
{
	static const char wire[] = WORD VERSION KINDS LIMIT ULPDU INSTANCE;
	struct ext_hello named = full;
	uint8_t buf[EXT_HELLO_MAX];

	named.has_instance = true;
	memcpy(named.instance, "0123456789abcdef", sizeof(named.instance));
	assert_int_equal(ext_hello_encode(buf, sizeof(buf), &named), sizeof(wire) - 1);
	assert_memory_equal(buf, wire, sizeof(wire) - 1);
	READS(WORD VERSION KINDS LIMIT ULPDU INSTANCE, &named);
	REFUSES(WORD VERSION "\x00\x05\x00\x04\x00\x00\x00\x01", "length");
	REFUSES(WORD VERSION INSTANCE INSTANCE, "twice");
	named.rings = named.acks = 1;
	assert_int_equal(ext_hello_encode(buf, sizeof(buf), &named), EXT_HELLO_MAX);
}

static void what_is_left_out_has_a_default(void **state)
{
	static const struct ext_hello least = {.major = 2, .max_ulpdu = MPA_ULPDU_MAX};

	READS(WORD VERSION, &least);
	REFUSES(WORD, "version");
	REFUSES(WORD KINDS LIMIT ULPDU, "version");
}

static void the_order_of_items_does_not_matter(void **state)
{
	READS(WORD ULPDU KINDS LIMIT VERSION, &full);
}

static void unknown_items_and_later_minor_versions_are_skipped(void **state)
{
	static const struct ext_hello later = {
		.major = 2, .minor = 7, .kinds = 0xf8, .max_ulpdu = MPA_ULPDU_MAX};

	READS(WORD VERSION "\x00\x11\x00\x05"
			   "abcde\0\0\0" KINDS LIMIT "\xff\xff\x00\x00" ULPDU,
	      &full);
	READS(WORD "\x00\x01\x00\x04\x00\x02\x00\x07" KINDS, &later);
	/* Padding is ignored, and an unknown item may occur twice. */
	READS(WORD VERSION "\x00\x21\x00\x01X???"
			   "\x00\x21\x00\x01X???" KINDS LIMIT ULPDU,
	      &full);
	/* The 24 bits after the word's first byte are ignored, too. */
	READS("\x01\xaa\xbb\xcc" VERSION KINDS LIMIT ULPDU, &full);
}

static void a_longer_set_of_kinds_is_read_as_far_as_it_is_known(void **state)
{
	READS(WORD VERSION LIMIT ULPDU "\x00\x02\x00\x10\x00\x00\x00\x00\x00\x00\x00\xf8"
				       "\xff\xff\xff\xff\xff\xff\xff\xff",
	      &full);
}

static void an_item_that_runs_past_the_end_is_refused(void **state)
{
	REFUSES(WORD VERSION "\x00", "past its end");
	REFUSES(WORD VERSION "\x00\x03\x00", "past its end");
	REFUSES(WORD VERSION "\x00\x03\x00\x04\x00\x00\x00", "past its end");
	REFUSES(WORD VERSION "\x00\x10\xff\xff", "past its end");
	REFUSES(WORD VERSION "\x00\x10\x00\x01X??", "past its end"); /* the padding is missing */
}

static void a_known_item_of_another_length_is_refused(void **state)
{
	REFUSES(WORD "\x00\x01\x00\x02\x00\x02\x00\x00", "wrong length");
	REFUSES(WORD VERSION "\x00\x02\x00\x00", "wrong length");
	REFUSES(WORD VERSION "\x00\x02\x00\x04\x00\x00\x00\x00", "wrong length");
	REFUSES(WORD VERSION "\x00\x02\x00\x0c\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00",
		"wrong length");
	REFUSES(WORD VERSION "\x00\x03\x00\x08\x00\x00\x00\x00\x00\x00\x00\x00", "wrong length");
	REFUSES(WORD VERSION "\x00\x04\x00\x03\x00\x00\x00\x00", "wrong length");
}

static void a_known_item_comes_once(void **state)
{
	REFUSES(WORD VERSION VERSION, "twice");
	REFUSES(WORD VERSION LIMIT KINDS LIMIT, "twice");
}

static void another_major_version_is_refused(void **state)
{
	REFUSES(WORD "\x00\x01\x00\x04\x00\x01\x00\x00" KINDS, "another version");
	REFUSES(WORD "\x00\x01\x00\x04\x00\x03\x00\x00" KINDS, "another version");
}

static void a_ulpdu_limit_is_clipped_above_and_refused_below(void **state)
{
	static const struct ext_hello least = {.major = 2, .max_ulpdu = 2048};

	READS(WORD VERSION KINDS LIMIT "\x00\x04\x00\x04\xff\xff\xff\xff", &full);
	READS(WORD VERSION "\x00\x04\x00\x04\x00\x00\x08\x00", &least);
	REFUSES(WORD VERSION "\x00\x04\x00\x04\x00\x00\x07\xff", "below the minimum");
	REFUSES(WORD VERSION "\x00\x04\x00\x04\x00\x00\x00\x00", "below the minimum");
}

static void another_kind_or_no_word_is_no_hello(void **state)
{
	REFUSES("\x02\x00\x00\x00" VERSION, "not a HELLO");
	REFUSES("\x01\x00\x00", "not a HELLO");
	REFUSES("", "not a HELLO");
}

/* With random bytes the decoder never reads past the end of its input (ASan), and every HELLO that
 * it accepts is usable. */
static void noise_never_gives_an_unusable_hello(void **state)
{
	static const char start[] = WORD VERSION;
	uint64_t seed = 11;
	unsigned good = 0;

	for (int round = 0; round < 200000; round++) {
		char bytes[64];
		size_t len = 12 + test_random(&seed) % 52;
		struct ext_hello hello;
		const char *why;

		for (size_t i = 0; i < sizeof(bytes); i++)
			bytes[i] = (char)(test_random(&seed) & (test_random(&seed) & 1 ? 7 : 0));
		memcpy(bytes, start, sizeof(start) - 1);
		if (decode(bytes, len, &hello, &why)) {
			assert_non_null(why);
			continue;
		}
		good++;
		assert_int_equal(hello.major, 2);
		assert_true(hello.max_ulpdu >= EXT_HELLO_ULPDU_MIN &&
			    hello.max_ulpdu <= MPA_ULPDU_MAX);
	}
	assert_true(good > 100);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_hello_is_laid_out_as_documented),
		cmocka_unit_test(an_end_that_has_rings_says_so),
		cmocka_unit_test(an_end_that_acknowledges_says_so),
		cmocka_unit_test(an_end_that_takes_part_names_its_process),
		cmocka_unit_test(what_is_left_out_has_a_default),
		cmocka_unit_test(the_order_of_items_does_not_matter),
		cmocka_unit_test(unknown_items_and_later_minor_versions_are_skipped),
		cmocka_unit_test(a_longer_set_of_kinds_is_read_as_far_as_it_is_known),
		cmocka_unit_test(an_item_that_runs_past_the_end_is_refused),
		cmocka_unit_test(a_known_item_of_another_length_is_refused),
		cmocka_unit_test(a_known_item_comes_once),
		cmocka_unit_test(another_major_version_is_refused),
		cmocka_unit_test(a_ulpdu_limit_is_clipped_above_and_refused_below),
		cmocka_unit_test(another_kind_or_no_word_is_no_hello),
		cmocka_unit_test(noise_never_gives_an_unusable_hello),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
