/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/safecopy.h"
#include "helpers.h"
#include "lib/dirtied.h"

static bool submit_strictly(struct persist_region *region, void *addr, size_t len, bool strict,
			    int *status)
{
	struct persist_job job = {.region = region, .addr = addr, .len = len, .strict = strict};

	return persist_submit(&job, status);
}

static void volatile_memory_passes_at_once_unless_strict(void **state)
{
	unsigned char *p = map_anonymous(4 * PAGE);
	struct persist_region *region = region_of(p, 4 * PAGE);
	int status = 1;

	assert_true(submit_strictly(region, p + 1, 2 * PAGE, false, &status));
	assert_int_equal(status, 0);
	assert_true(submit_strictly(region, p + 1, 2 * PAGE, true, &status));
	assert_int_equal(status, -ENOTSUP);
	persist_region_put(region);
	munmap(p, 4 * PAGE);
}

static void a_job_outside_of_its_region_is_refused(void **state)
{
	unsigned char *p = map_anonymous(4 * PAGE);
	struct persist_region *region = region_of(p + PAGE, PAGE);

	assert_int_equal(flush(region, p + PAGE, PAGE + 1), -EFAULT);
	assert_int_equal(flush(region, p + PAGE - 1, 1), -EFAULT);
	assert_int_equal(flush(region, p + PAGE, SIZE_MAX), -EFAULT);
	assert_int_equal(flush(region, p + 2 * PAGE, 0), 0);
	persist_region_put(region);
	munmap(p, 4 * PAGE);
}

static void what_is_flushed_is_clean(void **state)
{
	size_t size = 200 * MIB;
	int fd = file_create(NULL, size);
	unsigned char *p = map_file(fd, size);
	struct persist_region *region = region_of(p, size);

	if (!here_is_persistent())
		skip();
	/* The range is longer than a slice, and each part has content. */
	for (size_t i = 0; i < size; i += MIB)
		p[i] = 1;
	assert_true(dirty_kib(p) > 0);
	assert_int_equal(flush(region, p + 1, size - 2), 0);
	assert_int_equal(dirty_kib(p), 0);
	/* Writing back an unaligned byte writes the page of this byte. */
	p[7 * PAGE + 5] = 1;
	assert_true(dirty_kib(p) > 0);
	assert_int_equal(flush(region, p + 7 * PAGE + 5, 1), 0);
	assert_int_equal(dirty_kib(p), 0);
	persist_region_put(region);
	munmap(p, size);
	close(fd);
}

static void a_mixed_range_is_flushed_part_by_part(void **state)
{
	int fds[2] = {file_create(NULL, 2 * PAGE), file_create(NULL, 2 * PAGE)};
	unsigned char *p = map_anonymous(6 * PAGE);
	struct persist_region *region;
	int status;

	if (!here_is_persistent())
		skip();
	for (size_t i = 0; i < 2; i++)
		assert_ptr_not_equal(mmap(p + (1 + 2 * i) * PAGE, PAGE, PROT_READ | PROT_WRITE,
					  MAP_SHARED | MAP_FIXED, fds[i], 0),
				     MAP_FAILED);
	region = region_of(p, 6 * PAGE);
	memset(p, 1, 6 * PAGE);
	assert_int_equal(flush(region, p, 6 * PAGE), 0);
	assert_int_equal(dirty_kib(p + PAGE), 0);
	assert_int_equal(dirty_kib(p + 3 * PAGE), 0);
	assert_true(submit_strictly(region, p, 6 * PAGE, true, &status));
	assert_int_equal(status, -ENOTSUP);
	persist_region_put(region);
	munmap(p, 6 * PAGE);
	close(fds[0]);
	close(fds[1]);
}

