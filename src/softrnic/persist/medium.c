/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/persist/file.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

/*
 * What a read with O_DIRECT returns. FS_VOLATILE: the file is in memory only. FS_DIRECT: the device
 * answers, even on kernels that do not report this. FS_LOCAL: O_DIRECT is accepted, but the local
 * cache may answer. FS_REMOTE: O_DIRECT is accepted, but a local cache or the server's cache may
 * answer.
 */
enum medium_fs_kind { FS_VOLATILE, FS_LOCAL, FS_DIRECT, FS_REMOTE };

static const struct {
	unsigned long magic;
	const char *name;
	enum medium_fs_kind kind;
} medium_fs_types[] = {
	{TMPFS_MAGIC, "tmpfs", FS_VOLATILE},         {RAMFS_MAGIC, "ramfs", FS_VOLATILE},
	{HUGETLBFS_MAGIC, "hugetlbfs", FS_VOLATILE}, {SYSFS_MAGIC, "sysfs", FS_VOLATILE},
	{PROC_SUPER_MAGIC, "proc", FS_VOLATILE},     {DEBUGFS_MAGIC, "debugfs", FS_VOLATILE},
	{TRACEFS_MAGIC, "tracefs", FS_VOLATILE},     {SECRETMEM_MAGIC, "secretmem", FS_VOLATILE},
	{EXT4_SUPER_MAGIC, "ext4", FS_DIRECT},       {XFS_SUPER_MAGIC, "xfs", FS_DIRECT},
	{BTRFS_SUPER_MAGIC, "btrfs", FS_LOCAL},      {F2FS_SUPER_MAGIC, "f2fs", FS_LOCAL},
	{NFS_SUPER_MAGIC, "nfs", FS_REMOTE},         {OVERLAYFS_SUPER_MAGIC, "overlay", FS_LOCAL},
	{FUSE_SUPER_MAGIC, "fuse", FS_REMOTE},       {V9FS_MAGIC, "9p", FS_REMOTE},
	{SMB2_SUPER_MAGIC, "cifs", FS_REMOTE},
};
#define N_FS_TYPES (sizeof(medium_fs_types) / sizeof(medium_fs_types[0]))

/* Do the device number of the superblock and the inode number together identify one file? Returns
 * false if this is unknown. */
static bool medium_numbers_are_unique(const char *fs)
{
	static const char *const names[] = {"ext2", "ext3", "ext4", "xfs", "f2fs", "nfs", "nfs4"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(fs, names[i]))
			return true;
	return false;
}

static void medium_set_volatile(struct medium *m, const char *what)
{
	m->cls = VEXT_DURABILITY_VOLATILE;
	snprintf(m->fs, sizeof(m->fs), "%s", what);
}

static void medium_by_magic(unsigned long magic, struct medium *m)
{
	for (size_t i = 0; i < N_FS_TYPES; i++) {
		if (medium_fs_types[i].magic != magic)
			continue;
		m->cls = medium_fs_types[i].kind == FS_VOLATILE ? VEXT_DURABILITY_VOLATILE
								: VEXT_DURABILITY_FILE;
		m->remote = medium_fs_types[i].kind == FS_REMOTE;
		m->direct = medium_fs_types[i].kind == FS_DIRECT;
		snprintf(m->fs, sizeof(m->fs), "%s", medium_fs_types[i].name);
		return;
	}
	m->cls = VEXT_DURABILITY_FILE;
	snprintf(m->fs, sizeof(m->fs), "file system 0x%lx", magic);
}

static void medium_by_name(const char *name, struct medium *m)
{
	m->cls = strcmp(name, "devtmpfs") && strcmp(name, "rootfs") ? VEXT_DURABILITY_FILE
								    : VEXT_DURABILITY_VOLATILE;
	for (size_t i = 0; i < N_FS_TYPES; i++) {
		const char *known = medium_fs_types[i].name;

		if (medium_fs_types[i].kind == FS_VOLATILE && !strcmp(name, known))
			m->cls = VEXT_DURABILITY_VOLATILE;
		if (medium_fs_types[i].kind == FS_DIRECT && !strcmp(name, known))
			m->direct = true;
		/* compare only the beginning, so that "nfs4" and "fuse.sshfs" match, too */
		if (medium_fs_types[i].kind == FS_REMOTE && !strncmp(name, known, strlen(known)))
			m->remote = true;
	}
	snprintf(m->fs, sizeof(m->fs), "%s", name);
}

