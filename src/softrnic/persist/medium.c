/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/persist/medium.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "softrnic/persist/mounts.h"
#include "softrnic/persist/reopen.h"

/* FS_DIRECT: what is read with O_DIRECT there comes from the device, also on kernels that do not
 * tell. Others take the flag and may answer from a cache all the same. */
enum fs_kind { FS_VOLATILE, FS_LOCAL, FS_DIRECT, FS_SERVED };

static const struct {
	unsigned long magic;
	const char *name;
	enum fs_kind kind;
} fs_types[] = {
	{TMPFS_MAGIC, "tmpfs", FS_VOLATILE},         {RAMFS_MAGIC, "ramfs", FS_VOLATILE},
	{HUGETLBFS_MAGIC, "hugetlbfs", FS_VOLATILE}, {SYSFS_MAGIC, "sysfs", FS_VOLATILE},
	{PROC_SUPER_MAGIC, "proc", FS_VOLATILE},     {DEBUGFS_MAGIC, "debugfs", FS_VOLATILE},
	{TRACEFS_MAGIC, "tracefs", FS_VOLATILE},     {SECRETMEM_MAGIC, "secretmem", FS_VOLATILE},
	{EXT4_SUPER_MAGIC, "ext4", FS_DIRECT},       {XFS_SUPER_MAGIC, "xfs", FS_DIRECT},
	{BTRFS_SUPER_MAGIC, "btrfs", FS_LOCAL},      {F2FS_SUPER_MAGIC, "f2fs", FS_LOCAL},
	{NFS_SUPER_MAGIC, "nfs", FS_SERVED},         {OVERLAYFS_SUPER_MAGIC, "overlay", FS_LOCAL},
	{FUSE_SUPER_MAGIC, "fuse", FS_SERVED},       {V9FS_MAGIC, "9p", FS_SERVED},
	{SMB2_SUPER_MAGIC, "cifs", FS_SERVED},
};
#define N_FS_TYPES (sizeof(fs_types) / sizeof(fs_types[0]))

/* Does a superblock's device and an inode number name one file there? Where nobody knows, not. */
static bool numbers_are_unique(const char *fs)
{
	static const char *const names[] = {"ext2", "ext3", "ext4", "xfs", "f2fs", "nfs", "nfs4"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(fs, names[i]))
			return true;
	return false;
}

static void be_volatile(struct medium *m, const char *what)
{
	m->cls = VEXT_DURABILITY_VOLATILE;
	snprintf(m->fs, sizeof(m->fs), "%s", what);
}

static void judge_by_magic(unsigned long magic, struct medium *m)
{
	for (size_t i = 0; i < N_FS_TYPES; i++) {
		if (fs_types[i].magic != magic)
			continue;
		m->cls = fs_types[i].kind == FS_VOLATILE ? VEXT_DURABILITY_VOLATILE
							 : VEXT_DURABILITY_FILE;
		m->served = fs_types[i].kind == FS_SERVED;
		m->direct = fs_types[i].kind == FS_DIRECT;
		snprintf(m->fs, sizeof(m->fs), "%s", fs_types[i].name);
		return;
	}
	m->cls = VEXT_DURABILITY_FILE;
	snprintf(m->fs, sizeof(m->fs), "file system 0x%lx", magic);
}

static void judge_by_name(const char *name, struct medium *m)
{
	m->cls = strcmp(name, "devtmpfs") && strcmp(name, "rootfs") ? VEXT_DURABILITY_FILE
								    : VEXT_DURABILITY_VOLATILE;
	for (size_t i = 0; i < N_FS_TYPES; i++) {
		const char *known = fs_types[i].name;

		if (fs_types[i].kind == FS_VOLATILE && !strcmp(name, known))
			m->cls = VEXT_DURABILITY_VOLATILE;
		if (fs_types[i].kind == FS_DIRECT && !strcmp(name, known))
			m->direct = true;
		/* "nfs4" and "fuse.sshfs" too */
		if (fs_types[i].kind == FS_SERVED && !strncmp(name, known, strlen(known)))
			m->served = true;
	}
	snprintf(m->fs, sizeof(m->fs), "%s", name);
}

static bool sysfs_says_one(const char *path)
{
	FILE *f = fopen(path, "re");
	bool one = f && fgetc(f) == '1';

	if (f)
		fclose(f);
	return one;
}

