/* SPDX-License-Identifier: BSD-3-Clause */
#include "export/newfile.h"

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

static void newfile_folder_of(const char *path, char *folder, size_t size)
{
	char copy[4096];

	snprintf(copy, sizeof(copy), "%s", path);
	snprintf(folder, size, "%s", dirname(copy));
}

static int newfile_disk_too_small(const char *path, uint64_t size, uint64_t room, struct error *err)
{
	return error_set(err, ERROR_LOCAL, ENOSPC,
			 "%s: not enough disk for %s: the file system has %s left", path,
			 text_size(size).text, text_size(room >> 20 << 20).text);
}

int newfile_reserve(int fd, const char *path, uint64_t size, struct error *err)
{
	struct statvfs fs;
	struct stat st;
	uint64_t room;
	int rc;

	if (size == 0)
		return 0;
	if (fstatvfs(fd, &fs) || fstat(fd, &st))
		return error_set(err, ERROR_LOCAL, errno, "%s: %s", path, strerror(errno));
	/* Asked first: an attempt would take all that is left before it fails. */
	room = (uint64_t)fs.f_bavail * fs.f_frsize;
	if (size > room + (uint64_t)st.st_blocks * 512)
		return newfile_disk_too_small(path, size, room, err);
	rc = posix_fallocate(fd, 0, (off_t)size);
	if (rc == ENOSPC)
		return newfile_disk_too_small(path, size, room, err);
	return rc ? error_set(err, ERROR_LOCAL, rc, "%s: cannot reserve %s on the disk: %s", path,
			      text_size(size).text, strerror(rc))
		  : 0;
}

/* Of the process; umask(2) would change it for other threads. */
static mode_t newfile_umask(void)
{
	FILE *status = fopen("/proc/self/status", "re");
	unsigned mask = 022;
	char line[128];

	while (status && fgets(line, sizeof(line), status))
		if (sscanf(line, "Umask: %o", &mask) == 1)
			break;
	if (status)
		fclose(status);
	return (mode_t)mask;
}

static int newfile_open_named(struct newfile *nf)
{
	int len = snprintf(nf->temp, sizeof(nf->temp), "%s.XXXXXX", nf->path);

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
	return fchmod(nf->fd, 0666 & ~newfile_umask());
}

int newfile_open(struct newfile *nf, const char *path, uint64_t size, struct error *err)
{
	char folder[4096];
	int rc;

	newfile_folder_of(path, folder, sizeof(folder));
	nf->path = path;
	nf->temp[0] = '\0';
	nf->fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
	if (nf->fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR))
		newfile_open_named(nf);
	if (nf->fd < 0)
		return error_set(err, ERROR_LOCAL, errno, "cannot create %s: %s", path,
				 strerror(errno));
	rc = newfile_reserve(nf->fd, path, size, err);
	if (rc)
		newfile_abort(nf);
	return rc;
}

/* linkat() cannot replace; a name of its own and rename() can. */
static int newfile_link_unnamed(struct newfile *nf, const char *path)
{
	char self[64];

	snprintf(self, sizeof(self), "/proc/self/fd/%d", nf->fd);
	return linkat(AT_FDCWD, self, AT_FDCWD, path, AT_SYMLINK_FOLLOW);
}

static int newfile_give_name(struct newfile *nf, bool replace)
{
	if (!replace)
		return nf->temp[0] ? link(nf->temp, nf->path) : newfile_link_unnamed(nf, nf->path);
	if (!nf->temp[0]) {
		int len = snprintf(nf->temp, sizeof(nf->temp), "%s.%ld", nf->path, (long)gettid());

		if (len < 0 || (size_t)len >= sizeof(nf->temp)) {
			nf->temp[0] = '\0';
			errno = ENAMETOOLONG;
			return -1;
		}
		if (newfile_link_unnamed(nf, nf->temp)) {
			nf->temp[0] = '\0';
			return -1;
		}
	}
	if (rename(nf->temp, nf->path))
		return -1;
	nf->temp[0] = '\0';
	return 0;
}

static int newfile_sync_folder(const char *path)
{
	char folder[4096];
	int fd, rc;

	newfile_folder_of(path, folder, sizeof(folder));
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	rc = fsync(fd);
	close(fd);
	return rc;
}

/* A folder that may be passed through but not read is synced with all the rest. */
static int newfile_sync_folder_or_all(int fd, const char *path)
{
	return newfile_sync_folder(path) && (errno != EACCES || syncfs(fd)) ? -1 : 0;
}

int newfile_sync_name(int fd, const char *path)
{
	char target[PATH_MAX];
	struct stat st;

	if (newfile_sync_folder_or_all(fd, path) || lstat(path, &st))
		return -errno;
	if (!S_ISLNK(st.st_mode))
		return 0;
	if (!realpath(path, target) || newfile_sync_folder_or_all(fd, target))
		return -errno;
	return 0;
}

int newfile_settle(int fd, const char *path, struct error *err)
{
	int rc = fsync(fd) ? -errno : newfile_sync_name(fd, path);

	return rc ? error_set(err, ERROR_LOCAL, -rc, "cannot put %s on the disk: %s", path,
			      strerror(-rc))
		  : 0;
}

int newfile_commit(struct newfile *nf, bool replace, struct error *err)
{
	if (fsync(nf->fd) || newfile_give_name(nf, replace) ||
	    newfile_sync_folder_or_all(nf->fd, nf->path))
		return error_set(err, ERROR_LOCAL, errno, "cannot create %s: %s", nf->path,
				 strerror(errno));
	if (nf->temp[0])
		unlink(nf->temp);
	nf->temp[0] = '\0';
	return 0;
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
