/* SPDX-License-Identifier: BSD-3-Clause */
/* The files that poolset_create() makes, and refusals, which leave no file. */
#include "unit/poolset/disk.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <fcntl.h>
#include <unistd.h>

#define HEAD  "PMEMPOOLSET\n"
#define THREE HEAD "2M @/p0\n3M @/p1\n2097153 @/p2\n"

static struct poolset_attr attr;

static int setup(void **state)
{
	attr = disk_attr();
	return disk_setup(state);
}

static void read_header(const char *name, struct header *h)
{
	uint8_t page[HEADER_BYTES];

	disk_read_bytes(name, 0, page, sizeof(page));
	assert_true(header_is_intact(page));
	header_decode(page, h);
}

static void parts_are_made_with_headers_and_mapped_in_a_row(void **state)
{
	const struct poolset_memory *memory;
	struct poolset_pool *pool;
	struct stat st;
	char *base;

	disk_write_set("a.set", THREE);
	pool = disk_create("a.set", &attr);
	memory = poolset_memory(pool);
	assert_true(memory->has_headers);
	assert_false(memory->is_direct);
	assert_int_equal(memory->size, 7 * MIB - 2 * 4096);
	base = memory->base;
	assert_int_equal((uintptr_t)base % 4096, 0);
	assert_memory_equal(base, "PMEMOBJ", 8);

	/* Change the last byte of each part, and the first byte after each header. */
	base[2 * MIB - 1] = 'a';
	base[2 * MIB] = 'b';
	base[5 * MIB - 4096 - 1] = 'c';
	base[5 * MIB - 4096] = 'd';
	base[7 * MIB - 8192 - 1] = 'e';
	disk_close(pool);
	char got[5];
	disk_read_bytes("p0", 2 * MIB - 1, &got[0], 1);
	disk_read_bytes("p1", 4096, &got[1], 1);
	disk_read_bytes("p1", 3 * MIB - 1, &got[2], 1);
	disk_read_bytes("p2", 4096, &got[3], 1);
	disk_read_bytes("p2", 2 * MIB - 1, &got[4], 1);
	assert_memory_equal(got, "abcde", 5);
	assert_int_equal(stat("p2", &st), 0);
	assert_int_equal(st.st_size, 2 * MIB + 1);
	assert_int_equal(disk_count_files(), 4);
}

static void headers_have_the_attributes_and_form_a_ring(void **state)
{
	static const char *const names[] = {"p0", "p1", "p2"};
	struct header h[3];
	struct stat st;

	disk_write_set("a.set", THREE);
	disk_close(disk_create("a.set", &attr));
	for (unsigned i = 0; i < 3; i++) {
		read_header(names[i], &h[i]);
		assert_memory_equal(h[i].signature, "PMEMOBJ", 8);
		assert_int_equal(h[i].major, 6);
		assert_int_equal(h[i].incompat, 6);
		assert_memory_equal(h[i].poolset_uuid, attr.poolset_uuid, HEADER_UUID);
		assert_memory_equal(h[i].prev_repl, attr.prev_uuid, HEADER_UUID);
		assert_memory_equal(h[i].next_repl, attr.next_uuid, HEADER_UUID);
		assert_memory_equal(h[i].arch_flags, attr.user_flags, HEADER_ARCH);
		assert_int_equal(stat(names[i], &st), 0);
		assert_in_range(h[i].crtime, st.st_ctime - 60, st.st_ctime);
	}
	assert_memory_equal(h[0].uuid, attr.uuid, HEADER_UUID);
	for (unsigned i = 0; i < 3; i++) {
		assert_memory_equal(h[i].prev_part, h[(i + 2) % 3].uuid, HEADER_UUID);
		assert_memory_equal(h[i].next_part, h[(i + 1) % 3].uuid, HEADER_UUID);
		assert_memory_not_equal(h[i].uuid, h[(i + 1) % 3].uuid, HEADER_UUID);
	}
}

