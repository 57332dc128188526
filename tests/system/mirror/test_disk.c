/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Disks that fail, in reality: each host's folder is an ext4 on a loop device, whose image is in a
 * small tmpfs. Blocks of the image are taken away with their room, so that the kernel cannot write
 * them any more, and says so at the write-back.
 *
 * What is durable is looked at as after a power cut: in a copy of the image, mounted elsewhere,
 * which has nothing of what only the page cache has.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apps.h"
#include "clients.h"
#include "system/lib/cases.h"
#include "system/lib/check.h"
#include "system/lib/mounts.h"

#define HOSTS  3
#define ALL    7
#define SIZE   (1u << 20)
#define IMAGE  (10u << 20)
#define BLOCK  4096u
#define OFFSET BLOCK
#define NEXT   (OFFSET + 2 * BLOCK)
#define TRIES  50

static struct hosts hosts;
static struct proc app;
static uint64_t last; /* value that was flushed to OFFSET */
static char disks[200];

/* ---- disks ---- */

static int run(const char *format, ...)
{
	char command[1500];
	va_list args;

	va_start(args, format);
	vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	return system(command);
}

static void name_image(unsigned host, char *path, size_t size)
{
	snprintf(path, size, "%s/%u/image", disks, host);
}

/* Blocks of zeros around what is written would be punched out of the image, and make room in it. */
static void mount_disk(unsigned host, const char *folder)
{
	if (run("mkdir %1$s/%2$u && mount -t tmpfs -o size=%3$u tmpfs %1$s/%2$u && "
		"truncate -s %4$u %1$s/%2$u/image && "
		"/sbin/mkfs.ext4 -q -b %5$u -m 0 -E nodiscard,lazy_itable_init=0 %1$s/%2$u/image && "
		"fallocate -l %4$u %1$s/%2$u/image && mount -t ext4 -o loop %1$s/%2$u/image %6$s && "
		"echo 0 >/sys/fs/ext4/$(basename $(findmnt -no SOURCE %6$s))/extent_max_zeroout_kb",
		disks, host, IMAGE + (1u << 20), IMAGE, BLOCK, folder))
		fail_msg("no disk for host %u", host);
}

/* Where the image has that block of a file. */
static off_t find_block(const char *path, uint64_t offset)
{
	_Alignas(struct fiemap) char room[sizeof(struct fiemap) + sizeof(struct fiemap_extent)];
	struct fiemap *found = memset(room, 0, sizeof(room));
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	found->fm_start = offset;
	found->fm_length = BLOCK;
	found->fm_extent_count = 1;
	assert_true(fd >= 0);
	assert_int_equal(ioctl(fd, FS_IOC_FIEMAP, found), 0);
	close(fd);
	assert_int_equal(found->fm_mapped_extents, 1);
	return (off_t)(found->fm_extents[0].fe_physical + offset - found->fm_extents[0].fe_logical);
}

static void fill_disk(unsigned host)
{
	assert_int_equal(
		run("dd if=/dev/zero of=%s/%u/ballast bs=%u status=none 2>/dev/null; test $? = 1",
		    disks, host, BLOCK),
		0);
}

static void break_bytes(unsigned host, off_t at, off_t len)
{
	char image[300];
	int fd;

	name_image(host, image, sizeof(image));
	fd = open(image, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, len), 0);
	close(fd);
}

/* That block of the file cannot be written any more, all others can. */
static void break_block(unsigned host, const char *path, uint64_t offset)
{
	break_bytes(host, find_block(path, offset), BLOCK);
	fill_disk(host);
}

/* None can, those of the file system's journal neither. */
static void break_disk(unsigned host)
{
	break_bytes(host, 0, IMAGE);
	fill_disk(host);
}

static void repair_disk(unsigned host)
{
	char path[300];

	snprintf(path, sizeof(path), "%s/%u/ballast", disks, host);
	assert_int_equal(unlink(path), 0);
}

