/* SPDX-License-Identifier: BSD-3-Clause */
#include "system/lib/bad_disk.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "system/lib/check.h"
#include "system/lib/mounts.h"

void bad_disk_need(void)
{
	need_own_mounts();
	if (!run_shell("losetup -f >/dev/null 2>&1"))
		return;
	printf("skipped: no loop devices\n");
	exit(SKIPPED);
}

/* Set extent_max_zeroout_kb to 0. Otherwise the kernel frees blocks of zeros around the written
 * block in the image, which makes space there. */
void bad_disk_mount(struct bad_disk *disk, const char *folder, const char *top)
{
	snprintf(disk->folder, sizeof(disk->folder), "%s", folder);
	snprintf(disk->top, sizeof(disk->top), "%s", top);
	if (run_shell(
		    "mkdir %1$s %1$s/room %1$s/copy %1$s/looked && mount -t tmpfs tmpfs %1$s/copy && "
		    "mount -t tmpfs -o size=%2$u tmpfs %1$s/room && truncate -s %3$u %1$s/room/image && "
		    "/sbin/mkfs.ext4 -q -b %4$u -m 0 -E nodiscard,lazy_itable_init=0 %1$s/room/image && "
		    "fallocate -l %3$u %1$s/room/image && mount -t ext4 -o loop %1$s/room/image %5$s && "
		    "echo 0 >/sys/fs/ext4/$(basename $(findmnt -no SOURCE %5$s))/extent_max_zeroout_kb",
		    folder, BAD_DISK_BYTES + (1u << 20), BAD_DISK_BYTES, BAD_DISK_BLOCK, top))
		fail_msg("no disk at %s", top);
}

bool bad_disk_mount_sums(struct bad_disk *disk, const char *folder, const char *top)
{
	if (run_shell("modprobe -q btrfs; grep -qw btrfs /proc/filesystems"))
		return false;
	snprintf(disk->folder, sizeof(disk->folder), "%s", folder);
	snprintf(disk->top, sizeof(disk->top), "%s", top);
	if (run_shell(
		    "mkdir %1$s %1$s/room %1$s/copy && mount -t tmpfs tmpfs %1$s/copy && "
		    "mount -t tmpfs tmpfs %1$s/room && truncate -s %2$u %1$s/room/image && "
		    "mkfs.btrfs -q --mixed -m single -d single %1$s/room/image >/dev/null 2>&1 && "
		    "mount -t btrfs -o loop %1$s/room/image %3$s",
		    folder, BAD_DISK_SUMS, top))
		fail_msg("no disk at %s", top);
	return true;
}

void bad_disk_unmount(struct bad_disk *disk)
{
	if (!disk->folder[0])
		return;
	run_shell("umount -l %1$s/looked 2>/dev/null; umount -l %2$s %1$s/room %1$s/copy; "
		  "rm -rf %1$s",
		  disk->folder, disk->top);
	disk->folder[0] = '\0';
}

/* Find the offset in the image of this block of a file. */
static off_t bad_disk_find(const char *path, uint64_t offset)
{
	_Alignas(struct fiemap) char room[sizeof(struct fiemap) + sizeof(struct fiemap_extent)];
	struct fiemap *found = memset(room, 0, sizeof(room));
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	found->fm_start = offset;
	found->fm_length = BAD_DISK_BLOCK;
	found->fm_extent_count = 1;
	assert_true(fd >= 0);
	assert_int_equal(ioctl(fd, FS_IOC_FIEMAP, found), 0);
	close(fd);
	assert_int_equal(found->fm_mapped_extents, 1);
	return (off_t)(found->fm_extents[0].fe_physical + offset - found->fm_extents[0].fe_logical);
}

static void bad_disk_take_away(const struct bad_disk *disk, off_t at, off_t len)
{
	char image[300];
	int fd;

	snprintf(image, sizeof(image), "%s/room/image", disk->folder);
	fd = open(image, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, len), 0);
	close(fd);
}

static void bad_disk_fill(const struct bad_disk *disk)
{
	assert_int_equal(run_shell("dd if=/dev/zero of=%s/room/ballast bs=%u status=none "
				   "2>/dev/null; test $? = 1",
				   disk->folder, BAD_DISK_BLOCK),
			 0);
}

void bad_disk_break_blocks(const struct bad_disk *disk, const char *path, uint64_t offset,
			   unsigned blocks)
{
	for (unsigned i = 0; i < blocks; i++)
		bad_disk_take_away(disk, bad_disk_find(path, offset + i * BAD_DISK_BLOCK),
				   BAD_DISK_BLOCK);
	bad_disk_fill(disk);
}

void bad_disk_break_block(const struct bad_disk *disk, const char *path, uint64_t offset)
{
	bad_disk_break_blocks(disk, path, offset, 1);
}

void bad_disk_break(const struct bad_disk *disk)
{
	bad_disk_take_away(disk, 0, BAD_DISK_BYTES);
	bad_disk_fill(disk);
}

void bad_disk_repair(const struct bad_disk *disk)
{
	char path[300];

	snprintf(path, sizeof(path), "%s/room/ballast", disk->folder);
	assert_int_equal(unlink(path), 0);
}

/* Drop the block from the page cache, so that the next read gets the bytes of the image. */
static void bad_disk_forget(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(fsync(fd), 0);
	assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
	close(fd);
}

void bad_disk_spoil(const struct bad_disk *disk, const char *path, const void *bytes, size_t len)
{
	char image[300], block[BAD_DISK_BLOCK];
	unsigned found = 0;
	off_t at = 0;
	ssize_t n;
	int fd;

	bad_disk_forget(path);
	snprintf(image, sizeof(image), "%s/room/image", disk->folder);
	fd = open(image, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	for (; pread(fd, block, sizeof(block), at) == sizeof(block); at += BAD_DISK_BLOCK) {
		if (memcmp(block, bytes, len) != 0)
			continue;
		found++;
		assert_int_equal(pwrite(fd, "spoiled", 7, at + BAD_DISK_BLOCK - 7), 7);
	}
	assert_int_equal(found, 1);
	close(fd);
	at = 0;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	while ((n = pread(fd, block, sizeof(block), at)) == sizeof(block))
		at += n;
	assert_int_equal(n, -1);
	assert_int_equal(errno, EIO);
	close(fd);
}

const char *bad_disk_look(const struct bad_disk *disk)
{
	static char looked[300];

	assert_int_equal(run_shell("cp %1$s/room/image %1$s/copy/image && "
				   "mount -t ext4 -o loop %1$s/copy/image %1$s/looked",
				   disk->folder),
			 0);
	snprintf(looked, sizeof(looked), "%s/looked", disk->folder);
	return looked;
}

void bad_disk_look_away(const struct bad_disk *disk)
{
	char path[300];

	snprintf(path, sizeof(path), "%s/looked", disk->folder);
	assert_int_equal(umount2(path, 0), 0);
}

void bad_disk_read(const struct bad_disk *disk, const char *name, uint64_t offset, void *bytes,
		   size_t len)
{
	char path[600];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", bad_disk_look(disk), name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(pread(fd, bytes, len, (off_t)offset), len);
	close(fd);
	bad_disk_look_away(disk);
}
