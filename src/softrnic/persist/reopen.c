/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/persist/reopen.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "softrnic/persist/mounts.h"

static int open_path(const char *path, struct stat *st, struct statfs *fs)
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

/* btrfs shows a device of its own for each subvolume, and so does overlayfs in some set-ups. */
static bool may_be_same(const struct vma *vma, int fd, const struct stat *st,
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

static int open_if_same(const char *path, const struct vma *vma, struct stat *st, struct statfs *fs)
{
	int fd = open_path(path, st, fs);

	if (fd >= 0 && !may_be_same(vma, fd, st, fs)) {
		close(fd);
		fd = -ENOENT;
	}
	return fd;
}

/* A file that has one name has one path, also when it is deleted; and so has its mapping. */
static bool has_path_of(const char *link, const struct vma *vma)
{
	char target[PATH_MAX];
	ssize_t n = readlink(link, target, sizeof(target));

	return n > 0 && (size_t)n == strlen(vma->path) && !memcmp(target, vma->path, (size_t)n);
}

/*
 * A descriptor of the application is asked before it is opened once more: a process may have a
 * million. Those with O_PATH are ours; files cannot be mapped with them.
 */
static int open_entry(const char *name, const struct vma *vma, struct stat *st, struct statfs *fs)
{
	char path[64], *end;
	unsigned long number = strtoul(name, &end, 10);
	int fd;

	if (end == name || *end || fstat((int)number, st) < 0 || st->st_ino != vma->ino ||
	    !S_ISREG(st->st_mode) || fcntl((int)number, F_GETFL) & O_PATH)
		return -ENOENT;
	snprintf(path, sizeof(path), "/proc/self/fd/%lu", number);
	fd = open_if_same(path, vma, st, fs);
	if (fd >= 0 && fs->f_type == BTRFS_SUPER_MAGIC && !has_path_of(path, vma)) {
		close(fd);
		fd = -ENOENT;
	}
	return fd;
}

/* What the application's descriptors say. */
struct witnesses {
	int fd; /* of the first; -1: none */
	struct stat st;
	struct statfs fs;
	bool differ; /* they are of several files */
	bool agrees; /* one of them is of the file st_dev */
};

static void hear_entry(struct witnesses *w, const char *name, const struct vma *vma, dev_t st_dev)
{
	struct statfs fs;
	struct stat st;
	int fd = open_entry(name, vma, &st, &fs);

	if (fd < 0)
		return;
	w->agrees = w->agrees || st.st_dev == st_dev;
	if (w->fd >= 0) {
		w->differ = w->differ || st.st_dev != w->st.st_dev;
		close(fd);
		return;
	}
	w->fd = fd;
	w->st = st;
	w->fs = fs;
}

static int hear_descriptors(struct witnesses *w, const struct vma *vma, dev_t st_dev)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;

	*w = (struct witnesses){.fd = -1};
	if (!dir)
		return -errno;
	while ((entry = readdir(dir)))
		hear_entry(w, entry->d_name, vma, st_dev);
	closedir(dir);
	return 0;
}

static int reopen_by_descriptor(const struct vma *vma, struct stat *st, struct statfs *fs)
{
	struct witnesses w;
	int ret = hear_descriptors(&w, vma, 0);

	if (ret)
		return ret;
	if (w.differ) {
		close(w.fd);
		w.fd = -1;
	}
	*st = w.st;
	*fs = w.fs;
	return w.fd >= 0 ? w.fd : -ENOENT;
}

static bool is_contradicted(const struct vma *vma, const struct stat *st)
{
	struct witnesses w;
	int ret = hear_descriptors(&w, vma, st->st_dev);
	bool heard = w.fd >= 0;

	if (heard)
		close(w.fd);
	return ret || (heard && !w.agrees);
}

static int reopen_by_path(const struct vma *vma, struct stat *st, struct statfs *fs)
{
	int fd = vma->path[0] == '/' ? open_if_same(vma->path, vma, st, fs) : -ENOENT;

	if (fd >= 0 && fs->f_type == BTRFS_SUPER_MAGIC && is_contradicted(vma, st)) {
		close(fd);
		fd = -ENOENT;
	}
	return fd;
}

static int reopen_by_mapping(const struct vma *vma, struct stat *st, struct statfs *fs)
{
	char path[96];

	snprintf(path, sizeof(path), "/proc/self/map_files/%lx-%lx", (unsigned long)vma->start,
		 (unsigned long)vma->end);
	return open_path(path, st, fs);
}

static bool is_shortage(int err)
{
	return err == -EMFILE || err == -ENFILE || err == -ENOMEM;
}

int reopen_mapped(const struct vma *vma, struct stat *st, struct statfs *fs)
{
	int fd = reopen_by_mapping(vma, st, fs);

	if (fd < 0 && !is_shortage(fd))
		fd = reopen_by_path(vma, st, fs);
	if (fd < 0 && !is_shortage(fd))
		fd = reopen_by_descriptor(vma, st, fs);
	return fd;
}

/* /proc/self is the process whatever the thread. Non-blocking: a lease is not worth a wait. */
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
