/* SPDX-License-Identifier: BSD-3-Clause */
/* reopen.h -- a descriptor of the file behind a mapping, to ask for its state later. */
#ifndef PERSIST_REOPEN_H
#define PERSIST_REOPEN_H

#include <sys/stat.h>
#include <sys/vfs.h>

#include "softrnic/persist/vma.h"

/*
 * O_PATH descriptors: they need no permission on the file, and unlike any other descriptor
 * their closing does not drop the POSIX locks that the application holds on it. The caller
 * owns them; -errno: there is no way to the file.
 */

/* By the path that the mapping has; *st and *fs describe the file. */
int reopen_by_path(const struct vma *vma, struct stat *st, struct statfs *fs);
/*
 * A regular file without a path (unlinked, made with O_TMPFILE, in another mount namespace):
 * through the mapping itself, which the kernel permits to the privileged, or through a
 * descriptor that the application has open.
 */
int reopen_without_path(const struct vma *vma);

/*
 * The file of an O_PATH descriptor of this process, for reading, from a thread with a descriptor
 * table of its own (reader.h); dev and ino are its mapping's. -errno: we may not read it, or the
 * descriptor leads elsewhere by now.
 */
int reopen_to_read(int path_fd, dev_t dev, ino_t ino);

#endif
