/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/newfile.h"

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

/* Number of bytes reserved in one step. After each step the watch decides whether to continue. */
#define NEWFILE_SLICE (64u << 20)

static void newfile_folder_of(const char *path, char *folder, size_t size)
{
	char copy[4096];

	snprintf(copy, sizeof(copy), "%s", path);
	snprintf(folder, size, "%s", dirname(copy));
}

/* Use one unit for all sizes of the message: whole MiB, or bytes. */
static int newfile_disk_too_small(const struct newfile_opts *opts, uint64_t room, struct error *err)
{
	bool whole = opts->size % (1 << 20) == 0 && opts->scratch % (1 << 20) == 0;
	struct text_size (*show)(uint64_t) = whole ? text_size : text_bytes;
	struct text_size left = show(whole ? room >> 20 << 20 : room);
	char beside[64] = "";

	if (opts->scratch)
		snprintf(beside, sizeof(beside), " and a scratch file of %s",
			 show(opts->scratch).text);
	if (whole && room < 1 << 20)
		snprintf(left.text, sizeof(left.text), "less than 1 MiB");
	return error_set(err, ERROR_LOCAL, ENOSPC,
			 "%s: not enough disk for %s%s: the file system has %s left", opts->path,
			 show(opts->size).text, beside, left.text);
}

int newfile_ask(const struct newfile_watch *watch, const struct newfile_progress *progress,
		struct error *err)
{
	if (!watch || watch->step(watch->arg, progress))
		return 0;
	return error_set(err, ERROR_LOCAL, ECANCELED, "%s: stopped before the end, as requested",
			 progress->path);
}

/*
 * On a file system without fallocate(), the slice was filled with zeros. Write them to the disk
 * after each slice, because the watch could not stop one sync of the whole file. After a real
 * fallocate() this sync has nothing to write.
 */
static int newfile_reserve_slice(int fd, uint64_t from, uint64_t len)
{
	int rc = posix_fallocate(fd, (off_t)from, (off_t)len);

	if (!rc && sync_file_range(fd, (off_t)from, (off_t)len,
				   SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
					   SYNC_FILE_RANGE_WAIT_AFTER))
		rc = errno == ENOSYS || errno == EINVAL || errno == ESPIPE ? 0 : errno;
	return rc;
}

static int newfile_reserve_slices(int fd, const struct newfile_opts *opts, int *cause,
				  struct error *err)
{
	struct newfile_progress progress = {
		.path = opts->path, .what = "reserve", .total = opts->size};
	int rc = 0;

	*cause = 0;
	while (!rc && !*cause && progress.done < opts->size) {
		uint64_t left = opts->size - progress.done;
		uint64_t len = left < NEWFILE_SLICE ? left : NEWFILE_SLICE;

		*cause = newfile_reserve_slice(fd, progress.done, len);
		progress.done += len;
		rc = newfile_ask(opts->watch, &progress, err);
	}
	return rc;
}

int newfile_reserve(int fd, const struct newfile_opts *opts, struct error *err)
{
	struct statvfs fs;
	struct stat st;
	uint64_t room;
	int rc, cause;

	if (opts->size == 0)
		return 0;
	if (fstatvfs(fd, &fs) || fstat(fd, &st))
		return error_set(err, ERROR_LOCAL, errno, "%s: %s", opts->path, strerror(errno));
	/* Check the free space first: an attempt would use up all space before it fails. */
	room = (uint64_t)fs.f_bavail * fs.f_frsize;
	if (opts->size > room + (uint64_t)st.st_blocks * 512 ||
	    opts->size + opts->scratch > room + (uint64_t)st.st_blocks * 512)
		return newfile_disk_too_small(opts, room, err);
	rc = newfile_reserve_slices(fd, opts, &cause, err);
	if (cause == ENOSPC)
		return newfile_disk_too_small(opts, room, err);
	return cause ? error_set(err, ERROR_LOCAL, cause, "%s: cannot reserve %s on the disk: %s",
				 opts->path, text_size(opts->size).text, strerror(cause))
		     : rc;
}

/* Read the umask from /proc: umask(2) would change the umask of the other threads for a moment. */
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

static int newfile_open_named(struct newfile *nf, mode_t mode)
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
	return fchmod(nf->fd, mode & ~newfile_umask());
}

int newfile_open(struct newfile *nf, const struct newfile_opts *opts, struct error *err)
{
	mode_t mode = opts->is_private ? 0600 : 0666;
	char folder[4096];
	int rc;

	newfile_folder_of(opts->path, folder, sizeof(folder));
	nf->path = opts->path;
	nf->temp[0] = '\0';
	nf->fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
	if (nf->fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR))
		newfile_open_named(nf, mode);
	if (nf->fd < 0)
		return error_set(err, ERROR_LOCAL, errno, "cannot create %s: %s", opts->path,
				 strerror(errno));
	rc = newfile_reserve(nf->fd, opts, err);
	if (rc)
		newfile_abort(nf);
	return rc;
}

/* linkat() cannot replace a file. A temporary name and rename() can. */
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

int newfile_write(int fd, const void *bytes, size_t len)
{
	const char *at = bytes;

	while (len) {
		ssize_t n = write(fd, at, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

int newfile_sync_folder(const char *path)
{
	char folder[4096];
	int fd, rc;

	newfile_folder_of(path, folder, sizeof(folder));
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	rc = fsync(fd) ? -errno : 0;
	close(fd);
	return rc;
}

/* If the folder cannot be opened for reading, sync the whole file system instead. */
static int newfile_sync_folder_or_all(int fd, const char *path)
{
	int rc = newfile_sync_folder(path);

	if (rc == -EACCES)
		return syncfs(fd);
	errno = -rc;
	return rc ? -1 : 0;
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

	return rc ? error_set(err, ERROR_LOCAL, -rc, "cannot write %s to its disk: %s", path,
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

int newfile_make(const struct newfile_opts *opts, int *fd, struct error *err)
{
	struct newfile nf;
	int rc = newfile_open(&nf, opts, err);

	if (rc)
		return rc;
	rc = newfile_commit(&nf, false, err);
	if (rc)
		newfile_abort(&nf);
	else
		*fd = nf.fd;
	return rc;
}