static void a_range_past_the_end_of_the_file_fails(void **state)
{
	int fd = file_create("short", PAGE + 100);
	unsigned char *p = map_file(fd, 4 * PAGE);
	struct persist_region *region = region_of(p, 4 * PAGE);

	if (!here_is_persistent())
		skip();
	assert_int_equal(flush(region, p, PAGE + 100), 0);
	assert_int_equal(flush(region, p, PAGE + 101), -EFAULT);
	assert_int_equal(flush(region, p + PAGE + 100, 1), -EFAULT);
	assert_int_equal(flush(region, p + 3 * PAGE, 1), -EFAULT);
	/* Only the write-back failed, not the file. */
	assert_int_equal(flush(region, p, PAGE), 0);
	assert_int_equal(ftruncate(fd, (off_t)(4 * PAGE)), 0);
	assert_int_equal(flush(region, p, 4 * PAGE), 0);
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(flush(region, p, 1), -EFAULT);
	persist_region_put(region);
	munmap(p, 4 * PAGE);
	unlink("short");
	close(fd);
}

/*
 * The file has no path (O_TMPFILE, or unlinked): the path of the mapping does not lead to it, but
 * the open descriptor does.
 */
static void the_end_of_a_file_without_a_path_counts_to_the_byte(void **state)
{
	int fd = file_create(NULL, PAGE + 100);
	unsigned char *p = map_file(fd, 4 * PAGE);
	struct persist_region *region = region_of(p, 4 * PAGE);

	if (!here_is_persistent())
		skip();
	assert_int_equal(flush(region, p, PAGE + 100), 0);
	assert_int_equal(flush(region, p, PAGE + 101), -EFAULT);
	assert_int_equal(ftruncate(fd, 100), 0);
	assert_int_equal(flush(region, p, 101), -EFAULT);
	assert_int_equal(flush(region, p, 100), 0);
	persist_region_put(region);
	munmap(p, 4 * PAGE);
	close(fd);
}

/* A privileged process finds the file's end through the mapping. */
static int find_end_by_page(void *arg)
{
	unsigned char *p = arg;
	struct persist_region *region = region_of(p, 4 * PAGE);

	CHECK(flush(region, p, PAGE) == 0);
	CHECK(flush(region, p, PAGE + 1) == -EFAULT);
	CHECK(!persist_region_is_detachable(region, p, PAGE));
	persist_region_put(region);
	return 0;
}

static void the_end_of_an_unreachable_file_is_found_by_page(void **state)
{
	int fd = file_create(NULL, 2 * PAGE);
	unsigned char *p = map_file(fd, 4 * PAGE);

	if (!here_is_persistent())
		skip();
	assert_int_equal(ftruncate(fd, (off_t)PAGE), 0);
	close(fd);
	assert_int_equal(in_child(find_end_by_page, p, false), 0);
	munmap(p, 4 * PAGE);
}

/* The bytes that a peer placed are in the file, and the library's own mapping still exists. */
static void unmapped_memory_is_written_back_all_the_same(void **state)
{
	int fd = file_create("unmapped", 4 * PAGE);
	unsigned char *p = map_file(fd, 2 * PAGE), *q = map_file(fd, 2 * PAGE);
	struct persist_region *gone = region_of(p, 2 * PAGE);

	if (!here_is_persistent())
		skip();
	assert_true(persist_region_is_detachable(gone, p, 2 * PAGE));
	p[0] = q[0] = 1;
	munmap(p, 2 * PAGE);
	close(fd);
	assert_true(dirty_kib(q) > 0);
	assert_int_equal(flush(gone, p, PAGE), 0);
	assert_int_equal(dirty_kib(q), 0);
	persist_region_put(gone);
	munmap(q, 2 * PAGE);
	unlink("unmapped");
}

/* No path leads to the file, so the library has no mapping of its own. */
static int flush_unmapped(void *arg)
{
	unsigned char *p = arg, *q = mremap(p, 0, 2 * PAGE, MREMAP_MAYMOVE);
	struct persist_region *gone = region_of(p, 2 * PAGE), *other = region_of(q, 2 * PAGE);

	munmap(p, 2 * PAGE);
	CHECK(flush(gone, p, PAGE) == -EFAULT);
	persist_region_put(gone);
	persist_region_put(other);
	return 0;
}

static void without_a_mapping_of_our_own_unmapped_memory_is_an_error(void **state)
{
	int fd = file_create(NULL, 2 * PAGE);
	unsigned char *p = map_file(fd, 2 * PAGE);

	if (!here_is_persistent())
		skip();
	close(fd);
	assert_int_equal(in_child(flush_unmapped, p, false), 0);
	munmap(p, 2 * PAGE);
}

