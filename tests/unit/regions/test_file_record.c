/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The record of a region's content, byte by byte. The server accepts only an intact record of the
 * same file.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "regions/file_record.h"

#define SIZE 1000000

static const struct file_record_place place = {.inode = 0x1122334455667788, .made_ns = 99};
static const struct file_record whole = {
	.content = {HELLO_CONTENT_WHOLE, SIZE, 12345, {1, 2, 3}},
	.claims = {.newest = 9,
		   .count = 2,
		   .list = {{0, 0x100, {7, 0x2233}, 5}, {0x80, UINT64_MAX, {9, UINT64_MAX}, 6}}}};

static int decode(const uint8_t *buf, size_t len, struct file_record *record)
{
	/* a block of exactly this size, so that a sanitizer reports a read past the end */
	uint8_t *exact = malloc(len ? len : 1);
	int rc;

	memcpy(exact, buf, len);
	rc = file_record_decode(&place, SIZE, exact, len, record);
	free(exact);
	return rc;
}

static void a_record_has_its_documented_bytes(void **state)
{
	static const uint8_t want[48] = {
		'R', 'P', 'M',  'A',  'H',  'O',  'L',  'D',  2,    0,    0,  0, 2,  0,
		0,   0,   0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 99, 0, 0,  0,
		0,   0,   0,    0,    0x40, 0x42, 0x0f, 0,    0,    0,    0,  0, 57, 48};
	static const uint8_t claims[52] = {9, 0, 0, 0, 0, 0, 0,    0,    2, 0, 0, 0, 0, 0, 0,
					   0, 0, 0, 0, 0, 0, 1,    0,    0, 0, 0, 0, 0, 7, 0,
					   0, 0, 0, 0, 0, 0, 0x33, 0x22, 0, 0, 0, 0, 0, 0, 5};
	uint8_t buf[FILE_RECORD_SIZE];

	assert_int_equal(FILE_RECORD_SIZE, 2656);
	assert_int_equal(file_record_encode(&place, &whole, buf), FILE_RECORD_SIZE);
	assert_memory_equal(buf, want, sizeof(want));
	assert_memory_equal(buf + 48, whole.content.digest, HELLO_DIGEST);
	assert_memory_equal(buf + 80, claims, sizeof(claims));
	assert_int_equal(buf[92 + 40], 0x80); /* a byte of the second claim */
	assert_int_equal(buf[92 + 80], 0);
}

static void a_record_comes_back_as_it_went(void **state)
{
	static const struct file_record partial = {.content = {.state = HELLO_CONTENT_PARTIAL,
							       .length = HELLO_LENGTH_UNKNOWN,
							       .time_ns = 7}};
	struct file_record full = whole, back;
	uint8_t buf[FILE_RECORD_SIZE];

	file_record_encode(&place, &whole, buf);
	assert_int_equal(decode(buf, sizeof(buf), &back), 0);
	assert_memory_equal(&back, &whole, sizeof(back));
	file_record_encode(&place, &partial, buf);
	assert_int_equal(decode(buf, sizeof(buf), &back), 0);
	assert_memory_equal(&back, &partial, sizeof(back));
	for (uint64_t i = 0; i < CLAIMS_MAX; i++)
		claims_add(&full.claims, 10 * i, 10 * i + 5, i, i);
	assert_int_equal(full.claims.count, CLAIMS_MAX);
	file_record_encode(&place, &full, buf);
	assert_int_equal(decode(buf, sizeof(buf), &back), 0);
	assert_memory_equal(&back, &full, sizeof(back));
}

/* A record is intact, but has claims that no server makes. */
static void claims_that_are_not_sound_are_seen(void **state)
{
	struct file_record bad = whole, back;
	uint8_t buf[FILE_RECORD_SIZE];

	bad.claims.newest = 8;
	file_record_encode(&place, &bad, buf);
	assert_int_equal(decode(buf, sizeof(buf), &back), -EILSEQ);
	assert_int_equal(back.claims.count, 0);
	assert_int_equal(back.content.state, HELLO_CONTENT_RAW);
}

