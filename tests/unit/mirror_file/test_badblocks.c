/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocks that cannot be read are overwritten with zeros; all other blocks are not. */
#include "lib/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mirror/file/badblocks.h"

#define BLOCKS 4
#define SIZE   (BLOCKS * (uint64_t)MIRROR_BLOCK)
#define BAD    2 /* number of the bad block */

static int fd;
static struct {
	int error;      /* errno of reads of the bad block; 0: it is readable */
	int direct;     /* errno of direct reads of the bad block */
	int write;      /* errno of writes to the block; 0: a write makes it readable */
	int sync;       /* errno of fdatasync() */
	int no_direct;  /* the file system supports no direct I/O */
	off_t upto;     /* offset up to which a read returns the block's bytes */
	bool is_broken; /* not even a write makes the block readable */
	unsigned writes, holes, syncs;
} medium;

static bool is_direct(int f)
{
	return fcntl(f, F_GETFL) & O_DIRECT;
}

ssize_t __real_pread(int f, void *bytes, size_t len, off_t offset);
ssize_t __wrap_pread(int f, void *bytes, size_t len, off_t offset);
ssize_t __wrap_pread(int f, void *bytes, size_t len, off_t offset)
{
	if (is_direct(f) && medium.no_direct) {
		errno = medium.no_direct;
		return -1;
	}
	if (offset / MIRROR_BLOCK != BAD || !medium.error || (medium.direct && !is_direct(f)))
		return __real_pread(f, bytes, len, offset);
	if (offset < BAD * MIRROR_BLOCK + medium.upto)
		return __real_pread(f, bytes, (size_t)(BAD * MIRROR_BLOCK + medium.upto - offset),
				    offset);
	errno = medium.error;
	return -1;
}

ssize_t __real_pwrite(int f, const void *bytes, size_t len, off_t offset);
ssize_t __wrap_pwrite(int f, const void *bytes, size_t len, off_t offset);
ssize_t __wrap_pwrite(int f, const void *bytes, size_t len, off_t offset)
{
	errno = is_direct(f) ? medium.no_direct : 0;
	if (errno)
		return -1;
	medium.writes++;
	assert_int_equal(offset, BAD * MIRROR_BLOCK);
	assert_int_equal(len, MIRROR_BLOCK);
	errno = medium.write;
	if (errno)
		return -1;
	if (!medium.is_broken)
		medium.error = 0;
	return __real_pwrite(f, bytes, len, offset);
}

int __real_fallocate(int f, int mode, off_t offset, off_t len);
int __wrap_fallocate(int f, int mode, off_t offset, off_t len);
int __wrap_fallocate(int f, int mode, off_t offset, off_t len)
{
	assert_int_equal(offset, BAD * MIRROR_BLOCK);
	assert_int_equal(len, MIRROR_BLOCK);
	if (mode) {
		medium.holes++;
		/* the file gets another block of the medium, so the next write succeeds */
		medium.write = 0;
	}
	return __real_fallocate(f, mode, offset, len);
}

int __real_fdatasync(int f);
int __wrap_fdatasync(int f);
int __wrap_fdatasync(int f)
{
	medium.syncs++;
	errno = medium.sync;
	return errno ? -1 : __real_fdatasync(f);
}

static void expect_block(unsigned block, uint8_t byte)
{
	uint8_t bytes[MIRROR_BLOCK];

	assert_int_equal(__real_pread(fd, bytes, sizeof(bytes), block * MIRROR_BLOCK),
			 sizeof(bytes));
	for (unsigned i = 0; i < sizeof(bytes); i++)
		assert_int_equal(bytes[i], byte);
}

static int clear(enum rpma_durability durability, struct badblocks *found)
{
	struct mirror_range all = {0, SIZE};

	return badblocks_clear(fd, durability, all, found);
}

static void expect_cleared(enum rpma_durability durability)
{
	struct badblocks found;

	assert_int_equal(clear(durability, &found), 0);
	assert_int_equal(found.cleared, 1);
	for (unsigned i = 0; i < BLOCKS; i++)
		expect_block(i, i == BAD ? 0 : (uint8_t)(i + 1));
	assert_true(medium.syncs);
}

static void what_can_be_read_stays(void **state)
{
	struct badblocks found;

	assert_int_equal(clear(RPMA_DURABILITY_FILE, &found), 0);
	assert_int_equal(found.cleared, 0);
	assert_int_equal(medium.writes, 0);
	assert_int_equal(medium.syncs, 0);
	expect_block(BAD, BAD + 1);
}

