/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of the control stream: their bytes as documented, and messages that are refused. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rpmem/wire/message.h"

static uint8_t buf[WIRE_BODY_MAX];

static struct wire_attr sample_attr(void)
{
	struct wire_attr a = {.signature = "PMEMOBJ",
			      .major = 6,
			      .compat_features = 1,
			      .incompat_features = 6,
			      .ro_compat_features = 0x01020304};

	memset(a.poolset_uuid, 0xa1, 16);
	memset(a.uuid, 0xa2, 16);
	memset(a.next_uuid, 0xa3, 16);
	memset(a.prev_uuid, 0xa4, 16);
	memset(a.user_flags, 0xa5, 16);
	return a;
}

static struct wire_answer sample_answer(void)
{
	struct wire_answer m = {.request = WIRE_OPEN, .status = WIRE_OK, .text = "volatile"};

	m.pool = (struct wire_pool_answer){.lanes = 16,
					   .method = WIRE_METHOD_NATIVE,
					   .durability = 2,
					   .port = 7777,
					   .addr = "::1",
					   .has_headers = true,
					   .attr = sample_attr()};
	memset(m.pool.lane_key, 0x5a, WIRE_KEY);
	return m;
}

static void a_create_has_its_documented_bytes(void **state)
{
	static const uint8_t head[] = {
		0x00, 0x00, 0x80, 0,   0,   0,   0,   0, /* pool size: 8 MiB */
		0x00, 0x04, 0,    0,                     /* 1024 lanes */
		0,    0,    0,    0,                     /* feature bits */
		1,                                       /* the native flag */
		1,                                       /* attributes follow */
		'P',  'M',  'E',  'M', 'O', 'B', 'J', 0, 6, 0, 0, 0,
	};
	struct wire_pool_request m = {.pool_size = 8 << 20,
				      .lanes = 1024,
				      .method = WIRE_METHOD_NATIVE,
				      .has_attr = true,
				      .attr = sample_attr(),
				      .name = "a.set"};
	struct wire_pool_request got;
	size_t len = wire_pool_request_encode(&m, buf);

	assert_int_equal(len, 18 + 104 + 2 + 5);
	assert_memory_equal(buf, head, sizeof(head));
	assert_memory_equal(buf + 18 + 104, "\5\0a.set", 7);
	assert_true(wire_pool_request_decode(buf, len, &got));
	assert_memory_equal(&got, &m, sizeof(m));
}

static void an_answer_to_open_carries_the_attributes(void **state)
{
	struct wire_answer m = sample_answer(), got;
	size_t len = wire_answer_encode(&m, buf);

	assert_true(wire_answer_decode(buf, len, &got));
	assert_memory_equal(&got.pool, &m.pool, sizeof(m.pool));
	assert_string_equal(got.text, "volatile");
}

static void a_refusal_carries_words_and_no_pool(void **state)
{
	struct wire_answer m = sample_answer(), got;
	size_t len;

	m.status = WIRE_BUSY;
	m.error = EWOULDBLOCK;
	len = wire_answer_encode(&m, buf);
	assert_int_equal(len, 1 + 1 + 4 + 2 + strlen("volatile"));
	assert_true(wire_answer_decode(buf, len, &got));
	assert_int_equal(got.status, WIRE_BUSY);
	assert_int_equal(got.error, EWOULDBLOCK);
	assert_int_equal(got.pool.lanes, 0);
}

/* Each decoder refuses a body that is shorter, or one byte longer. */
static void a_byte_more_or_less_is_refused(void **state)
{
	struct wire_answer m = sample_answer(), got;
	size_t len = wire_answer_encode(&m, buf);

	for (size_t n = 0; n < len; n++) {
		/* a block of exactly this size, so that a sanitizer reports a read past the end */
		uint8_t *cut = malloc(n ? n : 1);

		memcpy(cut, buf, n);
		assert_false(wire_answer_decode(cut, n, &got));
		free(cut);
	}
	buf[len] = 0;
	assert_false(wire_answer_decode(buf, len + 1, &got));
}

