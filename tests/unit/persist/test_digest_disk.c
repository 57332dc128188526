/* SPDX-License-Identifier: BSD-3-Clause */
/* Digests of files on disks whose content the test changes: loop devices over images. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "disk.h"
#include "helpers.h"

#define SIZE (1 * MIB)

struct mapped {
	int fd;
	unsigned char *p;
	struct persist_region *region;
};

static void mapped_init(struct mapped *m, const char *name)
{
	m->fd = file_create(name, SIZE);
	m->p = map_file(m->fd, SIZE);
	m->region = region_of(m->p, SIZE);
	for (size_t i = 0; i < SIZE; i++)
		m->p[i] = (unsigned char)(i * 2654435761u >> 20);
	assert_int_equal(flush(m->region, m->p, SIZE), 0);
}

static void mapped_fini(struct mapped *m)
{
	persist_region_put(m->region);
	munmap(m->p, SIZE);
	close(m->fd);
}

/* Find the bytes of the file in the image, at a block of 1 KiB, which small file systems use. */
static off_t find_in_image(int image, const unsigned char *bytes)
{
	static unsigned char block[1024];
	off_t at = 0;

	while (pread(image, block, sizeof(block), at) == (ssize_t)sizeof(block)) {
		if (!memcmp(block, bytes, sizeof(block)))
			return at;
		at += (off_t)sizeof(block);
	}
	fail_msg("the bytes are not in the image");
	return -1;
}

static void a_byte_corrupted_on_the_medium_is_detected(void **state)
{
	int image = open("disk.image", O_RDWR | O_CLOEXEC);
	unsigned char *rotten = malloc(SIZE);
	struct vext_digest d;
	struct mapped m;
	off_t at;

	mapped_init(&m, "disk/rots");
	assert_int_equal(digest(m.region, m.p, SIZE, VEXT_DIGEST_BLAKE2B, &d), 0);
	assert_digest(&d, VEXT_DIGEST_BLAKE2B, VEXT_DIGEST_FROM_MEDIUM, m.p, SIZE);

	memcpy(rotten, m.p, SIZE);
	rotten[7 * PAGE + 5] ^= 1;
	at = find_in_image(image, m.p + 7 * PAGE);
	assert_int_equal(pwrite(image, &rotten[7 * PAGE + 5], 1, at + 5), 1);
	assert_int_equal(digest(m.region, m.p, SIZE, VEXT_DIGEST_BLAKE2B, &d), 0);
	assert_digest(&d, VEXT_DIGEST_BLAKE2B, VEXT_DIGEST_FROM_MEDIUM, rotten, SIZE);
	assert_memory_not_equal(m.p, rotten, SIZE);

	/* A further write repairs the file. */
	m.p[7 * PAGE]++;
	assert_int_equal(digest(m.region, m.p, SIZE, VEXT_DIGEST_BLAKE2B, &d), 0);
	assert_digest(&d, VEXT_DIGEST_BLAKE2B, VEXT_DIGEST_FROM_MEDIUM, m.p, SIZE);
	mapped_fini(&m);
	free(rotten);
	close(image);
}

/* ext4 opens a journalled file for direct reads, but then reads it through the page cache. */
static void a_direct_read_that_is_none_is_not_claimed(void **state)
{
	struct vext_digest d;
	struct mapped m;

	mapped_init(&m, "journalled/file");
	assert_int_equal(digest(m.region, m.p + 1, SIZE - 2, VEXT_DIGEST_CRC32C, &d), 0);
	assert_digest(&d, VEXT_DIGEST_CRC32C, VEXT_DIGEST_FROM_CACHE, m.p + 1, SIZE - 2);
	mapped_fini(&m);
}

/* Change the size of the loop device's image, and make the device notice it. */
static void resize_image(const char *dir, const char *name, off_t size)
{
	struct stat st;
	char path[64];
	int loop;

	assert_int_equal(stat(dir, &st), 0);
	snprintf(path, sizeof(path), "/dev/loop%u", minor(st.st_dev));
	loop = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(loop >= 0);
	assert_int_equal(truncate(name, size), 0);
	assert_int_equal(ioctl(loop, LOOP_SET_CAPACITY, 0), 0);
	close(loop);
}

