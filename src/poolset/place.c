/* SPDX-License-Identifier: BSD-3-Clause */
#include "poolset/place.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int place_failed(const struct poolset_place *place, struct error *err)
{
	if (errno == EXDEV)
		return error_set(err, ERROR_LOCAL, EBADF,
				 "the name '%s' leads out of the pool set directory %s",
				 place->name, place->dir);
	return error_set(err, ERROR_LOCAL, errno, "cannot open %s/%s: %s", place->dir, place->name,
			 strerror(errno));
}

/* Preserves errno: the caller still needs the errno of its failed open(). */
static bool place_is_link(int dir, const char *name)
{
	int was = errno;
	char target;
	bool is_link = readlinkat(dir, name, &target, 1) >= 0;

	errno = was;
	return is_link;
}

/*
 * For kernels without openat2(), and filters of system calls that forbid it: open the path step by
 * step, and follow no symbolic link. Changes name, and closes dir.
 */
static int place_walk(int dir, char *name, int flags)
{
	char *rest, *step = strtok_r(name, "/", &rest);

	while (step) {
		char *next = strtok_r(NULL, "/", &rest);
		int fd = -1;

		if (!strcmp(step, ".."))
			errno = EXDEV;
		else
			fd = openat(dir, step,
				    O_NOFOLLOW | (next ? O_PATH | O_DIRECTORY | O_CLOEXEC : flags));
		if (fd < 0 && place_is_link(dir, step))
			errno = EXDEV;
		close(dir);
		if (fd < 0)
			return -1;
		dir = fd;
		step = next;
	}
	return dir;
}

static int place_open_beneath(int dir, const char *name, int flags)
{
	struct open_how how = {.flags = (unsigned)flags,
			       .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
	int fd = (int)syscall(SYS_openat2, dir, name, &how, sizeof(how));
	char copy[PATH_MAX];
	int own;

	if (fd >= 0 || (errno != ENOSYS && errno != EPERM))
		return fd;
	if (strlen(name) >= sizeof(copy)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	strcpy(copy, name);
	own = fcntl(dir, F_DUPFD_CLOEXEC, 0);
	return own < 0 ? -1 : place_walk(own, copy, flags);
}

static int place_check(const struct poolset_place *place, struct error *err)
{
	if (place->dir[0] != '/')
		return error_set(err, ERROR_ARGUMENT, EINVAL,
				 "the pool set directory '%s' is no absolute path", place->dir);
	if (!place->name[0])
		return error_set(err, ERROR_ARGUMENT, EBADF, "the name of a pool set is empty");
	if (place->name[0] == '/')
		return error_set(err, ERROR_ARGUMENT, EBADF,
				 "the name of a pool set, '%s', is an absolute path", place->name);
	return 0;
}

int place_open(const struct poolset_place *place, int flags, int *fd, struct error *err)
{
	int rc = place_check(place, err);
	int dir;

	if (rc)
		return rc;
	dir = open(place->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return error_set(err, ERROR_LOCAL, errno,
				 "cannot open the pool set directory %s: %s", place->dir,
				 strerror(errno));
	/* O_NONBLOCK: opening a pipe must not wait for the other end. */
	*fd = place_open_beneath(dir, place->name, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (*fd < 0)
		rc = place_failed(place, err);
	close(dir);
	return rc;
}