static void a_name_with_a_nul_is_refused(void **state)
{
	struct wire_remove m = {.flags = WIRE_REMOVE_FORCE, .name = "pool.set"}, got;
	size_t len = wire_remove_encode(&m, buf);

	assert_true(wire_remove_decode(buf, len, &got));
	buf[len - 3] = 0;
	assert_false(wire_remove_decode(buf, len, &got));
}

static void a_name_longer_than_any_path_is_refused(void **state)
{
	struct wire_remove got;

	memset(buf, 'x', sizeof(buf));
	memset(buf, 0, 4);
	buf[4] = 0x00;
	buf[5] = 0x10; /* a length of 4096 */
	assert_false(wire_remove_decode(buf, 6 + 4096, &got));
	buf[4] = 0xff;
	buf[5] = 0x0f;
	assert_true(wire_remove_decode(buf, 6 + 4095, &got));
	assert_int_equal(strlen(got.name), 4095);
}

static void a_long_text_is_cut(void **state)
{
	struct wire_greeting m = {.error = EINVAL}, got;

	memset(m.text, 'y', sizeof(m.text)); /* a text without a NUL */
	assert_true(wire_greeting_decode(buf, wire_greeting_encode(&m, buf), &got));
	assert_int_equal(strlen(got.text), WIRE_TEXT_MAX);
}

static void unknown_numbers_are_refused(void **state)
{
	struct wire_answer m = sample_answer(), got;
	size_t len;

	m.pool.method = WIRE_METHOD_ANY;
	len = wire_answer_encode(&m, buf);
	assert_false(wire_answer_decode(buf, len, &got));
	m = sample_answer();
	m.status = WIRE_STATUS_END;
	len = wire_answer_encode(&m, buf);
	assert_false(wire_answer_decode(buf, len, &got));
}

static void every_status_has_its_errno(void **state)
{
	static const int want[WIRE_STATUS_END] = {
		0,           EPROTONOSUPPORT, EINVAL,       EFBIG, EINVAL,
		EINVAL,      EREMOTEIO,       ECONNABORTED, EBUSY, EEXIST,
		EMEDIUMTYPE, ENOENT,          EACCES,       EINVAL};

	for (unsigned i = 0; i < WIRE_STATUS_END; i++) {
		assert_int_equal(wire_status_errno(i), want[i]);
		assert_true(strlen(wire_status_text(i)) > 4);
	}
	assert_int_equal(wire_status_errno(WIRE_STATUS_END), EPROTO);
}

static void every_errno_of_a_pool_has_its_status(void **state)
{
	assert_int_equal(wire_status_of_errno(0), WIRE_OK);
	assert_int_equal(wire_status_of_errno(EEXIST), WIRE_EXISTS);
	assert_int_equal(wire_status_of_errno(EACCES), WIRE_NOACCESS);
	assert_int_equal(wire_status_of_errno(ENOENT), WIRE_NOEXIST);
	assert_int_equal(wire_status_of_errno(EWOULDBLOCK), WIRE_BUSY);
	assert_int_equal(wire_status_of_errno(EBADF), WIRE_BADNAME);
	assert_int_equal(wire_status_of_errno(EINVAL), WIRE_POOL_CFG);
	assert_int_equal(wire_status_of_errno(ENOTSUP), WIRE_FATAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_create_has_its_documented_bytes),
		cmocka_unit_test(an_answer_to_open_carries_the_attributes),
		cmocka_unit_test(a_refusal_carries_words_and_no_pool),
		cmocka_unit_test(a_byte_more_or_less_is_refused),
		cmocka_unit_test(a_name_with_a_nul_is_refused),
		cmocka_unit_test(a_name_longer_than_any_path_is_refused),
		cmocka_unit_test(a_long_text_is_cut),
		cmocka_unit_test(unknown_numbers_are_refused),
		cmocka_unit_test(every_status_has_its_errno),
		cmocka_unit_test(every_errno_of_a_pool_has_its_status),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
