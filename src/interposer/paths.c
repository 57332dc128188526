/* SPDX-License-Identifier: BSD-3-Clause */
/* paths.c -- decides which names belong to the device, and makes and removes the private tree of
 * this process. */
#include "interposer/paths.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* --- names -------------------------------------------------------------------------------- */

/* The kernel's folders of devices, and the software RNIC's name in each of them. */
static const struct paths_folder {
	const char *path, *device;
} folders[] = {
	{"/sys/class/infiniband", "softrnic0"},
	{"/sys/class/infiniband_verbs", PATHS_UVERBS},
	{"/dev/infiniband", PATHS_UVERBS},
};

/* Is the path the folder itself, the device's name in it, or a path below the device's name? The
 * folder itself counts because a list of it must contain the device. */
static bool paths_is_in(const struct paths_folder *f, const char *path)
{
	size_t len = strlen(f->path), name_len = strlen(f->device);
	const char *name;

	if (strncmp(path, f->path, len) || (path[len] && path[len] != '/'))
		return false;
	name = path + len + strspn(path + len, "/");
	return !*name ||
	       (!strncmp(name, f->device, name_len) && (!name[name_len] || name[name_len] == '/'));
}

/* Does the path belong to the device? For other names this takes only one or two comparisons,
 * because most of them differ in the second character. */
static bool paths_is_ours(const char *path)
{
	if (path[0] != '/' || (path[1] != 's' && path[1] != 'd'))
		return false;
	if (strncmp(path, "/sys/class/infiniband", 21) && strncmp(path, "/dev/infiniband", 15))
		return false;
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		if (paths_is_in(&folders[i], path))
			return true;
	return false;
}

/* --- the tree ----------------------------------------------------------------------------- */

enum { TREE_NONE, TREE_MAKING, TREE_MADE, TREE_FAILED };

/* The process that `root` belongs to, and the state of `root`. A forked child makes a separate
 * tree. */
static _Atomic uint64_t tree_state;
/* thread that makes the tree; its own look-ups of names are not redirected */
static _Atomic pid_t tree_maker;
static char tree_root[PATHS_ROOT_MAX];

static uint64_t tree_state_of(pid_t process, unsigned phase)
{
	return (uint64_t)process << 2 | phase;
}

static bool paths_are_off(void)
{
	const char *how = getenv("SOFTRNIC_SYSFS");

	return how && !strcmp(how, "0");
}

static bool paths_make_tree(void)
{
	const char *how = getenv("SOFTRNIC_SYSFS");
	bool made = sysfs_tree_make(tree_root, how && !strcmp(how, "device"));

	if (!made)
		fprintf(stderr,
			"softrnic: cannot make the files of softrnic0 in TMPDIR, /tmp or /dev/shm: %s; "
			"programs that read /sys/class/infiniband will not find it\n",
			strerror(errno));
	return made;
}

/* Make the tree. Signals are blocked meanwhile: a signal handler that looks up a name would wait
 * for the thread that it interrupted. */
static void paths_make(pid_t process)
{
	sigset_t all, before;
	bool made;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	tree_maker = (pid_t)syscall(SYS_gettid);
	made = !paths_are_off() && paths_make_tree();
	tree_maker = 0;
	tree_state = tree_state_of(process, made ? TREE_MADE : TREE_FAILED);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Returns the folder of the tree, or NULL if there is no tree. */
static const char *paths_root(void)
{
	pid_t process = getpid();

	for (;;) {
		uint64_t state = tree_state;

		if (state == tree_state_of(process, TREE_MADE))
			return tree_root;
		if (state == tree_state_of(process, TREE_FAILED))
			return NULL;
		if (state == tree_state_of(process, TREE_MAKING)) {
			if (tree_maker == (pid_t)syscall(SYS_gettid))
				return NULL;
			sched_yield();
		} else if (atomic_compare_exchange_strong(&tree_state, &state,
							  tree_state_of(process, TREE_MAKING))) {
			paths_make(process);
		}
	}
}

void paths_leave(void)
{
	uint64_t mine = tree_state_of(getpid(), TREE_MADE);

	if (atomic_compare_exchange_strong(&tree_state, &mine, TREE_NONE))
		private_folder_remove(tree_root);
}

/* Make no tree from now on, because nothing would remove it. */
__attribute__((destructor)) static void paths_end(void)
{
	paths_leave();
	tree_state = tree_state_of(getpid(), TREE_FAILED);
}

const char *paths_lead(const char *path, struct paths_room *room)
{
	const char *root;
	int err;

	if (!path || !paths_is_ours(path) || strlen(path) >= PATHS_NAME_MAX)
		return path;
	/* Show the device's node as /dev/null, because programs check for a character device that
	 * can be read and written. */
	if (!strcmp(path, "/dev/infiniband/" PATHS_UVERBS) && !paths_are_off())
		return "/dev/null";
	err = errno;
	root = paths_root();
	errno = err;
	if (!root)
		return path;
	snprintf(room->name, sizeof(room->name), "%s%s", root, path);
	return room->name;
}
