/* SPDX-License-Identifier: BSD-3-Clause */
#include "regions/file_record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/cursor.h"
#include "base/error.h"
#include "base/newfile.h"

#define FILE_RECORD_MAGIC   "RPMAHOLD"
#define FILE_RECORD_VERSION 1

int file_record_place_init(struct file_record_place *place, const char *path, int fd)
{
	char real[PATH_MAX];
	struct statx stx;

	memset(place, 0, sizeof(*place));
	if (!realpath(path, real) ||
	    statx(fd, "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME | STATX_MODE, &stx))
		return -errno;
	snprintf(place->path, sizeof(place->path), "%s.rpma", real);
	place->inode = stx.stx_ino;
	if (stx.stx_mask & STATX_BTIME)
		place->made_ns =
			(uint64_t)stx.stx_btime.tv_sec * 1000000000 + stx.stx_btime.tv_nsec;
	place->mode = stx.stx_mode & 0666;
	return 0;
}

size_t file_record_encode(const struct file_record_place *place,
			  const struct hello_content *content, uint8_t *buf)
{
	struct wcursor c = wcursor_init(buf, FILE_RECORD_SIZE);

	wcursor_bytes(&c, FILE_RECORD_MAGIC, 8);
	wcursor_le(&c, FILE_RECORD_VERSION, 4);
	wcursor_le(&c, content->state, 4);
	wcursor_le(&c, place->inode, 8);
	wcursor_le(&c, place->made_ns, 8);
	wcursor_le(&c, content->length, 8);
	wcursor_le(&c, content->time_ns, 8);
	wcursor_bytes(&c, content->digest, HELLO_DIGEST);
	wcursor_le(&c, crc32c_final(crc32c_update(CRC32C_INIT, buf, wcursor_len(&c))), 4);
	return wcursor_len(&c);
}

/* Is it intact, and in a form that this version knows? */
static bool file_record_is_sound(const uint8_t *buf, size_t len)
{
	struct rcursor c = rcursor_init(buf, len);
	const uint8_t *magic = rcursor_bytes(&c, 8);
	uint64_t version = rcursor_le(&c, 4), state = rcursor_le(&c, 4);

	rcursor_bytes(&c, FILE_RECORD_SIZE - 4 - 16);
	return rcursor_le(&c, 4) == crc32c_final(crc32c_update(
					    CRC32C_INIT, buf,
					    len < FILE_RECORD_SIZE ? 0 : FILE_RECORD_SIZE - 4)) &&
	       !c.bad && !rcursor_left(&c) && !memcmp(magic, FILE_RECORD_MAGIC, 8) &&
	       version == FILE_RECORD_VERSION && state <= HELLO_CONTENT_WHOLE;
}

int file_record_decode(const struct file_record_place *place, uint64_t size, const uint8_t *buf,
		       size_t len, struct hello_content *content)
{
	struct rcursor c = rcursor_init(buf, len);
	struct hello_content found = {0};
	bool ours;

	memset(content, 0, sizeof(*content));
	if (!file_record_is_sound(buf, len))
		return -EILSEQ;
	rcursor_bytes(&c, 12);
	found.state = (uint8_t)rcursor_le(&c, 4);
	ours = rcursor_le(&c, 8) == place->inode;
	ours = rcursor_le(&c, 8) == place->made_ns && ours;
	found.length = rcursor_le(&c, 8);
	found.time_ns = rcursor_le(&c, 8);
	memcpy(found.digest, rcursor_bytes(&c, HELLO_DIGEST), HELLO_DIGEST);
	if (found.length > size &&
	    (found.state == HELLO_CONTENT_WHOLE || found.length != HELLO_LENGTH_UNKNOWN))
		ours = false;
	if (ours)
		*content = found;
	return 0;
}

int file_record_load(const struct file_record_place *place, uint64_t size,
		     struct hello_content *content)
{
	uint8_t buf[FILE_RECORD_SIZE + 1];
	int fd = open(place->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
	ssize_t len;

	memset(content, 0, sizeof(*content));
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	len = read(fd, buf, sizeof(buf));
	if (len < 0)
		len = -errno;
	close(fd);
	return len < 0 ? (int)len : file_record_decode(place, size, buf, (size_t)len, content);
}

static int file_record_write(struct newfile *nf, const struct file_record_place *place,
			     const struct hello_content *content, struct error *err)
{
	uint8_t buf[FILE_RECORD_SIZE];
	ssize_t n = write(nf->fd, buf, file_record_encode(place, content, buf));

	if (n != (ssize_t)sizeof(buf) || fchmod(nf->fd, place->mode))
		return error_set(err, ERROR_LOCAL, n < 0 ? errno : EIO, "%s", place->path);
	return newfile_commit(nf, true, err);
}

int file_record_store(const struct file_record_place *place, const struct hello_content *content)
{
	struct newfile_opts opts = {.path = place->path, .is_private = true};
	struct newfile nf;
	struct error err;
	int rc;

	rc = newfile_open(&nf, &opts, &err);
	if (!rc) {
		rc = file_record_write(&nf, place, content, &err);
		newfile_abort(&nf);
	}
	return rc ? -(err.cause ? err.cause : EIO) : 0;
}
