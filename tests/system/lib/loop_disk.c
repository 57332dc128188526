/* SPDX-License-Identifier: BSD-3-Clause */
#include "system/lib/loop_disk.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "system/lib/check.h"

#define SECTOR 512u

static void loop_disk_find_counters(struct loop_disk *disk)
{
	char command[400], name[32] = "";
	FILE *out;

	snprintf(command, sizeof(command), "basename $(findmnt -no SOURCE %s)", disk->top);
	out = popen(command, "re");
	assert_non_null(out);
	if (!fgets(name, sizeof(name), out))
		fail_msg("no device at %s", disk->top);
	pclose(out);
	name[strcspn(name, "\n")] = '\0';
	snprintf(disk->counters, sizeof(disk->counters), "/sys/block/%s/stat", name);
}

void loop_disk_mount(struct loop_disk *disk, const char *folder, const char *top, unsigned size)
{
	snprintf(disk->folder, sizeof(disk->folder), "%s", folder);
	snprintf(disk->top, sizeof(disk->top), "%s", top);
	if (run_shell(
		    "mkdir -p %1$s/room && mount -t tmpfs tmpfs %1$s/room && "
		    "truncate -s %2$uM %1$s/room/image && "
		    "/sbin/mkfs.ext4 -q -b %3$u -E lazy_itable_init=0,lazy_journal_init=0 %1$s/room/image && "
		    "mount -t ext4 -o loop %1$s/room/image %4$s",
		    folder, size, LOOP_DISK_BLOCK, top))
		fail_msg("no disk at %s", top);
	loop_disk_find_counters(disk);
}

void loop_disk_unmount(struct loop_disk *disk)
{
	if (!disk->folder[0])
		return;
	run_shell("umount -l %2$s 2>/dev/null; umount -l %1$s/room; rm -rf %1$s", disk->folder,
		  disk->top);
	disk->folder[0] = '\0';
}

void loop_disk_rewrite(const char *path, uint64_t size)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	char *bytes = malloc(size);

	assert_true(fd >= 0 && bytes);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	assert_int_equal(pread(fd, bytes, size, 0), size);
	assert_int_equal(fsync(fd), 0);
	assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
	for (uint64_t at = 0; at < size; at += MIB)
		assert_int_equal(pwrite(fd, bytes + at, MIB, (off_t)at), MIB);
	assert_int_equal(fsync(fd), 0);
	free(bytes);
	close(fd);
}

/* The seventh number of the line is the count of written sectors. */
static uint64_t loop_disk_written(const struct loop_disk *disk)
{
	unsigned long long sectors = 0;
	FILE *counters = fopen(disk->counters, "re");

	assert_non_null(counters);
	assert_int_equal(fscanf(counters, "%*u %*u %*u %*u %*u %*u %llu", &sectors), 1);
	fclose(counters);
	return sectors * SECTOR;
}

uint64_t loop_disk_settle(const struct loop_disk *disk)
{
	int fd = open(disk->top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(syncfs(fd), 0);
	close(fd);
	return loop_disk_written(disk);
}

uint64_t loop_disk_report(const struct loop_disk *disk, const char *what, uint64_t before,
			  unsigned blocks)
{
	uint64_t each = (loop_disk_written(disk) - before) / blocks;

	print_message("%s: %.1f KiB reach the disk for a flushed block of 4 KiB\n", what,
		      (double)each / 1024);
	return each;
}
