/* SPDX-License-Identifier: BSD-3-Clause */
/* A set's record as bytes: it decodes as it was encoded, each record has only one encoding, and
 * other bytes are refused. */
#include "lib/mirror_copy.h"
#include "lib/unit.h"

#include <errno.h>
#include <string.h>

#include "base/crc32c.h"
#include "mirror/core/record.h"
#include "mirror/core/version.h"

static struct mirror_record rec, got;
static uint8_t bytes[RECORD_BYTES];

static int setup(void **state)
{
	copy_record(&rec);
	rec.view = (struct mirror_view){.epoch = copy_epoch(7),
					.seq = 3,
					.phase = MIRROR_PHASE_SERVING,
					.primary = 0,
					.insync = 5};
	rec.nonce = 0x55;
	rec.history_count = 2;
	rec.history[0] = (struct mirror_ended){copy_epoch(6), 9, 5};
	rec.history[1] = (struct mirror_ended){copy_epoch(5), 2, 0};
	return 0;
}

static void comes_back_as_it_was(void **state)
{
	size_t len = record_encode(&rec, bytes, sizeof(bytes));

	assert_int_not_equal(len, 0);
	memset(&got, 0xff, sizeof(got));
	assert_int_equal(record_decode(&got, bytes, len), 0);
	assert_true(record_is_equal(&rec, &got));
	assert_string_equal(got.config.members[2].path, "/pm/orders");
	assert_int_equal(got.history[1].seq, 2);
	assert_int_equal(got.history[0].insync, 5);
	assert_int_equal(got.history[1].insync, 0);
	assert_int_equal(got.view.insync, 5);
}

/* Decode a record as earlier versions of this project wrote it. */
static void a_history_without_in_sync_sets_comes_back(void **state)
{
	size_t with = record_encode(&rec, bytes, sizeof(bytes)), without;

	(void)state;
	rec.history[0].insync = 0;
	without = record_encode(&rec, bytes, sizeof(bytes));
	assert_int_equal(with - without, rec.history_count);
	assert_int_equal(record_decode(&got, bytes, without), 0);
	assert_true(record_is_equal(&rec, &got));
}

static void the_largest_fits(void **state)
{
	size_t len;

	memset(rec.config.set, 's', MIRROR_SET_MAX);
	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++) {
		struct mirror_member *member = &rec.config.members[slot];

		member->id = slot + 1;
		memset(member->name, 'a' + (int)slot, MIRROR_NAME_MAX);
		memset(member->host, 'h', MIRROR_HOST_MAX);
		memset(member->path, '/', MIRROR_PATH_MAX);
	}
	rec.history_count = MIRROR_HISTORY;
	len = record_encode(&rec, bytes, sizeof(bytes));
	assert_int_not_equal(len, 0);
	assert_int_equal(record_decode(&got, bytes, len), 0);
	assert_true(record_is_equal(&rec, &got));
	assert_int_equal(record_encode(&rec, bytes, len - 1), 0);
}

static void the_limits_themselves_are_possible(void **state)
{
	size_t len;

	rec.config.size = MIRROR_SIZE_MAX;
	rec.config.min_copies = MIRROR_MEMBERS_MAX;
	rec.config.lonely = MIRROR_LONELY_MANUAL;
	rec.config.local_error_continues = true;
	rec.view.clean = rec.view.forced = true;
	len = record_encode(&rec, bytes, sizeof(bytes));
	assert_int_not_equal(len, 0);
	assert_int_equal(record_decode(&got, bytes, len), 0);
	assert_true(record_is_equal(&rec, &got));
}

static void what_is_not_meant_does_not_matter(void **state)
{
	struct mirror_record same = rec;

	same.config.set[10] = 'x';             /* a byte past the end of the text */
	same.config.members[5].port = 7;       /* in an unused slot */
	same.history[5].epoch = copy_epoch(1); /* an entry past the count */
	assert_true(record_is_equal(&rec, &same));
	same.nonce++;
	assert_false(record_is_equal(&rec, &same));
}