static unsigned long long dirtied_by_a_store(unsigned char *at)
{
	unsigned long long before = bytes_dirtied();

	++*at;
	return bytes_dirtied() - before;
}

/*
 * A file that was written in one piece is cached in large folios, if the file system supports them.
 * If a folio is busy during a flush, the first flush of another page of this folio splits the
 * folio.
 */
static void a_short_flush_writes_no_more_than_its_pages_the_next_time(void **state)
{
	unsigned char *bytes = map_anonymous(4 * MIB);
	int fd = file_create("folios", 0);
	struct persist_region *region;
	unsigned long long dirtied;
	unsigned char *p;

	if (!here_is_persistent())
		skip();
	memset(bytes, 1, 4 * MIB);
	assert_int_equal(pwrite(fd, bytes, 4 * MIB, 0), 4 * MIB);
	assert_int_equal(fsync(fd), 0);
	p = map_file(fd, 4 * MIB);
	region = region_of(p, 4 * MIB);
	dirtied = dirtied_by_a_store(p + MIB);
	if (dirtied <= PAGE)
		print_message("no large folios here\n");
	for (size_t i = 0; i < 8 && dirtied > PAGE; i++) {
		assert_int_equal(flush(region, p + MIB + i * PAGE, 64), 0);
		dirtied = dirtied_by_a_store(p + MIB + (i + 1) * PAGE);
	}
	assert_true(dirtied <= PAGE);
	persist_region_put(region);
	munmap(p, 4 * MIB);
	munmap(bytes, 4 * MIB);
	unlink("folios");
	close(fd);
}

static void short_dax_ranges_are_flushed_inline_and_long_ones_in_the_pool(void **state)
{
	unsigned char *p = map_anonymous(MIB);
	struct fake_dax d;
	struct flush f;
	int status = 1;

	fake_dax_init(&d, p, MIB);
	memset(p, 1, MIB);
	assert_true(submit_strictly(&d.region, p + 3, 64 << 10, true, &status));
	assert_int_equal(status, 0);
	flush_start(&f, &d.region, p, MIB);
	assert_int_equal(flush_wait(&f, 20000), 0);
	assert_int_equal(f.job.progress, MIB);
	munmap(p, MIB);
}

static void dax_memory_that_vanished_is_an_error(void **state)
{
	int fd = memfd_create("dax", MFD_CLOEXEC);
	struct fake_dax d;
	unsigned char *p;

	assert_int_equal(safecopy_setup(), 0);
	assert_int_equal(ftruncate(fd, (off_t)MIB), 0);
	p = map_file(fd, MIB);
	fake_dax_init(&d, p, MIB);
	assert_int_equal(ftruncate(fd, (off_t)PAGE), 0);
	assert_int_equal(flush(&d.region, p, 2 * PAGE), -EFAULT);
	assert_int_equal(flush(&d.region, p, MIB), -EFAULT);
	assert_int_equal(flush(&d.region, p, PAGE), 0);
	munmap(p, MIB);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(volatile_memory_passes_at_once_unless_strict),
		cmocka_unit_test(a_job_outside_of_its_region_is_refused),
		cmocka_unit_test(what_is_flushed_is_clean),
		cmocka_unit_test(a_mixed_range_is_flushed_part_by_part),
		cmocka_unit_test(a_range_past_the_end_of_the_file_fails),
		cmocka_unit_test(the_end_of_a_file_without_a_path_counts_to_the_byte),
		cmocka_unit_test(the_end_of_an_unreachable_file_is_found_by_page),
		cmocka_unit_test(unmapped_memory_is_written_back_all_the_same),
		cmocka_unit_test(without_a_mapping_of_our_own_unmapped_memory_is_an_error),
		cmocka_unit_test(a_short_flush_writes_no_more_than_its_pages_the_next_time),
		cmocka_unit_test(short_dax_ranges_are_flushed_inline_and_long_ones_in_the_pool),
		cmocka_unit_test(dax_memory_that_vanished_is_an_error),
	};

	return cmocka_run_group_tests_name("persist-writeback", tests, NULL, NULL);
}