static void a_block_that_cannot_be_read_is_overwritten(void **state)
{
	static const int errors[] = {EIO, ENODATA, EILSEQ, EBADMSG, EHWPOISON};

	for (unsigned i = 0; i < ARRAY_LEN(errors); i++) {
		medium.error = errors[i];
		expect_cleared(RPMA_DURABILITY_FILE);
	}
	assert_int_equal(medium.writes, ARRAY_LEN(errors));
	assert_int_equal(medium.holes, 0);
}

/*
 * The driver of persistent memory has not recorded this damage yet. A read returns the bytes before
 * the damage, and then copying to the reader's memory fails.
 */
static void a_block_of_which_a_part_can_be_read_is_overwritten(void **state)
{
	static const off_t parts[] = {0, 64, MIRROR_BLOCK - 64};

	for (unsigned i = 0; i < ARRAY_LEN(parts); i++) {
		medium.error = EFAULT;
		medium.upto = parts[i];
		expect_cleared(RPMA_DURABILITY_DAX);
	}
	assert_int_equal(medium.writes, ARRAY_LEN(parts));
}

static void a_block_that_only_the_page_cache_has_is_overwritten(void **state)
{
	medium.error = EIO;
	medium.direct = 1;
	expect_cleared(RPMA_DURABILITY_FILE);
}

static void a_file_system_without_direct_writes_is_written_to(void **state)
{
	medium.error = EIO;
	medium.no_direct = EINVAL;
	expect_cleared(RPMA_DURABILITY_FILE);
}

static void poison_that_no_write_clears_is_given_back(void **state)
{
	medium.error = medium.write = EIO;
	expect_cleared(RPMA_DURABILITY_DAX);
	assert_int_equal(medium.holes, 1);
}

static void expect_failure(int error)
{
	struct badblocks found;

	assert_int_equal(clear(RPMA_DURABILITY_FILE, &found), -error);
	assert_int_equal(found.cleared, 0);
	assert_int_equal(found.offset, BAD * MIRROR_BLOCK);
	assert_int_equal(medium.holes, 0);
}

static void a_block_that_cannot_be_written_is_named(void **state)
{
	medium.error = medium.write = EIO;
	expect_failure(EIO);
}

static void a_block_that_is_not_durable_is_named(void **state)
{
	medium.error = EIO;
	medium.sync = ENOSPC;
	expect_failure(ENOSPC);
}

static void a_block_that_a_write_does_not_cure_is_named(void **state)
{
	medium.error = EIO;
	medium.is_broken = true;
	expect_failure(EIO);
}

static void another_error_destroys_nothing(void **state)
{
	medium.error = EPERM;
	expect_failure(EPERM);
	assert_int_equal(medium.writes, 0);
}

static void a_file_that_ends_before_it_does_not_grow(void **state)
{
	assert_int_equal(ftruncate(fd, BAD * MIRROR_BLOCK + 1), 0);
	expect_failure(ENODATA);
	assert_int_equal(medium.writes, 0);
	assert_int_equal(lseek(fd, 0, SEEK_END), BAD * MIRROR_BLOCK + 1);
}

static int setup(void **state)
{
	char path[] = "badblocks.XXXXXX";
	uint8_t bytes[MIRROR_BLOCK];

	memset(&medium, 0, sizeof(medium));
	fd = mkstemp(path);
	if (fd < 0)
		return -1;
	unlink(path);
	for (unsigned i = 0; i < BLOCKS; i++) {
		memset(bytes, (int)i + 1, sizeof(bytes));
		if (__real_pwrite(fd, bytes, sizeof(bytes), i * MIRROR_BLOCK) != sizeof(bytes))
			return -1;
	}
	return 0;
}

static int teardown(void **state)
{
	return close(fd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_can_be_read_stays),
		TEST(a_block_that_cannot_be_read_is_overwritten),
		TEST(a_block_of_which_a_part_can_be_read_is_overwritten),
		TEST(a_block_that_only_the_page_cache_has_is_overwritten),
		TEST(a_file_system_without_direct_writes_is_written_to),
		TEST(poison_that_no_write_clears_is_given_back),
		TEST(a_block_that_cannot_be_written_is_named),
		TEST(a_block_that_is_not_durable_is_named),
		TEST(a_block_that_a_write_does_not_cure_is_named),
		TEST(another_error_destroys_nothing),
		TEST(a_file_that_ends_before_it_does_not_grow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