/* What the disk has at this moment, at the folder "looked". */
static void look_at_disk(unsigned host)
{
	assert_int_equal(run("cp %1$s/%2$u/image %1$s/look/image && "
			     "mount -t ext4 -o loop %1$s/look/image %1$s/looked",
			     disks, host),
			 0);
}

static void look_away(void)
{
	char path[300];

	snprintf(path, sizeof(path), "%s/looked", disks);
	assert_int_equal(umount2(path, 0), 0);
}

static void read_medium(unsigned host, uint64_t words[2])
{
	char path[300];
	int fd;

	look_at_disk(host);
	snprintf(path, sizeof(path), "%s/looked/data", disks);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &words[0], 8, OFFSET), 8);
	assert_int_equal(pread(fd, &words[1], 8, NEXT), 8);
	close(fd);
	look_away();
}

/* Superblocks and promises. */
static void check_records(unsigned host)
{
	look_at_disk(host);
	assert_int_equal(run("cmp -n %u %s/looked/data.rpmirror %s", 4 * BLOCK, disks,
			     hosts.hosts[host].meta),
			 0);
	look_away();
}

static void check_media(unsigned members, uint64_t first, uint64_t second)
{
	uint64_t words[2];

	for (unsigned i = 0; i < HOSTS; i++) {
		if (!(members >> i & 1))
			continue;
		read_medium(i, words);
		assert_int_equal(words[0], first);
		assert_int_equal(words[1], second);
	}
}

/* ---- applications ---- */

static void go_on(unsigned host, const char *how)
{
	if (app.pid)
		proc_kill(&app);
	app_start(&app, &hosts, host, NULL);
	app_expect(&app, "ok", "%s", how);
	assert_int_equal(atoll(proc_ask(&app, "get %u", OFFSET)), last);
}

/* On a busy machine a member may be lost for a moment; it returns. */
static void put_until_whole(void)
{
	const char *line = "";

	for (unsigned i = 0; i < TRIES && strcmp(line, "durable 7 flags 0") != 0; i++) {
		hosts_wait_insync(&hosts, ALL);
		line = proc_ask(&app, "put %u %llu", OFFSET, (unsigned long long)++last);
		if (!line)
			fail_msg("no answer");
	}
	check_media(ALL, last, 0);
}

/* One flush of two words, in blocks that are no neighbours: a loop device calls a request written
 * of which it could write the beginning. */
static void put_both(const char *wanted)
{
	last++;
	app_expect(&app, "ok", "store %u %llu", OFFSET, (unsigned long long)last);
	app_expect(&app, "ok", "store %u %llu", NEXT, (unsigned long long)last);
	app_expect(&app, wanted, "pair %u %u", OFFSET, NEXT);
}

static void check_lost(void)
{
	const char *line = proc_ask(&app, "lost");

	if (!line || line[0] != 'c' || !(strstr(line, "errno 5") || strstr(line, "errno 28")))
		fail_msg("%s", line ? line : "no answer");
}

/* ---- the primary's ---- */

/* What the medium has of the failed copy: the first value, and not the second. */
static void a_local_write_back_is_short(const char *how)
{
	go_on(0, how);
	put_until_whole();
	break_block(0, hosts.hosts[0].data, NEXT);
	put_both("The local copy has failed");
	check_media(1, last, 0);
	check_media(ALL & ~1u, last, last);
	repair_disk(0); /* a later success means nothing */
	app_expect(&app, "The local copy has failed", "put %u %u", OFFSET + 8, 1);
	hosts_wait_insync(&hosts, ALL & ~1u);
	go_on(1, how);
	put_both("durable 6 flags 1");
	check_media(ALL & ~1u, last, last);
	hosts_wait_insync(&hosts, ALL & ~1u);
}

static void a_local_write_back_is_short_in_an_isolated_mapping(void **state)
{
	a_local_write_back_is_short("map-wait");
}

static void a_local_write_back_is_short_in_a_direct_mapping(void **state)
{
	a_local_write_back_is_short("map-direct");
}

