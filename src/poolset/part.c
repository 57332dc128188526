/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <libpmem.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/newfile.h"
#include "base/text.h"
#include "poolset/devdax.h"
#include "poolset/parts.h"

static int part_failed(const struct part *part, const char *what, struct error *err)
{
	return error_set(err, ERROR_LOCAL, errno, "cannot %s %s: %s", what, part->path,
			 strerror(errno));
}

uint64_t part_usable(const struct part *part)
{
	return part->size & ~(part->align - 1);
}

int part_get_size(const struct part *part, uint64_t *size, struct error *err)
{
	struct devdax dax;
	struct stat st;

	*size = 0;
	if (fstat(part->fd, &st))
		return part_failed(part, "look at", err);
	*size = (uint64_t)st.st_size;
	if (S_ISREG(st.st_mode) && !part->is_device)
		return 0;
	if (!part->is_device || !S_ISCHR(st.st_mode) || !devdax_probe(st.st_rdev, &dax))
		return error_set(err, ERROR_LOCAL, EINVAL, "%s is neither a file nor a device DAX",
				 part->path);
	*size = dax.size;
	return 0;
}

/* Report a limit on file sizes as a full disk, because EFBIG has another meaning here. */
static int part_no_room(int rc, struct error *err)
{
	if (rc && err && err->cause == EFBIG)
		err->cause = ENOSPC;
	return rc;
}

/* Reserve all blocks: a remote write to a hole would find a full disk too late to report the
 * failure. */
static int part_reserve(const struct part *part, struct error *err)
{
	struct newfile_opts opts = {.path = part->path, .size = part->size};
	struct stat st;

	if (part->is_device || fstat(part->fd, &st) ||
	    (uint64_t)st.st_blocks * 512 >= (uint64_t)st.st_size)
		return 0;
	return part_no_room(newfile_reserve(part->fd, &opts, err), err);
}

int part_check(const struct part *part, struct error *err)
{
	uint64_t size;
	int rc = part_get_size(part, &size, err);

	if (rc)
		return rc;
	if (size != part->size)
		return error_set(err, ERROR_LOCAL, EINVAL, "%s has %s, but the pool set states %s",
				 part->path, text_bytes(size).text, text_bytes(part->size).text);
	return part_reserve(part, err);
}

static int part_lock(const struct part *part, struct error *err)
{
	if (!flock(part->fd, LOCK_EX | LOCK_NB))
		return 0;
	if (errno == EWOULDBLOCK)
		return error_set(err, ERROR_LOCAL, EWOULDBLOCK, "%s is in use by another process",
				 part->path);
	return part_failed(part, "lock", err);
}

void part_close(struct part *part)
{
	if (part->fd >= 0)
		close(part->fd);
	part->fd = -1;
}

int part_open(struct part *part, struct error *err)
{
	struct stat st;
	int rc;

	/*
	 * The descriptor of a pool without a set file is already open. O_NONBLOCK: the name may be
	 * a pipe, and open() must not wait.
	 */
	if (part->fd < 0)
		part->fd = open(part->path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (part->fd < 0)
		return part_failed(part, "open", err);
	rc = part_lock(part, err);
	/* Another process may have unlinked the file between open() and flock(). */
	if (!rc && !fstat(part->fd, &st) && !st.st_nlink)
		rc = error_set(err, ERROR_LOCAL, ENOENT, "%s was just removed", part->path);
	if (rc)
		part_close(part);
	return rc;
}

/* Map the header of a device, because a device DAX has no read() and no write(). */
static int part_map_header(struct part *part, struct error *err)
{
	if (part->header)
		return 0;
	part->header = mmap(NULL, part->align, PROT_READ | PROT_WRITE, MAP_SHARED, part->fd, 0);
	if (part->header != MAP_FAILED)
		return 0;
	part->header = NULL;
	return part_failed(part, "map", err);
}

int part_read_header(struct part *part, uint8_t page[HEADER_BYTES], struct error *err)
{
	ssize_t got;
	int rc;

	if (part->is_device) {
		rc = part_map_header(part, err);
		if (!rc)
			memcpy(page, part->header, HEADER_BYTES);
		return rc;
	}
	got = pread(part->fd, page, HEADER_BYTES, 0);
	if (got == HEADER_BYTES)
		return 0;
	if (got >= 0)
		errno = EINVAL;
	return part_failed(part, "read a header of", err);
}

int part_write_header(struct part *part, const void *bytes, size_t at, size_t len,
		      struct error *err)
{
	ssize_t put;
	int rc;

	if (part->is_device) {
		rc = part_map_header(part, err);
		if (!rc)
			pmem_memcpy_persist((char *)part->header + at, bytes, len);
		return rc;
	}
	put = pwrite(part->fd, bytes, len, (off_t)at);
	if (put == (ssize_t)len && !fdatasync(part->fd))
		return 0;
	if (put >= 0 && put < (ssize_t)len)
		errno = ENOSPC;
	return part_failed(part, "write a header to", err);
}

/* Unlink the name; open() would follow a symbolic link. */
static int part_unlink(const struct part *part, struct error *err)
{
	struct stat file, named;
	int rc;

	if (fstat(part->fd, &file) || stat(part->path, &named))
		return part_failed(part, "remove", err);
	if (file.st_dev != named.st_dev || file.st_ino != named.st_ino)
		return error_set(err, ERROR_LOCAL, EBUSY,
				 "cannot remove %s: it was replaced by another file", part->path);
	if (unlink(part->path))
		return part_failed(part, "remove", err);
	rc = newfile_sync_folder(part->path);
	errno = -rc;
	return rc && rc != -EACCES ? part_failed(part, "make durable the removal of", err) : 0;
}

int part_remove(struct part *part, struct error *err)
{
	static const uint8_t zero[HEADER_BYTES];

	return part->is_device ? part_write_header(part, zero, 0, sizeof(zero), err)
			       : part_unlink(part, err);
}

static int part_make(struct part *part, struct error *err)
{
	/* Make the file private to this user, because the pool may be a copy of a private pool. */
	struct newfile_opts opts = {.path = part->path, .size = part->size, .is_private = true};
	struct newfile nf;
	int rc = part_no_room(newfile_open(&nf, &opts, err), err);

	if (rc)
		return rc;
	/* Lock the file before it gets its name. */
	part->fd = nf.fd;
	rc = part_lock(part, err);
	if (!rc)
		rc = newfile_commit(&nf, false, err);
	part->is_made = !rc;
	if (rc) {
		/* If the call failed only in syncing the name, the file already has its name. */
		part_unlink(part, NULL);
		newfile_abort(&nf);
		part->fd = -1;
	}
	return rc;
}

int parts_make_missing(struct parts *parts, struct error *err)
{
	int rc = 0;

	for (unsigned i = 0; !rc && i < parts->count; i++)
		if (parts->list[i].fd < 0)
			rc = part_make(&parts->list[i], err);
	return rc;
}

void parts_unmake(struct parts *parts)
{
	for (unsigned i = 0; i < parts->count; i++)
		if (parts->list[i].is_made)
			part_remove(&parts->list[i], NULL);
}