static void a_read_that_failed_may_be_tried_again(void **state)
{
	int image = open("disk.image", O_RDWR | O_CLOEXEC);
	struct vext_digest d;
	struct mapped m;
	struct stat st;
	off_t at;

	mapped_init(&m, "disk/unreadable");
	at = find_in_image(image, m.p);
	assert_int_equal(fstat(image, &st), 0);
	resize_image("disk", "disk.image", at);
	assert_int_equal(digest(m.region, m.p, SIZE, VEXT_DIGEST_CRC32C, &d), -EIO);
	resize_image("disk", "disk.image", st.st_size);
	assert_int_equal(flush(m.region, m.p, SIZE), 0);
	memset(m.p, 9, SIZE);
	assert_int_equal(digest(m.region, m.p, SIZE, VEXT_DIGEST_CRC32C, &d), 0);
	assert_digest(&d, VEXT_DIGEST_CRC32C, VEXT_DIGEST_FROM_MEDIUM, m.p, SIZE);
	mapped_fini(&m);
	close(image);
}

static void a_block_device_is_read_directly(void **state)
{
	struct vext_digest d;
	struct mapped m;
	struct stat st;
	char path[64];

	assert_int_equal(stat("raw", &st), 0);
	snprintf(path, sizeof(path), "/dev/loop%u", minor(st.st_dev));
	m.fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(m.fd >= 0);
	m.p = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, m.fd, 0);
	assert_ptr_not_equal(m.p, MAP_FAILED);
	m.region = region_of(m.p, SIZE);
	assert_int_equal(digest(m.region, m.p + 3, SIZE - 3, VEXT_DIGEST_CRC32C, &d), 0);
	assert_digest(&d, VEXT_DIGEST_CRC32C, VEXT_DIGEST_FROM_MEDIUM, m.p + 3, SIZE - 3);
	assert_int_equal(d.durability, VEXT_DURABILITY_FILE);
	mapped_fini(&m);
}

/* Returns true if the slots of the region's only file are taken. Takes the pool's lock. */
static bool slots_are_taken(const struct mapped *m)
{
	bool taken = true;

	persist_atfork_prepare();
	for (int i = 0; i < FILE_SLOTS; i++)
		taken &= m->region->ranges[0].file->slot[i].busy;
	persist_atfork_parent();
	return taken;
}

static void a_cancelled_job_waits_for_nothing_but_its_own_slice(void **state)
{
	struct vext_digest d;
	struct flush jobs[4];
	struct mapped m;

	mapped_init(&m, "inner/file");
	disk_freeze("outer");
	for (size_t i = 0; i < 3; i++) {
		m.p[i * PAGE]++;
		flush_start(&jobs[i], m.region, m.p + i * PAGE, PAGE);
		for (int ms = 0; i == 1 && ms < 20000 && !slots_are_taken(&m); ms++)
			usleep(1000);
	}
	assert_true(slots_are_taken(&m));
	digest_start(&jobs[3], m.region, m.p, SIZE, VEXT_DIGEST_CRC32C, &d);
	for (int i = 1; i < 4; i++)
		persist_cancel(&jobs[i].job);
	assert_int_equal(flush_wait(&jobs[1], 50), -ETIMEDOUT);
	assert_int_equal(flush_wait(&jobs[2], 0), -ECANCELED);
	assert_int_equal(flush_wait(&jobs[3], 0), -ECANCELED);
	persist_cancel(&jobs[2].job);
	disk_thaw();
	assert_int_equal(flush_wait(&jobs[0], 20000), 0);
	assert_int_equal(flush_wait(&jobs[1], 20000), -ECANCELED);
	assert_int_equal(flush(m.region, m.p, SIZE), 0);
	mapped_fini(&m);
}

static int thaw(void **state)
{
	disk_thaw();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_byte_corrupted_on_the_medium_is_detected),
		cmocka_unit_test(a_direct_read_that_is_none_is_not_claimed),
		cmocka_unit_test(a_block_device_is_read_directly),
		cmocka_unit_test_teardown(a_cancelled_job_waits_for_nothing_but_its_own_slice,
					  thaw),
		cmocka_unit_test(a_read_that_failed_may_be_tried_again),
	};
	int failed;

	disk_begin();
	disk_mount_image("ext4", "disk.image", 32 * MIB, "disk");
	disk_mount_image("ext2", "raw.image", 4 * MIB, "raw");
	disk_mount_image_with("ext4", "journalled.image", 32 * MIB, "journalled",
			      "loop,data=journal");
	disk_mount_image("ext4", "outer.image", 96 * MIB, "outer");
	disk_mount_image("ext4", "outer/inner.image", 48 * MIB, "inner");
	failed = cmocka_run_group_tests_name("persist-digest-disk", tests, NULL, NULL);
	disk_end();
	return failed;
}
