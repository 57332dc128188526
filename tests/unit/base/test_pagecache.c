/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cached pages of a file are dropped or written again, and the file's bytes stay the same. The test
 * system.mirror_disk has pages that could not be written.
 */
#include "lib/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/pagecache.h"

#define PAGE  4096u
#define PAGES 40u /* more pages than one step copies */

static char path[64];
static uint8_t wanted[PAGES * PAGE + 100];

static int make_file(void **state)
{
	int fd;

	snprintf(path, sizeof(path), "pagecache.XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	for (size_t i = 0; i < sizeof(wanted); i++)
		wanted[i] = (uint8_t)(i / PAGE + i);
	assert_int_equal(write(fd, wanted, sizeof(wanted)), sizeof(wanted));
	close(fd);
	return 0;
}

static int remove_file(void **state)
{
	return unlink(path);
}

static void check_bytes(void)
{
	static uint8_t found[sizeof(wanted) + 1];
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_int_equal(read(fd, found, sizeof(found)), sizeof(wanted));
	assert_memory_equal(found, wanted, sizeof(wanted));
	close(fd);
}

static unsigned count_cached(const void *addr)
{
	unsigned char cached[PAGES];
	unsigned count = 0;

	assert_int_equal(mincore((void *)(uintptr_t)addr, PAGES * PAGE, cached), 0);
	for (unsigned i = 0; i < PAGES; i++)
		count += cached[i] & 1;
	return count;
}

/* Returns true if the file is on a disk: tmpfs is a page cache itself, and an overlay has another
 * file below. */
static bool has_disk(void)
{
	struct statfs fs;

	return !statfs(path, &fs) && (fs.f_type == 0xef53 || fs.f_type == 0x58465342);
}

static void pages_that_are_dirty_or_mapped_go(void **state)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	uint8_t *addr = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	assert_ptr_not_equal(addr, MAP_FAILED);
	addr[0] = wanted[0] = 1;
	addr[PAGE * 17] = wanted[PAGE * 17] = 2;
	assert_int_equal(pagecache_drop(path), 0);
	if (has_disk())
		assert_int_equal(count_cached(addr), 0);
	check_bytes();
	munmap(addr, PAGES * PAGE);
	close(fd);
}

/* Mapped pages stay in the page cache, all others are dropped. A page to which a program stores
 * meanwhile is not written. */
static void what_is_mapped_stays_and_is_counted(void **state)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	uint8_t *addr = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	uint64_t stay;

	assert_ptr_not_equal(addr, MAP_FAILED);
	addr[PAGE * 3] = wanted[PAGE * 3] = 3;
	assert_int_equal(pagecache_evict(fd, path, &stay, NULL), 0);
	if (has_disk()) {
		assert_in_range(stay, PAGE, PAGES * PAGE);
		assert_int_equal(stay, count_cached(addr) * PAGE);
	}
	munmap(addr, PAGES * PAGE);
	assert_int_equal(pagecache_evict(fd, path, &stay, NULL), 0);
	assert_int_equal(stay, 0);
	check_bytes();
	close(fd);
}

/* Unmap this mapping during the second pause of a call. */
static struct {
	void *addr;
	int pauses;
} held;

int __wrap_usleep(useconds_t us);
int __wrap_usleep(useconds_t us)
{
	if (++held.pauses == 2 && held.addr)
		munmap(held.addr, PAGES * PAGE);
	return 0;
}

static void a_page_that_is_held_for_a_moment_goes(void **state)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	uint8_t *addr = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	uint64_t stay;

	assert_ptr_not_equal(addr, MAP_FAILED);
	addr[PAGE * 3] = wanted[PAGE * 3] = 3;
	held.pauses = 0;
	held.addr = addr;
	assert_int_equal(pagecache_evict(fd, path, &stay, NULL), 0);
	assert_int_equal(stay, 0);
	if (has_disk())
		assert_int_equal(held.pauses, 2);
	else
		munmap(addr, PAGES * PAGE);
	held.addr = NULL;
	check_bytes();
	close(fd);
}

/* The kernel refuses to synchronize a pipe, because a pipe has no medium. */
static void what_cannot_be_written_is_an_error_with_the_path(void **state)
{
	struct error err = {0};
	uint64_t stay = 1;
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	assert_int_equal(pagecache_evict(fds[1], "some.file", &stay, &err), ERROR_LOCAL);
	assert_int_equal(stay, 0);
	assert_int_equal(err.cause, EINVAL);
	assert_string_equal(err.text, "cannot write some.file to its disk: Invalid argument");
	close(fds[0]);
	close(fds[1]);
}

static void bytes_stay_when_they_are_written_again(void **state)
{
	assert_int_equal(pagecache_rewrite(path), 0);
	check_bytes();
	assert_int_equal(pagecache_drop(path), 0);
	assert_int_equal(pagecache_rewrite(path), 0);
	check_bytes();
}

static void a_file_that_is_not_there_is_an_error(void **state)
{
	assert_int_equal(pagecache_drop("pagecache.none"), -ENOENT);
	assert_int_equal(pagecache_rewrite("pagecache.none"), -ENOENT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_file, remove_file)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(pages_that_are_dirty_or_mapped_go),
		TEST(what_is_mapped_stays_and_is_counted),
		TEST(a_page_that_is_held_for_a_moment_goes),
		TEST(what_cannot_be_written_is_an_error_with_the_path),
		TEST(bytes_stay_when_they_are_written_again),
		cmocka_unit_test(a_file_that_is_not_there_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