static void what_attributes_leave_open_is_filled_in(void **state)
{
	struct poolset_attr little = {.major = 1};
	static const uint8_t zero[16];
	uint8_t own[HEADER_ARCH];
	struct header h;

	disk_write_set("a.set", HEAD "2M @/p0\n");
	disk_close(disk_create("a.set", &little));
	read_header("p0", &h);
	header_arch_flags(own);
	assert_memory_not_equal(h.poolset_uuid, zero, 16);
	assert_memory_not_equal(h.uuid, zero, 16);
	assert_memory_equal(h.prev_part, h.uuid, 16);
	assert_memory_equal(h.next_part, h.uuid, 16);
	assert_memory_equal(h.prev_repl, h.uuid, 16);
	assert_memory_equal(h.next_repl, h.uuid, 16);
	assert_memory_equal(h.arch_flags, own, HEADER_ARCH);
}

static void singlehdr_has_one_header(void **state)
{
	struct poolset_pool *pool;
	uint8_t page[HEADER_BYTES];
	struct header h;

	disk_write_set("a.set", HEAD "OPTION SINGLEHDR\n2M @/p0\n2M @/p1\n");
	disk_no_create("a.set", 0, &attr, EINVAL, "has the option SINGLEHDR");
	attr.incompat |= HEADER_SINGLEHDR;
	pool = disk_create("a.set", &attr);
	assert_int_equal(poolset_memory(pool)->size, 4 * MIB);
	((char *)poolset_memory(pool)->base)[2 * MIB] = 'x';
	disk_close(pool);
	read_header("p0", &h);
	assert_memory_equal(h.prev_part, h.uuid, HEADER_UUID);
	assert_memory_equal(h.next_part, h.uuid, HEADER_UUID);
	disk_read_bytes("p1", 0, page, sizeof(page));
	assert_int_equal(page[0], 'x');

	disk_write_set("b.set", HEAD "2M @/q0\n");
	disk_no_create("b.set", 0, &attr, EINVAL, "lacks the option SINGLEHDR");
	assert_false(disk_exists("q0"));
}

static void nohdrs_has_none_and_wants_no_attributes(void **state)
{
	struct poolset_attr zero = {0}, got = disk_attr();
	struct poolset_pool *pool;
	uint8_t page[HEADER_BYTES];

	disk_write_set("a.set", HEAD "OPTION NOHDRS\n2M @/p0\n2M @/p1\n");
	disk_no_create("a.set", 0, &attr, EINVAL, "NOHDRS");
	assert_false(disk_exists("p0"));
	pool = disk_create("a.set", NULL);
	assert_int_equal(poolset_memory(pool)->size, 4 * MIB);
	assert_false(poolset_memory(pool)->has_headers);
	assert_int_equal(poolset_set_attr(pool, NULL, &disk_err), 0);
	assert_int_equal(poolset_set_attr(pool, &zero, &disk_err), 0);
	assert_int_equal(poolset_set_attr(pool, &attr, &disk_err), ERROR_LOCAL);
	assert_int_equal(disk_err.cause, EINVAL);
	disk_close(pool);
	disk_read_bytes("p0", 0, page, sizeof(page));
	assert_true(header_is_zero(page));
	disk_close(disk_open("a.set", &got));
	assert_true(poolset_attr_is_zero(&got));
	disk_close(disk_create("a.set", &zero));

	disk_write_set("b.set", HEAD "2M @/q0\n");
	disk_no_create("b.set", 0, NULL, EINVAL, "needs attributes");
	disk_no_create("b.set", 0, &zero, EINVAL, "needs attributes");
}

static void parts_that_exist_must_fit_and_be_empty(void **state)
{
	static const char one = 1;
	struct stat st;

	disk_write_set("a.set", THREE);
	disk_make_file("p1", 3 * MIB);
	disk_write_bytes("p1", 4096, &one, 1);
	chmod("p1", 0640);
	disk_close(disk_create("a.set", &attr));
	assert_int_equal(stat("p1", &st), 0);
	assert_int_equal(st.st_mode & 0777, 0640);

	disk_no_create("a.set", 0, &attr, EEXIST, "p0 has a pool already");
	unlink("p0");
	disk_no_create("a.set", 0, &attr, EEXIST,
		       "p1 has a pool header and the first part has none");
	assert_false(disk_exists("p0"));
	unlink("p1");
	disk_make_file("p1", 3 * MIB + 1);
	disk_no_create("a.set", 0, &attr, EINVAL,
		       "p1 has 3145729 bytes, but the pool set states 314572");
	assert_false(disk_exists("p0"));
	unlink("p1");
	disk_make_file("p1", 3 * MIB);
	disk_write_bytes("p1", 4095, &one, 1);
	disk_no_create("a.set", 0, &attr, EEXIST, "p1 has a pool header");
	unlink("p1");
	assert_int_equal(mkfifo("p1", 0600), 0);
	disk_no_create("a.set", 0, &attr, EINVAL, "neither a file nor");
	assert_false(disk_exists("p0"));
}

