/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/text.h"
#include "cli.h"
#include "newfile.h"

static void folder_of(const char *path, char *folder, size_t size)
{
	char copy[4096];

	snprintf(copy, sizeof(copy), "%s", path);
	snprintf(folder, size, "%s", dirname(copy));
}

static int disk_too_small(const char *path, uint64_t size, uint64_t room)
{
	return cli_fail(CLI_FILE, "%s: not enough disk for %s: the file system has %s left", path,
			text_size(size).text, text_size(room >> 20 << 20).text);
}

int newfile_reserve(int fd, const char *path, uint64_t size)
{
	struct statvfs fs;
	struct stat st;
	uint64_t room;
	int rc;

	if (size == 0)
		return CLI_OK;
	if (fstatvfs(fd, &fs) || fstat(fd, &st))
		return cli_fail(CLI_FILE, "%s: %s", path, strerror(errno));
	/* Asked first: an attempt would take all that is left before it fails. */
	room = (uint64_t)fs.f_bavail * fs.f_frsize;
	if (size > room + (uint64_t)st.st_blocks * 512)
		return disk_too_small(path, size, room);
	rc = posix_fallocate(fd, 0, (off_t)size);
	if (rc == ENOSPC)
		return disk_too_small(path, size, room);
	if (rc)
		return cli_fail(CLI_FILE, "%s: cannot reserve %s on the disk: %s", path,
				text_size(size).text, strerror(rc));
	return CLI_OK;
}

static int open_named(struct newfile *nf)
{
	int len = snprintf(nf->temp, sizeof(nf->temp), "%s.XXXXXX", nf->path);
	mode_t mask;

	if (len < 0 || (size_t)len >= sizeof(nf->temp)) {
		errno = ENAMETOOLONG;
		nf->temp[0] = '\0';
		return -1;
	}
	nf->fd = mkostemp(nf->temp, O_CLOEXEC);
	if (nf->fd < 0) {
		nf->temp[0] = '\0';
		return -1;
	}
	mask = umask(0);
	umask(mask);
	return fchmod(nf->fd, 0666 & ~mask);
}

int newfile_try_open(struct newfile *nf, const char *path)
{
	char folder[4096];

	folder_of(path, folder, sizeof(folder));
	nf->path = path;
	nf->temp[0] = '\0';
	nf->fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
	if (nf->fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR))
		open_named(nf);
	return nf->fd < 0 ? -1 : 0;
}

int newfile_open(struct newfile *nf, const char *path, uint64_t size)
{
	int rc;

	if (newfile_try_open(nf, path))
		return cli_fail(CLI_FILE, "cannot create %s: %s", path, strerror(errno));
	rc = newfile_reserve(nf->fd, path, size);
	if (rc)
		newfile_abort(nf);
	return rc;
}

/* linkat() cannot replace; a name of its own and rename() can. */
static int link_unnamed(struct newfile *nf, const char *path)
{
	char self[64];

	snprintf(self, sizeof(self), "/proc/self/fd/%d", nf->fd);
	return linkat(AT_FDCWD, self, AT_FDCWD, path, AT_SYMLINK_FOLLOW);
}

static int give_name(struct newfile *nf, bool replace)
{
	if (!replace)
		return nf->temp[0] ? link(nf->temp, nf->path) : link_unnamed(nf, nf->path);
	if (!nf->temp[0]) {
		int len = snprintf(nf->temp, sizeof(nf->temp), "%s.%ld", nf->path, (long)getpid());

		if (len < 0 || (size_t)len >= sizeof(nf->temp)) {
			nf->temp[0] = '\0';
			errno = ENAMETOOLONG;
			return -1;
		}
		if (link_unnamed(nf, nf->temp)) {
			nf->temp[0] = '\0';
			return -1;
		}
	}
	if (rename(nf->temp, nf->path))
		return -1;
	nf->temp[0] = '\0';
	return 0;
}

static int sync_folder(const char *path)
{
	char folder[4096];
	int fd, rc;

	folder_of(path, folder, sizeof(folder));
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	rc = fsync(fd);
	close(fd);
	return rc;
}

/* A folder that may be passed through but not read is synced with all the rest. */
static int sync_folder_or_all(int fd, const char *path)
{
	return sync_folder(path) && (errno != EACCES || syncfs(fd)) ? -1 : 0;
}

int newfile_sync_name(int fd, const char *path)
{
	char target[PATH_MAX];
	struct stat st;

	if (sync_folder_or_all(fd, path))
		return -1;
	if (lstat(path, &st))
		return -1;
	if (!S_ISLNK(st.st_mode))
		return 0;
	if (!realpath(path, target))
		return -1;
	return sync_folder_or_all(fd, target);
}

int newfile_settle(int fd, const char *path)
{
	if (fsync(fd) || newfile_sync_name(fd, path))
		return cli_fail(CLI_FILE, "cannot put %s on the disk: %s", path, strerror(errno));
	return CLI_OK;
}

int newfile_try_commit(struct newfile *nf, bool replace)
{
	if (fsync(nf->fd) || give_name(nf, replace))
		return -1;
	if (sync_folder_or_all(nf->fd, nf->path))
		return -1;
	if (nf->temp[0])
		unlink(nf->temp);
	nf->temp[0] = '\0';
	return 0;
}

int newfile_commit(struct newfile *nf, bool replace)
{
	return newfile_try_commit(nf, replace)
		       ? cli_fail(CLI_FILE, "cannot create %s: %s", nf->path, strerror(errno))
		       : CLI_OK;
}

void newfile_abort(struct newfile *nf)
{
	if (nf->temp[0])
		unlink(nf->temp);
	if (nf->fd >= 0)
		close(nf->fd);
	nf->temp[0] = '\0';
	nf->fd = -1;
}
