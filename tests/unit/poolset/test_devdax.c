/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Device DAX as sysfs describes it. The test needs no such device: /dev/zero stands for one, in a
 * tree like sysfs that the test makes. /dev/zero can be mapped, but each mapping begins with zeros.
 * So the tests only check which devices are accepted, and which sizes they have.
 */
#include "unit/poolset/disk.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "poolset/devdax.h"

#define HEAD "PMEMPOOLSET\n"

static struct poolset_attr attr;
static char sysfs[80];

static void describe(unsigned minor, const char *align_at, const char *size, const char *align)
{
	char path[200];

	snprintf(path, sizeof(path), "sys/dev/char/1:%u", minor);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "sys/dev/char/1:%u/subsystem", minor);
	assert_int_equal(symlink("../../../bus/dax", path), 0);
	snprintf(path, sizeof(path), "sys/dev/char/1:%u/size", minor);
	disk_write_set(path, size);
	snprintf(path, sizeof(path), "sys/dev/char/1:%u/%s", minor, align_at);
	disk_write_set(path, align);
}

static int setup(void **state)
{
	attr = disk_attr();
	disk_setup(state);
	mkdir("sys", 0700);
	mkdir("sys/dev", 0700);
	mkdir("sys/dev/char", 0700);
	snprintf(sysfs, sizeof(sysfs), "%s/sys", disk_folder);
	devdax_sysfs = sysfs;
	return 0;
}

static int teardown(void **state)
{
	devdax_sysfs = "/sys";
	return disk_teardown(state);
}

static void sysfs_says_what_is_a_device_dax(void **state)
{
	struct devdax dax;

	assert_false(devdax_probe(makedev(1, 5), &dax));
	describe(5, "align", "16777216\n", "2097152\n");
	assert_true(devdax_probe(makedev(1, 5), &dax));
	assert_int_equal(dax.size, 16 * MIB);
	assert_int_equal(dax.align, 2 * MIB);
	describe(6, "align", "0x1000000\n", "4096\n");
	assert_true(devdax_probe(makedev(1, 6), &dax));
	assert_int_equal(dax.size, 16 * MIB);
	describe(7, "align", "16777216\n", "3000000\n");
	assert_false(devdax_probe(makedev(1, 7), &dax)); /* the alignment is no power of two */
	describe(8, "align", "-1\n", "4096\n");
	assert_false(devdax_probe(makedev(1, 8), &dax));
	describe(9, "align", "rubbish", "4096\n");
	assert_false(devdax_probe(makedev(1, 9), &dax));
	unlink("sys/dev/char/1:5/subsystem");
	assert_int_equal(symlink("../../../class/mem", "sys/dev/char/1:5/subsystem"), 0);
	assert_false(devdax_probe(makedev(1, 5), &dax));
}

static void older_kernels_have_the_alignment_elsewhere(void **state)
{
	struct devdax dax;

	describe(5, "align.none", "16777216\n", "0");
	assert_false(devdax_probe(makedev(1, 5), &dax));
	assert_int_equal(mkdir("sys/dev/char/1:5/device", 0700), 0);
	assert_int_equal(mkdir("sys/dev/char/1:5/device/dax_region", 0700), 0);
	disk_write_set("sys/dev/char/1:5/device/dax_region/align", "4096\n");
	assert_true(devdax_probe(makedev(1, 5), &dax));
	assert_int_equal(dax.align, 4096);
}

static void make_devices(void)
{
	describe(5, "align", "16777216\n", "2097152\n");
	if (mknod("dax0", S_IFCHR | 0600, makedev(1, 5)) ||
	    mknod("dax1", S_IFCHR | 0600, makedev(1, 5)))
		skip();
}

static void a_device_is_mapped_whole_and_never_removed(void **state)
{
	struct poolset_place place = disk_place("a.set");
	struct poolset_pool *pool;

	make_devices();
	disk_write_set("a.set", HEAD "AUTO @/dax0\n");
	pool = disk_create("a.set", &attr);
	assert_int_equal(poolset_memory(pool)->size, 16 * MIB);
	assert_true(poolset_memory(pool)->is_direct);
	assert_int_equal((uintptr_t)poolset_memory(pool)->base % (2 * MIB), 0);
	((char *)poolset_memory(pool)->base)[16 * MIB - 1] = 'x';
	disk_close(pool);
	/* a new mapping has zeros again */
	disk_no_open("a.set", 0, EINVAL, "dax0: there is no pool in it");
	assert_int_equal(poolset_remove(&place, 0, &disk_err), 0);
	assert_true(disk_exists("dax0"));
	assert_int_equal(poolset_discard(disk_create("a.set", &attr), &disk_err), 0);
	assert_true(disk_exists("dax0"));
}

static void sizes_and_kinds_must_fit(void **state)
{
	make_devices();
	disk_write_set("a.set", HEAD "16M @/dax0\n");
	disk_close(disk_create("a.set", &attr));
	disk_write_set("a.set", HEAD "8M @/dax0\n");
	disk_no_create("a.set", 0, &attr, EINVAL, "dax0 has 16777216 bytes");
	disk_write_set("a.set", HEAD "AUTO @/dax0\n8M @/p1\n");
	disk_no_create("a.set", 0, &attr, EINVAL, "all parts must be device DAX, or none");
	disk_write_set("a.set", HEAD "AUTO @/dax0\nAUTO @/dax1\n");
	disk_no_create("a.set", 0, &attr, EINVAL, "need the option SINGLEHDR or NOHDRS");
	assert_int_equal(mknod("other", S_IFCHR | 0600, makedev(1, 3)), 0);
	disk_write_set("a.set", HEAD "16M @/other\n");
	disk_no_create("a.set", 0, &attr, EINVAL, "other is neither a file nor a device DAX");
	assert_int_equal(disk_count_files(), 5);
}

static void several_devices_lie_in_a_row(void **state)
{
	struct poolset_pool *pool;

	make_devices();
	attr.incompat |= HEADER_SINGLEHDR;
	disk_write_set("a.set", HEAD "OPTION SINGLEHDR\nAUTO @/dax0\nAUTO @/dax1\n");
	pool = disk_create("a.set", &attr);
	assert_int_equal(poolset_memory(pool)->size, 32 * MIB);
	disk_close(pool);
}

static void a_device_is_a_pool_by_its_name(void **state)
{
	struct poolset_pool *pool;

	make_devices();
	pool = disk_create("dax0", &attr);
	assert_int_equal(poolset_memory(pool)->size, 16 * MIB);
	disk_close(pool);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(sysfs_says_what_is_a_device_dax),
		TEST(older_kernels_have_the_alignment_elsewhere),
		TEST(a_device_is_mapped_whole_and_never_removed),
		TEST(sizes_and_kinds_must_fit),
		TEST(several_devices_lie_in_a_row),
		TEST(a_device_is_a_pool_by_its_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
