/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/unit.h"

#include <errno.h>
#include <string.h>

#include "softrnic/proto/ext.h"
#include "softrnic/proto/ext_origin.h"

#define ASKS   "\x09\x00\x02\x01"
#define LAST   "\x09\x00\x00\x00"
#define LIMIT  "\x00\x00\x13\x88"
#define SERIAL "\x00\x00\x00\x00\x00\x00\x00\x09"
#define ID     "0123456789abcdef"
#define OWNER  "ABCDEFGHIJKLMNOP"
#define NOBODY "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
#define U64(n) "\0\0\0\0\0\0\0" n
#define RANGES U64("\x01") U64("\x03") U64("\x05") U64("\x05")

static struct ext_origin asking(void)
{
	struct ext_origin o = {
		.asks = true, .limit_ms = 5000, .serial = 9, .has_owner = true, .n = 2};

	memcpy(o.id, ID, EXT_ID_LEN);
	memcpy(o.owner, OWNER, EXT_ID_LEN);
	o.ranges[0] = (struct ext_range_of_serials){1, 3};
	o.ranges[1] = (struct ext_range_of_serials){5, 5};
	return o;
}

/* Decode the bytes of a string literal, without the NUL, in a block of exactly their size. */
static const char *why_not(const char *text, size_t len, struct ext_origin *got)
{
	uint8_t *bytes = test_malloc(len);
	const char *why;
	int ret;

	memcpy(bytes, text, len);
	ret = ext_origin_decode(bytes, len, got, &why);
	test_free(bytes);
	assert_int_equal(ret, why ? -EBADMSG : 0);
	return why;
}

#define READS(text, expected)                                                                      \
	do {                                                                                       \
		struct ext_origin got_;                                                            \
                                                                                                   \
		assert_null(why_not((text), sizeof(text) - 1, &got_));                             \
		assert_memory_equal(&got_, (expected), sizeof(got_));                              \
	} while (0)

#define REFUSES(text, reason)                                                                      \
	do {                                                                                       \
		struct ext_origin got_;                                                            \
		const char *why_ = why_not((text), sizeof(text) - 1, &got_);                       \
                                                                                                   \
		assert_non_null(why_);                                                             \
		assert_non_null(strstr(why_, (reason)));                                           \
	} while (0)

static void it_is_laid_out_as_documented(void **state)
{
	static const char wire[] = ASKS LIMIT SERIAL ID OWNER RANGES;
	struct ext_origin o = asking(), last = {.serial = 9};
	uint8_t buf[EXT_MAX];

	assert_int_equal(ext_origin_encode(buf, sizeof(buf), &o), sizeof(wire) - 1);
	assert_memory_equal(buf, wire, sizeof(wire) - 1);
	assert_int_equal(ext_origin_encode(buf, sizeof(wire) - 2, &o), -ENOSPC);
	READS(ASKS LIMIT SERIAL ID OWNER RANGES, &o);
	memcpy(last.id, ID, EXT_ID_LEN);
	READS(LAST "\0\0\0\0" SERIAL ID NOBODY, &last);
}

static void as_many_ranges_as_a_message_takes(void **state)
{
	struct ext_origin o = asking(), got;
	uint8_t buf[EXT_MAX];
	const char *why;
	int len;

	o.n = EXT_ORIGIN_RANGES;
	for (unsigned i = 0; i < o.n; i++)
		o.ranges[i] = (struct ext_range_of_serials){2 * i + 1, 2 * i + 1};
	len = ext_origin_encode(buf, sizeof(buf), &o);
	assert_int_equal(len, EXT_MAX);
	assert_int_equal(ext_origin_decode(buf, (size_t)len, &got, &why), 0);
	assert_memory_equal(&got, &o, sizeof(o));
	assert_true(ext_origin_names(&got, 121));
	assert_false(ext_origin_names(&got, 2));
	assert_false(ext_origin_names(&got, 122));
}

/* Bytes at the end are ignored, because a later version may add some. */
static void bytes_behind_its_end_are_skipped(void **state)
{
	struct ext_origin o = asking();

	READS(ASKS LIMIT SERIAL ID OWNER RANGES "later", &o);
}

static void what_cannot_be_meant_is_refused(void **state)
{
	REFUSES("\x08\x00\x02\x01" LIMIT SERIAL ID OWNER RANGES, "not an Origin");
	REFUSES(ASKS LIMIT SERIAL ID "ABCDEFGHIJKLMNO", "short");
	REFUSES(ASKS LIMIT SERIAL ID OWNER U64("\x01") U64("\x03") U64("\x05"), "short");
	REFUSES("\x09\x00\xff\x01" LIMIT SERIAL ID OWNER RANGES, "short");
	REFUSES(LAST LIMIT U64("") "\0" ID NOBODY, "serial");
	REFUSES(LAST LIMIT SERIAL ID OWNER, "does not ask");
	REFUSES("\x09\x00\x02\x00" LIMIT SERIAL ID NOBODY RANGES, "does not ask");
	REFUSES(ASKS LIMIT SERIAL ID OWNER U64("\x03") U64("\x01") U64("\x05") U64("\x05"),
		"order");
	REFUSES(ASKS LIMIT SERIAL ID OWNER U64("\x01") U64("\x05") U64("\x05") U64("\x06"),
		"order");
	REFUSES(ASKS LIMIT SERIAL ID OWNER U64("") "\0" U64("\x05") U64("\x07") U64("\x07"),
		"order");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_laid_out_as_documented),
		cmocka_unit_test(as_many_ranges_as_a_message_takes),
		cmocka_unit_test(bytes_behind_its_end_are_skipped),
		cmocka_unit_test(what_cannot_be_meant_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
