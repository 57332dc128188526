/* SPDX-License-Identifier: BSD-3-Clause */
/* procfs.h -- information from /proc/self: the mappings of this process (vma_), the mounted file
 * systems (mounts_), and the ways from a mapping to its file (reopen_). */
#ifndef PERSIST_PROCFS_H
#define PERSIST_PROCFS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/vfs.h>

struct vma {
	uintptr_t start, end;
	bool shared;
	bool writable; /* stores are permitted now */
	dev_t dev;     /* device of the superblock; on btrfs stat() shows another one */
	ino_t ino;
	uint64_t offset;
	const char
		*path; /* "" or a word in brackets when there is no file; may end in " (deleted)" */
};

/* *vma is valid during the call only. A result other than 0 ends the walk. */
typedef int vma_fn(void *arg, const struct vma *vma);

/* Call fn for every mapping that overlaps [start, end), in ascending order. Returns 0, the result
 * of fn, or -errno: the kernel does not list the mappings. */
int vma_for_each(uintptr_t start, uintptr_t end, vma_fn *fn, void *arg);
/* As vma_for_each(), from the text of /proc/self/maps, for kernels before 6.11. Reads all lower
 * mappings, too. */
int vma_for_each_text(uintptr_t start, uintptr_t end, vma_fn *fn, void *arg);

/* Was the file of a shared mapping opened for writing?
 * If not, msync() of the mapping does nothing. */
bool vma_syncs(const struct vma *vma);

/*
 * Was the mapping that begins at `start` made with MAP_SYNC? Slow: the kernel walks the
 * page tables of all mappings before it (about 8 ms a GiB).
 */
bool vma_is_sync(uintptr_t start);

/* Find the name of the file system on a superblock's device. Returns 0 or -errno; -ENOENT: not
 * mounted. */
int mounts_fs_name(dev_t dev, char name[32]);
/*
 * Find the superblock's device of the mount in which a descriptor was opened. Returns 0 or -errno.
 */
int mounts_device_of(int fd, dev_t *dev);
/* Was the descriptor opened in an overlay without syncs? Returns 0, 1 or -errno. */
int mounts_is_volatile(int fd);

/*
 * An O_PATH descriptor of the file behind a mapping: it needs no permission on the file, and unlike
 * any other descriptor its closing does not drop the POSIX locks that the application holds on the
 * file. The caller owns it; *st and *fs describe the file. -errno: no way leads to the file, or
 * several files may be the mapping's.
 *
 * Three ways are tried in this order:
 * - the link of the mapping in map_files, which only privileged processes may follow;
 * - the path of the mapping;
 * - a descriptor that the application has open, for a file without a path.
 *
 * The second and the third compare device and inode. On btrfs these are not enough: each subvolume
 * counts its inodes from the same number, and mappings show one device for all. There a descriptor
 * of the application must also bear the path of the mapping, and one that does must not contradict
 * what the path leads to. One error remains possible: a file that the application has closed, at a
 * path that another subvolume's mount has hidden since, with the same inode number there.
 */
int reopen_mapped(const struct vma *vma, struct stat *st, struct statfs *fs);

/*
 * Open the file of an O_PATH descriptor of this process with O_RDONLY or O_RDWR, in a thread with a
 * descriptor table of its own (base/thread.h). -errno: the file may not be opened; -ESTALE: the
 * descriptor now leads to a file with other numbers.
 */
int reopen_again(int path_fd, int access, dev_t st_dev, ino_t st_ino, struct stat *st);

#endif