static void a_primarys_disk_fails(void **state)
{
	go_on(0, "map-wait");
	put_until_whole();
	break_disk(0);
	put_both("The local copy has failed");
	check_media(ALL & ~1u, last, last);
	hosts_wait_insync(&hosts, ALL & ~1u);
	go_on(1, "map-wait");
	put_both("durable 6 flags 1");
	check_media(ALL & ~1u, last, last);
}

/* ---- a replica's ---- */

/* What the kernel could not write it calls clean, and ext4 takes the block for written: it is not
 * on the medium either when it is written again through the same page of the cache. */
static void return_with_a_good_disk(void)
{
	repair_disk(2);
	host_start(&hosts, 2, NULL);
	hosts_wait_insync(&hosts, ALL);
	check_media(ALL, last, last);
	check_records(2);
}

static void a_remote_write_back_is_short(void)
{
	go_on(0, "map-wait");
	put_until_whole();
	break_block(2, hosts.hosts[2].data, NEXT);
	put_both("durable 3 flags 1");
	check_media(3, last, last);
	check_media(4, last, 0);
	check_lost();
	put_both("durable 3 flags 1");
	hosts_wait_insync(&hosts, 3);
	go_on(1, "map-wait");
	put_both("durable 3 flags 1");
	check_media(3, last, last);
}

static void a_remote_write_back_is_short_and_the_daemon_is_killed(void **state)
{
	a_remote_write_back_is_short();
	host_kill(&hosts, 2);
	return_with_a_good_disk();
}

static void a_remote_write_back_is_short_and_the_daemon_is_stopped(void **state)
{
	a_remote_write_back_is_short();
	host_stop(&hosts, 2);
	return_with_a_good_disk();
}

static void a_replicas_disk_fails(void **state)
{
	go_on(0, "map-wait");
	put_until_whole();
	break_disk(2);
	put_both("durable 3 flags 1");
	check_media(3, last, last);
	hosts_wait_insync(&hosts, 3);
	go_on(1, "map-wait");
	put_both("durable 3 flags 1");
	check_media(3, last, last);
}

/* What an exclusion and a promise rest on cannot be durable there. */
static void a_replicas_metadata_cannot_be_written(void **state)
{
	go_on(0, "map-wait");
	put_until_whole();
	for (unsigned block = 0; block < 8; block++)
		break_bytes(2, find_block(hosts.hosts[2].meta, block * BLOCK), BLOCK);
	fill_disk(2);
	go_on(1, "map-wait");
	put_both("durable 3 flags 1");
	check_media(3, last, last);
	hosts_wait_insync(&hosts, 3);
	host_kill(&hosts, 2);
	return_with_a_good_disk();
}

static int setup(void **state)
{
	const struct hosts_opts opts = {
		.count = HOSTS, .size = SIZE, .mount = mount_disk, .automatic = true};
	char here[128];

	last = 0;
	assert_non_null(getcwd(here, sizeof(here)));
	snprintf(disks, sizeof(disks), "%s/disks.XXXXXX", here);
	assert_non_null(mkdtemp(disks));
	assert_int_equal(
		run("mkdir %1$s/look %1$s/looked && mount -t tmpfs tmpfs %1$s/look", disks), 0);
	hosts_start(&hosts, &opts);
	return 0;
}

static int teardown(void **state)
{
	if (app.pid)
		proc_kill(&app);
	hosts_stop(&hosts);
	run("umount -l %1$s/looked 2>/dev/null; umount -l %1$s/look %1$s/[0-9]; rm -rf %1$s",
	    disks);
	return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_local_write_back_is_short_in_an_isolated_mapping),
		TEST(a_local_write_back_is_short_in_a_direct_mapping),
		TEST(a_primarys_disk_fails),
		TEST(a_remote_write_back_is_short_and_the_daemon_is_killed),
		TEST(a_remote_write_back_is_short_and_the_daemon_is_stopped),
		TEST(a_replicas_disk_fails),
		TEST(a_replicas_metadata_cannot_be_written),
	};

	need_own_mounts();
	if (run("losetup -f >/dev/null 2>&1")) {
		printf("skipped: no loop devices\n");
		return SKIPPED;
	}
	return cases_run(tests, CASES_OF_HOSTS);
}
