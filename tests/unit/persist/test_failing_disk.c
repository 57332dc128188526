/* SPDX-License-Identifier: BSD-3-Clause */
/* A file system whose disk has no space for blocks that it has already promised to a file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/safecopy.h"
#include "disk.h"
#include "helpers.h"

#define SIZE (1 * MIB)

static void fill(const char *name)
{
	static char zeros[65536];
	int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	for (size_t chunk = sizeof(zeros); chunk >= 512; chunk /= 2)
		while (write(fd, zeros, chunk) > 0)
			;
	close(fd);
}

/* ext2 has allocated the file's blocks, but the image has no space for them. */
static int allocated_file(const char *name)
{
	int fd = file_create(name, SIZE);

	assert_int_equal(posix_fallocate(fd, 0, (off_t)SIZE), 0);
	return fd;
}

static void a_failed_write_back_fails_the_file_until_all_regions_are_gone(void **state)
{
	unsigned char *p, *q;
	struct persist_region *a, *b;
	struct vext_digest d;
	int fd, failed;

	disk_mount_tmpfs("full", 4 * MIB);
	disk_mount_image("ext2", "full/image", 64 * MIB, "small");
	fill("full/filler");
	fd = allocated_file("small/file");
	p = map_file(fd, SIZE);
	q = map_file(fd, SIZE);
	a = region_of(p, SIZE);
	b = region_of(q, SIZE);
	assert_int_equal(persist_region_class(a, p, SIZE), VEXT_DURABILITY_FILE);
	memset(p, 1, SIZE);
	failed = flush(a, p, SIZE / 2);
	assert_true(failed == -ENOSPC || failed == -EIO);
	assert_int_equal(flush(b, q + SIZE - PAGE, PAGE), failed);
	assert_int_equal(flush(a, p, 1), failed);
	assert_int_equal(digest(b, q, PAGE, VEXT_DIGEST_CRC32C, &d), failed);

	/* One region is enough to keep the failure for regions that are made later. */
	persist_region_put(a);
	a = region_of(p, SIZE);
	assert_int_equal(flush(a, p, 1), failed);
	persist_region_put(a);
	assert_int_equal(flush(b, q, 1), failed);
	persist_region_put(b);
	munmap(p, SIZE);
	munmap(q, SIZE);
	close(fd);

	assert_int_equal(unlink("full/filler"), 0);
	fd = open("small/file", O_RDWR | O_CLOEXEC);
	p = map_file(fd, SIZE);
	a = region_of(p, SIZE);
	memset(p, 2, SIZE);
	assert_int_equal(flush(a, p, SIZE), 0);
	assert_int_equal(dirty_kib(p), 0);
	persist_region_put(a);
	munmap(p, SIZE);
	close(fd);
}

/* A function that takes the kernel's report of the loss before a flush can get it. */
typedef int taker_fn(int fd, void *p);

static int take_by_fsync(int fd, void *p)
{
	return fsync(fd);
}

static int take_by_msync(int fd, void *p)
{
	return msync(p, SIZE, MS_SYNC);
}

struct taker {
	taker_fn *take;
	int fd;
	void *p;
};

static int take_in_child(void *arg)
{
	struct taker *t = arg;

	CHECK(t->take(t->fd, t->p) < 0);
	return 0;
}

static void expect_flush_to_fail_after(taker_fn *take, bool elsewhere)
{
	int fd = allocated_file("consumed/file");
	struct taker taker = {take, fd, map_file(fd, SIZE)};
	struct persist_region *region = region_of(taker.p, SIZE);
	struct vext_digest d;
	int failed;

	memset(taker.p, 1, SIZE);
	if (elsewhere)
		assert_int_equal(in_child(take_in_child, &taker, true), 0);
	else
		assert_true(take(fd, taker.p) < 0);
	/* Check that the report is taken: a second fsync() of the descriptor returns 0. */
	assert_int_equal(take(fd, taker.p), 0);
	failed = flush(region, taker.p, SIZE);
	assert_true(failed == -ENOSPC || failed == -EIO);
	assert_int_equal(digest(region, taker.p, PAGE, VEXT_DIGEST_CRC32C, &d), failed);
	persist_region_put(region);
	munmap(taker.p, SIZE);
	close(fd);
	unlink("consumed/file");
}

static void a_loss_reported_to_another_description_fails_the_flush(void **state)
{
	disk_mount_tmpfs("full4", 4 * MIB);
	disk_mount_image("ext2", "full4/image", 64 * MIB, "consumed");
	fill("full4/filler");
	expect_flush_to_fail_after(take_by_fsync, false);
	expect_flush_to_fail_after(take_by_msync, false);
	expect_flush_to_fail_after(take_by_fsync, true);
	expect_flush_to_fail_after(take_by_msync, true);
}

