/* SPDX-License-Identifier: BSD-3-Clause */
/* private_folder.c -- makes a temporary folder for this process. Also removes folders of processes
 * that were killed. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "interposer/paths.h"

/*
 * Remove the content of the folder, down to `depth` levels, and close the descriptor. Uses no heap
 * memory, because a signal handler may call this function.
 */
static void folder_empty(int fd, int depth)
{
	_Alignas(struct dirent64) char buf[1024];
	ssize_t n;

	while ((n = getdents64(fd, buf, sizeof(buf))) > 0) {
		const struct dirent64 *entry;

		for (ssize_t at = 0; at < n; at += entry->d_reclen) {
			int below = -1;

			entry = (const struct dirent64 *)(buf + at);
			if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") ||
			    !unlinkat(fd, entry->d_name, 0))
				continue;
			if (depth)
				below = openat(fd, entry->d_name,
					       O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
			if (below >= 0)
				folder_empty(below, depth - 1);
			unlinkat(fd, entry->d_name, AT_REMOVEDIR);
		}
	}
	close(fd);
}

void private_folder_remove(const char *root)
{
	enum { DEPTH = 10 };
	int fd = open(root, O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd >= 0)
		folder_empty(fd, DEPTH);
	rmdir(root);
}

static bool folder_is_left(int parent, const char *name, const char *prefix)
{
	struct stat st;
	pid_t process;

	if (strncmp(name, prefix, strlen(prefix)))
		return false;
	process = atoi(name + strlen(prefix));
	return process > 0 && kill(process, 0) && errno == ESRCH &&
	       !fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISDIR(st.st_mode) &&
	       st.st_uid == geteuid();
}

static void folder_remove_left(const char *parent, const char *prefix)
{
	DIR *dir = opendir(parent);
	const struct dirent *entry;
	char root[PATHS_ROOT_MAX];

	while (dir && (entry = readdir(dir))) {
		if (folder_is_left(dirfd(dir), entry->d_name, prefix) &&
		    snprintf(root, sizeof(root), "%s/%s", parent, entry->d_name) <
			    (int)sizeof(root))
			private_folder_remove(root);
	}
	if (dir)
		closedir(dir);
}

/*
 * The folder's name contains the number of the process and the inode of its PID name space. So
 * another process can detect that the process was killed.
 */
static bool folder_make_in(char root[PATHS_ROOT_MAX], const char *parent)
{
	struct stat pids = {0};
	char prefix[64];
	int len;

	stat("/proc/self/ns/pid", &pids);
	snprintf(prefix, sizeof(prefix), "softrnic-%llx-", (unsigned long long)pids.st_ino);
	folder_remove_left(parent, prefix);
	len = snprintf(root, PATHS_ROOT_MAX, "%s/%s%d-XXXXXX", parent, prefix, getpid());
	return len < PATHS_ROOT_MAX && mkdtemp(root);
}

bool private_folder_make(char root[PATHS_ROOT_MAX])
{
	const char *parent = getenv("TMPDIR");

	return folder_make_in(root, parent && *parent ? parent : "/tmp") ||
	       folder_make_in(root, "/dev/shm");
}
