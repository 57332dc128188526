/* SPDX-License-Identifier: BSD-3-Clause */
/* reopen.h -- a descriptor of the file behind a mapping, to ask for its state later. */
#ifndef PERSIST_REOPEN_H
#define PERSIST_REOPEN_H

#include <sys/stat.h>
#include <sys/vfs.h>

#include "softrnic/persist/vma.h"

/*
 * An O_PATH descriptor: it needs no permission on the file, and unlike any other descriptor its
 * closing does not drop the POSIX locks that the application holds on the file. The caller owns
 * it; *st and *fs describe the file. -errno: there is no way to the file, or it is not sure which
 * file the mapping is of.
 *
 * The mapping itself leads to its file, but only the privileged may go that way. Others go by the
 * path that the mapping has, or, if the file has none any more, by a descriptor that the
 * application has open. There device and inode are compared. On btrfs they are not enough: each
 * subvolume counts its inodes from the same number, and mappings show one device for all. So a
 * descriptor must bear the path of the mapping as well, and one that does must not contradict the
 * path. What is left: a file that the application has closed, at a path that was hidden since by a
 * mount of another subvolume which has the same inode number there.
 */
int reopen_mapped(const struct vma *vma, struct stat *st, struct statfs *fs);

/*
 * The file of an O_PATH descriptor of this process, opened with O_RDONLY or O_RDWR by a thread with
 * a descriptor table of its own (apart.h). -errno: we may not; -ESTALE: the descriptor leads to
 * another file than the one with these numbers by now.
 */
int reopen_again(int path_fd, int access, dev_t st_dev, ino_t st_ino, struct stat *st);

#endif