static bool medium_sysfs_is_one(const char *path)
{
	FILE *f = fopen(path, "re");
	bool one = f && fgetc(f) == '1';

	if (f)
		fclose(f);
	return one;
}

/* A partition has no queue directory in sysfs; its parent directory is the disk, which has one. */
static bool medium_block_has_dax(dev_t dev)
{
	char path[96];

	if (major(dev) == 0)
		return false;
	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/queue/dax", major(dev), minor(dev));
	if (medium_sysfs_is_one(path))
		return true;
	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/../queue/dax", major(dev), minor(dev));
	return medium_sysfs_is_one(path);
}

static bool medium_is_device_dax(dev_t dev)
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

/* Is the error temporary, that is, a shortage of descriptors or memory? */
static bool medium_is_shortage(int err)
{
	return err == -EMFILE || err == -ENFILE || err == -ENOMEM;
}

static int medium_of_regular(const struct vma *vma, int fd, unsigned long magic, struct medium *m)
{
	int ret = 0;

	medium_by_magic(magic, m);
	m->has_end = true;
	m->unique = medium_numbers_are_unique(m->fs);
	if (magic == OVERLAYFS_SUPER_MAGIC) {
		ret = mounts_is_volatile(fd);
		m->copies_up = true;
		/* After a crash, an overlay with the option "volatile" cannot even be mounted
		 * again, so its files are volatile. */
		if (ret > 0)
			medium_set_volatile(m, "overlay, mounted volatile");
		ret = medium_is_shortage(ret) ? ret : 0;
	}
	m->may_dax = m->cls == VEXT_DURABILITY_FILE && medium_block_has_dax(vma->dev);
	return ret;
}

static void medium_of_device(const struct stat *st, struct medium *m)
{
	if (S_ISBLK(st->st_mode)) {
		m->cls = VEXT_DURABILITY_FILE;
		m->unique = true;
		m->direct = true;
		snprintf(m->fs, sizeof(m->fs), "block device");
	} else if (S_ISCHR(st->st_mode) && medium_is_device_dax(st->st_rdev)) {
		m->cls = VEXT_DURABILITY_DAX;
		snprintf(m->fs, sizeof(m->fs), "device DAX");
	} else {
		medium_set_volatile(m, "character device");
	}
}

static int medium_by_file(const struct vma *vma, struct medium *m)
{
	struct statfs fs;
	struct stat st;
	int fd = reopen_mapped(vma, &st, &fs), ret = 0;

	if (fd < 0)
		return fd;
	m->st_dev = st.st_dev;
	m->st_ino = st.st_ino;
	if (S_ISREG(st.st_mode))
		ret = medium_of_regular(vma, fd, (unsigned long)fs.f_type, m);
	else
		medium_of_device(&st, m);
	if (!ret && m->cls == VEXT_DURABILITY_FILE)
		m->fd = fd;
	else
		close(fd);
	return ret;
}

/* The medium of a mapping whose file cannot be opened: only its device is known. */
static int medium_by_device(const struct vma *vma, struct medium *m)
{
	char name[32];
	int ret = mounts_fs_name(vma->dev, name);

	if (medium_is_shortage(ret))
		return ret;
	m->has_end = true;
	if (!ret) {
		medium_by_name(name, m);
		m->unique = medium_numbers_are_unique(m->fs);
	} else if (major(vma->dev)) {
		m->cls = VEXT_DURABILITY_FILE;
		snprintf(m->fs, sizeof(m->fs), "block device %u:%u", major(vma->dev),
			 minor(vma->dev));
	} else {
		/* The kernel has no mounted file system for memfd, SysV, /dev/zero and shared
		 * anonymous memory. */
		medium_set_volatile(m, "no mounted file system");
	}
	m->may_dax = m->cls == VEXT_DURABILITY_FILE && medium_block_has_dax(vma->dev);
	return 0;
}

int medium_find(const struct vma *vma, struct medium *m)
{
	int ret;

	*m = (struct medium){.cls = VEXT_DURABILITY_VOLATILE, .fd = -1};
	ret = medium_by_file(vma, m);
	return !ret || medium_is_shortage(ret) ? ret : medium_by_device(vma, m);
}