/* Make a region whose file the library cannot open, because a lease is held. */
static struct persist_region *region_without_own(int fd, void *p)
{
	struct persist_region *region;

	signal(SIGIO, SIG_IGN);
	assert_int_equal(fcntl(fd, F_SETLEASE, F_WRLCK), 0);
	region = region_of(p, SIZE);
	assert_null(atomic_load(&region->ranges[0].file->own));
	assert_int_equal(fcntl(fd, F_SETLEASE, F_UNLCK), 0);
	return region;
}

/* A file description that is opened after the loss, for another region, does not report the
 * loss. */
static void a_loss_is_older_than_our_description(void **state)
{
	struct persist_region *first, *second;
	unsigned char *p;
	int fd, other;

	disk_mount_tmpfs("full6", 4 * MIB);
	disk_mount_image("ext2", "full6/image", 64 * MIB, "late");
	fill("full6/filler");
	fd = allocated_file("late/file");
	p = map_file(fd, SIZE);
	first = region_without_own(fd, p);
	memset(p, 1, SIZE);
	other = open("late/file", O_RDWR | O_CLOEXEC);
	assert_true(fsync(other) < 0);
	second = region_of(p, SIZE);
	assert_non_null(atomic_load(&second->ranges[0].file->own));
	assert_false(persist_region_is_detachable(first, p, SIZE));
	assert_true(persist_region_is_detachable(second, p, SIZE));
	assert_true(flush(first, p, SIZE) < 0);
	persist_region_put(first);
	persist_region_put(second);
	munmap(p, SIZE);
	close(other);
	close(fd);
}

struct inherited {
	struct persist_region *region;
	unsigned char *p;
};

static int flush_inherited(void *arg)
{
	struct inherited *in = arg;
	struct persist_region *late = region_of(in->p, SIZE);

	CHECK(atomic_load(&late->ranges[0].file->own) != NULL);
	CHECK(flush(in->region, in->p, SIZE) < 0);
	return 0;
}

/* A file description that a child opens after the loss, for an inherited region, does not report
 * the loss, either. */
static void a_loss_is_older_than_the_childs_description(void **state)
{
	struct inherited in;
	int fd, other;

	disk_mount_tmpfs("full7", 4 * MIB);
	disk_mount_image("ext2", "full7/image", 64 * MIB, "forked");
	fill("full7/filler");
	fd = allocated_file("forked/file");
	in.p = map_file(fd, SIZE);
	in.region = region_of(in.p, SIZE);
	memset(in.p, 1, SIZE);
	other = open("forked/file", O_RDWR | O_CLOEXEC);
	assert_true(fsync(other) < 0);
	assert_int_equal(in_child(flush_inherited, &in, true), 0);
	persist_region_put(in.region);
	munmap(in.p, SIZE);
	close(other);
	close(fd);
}

/* Both open file descriptions of the mapping report a later loss; one report is enough. */
static void a_late_own_mapping_gets_later_losses(void **state)
{
	struct persist_region *first, *second;
	unsigned char *p;
	int fd;

	disk_mount_tmpfs("full8", 4 * MIB);
	disk_mount_image("ext2", "full8/image", 64 * MIB, "later");
	fill("full8/filler");
	fd = allocated_file("later/file");
	p = map_file(fd, SIZE);
	first = region_without_own(fd, p);
	second = region_of(p, SIZE);
	memset(p, 1, SIZE);
	assert_true(fsync(fd) < 0);
	assert_true(flush(first, p, SIZE) < 0);
	persist_region_put(first);
	persist_region_put(second);
	munmap(p, SIZE);
	close(fd);
}

static int flush_in_child(void *arg)
{
	struct taker *t = arg;
	struct persist_region *region = region_of(t->p, SIZE);

	CHECK(flush(region, t->p, SIZE) < 0);
	return 0;
}

/* The child's own mapping must get a report, too. */
static void a_loss_is_reported_to_parent_and_child(void **state)
{
	int fd;
	struct taker taker;
	struct persist_region *region;

	disk_mount_tmpfs("full5", 4 * MIB);
	disk_mount_image("ext2", "full5/image", 64 * MIB, "both");
	fill("full5/filler");
	fd = allocated_file("both/file");
	taker.p = map_file(fd, SIZE);
	region = region_of(taker.p, SIZE);
	memset(taker.p, 1, SIZE);
	assert_int_equal(in_child(flush_in_child, &taker, true), 0);
	assert_true(flush(region, taker.p, SIZE) < 0);
	persist_region_put(region);
	munmap(taker.p, SIZE);
	close(fd);
}