static void each_flipped_bit_and_each_cut_is_seen(void **state)
{
	size_t len = record_encode(&rec, bytes, sizeof(bytes));

	for (size_t bit = 0; bit < 8 * len; bit++) {
		int rc;

		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		rc = record_decode(&got, bytes, len);
		assert_true(rc == -EBADMSG || rc == -EPROTONOSUPPORT);
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	for (size_t n = 0; n < len; n++)
		assert_int_equal(record_decode(&got, bytes, n), -EBADMSG);
	assert_int_equal(record_decode(&got, bytes, len + 1), -EBADMSG);
}

/* Correct the checksum, so that only the text can be the cause of the refusal. */
static void refused_with_sum(size_t len)
{
	uint32_t sum = crc32c_final(crc32c_update(CRC32C_INIT, bytes, len - 4));

	for (unsigned i = 0; i < 4; i++)
		bytes[len - 4 + i] = (uint8_t)(sum >> 8 * i);
	assert_int_equal(record_decode(&got, bytes, len), -EBADMSG);
}

static void a_text_with_an_end_inside_or_of_any_length_is_refused(void **state)
{
	size_t len = record_encode(&rec, bytes, sizeof(bytes));
	uint8_t *text = memmem(bytes, len, rec.config.set, strlen(rec.config.set));

	assert_non_null(text);
	text[1] = '\0';
	refused_with_sum(len);
	record_encode(&rec, bytes, sizeof(bytes));
	text[-1] = 0xff; /* the upper byte of the text's length */
	refused_with_sum(len);
}

static void a_switch_that_is_neither_and_bytes_behind_the_last_are_refused(void **state)
{
	static uint8_t clean[RECORD_BYTES];
	size_t len = record_encode(&rec, bytes, sizeof(bytes)), at = 0;

	rec.view.clean = true;
	assert_int_equal(record_encode(&rec, clean, sizeof(clean)), len);
	while (bytes[at] == clean[at])
		at++;
	bytes[at] = 2;
	refused_with_sum(len);
	record_encode(&rec, bytes, sizeof(bytes));
	bytes[12]++; /* length of the record: one byte more, before the checksum */
	assert_int_not_equal(bytes[12], 0);
	bytes[len - 4] = 0;
	refused_with_sum(len + 1);
}

static void another_format_is_named_as_such(void **state)
{
	size_t len = record_encode(&rec, bytes, sizeof(bytes));

	bytes[8] = (uint8_t)(version_newest() + 1);
	assert_int_equal(record_decode(&got, bytes, len), -EPROTONOSUPPORT);
}

static void refused(void)
{
	assert_non_null(record_check(&rec));
	assert_int_equal(record_encode(&rec, bytes, sizeof(bytes)), 0);
	setup(NULL);
	assert_null(record_check(&rec));
}

static void what_is_impossible_is_refused(void **state)
{
	rec.config.size = 4097;
	refused();
	rec.config.size = MIRROR_SIZE_MAX + MIRROR_BLOCK;
	refused();
	rec.config.min_copies = 0;
	refused();
	rec.config.set[0] = '\0';
	refused();
	memset(rec.config.set, 'x', sizeof(rec.config.set));
	refused();
	rec.config.members[1].id = rec.config.members[0].id;
	refused();
	strcpy(rec.config.members[1].name, rec.config.members[0].name);
	refused();
	rec.config.members[1].name[0] = '\0';
	refused();
	rec.config.members[1].host[0] = '\0';
	refused();
	memset(rec.config.members[1].path, 'x', sizeof(rec.config.members[1].path));
	refused();
	rec.view.primary = 3;
	refused();
	rec.view.primary = MIRROR_NO_SLOT;
	refused();
	rec.view.insync = 0x80;
	refused();
	rec.history_count = MIRROR_HISTORY + 1;
	refused();
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup(f, setup)
	const struct CMUnitTest tests[] = {
		TEST(comes_back_as_it_was),
		TEST(a_history_without_in_sync_sets_comes_back),
		TEST(the_largest_fits),
		TEST(the_limits_themselves_are_possible),
		TEST(what_is_not_meant_does_not_matter),
		TEST(each_flipped_bit_and_each_cut_is_seen),
		TEST(a_text_with_an_end_inside_or_of_any_length_is_refused),
		TEST(a_switch_that_is_neither_and_bytes_behind_the_last_are_refused),
		TEST(another_format_is_named_as_such),
		TEST(what_is_impossible_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
