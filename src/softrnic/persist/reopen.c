/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/persist/reopen.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* btrfs shows a device of its own for each subvolume, and so does overlayfs in some set-ups. */
static bool is_same_file(const struct vma *vma, const struct stat *st, unsigned long magic)
{
	if (st->st_ino != vma->ino)
		return false;
	return st->st_dev == vma->dev || magic == BTRFS_SUPER_MAGIC ||
	       magic == OVERLAYFS_SUPER_MAGIC;
}

static int open_if_same(const char *path, int flags, const struct vma *vma, struct stat *st,
			struct statfs *fs)
{
	int fd = open(path, flags | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (fstat(fd, st) < 0 || fstatfs(fd, fs) < 0 ||
	    !is_same_file(vma, st, (unsigned long)fs->f_type)) {
		close(fd);
		return -ENOENT;
	}
	return fd;
}

int reopen_by_path(const struct vma *vma, struct stat *st, struct statfs *fs)
{
	return vma->path[0] == '/' ? open_if_same(vma->path, O_PATH, vma, st, fs) : -ENOENT;
}

static int open_regular(const char *path, const struct vma *vma)
{
	struct statfs fs;
	struct stat st;
	int fd = open_if_same(path, O_PATH, vma, &st, &fs);

	if (fd >= 0 && !S_ISREG(st.st_mode)) {
		close(fd);
		fd = -ENOENT;
	}
	return fd;
}

/* Asked before it is opened once more: a process may have a million descriptors. */
static int open_entry(const char *name, const struct vma *vma)
{
	char path[64], *end;
	unsigned long number = strtoul(name, &end, 10);
	struct stat st;

	if (end == name || *end || fstat((int)number, &st) < 0 || st.st_ino != vma->ino)
		return -ENOENT;
	snprintf(path, sizeof(path), "/proc/self/fd/%lu", number);
	return open_regular(path, vma);
}

static int open_through_descriptors(const struct vma *vma)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	int fd = -ENOENT;

	if (!dir)
		return -errno;
	while (fd < 0 && (entry = readdir(dir)))
		fd = open_entry(entry->d_name, vma);
	closedir(dir);
	return fd;
}

int reopen_without_path(const struct vma *vma)
{
	char path[96];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/map_files/%lx-%lx", (unsigned long)vma->start,
		 (unsigned long)vma->end);
	fd = open_regular(path, vma);
	return fd >= 0 ? fd : open_through_descriptors(vma);
}

/* /proc/self is the process whatever the thread. Non-blocking: a lease is not worth a wait. */
int reopen_to_read(int path_fd, dev_t dev, ino_t ino)
{
	struct vma mapped = {.dev = dev, .ino = ino};
	struct statfs fs;
	struct stat st;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", path_fd);
	return open_if_same(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, &mapped, &st, &fs);
}