/*
 * The kernel reports a loss of a file once, not necessarily to the msync() call whose bytes were
 * lost. The file system is frozen, so that both write-backs are running when both fail. A digest
 * does not begin after that, because lost bytes may still be readable.
 */
static void of_jobs_that_run_together_none_claims_success(void **state)
{
	disk_mount_image("ext4", "outer.image", 16 * MIB, "outer");
	disk_mount_image("ext2", "outer/image", 64 * MIB, "inner");
	fill("outer/filler");
	for (int round = 0; round < 10; round++) {
		int fd = allocated_file("inner/file");
		unsigned char *p = map_file(fd, SIZE);
		struct persist_region *region = region_of(p, SIZE);
		struct vext_digest d = {.len = 77};
		struct flush jobs[2], waiting[4];

		memset(p, 1, SIZE);
		disk_freeze("outer");
		flush_start(&jobs[0], region, p, PAGE);
		if (round % 2)
			digest_start(&jobs[1], region, p + SIZE / 2, PAGE, VEXT_DIGEST_CRC32C, &d);
		else
			flush_start(&jobs[1], region, p + SIZE / 2, PAGE);
		assert_int_equal(flush_wait(&jobs[1], 50), -ETIMEDOUT);
		for (size_t i = 0; i < 4; i++)
			flush_start(&waiting[i], region, p + (2 * i + 1) * PAGE, PAGE);
		disk_thaw();
		assert_true(flush_wait(&jobs[0], 20000) < 0);
		assert_true(flush_wait(&jobs[1], 20000) < 0);
		for (size_t i = 0; i < 4; i++)
			assert_true(flush_wait(&waiting[i], 20000) < 0);
		assert_int_equal(d.len, 77);
		persist_region_put(region);
		munmap(p, SIZE);
		close(fd);
		unlink("inner/file");
	}
}

static int thaw(void **state)
{
	disk_thaw();
	return 0;
}

static void another_file_of_the_same_disk_does_not_fail(void **state)
{
	unsigned char *p, *q;
	struct persist_region *a, *b;
	int fds[2];

	disk_mount_tmpfs("full2", 4 * MIB);
	disk_mount_image("ext2", "full2/image", 64 * MIB, "small2");
	/* The blocks of this file are written to the image while there is space. */
	fds[1] = allocated_file("small2/good");
	assert_int_equal(fsync(fds[1]), 0);
	fill("full2/filler");
	fds[0] = allocated_file("small2/bad");
	p = map_file(fds[0], SIZE);
	q = map_file(fds[1], SIZE);
	a = region_of(p, SIZE);
	b = region_of(q, SIZE);
	memset(p, 1, SIZE);
	q[0] = 1;
	assert_true(flush(a, p, SIZE) < 0);
	assert_int_equal(flush(b, q, PAGE), 0);
	persist_region_put(a);
	persist_region_put(b);
	munmap(p, SIZE);
	munmap(q, SIZE);
	close(fds[0]);
	close(fds[1]);
}

static void a_store_to_a_hole_of_a_full_disk_is_an_error(void **state)
{
	static const unsigned char src[PAGE];
	unsigned char *p;
	int fd;

	disk_mount_tmpfs("full3", MIB);
	fd = file_create("full3/sparse", SIZE);
	fill("full3/filler");
	p = map_file(fd, SIZE);
	assert_int_equal(safecopy_setup(), 0);
	assert_int_equal(safecopy(p, src, sizeof(src)), -EFAULT);
	assert_int_equal(safecopy_store64((uint64_t *)p, 1), -EFAULT);
	assert_int_equal(unlink("full3/filler"), 0);
	assert_int_equal(safecopy(p, src, sizeof(src)), 0);
	munmap(p, SIZE);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_failed_write_back_fails_the_file_until_all_regions_are_gone),
		cmocka_unit_test_teardown(of_jobs_that_run_together_none_claims_success, thaw),
		cmocka_unit_test(a_loss_reported_to_another_description_fails_the_flush),
		cmocka_unit_test(a_loss_is_older_than_our_description),
		cmocka_unit_test(a_late_own_mapping_gets_later_losses),
		cmocka_unit_test(a_loss_is_older_than_the_childs_description),
		cmocka_unit_test(a_loss_is_reported_to_parent_and_child),
		cmocka_unit_test(another_file_of_the_same_disk_does_not_fail),
		cmocka_unit_test(a_store_to_a_hole_of_a_full_disk_is_an_error),
	};
	int failed;

	disk_begin();
	failed = cmocka_run_group_tests_name("persist-failing-disk", tests, NULL, NULL);
	disk_end();
	return failed;
}
