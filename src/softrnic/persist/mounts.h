/* SPDX-License-Identifier: BSD-3-Clause */
/* mounts.h -- what is mounted, as /proc/self/mountinfo lists it. */
#ifndef PERSIST_MOUNTS_H
#define PERSIST_MOUNTS_H

#include <sys/types.h>

/* The name of the file system with that superblock's device. 0 or -errno; -ENOENT: it is not
 * mounted. */
int mounts_fs_name(dev_t dev, char name[32]);
/* The superblock's device of the mount that a descriptor was opened in. 0 or -errno. */
int mounts_device_of(int fd, dev_t *dev);
/* Is the mount that a descriptor was opened in an overlay that syncs nothing? 0, 1 or -errno. */
int mounts_is_volatile(int fd);

#endif
