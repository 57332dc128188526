/* SPDX-License-Identifier: BSD-3-Clause */
/* procfs.h -- information from /proc/self: the mappings of this process (vma_), the mounted file
 * systems (mounts_), and descriptors of the files behind mappings (reopen_). */
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
	dev_t dev;     /* device of the superblock; on btrfs, stat() shows a different device */
	ino_t ino;
	uint64_t offset;
	const char
		*path; /* "" or a word in brackets if there is no file; may end in " (deleted)" */
};

/*
 * Called for one mapping. *vma is valid during the call only. A result other than 0 ends the walk.
 */
typedef int vma_fn(void *arg, const struct vma *vma);

/* Call fn for every mapping that overlaps [start, end), in ascending order. Returns 0, the result
 * of fn, or -errno: the kernel does not list the mappings. */
int vma_for_each(uintptr_t start, uintptr_t end, vma_fn *fn, void *arg);
/* Does the same as vma_for_each(), but reads the text of /proc/self/maps, for kernels before 6.11.
 * It also has to read all mappings at lower addresses. */
int vma_for_each_text(uintptr_t start, uintptr_t end, vma_fn *fn, void *arg);

/* Was the file of a shared mapping opened for writing?
 * If not, msync() of the mapping does nothing. */
bool vma_syncs(const struct vma *vma);

/*
 * Was the mapping that begins at `start` made with MAP_SYNC? Slow: the kernel walks the page tables
 * of all mappings before it (about 8 ms for each GiB).
 */
bool vma_is_sync(uintptr_t start);

/* Find the name of the file system on a superblock's device. Returns 0 or -errno; -ENOENT: not
 * mounted. */
int mounts_fs_name(dev_t dev, char name[32]);
/*
 * Find the superblock's device of the mount in which a descriptor was opened. Returns 0 or -errno.
 */
int mounts_device_of(int fd, dev_t *dev);
/* Was the descriptor opened in an overlay whose option "volatile" omits all syncs? Returns 0, 1 or
 * -errno. */
int mounts_is_volatile(int fd);

/*
 * Returns an O_PATH descriptor of the file behind a mapping. Such a descriptor needs no permission
 * on the file, and closing it does not drop the POSIX locks that the application holds on the file.
 * The caller owns the descriptor; *st and *fs describe the file. Returns -errno if none of the
 * following ways leads to the file, or if it is unclear which of several files is behind the
 * mapping.
 *
 * Three ways are tried in this order:
 * - the link of the mapping in map_files, which only privileged processes may follow;
 * - the path of the mapping;
 * - a descriptor that the application has open, for a file without a path.
 *
 * The second and the third way compare device and inode. On btrfs these numbers are not enough:
 * each subvolume counts its inodes from the same number, and mappings show the same device for all
 * subvolumes. So on btrfs a descriptor of the application is used only if its path equals the path
 * of the mapping. The file at that path is used only if no such descriptor exists, or one of them
 * has its file on the same device. One error remains possible: the application has closed the file,
 * another subvolume was mounted over its path afterwards, and the file that now has this path has
 * the same inode number.
 */
int reopen_mapped(const struct vma *vma, struct stat *st, struct statfs *fs);

/*
 * Open the file of an O_PATH descriptor of this process again, with O_RDONLY or O_RDWR, in a thread
 * with its own descriptor table (base/thread.h). Returns -ESTALE if the descriptor now leads to a
 * file with other numbers, or another -errno if the file cannot be opened.
 */
int reopen_again(int path_fd, int access, dev_t st_dev, ino_t st_ino, struct stat *st);

#endif
