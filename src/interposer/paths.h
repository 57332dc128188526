/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * paths.h -- the files of the device, for programs that read them directly, without verbs.
 *
 * The kernel shows an RDMA device below /sys/class/infiniband, /sys/class/infiniband_verbs and
 * /dev/infiniband. The software RNIC has no kernel part. So a preloaded program that uses such a
 * name gets a file of a private tree instead. For this purpose the calls of libc that take a name
 * are replaced (libc_paths.c). The tree is made when a call first needs it (paths.c, sysfs_tree.c),
 * and removed when the process exits or becomes another program.
 */
#ifndef INTERPOSER_PATHS_H
#define INTERPOSER_PATHS_H

#include <stdbool.h>

enum { PATHS_ROOT_MAX = 128, PATHS_NAME_MAX = 256 };

/* A name for the kernel's class folder that this library does not redirect. */
#define PATHS_TRUE   "/sys/./class/"
#define PATHS_UVERBS "uverbs-softrnic0" /* equals ibv_device.dev_name */

/* Memory for the name that replaces the caller's name. */
struct paths_room {
	char name[PATHS_ROOT_MAX + PATHS_NAME_MAX];
};

/*
 * Returns the name to use instead of `path`: path itself, or a name in the tree, which is stored in
 * `room`. Accepts NULL. Preserves errno. The call allocates memory until the tree exists, so signal
 * handlers must not be the first to call it.
 */
const char *paths_lead(const char *path, struct paths_room *room);
/*
 * Remove the tree of this process. A later use of its names makes a new tree. Allocates no memory.
 */
void paths_leave(void);

/* sysfs_tree.c: make the tree in a new private folder, whose name is stored in `root`. */
bool sysfs_tree_make(char root[PATHS_ROOT_MAX], bool with_device);

/*
 * private_folder.c: make a temporary folder that only this user can access. Also removes the
 * folders of killed processes.
 */
bool private_folder_make(char root[PATHS_ROOT_MAX]);
/* Remove the folder and its content. Allocates no memory. */
void private_folder_remove(const char *root);

#endif