static void a_flipped_bit_and_another_length_are_seen(void **state)
{
	uint8_t buf[FILE_RECORD_SIZE + 1] = {0};
	struct file_record back;

	file_record_encode(&place, &whole, buf);
	for (size_t bit = 0; bit < 8 * FILE_RECORD_SIZE; bit++) {
		buf[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_int_equal(decode(buf, FILE_RECORD_SIZE, &back), -EILSEQ);
		assert_int_equal(back.content.state, HELLO_CONTENT_RAW);
		assert_int_equal(back.claims.newest, 0);
		buf[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	for (size_t len = 0; len <= FILE_RECORD_SIZE + 1; len++)
		assert_int_equal(decode(buf, len, &back), len == FILE_RECORD_SIZE ? 0 : -EILSEQ);
}

static void expect_raw(const struct file_record_place *of, const struct hello_content *content,
		       unsigned claims)
{
	struct file_record record = whole, back;
	uint8_t buf[FILE_RECORD_SIZE];

	record.content = *content;
	file_record_encode(of, &record, buf);
	assert_int_equal(decode(buf, sizeof(buf), &back), 0);
	assert_int_equal(back.content.state, HELLO_CONTENT_RAW);
	assert_int_equal(back.content.length, 0);
	assert_int_equal(back.claims.count, claims);
}

static void the_record_of_another_file_or_beyond_the_region_is_worth_nothing(void **state)
{
	struct file_record_place other = place;
	struct hello_content content = whole.content;

	other.inode++;
	expect_raw(&other, &content, 0);
	other = place;
	other.made_ns++;
	expect_raw(&other, &content, 0);
	content.length = SIZE + 1;
	/* the content is not valid, but the claims still belong to this file */
	expect_raw(&place, &content, 2);
	/* only an incomplete file may have an unknown length */
	content.length = HELLO_LENGTH_UNKNOWN;
	expect_raw(&place, &content, 2);
	content.state = HELLO_CONTENT_PARTIAL;
	content.length = SIZE + 1;
	expect_raw(&place, &content, 2);
}

static void a_record_is_stored_beside_what_a_link_leads_to(void **state)
{
	char folder[] = "regions-record-XXXXXX";
	struct file_record_place there, again;
	struct file_record back;
	struct stat st;
	int fd;

	assert_non_null(mkdtemp(folder));
	assert_int_equal(chdir(folder), 0);
	assert_int_equal(mkdir("sub", 0700), 0);
	fd = open("sub/file", O_CREAT | O_RDWR, 0640);
	assert_int_equal(symlink("sub/file", "link"), 0);
	assert_int_equal(file_record_place_init(&there, "link", fd), 0);
	assert_int_equal(file_record_load(&there, SIZE, &back), 0);
	assert_int_equal(back.content.state, HELLO_CONTENT_RAW);
	assert_int_equal(file_record_store(&there, &whole), 0);
	assert_int_equal(stat("sub/file.rpma", &st), 0);
	assert_int_equal(st.st_mode & 0777, 0640);
	assert_int_equal(file_record_place_init(&again, "sub/file", fd), 0);
	assert_int_equal(file_record_load(&again, SIZE, &back), 0);
	assert_memory_equal(&back, &whole, sizeof(back));
	close(fd);
	assert_int_equal(unlink("sub/file.rpma") || unlink("sub/file") || rmdir("sub"), 0);
	/* The folder no longer exists. */
	assert_int_equal(file_record_store(&there, &whole), -ENOENT);
	assert_int_equal(unlink("link") || chdir("..") || rmdir(folder), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_record_has_its_documented_bytes),
		cmocka_unit_test(a_record_comes_back_as_it_went),
		cmocka_unit_test(claims_that_are_not_sound_are_seen),
		cmocka_unit_test(a_flipped_bit_and_another_length_are_seen),
		cmocka_unit_test(the_record_of_another_file_or_beyond_the_region_is_worth_nothing),
		cmocka_unit_test(a_record_is_stored_beside_what_a_link_leads_to),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