/* A partition has no queue of its own; its parent directory is the disk. */
static bool block_device_has_dax(dev_t dev)
{
	char path[96];

	if (major(dev) == 0)
		return false;
	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/queue/dax", major(dev), minor(dev));
	if (sysfs_says_one(path))
		return true;
	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/../queue/dax", major(dev), minor(dev));
	return sysfs_says_one(path);
}

static bool is_device_dax(dev_t dev)
{
	char path[96], target[256];
	ssize_t n;

	snprintf(path, sizeof(path), "/sys/dev/char/%u:%u/subsystem", major(dev), minor(dev));
	n = readlink(path, target, sizeof(target) - 1);
	if (n < 0)
		return false;
	target[n] = '\0';
	return n >= 4 && !strcmp(target + n - 4, "/dax");
}

/* Is it only now that we cannot know? */
static bool is_shortage(int err)
{
	return err == -EMFILE || err == -ENFILE || err == -ENOMEM;
}

/* A file of an overlay. One that is mounted volatile cannot even be mounted again after a crash. */
static int judge_overlay(int fd, struct medium *m)
{
	int ret = mounts_is_volatile(fd);

	m->copies_up = true;
	if (ret > 0)
		be_volatile(m, "overlay, mounted volatile");
	return is_shortage(ret) ? ret : 0;
}

static int judge_regular(const struct vma *vma, int fd, unsigned long magic, struct medium *m)
{
	int ret = 0;

	judge_by_magic(magic, m);
	m->sized = true;
	m->unique = numbers_are_unique(m->fs);
	if (magic == OVERLAYFS_SUPER_MAGIC)
		ret = judge_overlay(fd, m);
	m->may_dax = m->cls == VEXT_DURABILITY_FILE && block_device_has_dax(vma->dev);
	return ret;
}

static void judge_device(const struct stat *st, struct medium *m)
{
	if (S_ISBLK(st->st_mode)) {
		m->cls = VEXT_DURABILITY_FILE;
		m->unique = true;
		m->direct = true;
		snprintf(m->fs, sizeof(m->fs), "block device");
	} else if (S_ISCHR(st->st_mode) && is_device_dax(st->st_rdev)) {
		m->cls = VEXT_DURABILITY_DAX;
		snprintf(m->fs, sizeof(m->fs), "device DAX");
	} else {
		be_volatile(m, "character device");
	}
}

static int judge_by_file(const struct vma *vma, struct medium *m)
{
	struct statfs fs;
	struct stat st;
	int fd = reopen_mapped(vma, &st, &fs), ret = 0;

	if (fd < 0)
		return fd;
	m->st_dev = st.st_dev;
	m->st_ino = st.st_ino;
	if (S_ISREG(st.st_mode))
		ret = judge_regular(vma, fd, (unsigned long)fs.f_type, m);
	else
		judge_device(&st, m);
	if (!ret && m->cls == VEXT_DURABILITY_FILE)
		m->fd = fd;
	else
		close(fd);
	return ret;
}

/* No way leads to the file: only its device is known. */
static int judge_by_device(const struct vma *vma, struct medium *m)
{
	char name[32];
	int ret = mounts_fs_name(vma->dev, name);

	if (is_shortage(ret))
		return ret;
	m->sized = true;
	if (!ret) {
		judge_by_name(name, m);
		m->unique = numbers_are_unique(m->fs);
	} else if (major(vma->dev)) {
		m->cls = VEXT_DURABILITY_FILE;
		snprintf(m->fs, sizeof(m->fs), "block device %u:%u", major(vma->dev),
			 minor(vma->dev));
	} else {
		/* memfd, SysV, /dev/zero, shared anonymous memory: the kernel's own, unmounted */
		be_volatile(m, "no mounted file system");
	}
	m->may_dax = m->cls == VEXT_DURABILITY_FILE && block_device_has_dax(vma->dev);
	return 0;
}

int medium_find(const struct vma *vma, struct medium *m)
{
	int ret;

	*m = (struct medium){.cls = VEXT_DURABILITY_VOLATILE, .fd = -1};
	ret = judge_by_file(vma, m);
	return !ret || is_shortage(ret) ? ret : judge_by_device(vma, m);
}