static void parts_are_their_users_alone(void **state)
{
	mode_t was = umask(0);
	struct stat st;

	disk_write_set("a.set", HEAD "2M @/p0\n");
	disk_close(disk_create("a.set", &attr));
	umask(was);
	assert_int_equal(stat("p0", &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_true(st.st_blocks * 512 >= (off_t)(2 * MIB)); /* the file has no holes */
}

static void holes_of_parts_that_exist_are_filled(void **state)
{
	struct stat st;

	disk_write_set("a.set", HEAD "2M @/p0\n");
	disk_write_set("p0", "");
	assert_int_equal(truncate("p0", 2 * MIB), 0);
	disk_close(disk_create("a.set", &attr));
	assert_int_equal(stat("p0", &st), 0);
	assert_true(st.st_blocks * 512 >= (off_t)(2 * MIB));
}

static void sets_of_the_wrong_kind_are_refused(void **state)
{
	static const struct {
		const char *text;
		int cause;
		const char *words;
	} cases[] = {
		{"2M @/p0\nREPLICA\n2M @/p1\n", EINVAL, "a.set:3: REPLICA: the target"},
		{"2M @/p0\nREPLICA host b.set\n", EINVAL, "a.set:3: REPLICA: the target"},
		{"2097151 @/p0\n", EINVAL, "too small for a part"},
		{"2M @/p0\n1M @/p1\n", EINVAL, "p1: 1 MiB is too small"},
		{"9223372036854775808 @/p0\n", EINVAL, "too large for a file"},
		{"4611686018427387904 @/p0\n4611686018427387904 @/p1\n", EINVAL,
		 "too large together"},
		{"AUTO @/p0\n", ENOENT, "a.set:2: AUTO is for a device DAX"},
		{"AUTO @/a.set\n", EINVAL, "a.set:2: AUTO is for a device DAX"},
		{"2M @/p0\n2M @/p0\n", EEXIST, "p0"},
		{"2M @/no/p0\n", ENOENT, "cannot create"},
		{"2M @/p0\n2M @/no/p1\n", ENOENT, "cannot create"},
		{"2M p0\n", EINVAL, "a.set:2: 'p0' is no absolute path"},
		{"2M @/p0\n900000G @/p1\n", ENOSPC, "not enough disk"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char text[256];

		snprintf(text, sizeof(text), HEAD "%s", cases[i].text);
		disk_write_set("a.set", text);
		disk_no_create("a.set", 0, &attr, cases[i].cause, cases[i].words);
		assert_int_equal(disk_count_files(), 1);
	}
}

static void the_pool_must_be_as_large_as_asked(void **state)
{
	struct poolset_place place = disk_place("a.set");
	struct poolset_pool *pool;

	disk_write_set("a.set", HEAD "2M @/p0\n2M @/p1\n");
	disk_no_create("a.set", 4 * MIB - 4095, &attr, EFBIG, "is a pool of 4190208 bytes");
	assert_int_equal(disk_count_files(), 1);
	assert_int_equal(poolset_create(&place, 4 * MIB - 4096, &attr, &pool, NULL), 0);
	disk_close(pool);
	disk_no_open("a.set", 4 * MIB - 4095, EFBIG, "but 4190209 bytes are needed");
	disk_close(disk_open("a.set", NULL));
}

static void names_stay_in_the_directory(void **state)
{
	struct poolset_place place = {"relative", "a.set"};
	struct poolset_pool *pool;

	assert_int_equal(mkdir("in", 0700), 0);
	assert_int_equal(mkdir("in/sub", 0700), 0);
	disk_write_set("in/sub/a.set", HEAD "2M @/p0\n");
	disk_write_set("out.set", HEAD "2M @/p1\n");
	assert_int_equal(symlink("../out.set", "in/link"), 0);
	assert_int_equal(symlink("sub/a.set", "in/inner"), 0);
	strcat(disk_folder, "/in");
	disk_no_create("/etc/passwd", 0, &attr, EBADF, "is an absolute path");
	disk_no_create("", 0, &attr, EBADF, "is empty");
	disk_no_create("../out.set", 0, &attr, EBADF, "leads out of");
	disk_no_create("sub/../../out.set", 0, &attr, EBADF, "leads out of");
	disk_no_create("link", 0, &attr, EBADF, "leads out of");
	disk_no_create("sub", 0, &attr, EINVAL, "neither a file nor");
	disk_no_create("no.set", 0, &attr, ENOENT, "cannot open");
	disk_no_open("no.set", 0, ENOENT, "cannot open");
	disk_no_remove("../out.set", 0, EBADF, "leads out of");
	disk_close(disk_create("sub/a.set", &attr));
	disk_close(disk_open("inner", NULL));
	disk_close(disk_open("sub/../sub/./a.set", NULL));
	disk_folder[strlen(disk_folder) - 3] = '\0';
	assert_false(disk_exists("p1"));
	assert_int_equal(poolset_open(&place, 0, NULL, &pool, &disk_err), ERROR_ARGUMENT);
	assert_int_equal(disk_err.cause, EINVAL);
	place.dir = "/no/such/directory";
	assert_int_equal(poolset_open(&place, 0, NULL, &pool, &disk_err), ERROR_LOCAL);
	assert_int_equal(disk_err.cause, ENOENT);
}

static void what_another_uses_is_busy(void **state)
{
	struct poolset_pool *pool;
	int fd;

	disk_write_set("a.set", HEAD "2M @/p0\n");
	disk_write_set("b.set", HEAD "2M @/p0\n");
	pool = disk_create("a.set", &attr);
	disk_no_open("a.set", 0, EWOULDBLOCK, "p0 is in use by another process");
	disk_no_open("b.set", 0, EWOULDBLOCK, "p0 is in use by another process");
	disk_no_create("a.set", 0, &attr, EWOULDBLOCK, "p0 is in use by another process");
	disk_no_remove("a.set", 0, EWOULDBLOCK, "p0 is in use by another process");
	disk_close(pool);
	fd = open("a.set", O_RDONLY);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	disk_no_open("a.set", 0, EWOULDBLOCK, "a.set is in use by another process");
	close(fd);
	pool = disk_open("a.set", NULL);
	/* The set file is locked only while it is read, so it can be locked now. */
	fd = open("a.set", O_RDONLY);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	close(fd);
	disk_close(pool);
}

static void a_discarded_creation_leaves_things_as_they_were(void **state)
{
	uint8_t page[HEADER_BYTES];

	disk_write_set("a.set", THREE);
	disk_make_file("p1", 3 * MIB);
	assert_int_equal(poolset_discard(disk_create("a.set", &attr), &disk_err), 0);
	assert_false(disk_exists("p0"));
	assert_false(disk_exists("p2"));
	disk_read_bytes("p1", 0, page, sizeof(page));
	assert_true(header_is_zero(page));
	disk_close(disk_create("a.set", &attr));
	assert_int_equal(poolset_discard(disk_open("a.set", NULL), &disk_err), 0);
	assert_int_equal(disk_count_files(), 1);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, disk_teardown)
	const struct CMUnitTest tests[] = {
		TEST(parts_are_made_with_headers_and_mapped_in_a_row),
		TEST(headers_have_the_attributes_and_form_a_ring),
		TEST(what_attributes_leave_open_is_filled_in),
		TEST(singlehdr_has_one_header),
		TEST(nohdrs_has_none_and_wants_no_attributes),
		TEST(parts_that_exist_must_fit_and_be_empty),
		TEST(parts_are_their_users_alone),
		TEST(holes_of_parts_that_exist_are_filled),
		TEST(sets_of_the_wrong_kind_are_refused),
		TEST(the_pool_must_be_as_large_as_asked),
		TEST(names_stay_in_the_directory),
		TEST(what_another_uses_is_busy),
		TEST(a_discarded_creation_leaves_things_as_they_were),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
