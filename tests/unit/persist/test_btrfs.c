/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two files of one file system have the same inode number: each subvolume of btrfs has its own
 * numbers, and /proc shows one device for all of them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/btrfs.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "disk.h"
#include "helpers.h"

#define PLACE "/mnt" /* every user has access to this path */
#define SIZE  (4 * PAGE)

struct twin {
	int fd;
	dev_t dev;
	unsigned char *p;
	struct persist_region *region;
};

static struct twin twins[2];

static void make_subvolume(const char *name)
{
	struct btrfs_ioctl_vol_args args = {0};
	int dir = open(PLACE, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	snprintf(args.name, sizeof(args.name), "%s", name);
	assert_int_equal(ioctl(dir, BTRFS_IOC_SUBVOL_CREATE, &args), 0);
	close(dir);
}

/* Make the first file of a subvolume. */
static void make_twin(struct twin *t, const char *subvolume, int value)
{
	char path[64];
	struct stat st;

	make_subvolume(subvolume);
	snprintf(path, sizeof(path), PLACE "/%s/file", subvolume);
	t->fd = file_create(path, SIZE);
	assert_int_equal(fchmod(t->fd, 0666), 0);
	t->p = map_file(t->fd, SIZE);
	memset(t->p, value, SIZE);
	assert_int_equal(fstat(t->fd, &st), 0);
	t->dev = st.st_dev;
}

static int make_twins(void **state)
{
	struct stat a, b;

	make_twin(&twins[0], "a", 0xa);
	make_twin(&twins[1], "b", 0xb);
	assert_int_equal(fstat(twins[0].fd, &a), 0);
	assert_int_equal(fstat(twins[1].fd, &b), 0);
	assert_int_equal(a.st_ino, b.st_ino);
	assert_int_not_equal(a.st_dev, b.st_dev);
	return 0;
}

static int remove_twins(void **state)
{
	static const char *const names[] = {"a", "b"};
	struct btrfs_ioctl_vol_args args = {0};
	int dir = open(PLACE, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (int i = 0; i < 2; i++) {
		munmap(twins[i].p, SIZE);
		close(twins[i].fd);
		snprintf(args.name, sizeof(args.name), "%s", names[i]);
		assert_int_equal(ioctl(dir, BTRFS_IOC_SNAP_DESTROY, &args), 0);
	}
	return close(dir);
}

static const struct file *file_of(const struct twin *t)
{
	return t->region->ranges[0].file;
}

static void register_twins(void)
{
	for (int i = 0; i < 2; i++)
		twins[i].region = region_of(twins[i].p, SIZE);
}

static void release_twins(void)
{
	for (int i = 0; i < 2; i++)
		persist_region_put(twins[i].region);
}

/* Check that a flush reaches each file, and only this file. */
static int expect_reach(void *arg)
{
	register_twins();
	CHECK(file_of(&twins[0]) != file_of(&twins[1]));
	for (int i = 0; i < 2; i++) {
		struct twin *t = &twins[i];
		unsigned char bytes[SIZE];
		struct vext_digest d;

		CHECK(file_of(t)->medium.fd >= 0);
		CHECK(atomic_load(&file_of(t)->own));
		CHECK(file_of(t)->medium.st_dev == t->dev);
		CHECK(digest(t->region, t->p, SIZE, VEXT_DIGEST_CRC32C, &d) == 0);
		CHECK(dirty_kib(t->p) == 0);
		memset(bytes, i ? 0xb : 0xa, SIZE);
		assert_digest(&d, VEXT_DIGEST_CRC32C, d.source, bytes, SIZE);
	}
	release_twins();
	return 0;
}

static void each_file_is_read_and_written_back_as_itself(void **state)
{
	assert_int_equal(expect_reach(NULL), 0);
	assert_int_equal(in_child(expect_reach, NULL, false), 0);
}

static int close_and_expect_reach(void *arg)
{
	close(twins[0].fd);
	close(twins[1].fd);
	return expect_reach(NULL);
}

static void closed_files_are_distinguished_by_their_paths(void **state)
{
	assert_int_equal(in_child(close_and_expect_reach, NULL, false), 0);
}

static int close_second_and_register(void *arg)
{
	struct vext_digest d;
	unsigned char bytes[SIZE];

	close(twins[1].fd);
	register_twins();
	CHECK(file_of(&twins[0])->medium.st_dev == twins[0].dev);
	/* The second file must not use the first file's descriptor. */
	CHECK(file_of(&twins[1])->medium.fd < 0);
	CHECK(digest(twins[1].region, twins[1].p, SIZE, VEXT_DIGEST_CRC32C, &d) == 0);
	memset(bytes, 0xb, SIZE);
	assert_digest(&d, VEXT_DIGEST_CRC32C, VEXT_DIGEST_FROM_CACHE, bytes, SIZE);
	release_twins();
	return 0;
}

static void an_unlinked_file_is_reached_by_its_own_descriptor_only(void **state)
{
	assert_int_equal(unlink(PLACE "/a/file"), 0);
	assert_int_equal(unlink(PLACE "/b/file"), 0);
	assert_int_equal(in_child(expect_reach, NULL, false), 0);
	assert_int_equal(in_child(close_second_and_register, NULL, false), 0);
	/* A privileged process can open a file without a path or a descriptor. */
	assert_int_equal(in_child(close_and_expect_reach, NULL, true), 0);
}

static int expect_right_one(void *arg)
{
	struct twin *t = &twins[0];

	t->region = region_of(t->p, SIZE);
	CHECK(file_of(t)->medium.st_dev == t->dev);
	persist_region_put(t->region);
	return 0;
}

static void a_subvolume_mounted_over_the_path_is_not_mistaken_for_the_file(void **state)
{
	disk_bind(PLACE "/b", PLACE "/a");
	assert_int_equal(in_child(expect_right_one, NULL, true), 0);
	assert_int_equal(in_child(expect_right_one, NULL, false), 0);
	assert_int_equal(umount2(PLACE "/a", MNT_DETACH), 0);
}

static void a_file_that_is_cut_short_is_the_only_one(void **state)
{
	register_twins();
	assert_int_equal(ftruncate(twins[1].fd, (off_t)PAGE), 0);
	assert_int_equal(flush(twins[0].region, twins[0].p, SIZE), 0);
	assert_int_equal(flush(twins[1].region, twins[1].p, SIZE), -EFAULT);
	assert_int_equal(flush(twins[1].region, twins[1].p, PAGE), 0);
	release_twins();
}

static void a_failure_of_one_does_not_fail_the_other(void **state)
{
	register_twins();
	file_fail(twins[0].region->ranges[0].file, -EIO);
	assert_int_equal(flush(twins[0].region, twins[0].p, SIZE), -EIO);
	assert_int_equal(flush(twins[1].region, twins[1].p, SIZE), 0);
	release_twins();
}

/* Without descriptors the two files cannot be told apart, so the failure of one counts for both. */
static int fail_without_descriptors(void *arg)
{
	close(twins[1].fd);
	register_twins();
	CHECK(file_of(&twins[0])->medium.fd >= 0 && file_of(&twins[1])->medium.fd < 0);
	file_fail(twins[1].region->ranges[0].file, -EIO);
	CHECK(flush(twins[0].region, twins[0].p, SIZE) == -EIO);
	CHECK(flush(twins[1].region, twins[1].p, SIZE) == -EIO);
	release_twins();
	return 0;
}

static void a_failure_of_what_may_be_the_same_file_counts(void **state)
{
	assert_int_equal(unlink(PLACE "/b/file"), 0);
	assert_int_equal(in_child(fail_without_descriptors, NULL, false), 0);
}

#define TWINS(test) cmocka_unit_test_setup_teardown(test, make_twins, remove_twins)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TWINS(each_file_is_read_and_written_back_as_itself),
		TWINS(closed_files_are_distinguished_by_their_paths),
		TWINS(an_unlinked_file_is_reached_by_its_own_descriptor_only),
		TWINS(a_subvolume_mounted_over_the_path_is_not_mistaken_for_the_file),
		TWINS(a_file_that_is_cut_short_is_the_only_one),
		TWINS(a_failure_of_one_does_not_fail_the_other),
		TWINS(a_failure_of_what_may_be_the_same_file_counts),
	};
	int failed;

	disk_need("btrfs", "mkfs.btrfs");
	disk_begin();
	disk_mount_image("btrfs", "image", 256 * MIB, "tree");
	disk_bind("tree", PLACE);
	assert_int_equal(chmod(PLACE, 0755), 0);
	failed = cmocka_run_group_tests_name("persist-btrfs", tests, NULL, NULL);
	umount2(PLACE, MNT_DETACH);
	disk_end();
	return failed;
}
