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
#define FILE_RECORD_VERSION 2

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

static void file_record_put_claims(struct wcursor *c, const struct claims *claims)
{
	wcursor_le(c, claims->newest, 8);
	wcursor_le(c, claims->count, 4);
	for (unsigned i = 0; i < CLAIMS_MAX; i++) {
		static const struct claim none;
		const struct claim *claim = i < claims->count ? &claims->list[i] : &none;

		wcursor_le(c, claim->from, 8);
		wcursor_le(c, claim->to, 8);
		wcursor_le(c, claim->id.generation, 8);
		wcursor_le(c, claim->id.key, 8);
		wcursor_le(c, claim->made_ns, 8);
	}
}

/* Returns false for claims that file_record_encode() cannot have written. */
static bool file_record_get_claims(struct rcursor *c, struct claims *claims)
{
	claims->newest = rcursor_le(c, 8);
	claims->count = (unsigned)rcursor_le(c, 4);
	for (unsigned i = 0; i < CLAIMS_MAX; i++) {
		struct claim *claim = &claims->list[i];

		claim->from = rcursor_le(c, 8);
		claim->to = rcursor_le(c, 8);
		claim->id.generation = rcursor_le(c, 8);
		claim->id.key = rcursor_le(c, 8);
		claim->made_ns = rcursor_le(c, 8);
	}
	return claims_are_sound(claims);
}

size_t file_record_encode(const struct file_record_place *place, const struct file_record *record,
			  uint8_t *buf)
{
	const struct hello_content *content = &record->content;
	struct wcursor c = wcursor_init(buf, FILE_RECORD_SIZE);

	wcursor_bytes(&c, FILE_RECORD_MAGIC, 8);
	wcursor_le(&c, FILE_RECORD_VERSION, 4);
	wcursor_le(&c, content->state, 4);
	wcursor_le(&c, place->inode, 8);
	wcursor_le(&c, place->made_ns, 8);
	wcursor_le(&c, content->length, 8);
	wcursor_le(&c, content->time_ns, 8);
	wcursor_bytes(&c, content->digest, HELLO_DIGEST);
	file_record_put_claims(&c, &record->claims);
	wcursor_le(&c, crc32c_final(crc32c_update(CRC32C_INIT, buf, wcursor_len(&c))), 4);
	return wcursor_len(&c);
}

static bool file_record_is_whole(const uint8_t *buf, size_t len)
{
	struct rcursor c = rcursor_init(buf, len);

	if (len != FILE_RECORD_SIZE)
		return false;
	rcursor_bytes(&c, FILE_RECORD_SIZE - 4);
	return rcursor_le(&c, 4) ==
	       crc32c_final(crc32c_update(CRC32C_INIT, buf, FILE_RECORD_SIZE - 4));
}

/* Returns true if a region of that size can hold this content. */
static bool file_record_fits(const struct hello_content *content, uint64_t size)
{
	return content->length <= size ||
	       (content->state != HELLO_CONTENT_WHOLE && content->length == HELLO_LENGTH_UNKNOWN);
}

int file_record_decode(const struct file_record_place *place, uint64_t size, const uint8_t *buf,
		       size_t len, struct file_record *record)
{
	struct rcursor c = rcursor_init(buf, len);
	struct file_record found = {0};
	bool ours;

	memset(record, 0, sizeof(*record));
	if (!file_record_is_whole(buf, len) || memcmp(rcursor_bytes(&c, 8), FILE_RECORD_MAGIC, 8) ||
	    rcursor_le(&c, 4) != FILE_RECORD_VERSION)
		return -EILSEQ;
	found.content.state = (uint8_t)rcursor_le(&c, 4);
	ours = rcursor_le(&c, 8) == place->inode;
	ours = rcursor_le(&c, 8) == place->made_ns && ours;
	found.content.length = rcursor_le(&c, 8);
	found.content.time_ns = rcursor_le(&c, 8);
	memcpy(found.content.digest, rcursor_bytes(&c, HELLO_DIGEST), HELLO_DIGEST);
	if (!file_record_get_claims(&c, &found.claims) || found.content.state > HELLO_CONTENT_WHOLE)
		return -EILSEQ;
	if (!ours)
		return 0;
	record->claims = found.claims;
	if (file_record_fits(&found.content, size))
		record->content = found.content;
	return 0;
}

int file_record_load(const struct file_record_place *place, uint64_t size,
		     struct file_record *record)
{
	uint8_t buf[FILE_RECORD_SIZE + 1];
	int fd = open(place->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
	ssize_t len;

	memset(record, 0, sizeof(*record));
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	len = read(fd, buf, sizeof(buf));
	if (len < 0)
		len = -errno;
	close(fd);
	return len < 0 ? (int)len : file_record_decode(place, size, buf, (size_t)len, record);
}

static int file_record_write(struct newfile *nf, const struct file_record_place *place,
			     const struct file_record *record, struct error *err)
{
	uint8_t buf[FILE_RECORD_SIZE];
	ssize_t n = write(nf->fd, buf, file_record_encode(place, record, buf));

	if (n != (ssize_t)sizeof(buf) || fchmod(nf->fd, place->mode))
		return error_set(err, ERROR_LOCAL, n < 0 ? errno : EIO, "%s", place->path);
	return newfile_commit(nf, true, err);
}

static int file_record_replace(const struct file_record_place *place,
			       const struct file_record *record)
{
	struct newfile_opts opts = {.path = place->path, .is_private = true};
	struct newfile nf;
	struct error err;
	int rc;

	rc = newfile_open(&nf, &opts, &err);
	if (!rc) {
		rc = file_record_write(&nf, place, record, &err);
		newfile_abort(&nf);
	}
	return rc ? -(err.cause ? err.cause : EIO) : 0;
}

/* Overwrite the blocks of the former record, without allocating new blocks. */
static int file_record_overwrite(const struct file_record_place *place,
				 const struct file_record *record)
{
	int fd = open(place->path, O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
	uint8_t buf[FILE_RECORD_SIZE];
	struct stat st;
	int rc = -ENOSPC;

	if (fd < 0)
		return rc;
	file_record_encode(place, record, buf);
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size == FILE_RECORD_SIZE &&
	    pwrite(fd, buf, sizeof(buf), 0) == (ssize_t)sizeof(buf))
		rc = fsync(fd) ? -errno : 0;
	close(fd);
	return rc;
}

int file_record_store(const struct file_record_place *place, const struct file_record *record)
{
	int rc = file_record_replace(place, record);

	return rc == -ENOSPC || rc == -EDQUOT ? file_record_overwrite(place, record) : rc;
}
