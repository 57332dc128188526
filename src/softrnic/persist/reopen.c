/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/persist/procfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int reopen_path(const char *path, struct stat *st, struct statfs *fs)
{
	int fd = open(path, O_PATH | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (fstat(fd, st) < 0 || fstatfs(fd, fs) < 0) {
		close(fd);
		return -ENOENT;
	}
	return fd;
}

/* Compare device and inode. The devices may differ: btrfs shows a separate device for each
 * subvolume, and overlayfs does the same in some set-ups. */
static bool reopen_may_be_same(const struct vma *vma, int fd, const struct stat *st,
			       const struct statfs *fs)
{
	dev_t superblock;

	if (st->st_ino != vma->ino)
		return false;
	if (st->st_dev == vma->dev || fs->f_type == OVERLAYFS_SUPER_MAGIC)
		return true;
	return fs->f_type == BTRFS_SUPER_MAGIC &&
	       (mounts_device_of(fd, &superblock) || superblock == vma->dev);
}

static int reopen_if_same(const char *path, const struct vma *vma, struct stat *st,
			  struct statfs *fs)
{
	int fd = reopen_path(path, st, fs);

	if (fd >= 0 && !reopen_may_be_same(vma, fd, st, fs)) {
		close(fd);
		fd = -ENOENT;
	}
	return fd;
}

/*
 * Does the descriptor's link show the path of the mapping? A file with one name has one path, even
 * after it is deleted, and its mapping has the same path.
 */
static bool reopen_has_path_of(const char *link, const struct vma *vma)
{
	char target[PATH_MAX];
	ssize_t n = readlink(link, target, sizeof(target));

	return n > 0 && (size_t)n == strlen(vma->path) && !memcmp(target, vma->path, (size_t)n);
}

/* Call fstat() before open(), because a process may have a million descriptors and open() is slow.
 * Skip O_PATH descriptors: an application cannot map a file by them, and the library's descriptors
 * are of this kind. */
static int reopen_entry(const char *name, const struct vma *vma, struct stat *st, struct statfs *fs)
{
	char path[64], *end;
	unsigned long number = strtoul(name, &end, 10);
	int fd;

	if (end == name || *end || fstat((int)number, st) < 0 || st->st_ino != vma->ino ||
	    !S_ISREG(st->st_mode) || fcntl((int)number, F_GETFL) & O_PATH)
		return -ENOENT;
	snprintf(path, sizeof(path), "/proc/self/fd/%lu", number);
	fd = reopen_if_same(path, vma, st, fs);
	if (fd >= 0 && fs->f_type == BTRFS_SUPER_MAGIC && !reopen_has_path_of(path, vma)) {
		close(fd);
		fd = -ENOENT;
	}
	return fd;
}

/* Descriptors of the application that may belong to the mapping's file. */
struct reopen_candidates {
	int fd; /* number of the first candidate; -1: none */
	struct stat st;
	struct statfs fs;
	bool differ;  /* the candidates lead to different files */
	bool has_dev; /* a candidate's file is on device st_dev */
};

static void reopen_add_candidate(struct reopen_candidates *c, const char *name,
				 const struct vma *vma, dev_t st_dev)
{
	struct statfs fs;
	struct stat st;
	int fd = reopen_entry(name, vma, &st, &fs);

	if (fd < 0)
		return;
	c->has_dev = c->has_dev || st.st_dev == st_dev;
	if (c->fd >= 0) {
		c->differ = c->differ || st.st_dev != c->st.st_dev;
		close(fd);
		return;
	}
	c->fd = fd;
	c->st = st;
	c->fs = fs;
}

static int reopen_scan(struct reopen_candidates *c, const struct vma *vma, dev_t st_dev)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;

	*c = (struct reopen_candidates){.fd = -1};
	if (!dir)
		return -errno;
	while ((entry = readdir(dir)))
		reopen_add_candidate(c, entry->d_name, vma, st_dev);
	closedir(dir);
	return 0;
}

static int reopen_by_descriptor(const struct vma *vma, struct stat *st, struct statfs *fs)
{
	struct reopen_candidates c;
	int ret = reopen_scan(&c, vma, 0);

	if (ret)
		return ret;
	if (c.differ) {
		close(c.fd);
		c.fd = -1;
	}
	*st = c.st;
	*fs = c.fs;
	return c.fd >= 0 ? c.fd : -ENOENT;
}

static bool reopen_is_contradicted(const struct vma *vma, const struct stat *st)
{
	struct reopen_candidates c;
	int ret = reopen_scan(&c, vma, st->st_dev);
	bool found = c.fd >= 0;

	if (found)
		close(c.fd);
	return ret || (found && !c.has_dev);
}

static int reopen_by_path(const struct vma *vma, struct stat *st, struct statfs *fs)
{
	int fd = vma->path[0] == '/' ? reopen_if_same(vma->path, vma, st, fs) : -ENOENT;

	if (fd >= 0 && fs->f_type == BTRFS_SUPER_MAGIC && reopen_is_contradicted(vma, st)) {
		close(fd);
		fd = -ENOENT;
	}
	return fd;
}

static bool reopen_is_shortage(int err)
{
	return err == -EMFILE || err == -ENFILE || err == -ENOMEM;
}

int reopen_mapped(const struct vma *vma, struct stat *st, struct statfs *fs)
{
	char path[96];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/map_files/%lx-%lx", (unsigned long)vma->start,
		 (unsigned long)vma->end);
	fd = reopen_path(path, st, fs);
	if (fd < 0 && !reopen_is_shortage(fd))
		fd = reopen_by_path(vma, st, fs);
	if (fd < 0 && !reopen_is_shortage(fd))
		fd = reopen_by_descriptor(vma, st, fs);
	return fd;
}

/* Every thread sees the process's descriptor table in /proc/self/fd. O_NONBLOCK makes open() return
 * immediately even if another process holds a lease on the file. */
int reopen_again(int path_fd, int access, dev_t st_dev, ino_t st_ino, struct stat *st)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", path_fd);
	fd = open(path, access | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, st) < 0 || st->st_dev != st_dev || st->st_ino != st_ino) {
		close(fd);
		return -ESTALE;
	}
	return fd;
}
