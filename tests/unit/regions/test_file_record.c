/* SPDX-License-Identifier: BSD-3-Clause */
/* The record of what a region holds: byte by byte, and nothing but an intact one of this file is
 * believed. */
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
static const struct hello_content whole = {HELLO_CONTENT_WHOLE, SIZE, 12345, {1, 2, 3}};

static int decode(const uint8_t *buf, size_t len, struct hello_content *content)
{
	uint8_t *exact = malloc(len ? len : 1); /* so that a read past its end is seen */
	int rc;

	memcpy(exact, buf, len);
	rc = file_record_decode(&place, SIZE, exact, len, content);
	free(exact);
	return rc;
}

static void a_record_has_its_documented_bytes(void **state)
{
	static const uint8_t want[48] = {
		'R', 'P', 'M',  'A',  'H',  'O',  'L',  'D',  1,    0,    0,  0, 2,  0,
		0,   0,   0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 99, 0, 0,  0,
		0,   0,   0,    0,    0x40, 0x42, 0x0f, 0,    0,    0,    0,  0, 57, 48};
	uint8_t buf[FILE_RECORD_SIZE];

	assert_int_equal(file_record_encode(&place, &whole, buf), FILE_RECORD_SIZE);
	assert_memory_equal(buf, want, sizeof(want));
	assert_memory_equal(buf + 48, whole.digest, HELLO_DIGEST);
}

static void a_record_comes_back_as_it_went(void **state)
{
	static const struct hello_content partial = {
		.state = HELLO_CONTENT_PARTIAL, .length = HELLO_LENGTH_UNKNOWN, .time_ns = 7};
	struct hello_content back;
	uint8_t buf[FILE_RECORD_SIZE];

	file_record_encode(&place, &whole, buf);
	assert_int_equal(decode(buf, sizeof(buf), &back), 0);
	assert_memory_equal(&back, &whole, sizeof(back));
	file_record_encode(&place, &partial, buf);
	assert_int_equal(decode(buf, sizeof(buf), &back), 0);
	assert_memory_equal(&back, &partial, sizeof(back));
}

static void a_flipped_bit_and_another_length_are_seen(void **state)
{
	uint8_t buf[FILE_RECORD_SIZE + 1] = {0};
	struct hello_content back;

	file_record_encode(&place, &whole, buf);
	for (size_t bit = 0; bit < 8 * FILE_RECORD_SIZE; bit++) {
		buf[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_int_equal(decode(buf, FILE_RECORD_SIZE, &back), -EILSEQ);
		assert_int_equal(back.state, HELLO_CONTENT_RAW);
		buf[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	for (size_t len = 0; len <= FILE_RECORD_SIZE + 1; len++)
		assert_int_equal(decode(buf, len, &back), len == FILE_RECORD_SIZE ? 0 : -EILSEQ);
}

static void expect_raw(const struct file_record_place *of, const struct hello_content *content)
{
	struct hello_content back;
	uint8_t buf[FILE_RECORD_SIZE];

	file_record_encode(of, content, buf);
	assert_int_equal(decode(buf, sizeof(buf), &back), 0);
	assert_int_equal(back.state, HELLO_CONTENT_RAW);
	assert_int_equal(back.length, 0);
}

static void the_record_of_another_file_or_beyond_the_region_is_worth_nothing(void **state)
{
	struct file_record_place other = place;
	struct hello_content content = whole;

	other.inode++;
	expect_raw(&other, &whole);
	other = place;
	other.made_ns++;
	expect_raw(&other, &whole);
	content.length = SIZE + 1;
	expect_raw(&place, &content);
	content.length = HELLO_LENGTH_UNKNOWN; /* only one that is not whole may be so */
	expect_raw(&place, &content);
	content.state = HELLO_CONTENT_PARTIAL;
	content.length = SIZE + 1;
	expect_raw(&place, &content);
}

static void a_record_is_stored_beside_what_a_link_leads_to(void **state)
{
	char folder[] = "regions-record-XXXXXX";
	struct file_record_place there, again;
	struct hello_content back;
	struct stat st;
	int fd;

	assert_non_null(mkdtemp(folder));
	assert_int_equal(chdir(folder), 0);
	assert_int_equal(mkdir("sub", 0700), 0);
	fd = open("sub/file", O_CREAT | O_RDWR, 0640);
	assert_int_equal(symlink("sub/file", "link"), 0);
	assert_int_equal(file_record_place_init(&there, "link", fd), 0);
	assert_int_equal(file_record_load(&there, SIZE, &back), 0);
	assert_int_equal(back.state, HELLO_CONTENT_RAW);
	assert_int_equal(file_record_store(&there, &whole), 0);
	assert_int_equal(stat("sub/file.rpma", &st), 0);
	assert_int_equal(st.st_mode & 0777, 0640);
	assert_int_equal(file_record_place_init(&again, "sub/file", fd), 0);
	assert_int_equal(file_record_load(&again, SIZE, &back), 0);
	assert_memory_equal(&back, &whole, sizeof(back));
	close(fd);
	assert_int_equal(unlink("sub/file.rpma") || unlink("sub/file") || rmdir("sub"), 0);
	assert_int_equal(file_record_store(&there, &whole), -ENOENT); /* no folder any more */
	assert_int_equal(unlink("link") || chdir("..") || rmdir(folder), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_record_has_its_documented_bytes),
		cmocka_unit_test(a_record_comes_back_as_it_went),
		cmocka_unit_test(a_flipped_bit_and_another_length_are_seen),
		cmocka_unit_test(the_record_of_another_file_or_beyond_the_region_is_worth_nothing),
		cmocka_unit_test(a_record_is_stored_beside_what_a_link_leads_to),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
