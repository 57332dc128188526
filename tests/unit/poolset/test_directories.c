/* SPDX-License-Identifier: BSD-3-Clause */
/* Pool sets of directories: the files in them are made when they are needed. */
#include "unit/poolset/disk.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEAD "PMEMPOOLSET\nOPTION SINGLEHDR\n"

static struct poolset_attr attr;

static int setup(void **state)
{
	attr = disk_attr();
	attr.incompat |= HEADER_SINGLEHDR;
	disk_setup(state);
	mkdir("d0", 0700);
	mkdir("d1", 0700);
	disk_write_set("a.set", HEAD "8M @/d0\n8M @/d1\n");
	return 0;
}

static struct poolset_pool *create(uint64_t size)
{
	struct poolset_place place = disk_place("a.set");
	struct poolset_pool *pool = NULL;

	if (poolset_create(&place, size, &attr, &pool, &disk_err))
		fail_msg("%s", disk_err.text);
	return pool;
}

static void a_file_of_the_wanted_size_is_made(void **state)
{
	struct poolset_pool *pool = create(3 * MIB + 1);
	struct stat st;

	assert_int_equal(poolset_memory(pool)->size, 3 * MIB + 4096);
	((char *)poolset_memory(pool)->base)[3 * MIB] = 'x';
	disk_close(pool);
	assert_int_equal(stat("d0/000000.pmem", &st), 0);
	assert_int_equal(st.st_size, 3 * MIB + 4096);
	pool = disk_open("a.set", NULL);
	assert_int_equal(poolset_memory(pool)->size, 3 * MIB + 4096);
	assert_int_equal(((char *)poolset_memory(pool)->base)[3 * MIB], 'x');
	disk_close(pool);
	disk_no_create("a.set", 0, &attr, EEXIST, "000000.pmem has a pool already");
	assert_false(disk_exists("d1/000001.pmem"));
	disk_no_open("a.set", 4 * MIB, EFBIG, "is a pool of");
}

static void it_has_the_least_size_of_a_part(void **state)
{
	struct poolset_pool *pool = create(8192);

	assert_int_equal(poolset_memory(pool)->size, 2 * MIB);
	disk_close(pool);
}

static void more_than_is_reserved_is_refused(void **state)
{
	disk_no_create("a.set", 16 * MIB + 1, &attr, EFBIG, "reserves 16777216 bytes");
	assert_false(disk_exists("d0/000000.pmem"));
	disk_close(create(16 * MIB));
}

static void files_that_are_there_are_parts_in_the_order_of_their_numbers(void **state)
{
	struct poolset_pool *pool;
	struct stat st;

	disk_make_file("d0/000000.pmem", 2 * MIB);
	disk_make_file("d1/1.pmem", 3 * MIB);
	disk_write_set("d1/other.pmem", "no part");
	disk_write_set("d0/000002.pmem.old", "no part");
	pool = create(6 * MIB);
	assert_int_equal(poolset_memory(pool)->size, 7 * MIB);
	((char *)poolset_memory(pool)->base)[2 * MIB] = '1';
	((char *)poolset_memory(pool)->base)[5 * MIB] = '2';
	disk_close(pool);
	assert_int_equal(stat("d0/000002.pmem", &st), 0);
	assert_int_equal(st.st_size, 2 * MIB);
	char got[2];
	disk_read_bytes("d1/1.pmem", 0, &got[0], 1);
	disk_read_bytes("d0/000002.pmem", 0, &got[1], 1);
	assert_memory_equal(got, "12", 2);
}

static void what_cannot_be_is_refused(void **state)
{
	static const struct {
		const char *text;
		int cause;
		const char *words;
	} cases[] = {
		{"PMEMPOOLSET\n8M @/d0\n", EINVAL, "need the option SINGLEHDR"},
		{HEAD "8M @/d0\n8M @/file\n", EINVAL, "directories and files"},
		{HEAD "8M @/d0\n8M @/d0/../d0\n", EEXIST, "is named twice"},
		{HEAD "AUTO @/d0\n", EINVAL, "a.set:3: AUTO"},
		{HEAD "18446744073709551615 @/d0\n1 @/d1\n", EINVAL, "too large together"},
		{HEAD "8M @/d0\nREPLICA\n8M @/d1\n", EINVAL, "a.set:4: REPLICA"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		disk_write_set("a.set", cases[i].text);
		disk_no_create("a.set", 0, &attr, cases[i].cause, cases[i].words);
	}
	assert_int_equal(disk_count_files(), 3);
}

static void gaps_and_doubles_are_refused(void **state)
{
	disk_no_open("a.set", 0, ENOENT, "there is no part");
	disk_make_file("d0/000001.pmem", 2 * MIB);
	disk_no_open("a.set", 0, ENOENT, "part 000000.pmem is missing");
	disk_make_file("d0/000000.pmem", 2 * MIB);
	disk_make_file("d1/000001.pmem", 2 * MIB);
	disk_no_open("a.set", 0, EINVAL, "has the same number");
	unlink("d1/000001.pmem");
	disk_make_file("d1/999999.pmem", 2 * MIB);
	disk_no_open("a.set", 0, EINVAL, "too many parts");
	unlink("d1/999999.pmem");
	mkdir("d1/000002.pmem", 0700);
	disk_no_open("a.set", 0, EINVAL, "is not a regular file");
}

static void a_removal_takes_the_files(void **state)
{
	struct poolset_place place = disk_place("a.set");

	disk_make_file("d0/000000.pmem", 2 * MIB);
	disk_close(create(6 * MIB));
	assert_true(disk_exists("d1/000001.pmem"));
	disk_write_set("d1/keep", "x");
	assert_int_equal(poolset_remove(&place, 0, &disk_err), 0);
	assert_false(disk_exists("d0/000000.pmem"));
	assert_false(disk_exists("d1/000001.pmem"));
	assert_true(disk_exists("d1/keep"));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, disk_teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_file_of_the_wanted_size_is_made),
		TEST(it_has_the_least_size_of_a_part),
		TEST(more_than_is_reserved_is_refused),
		TEST(files_that_are_there_are_parts_in_the_order_of_their_numbers),
		TEST(what_cannot_be_is_refused),
		TEST(gaps_and_doubles_are_refused),
		TEST(a_removal_takes_the_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
