/* SPDX-License-Identifier: BSD-3-Clause */
/* Compares the server's medium with the caller's bytes. */
#include <inttypes.h>

#include "base/clock.h"
#include "regions/file_impl.h"

/* Request the digest. f->digest is valid when all posts up to *number have completed. */
static int file_digest_post(struct rpma_file *f, size_t len, uint64_t offset, uint64_t *number)
{
	int rc = file_reserve_direct(f);

	if (rc)
		return rc;
	rc = rpma_verify(f->s.conn, f->s.remote, offset, len, RPMA_DIGEST_BLAKE2B, &f->digest,
			 RPMA_F_COMPLETION_ALWAYS, NULL);
	if (rc)
		return file_post_failed(f, "verify at", rc);
	file_post_new(f);
	rc = file_post_direct(f);
	*number = f->posted;
	return rc;
}

/* The server reads its medium while this end computes its own digest. */
static int file_verify_piece(struct rpma_file *f, const void *buf, size_t len, uint64_t offset)
{
	struct rpma_digest here;
	uint64_t number = 0;
	int rc = file_digest_post(f, len, offset, &number);

	if (rc)
		return rc;
	lock_leave(&f->lock);
	rpma_digest_compute(RPMA_DIGEST_BLAKE2B, buf, len, &here);
	lock_enter(&f->lock);
	rc = file_wait(f, &f->completed, number, CLOCK_NEVER);
	if (rc || rpma_digest_equal(&f->digest, &here))
		return rc;
	return file_error(
		RPMA_FILE_E_DIFFERS,
		"the bytes from %" PRIu64 " to %" PRIu64
		" of region '%s' of %s differ from the buffer: other bytes were written there, or "
		"the server's medium is broken",
		offset, offset + len, f->s.region.region, f->s.server);
}

static int file_verify(struct rpma_file *f, const void *buf, size_t len, uint64_t offset)
{
	int rc = 0;

	for (size_t at = 0; at < len && !rc; at += RPMA_FILE_DIGEST_MAX) {
		size_t piece = len - at < RPMA_FILE_DIGEST_MAX ? len - at : RPMA_FILE_DIGEST_MAX;

		rc = file_verify_piece(f, (const char *)buf + at, piece, offset + at);
	}
	return rc;
}

static int file_digest_check(const struct rpma_file *f, const char *function, uint64_t offset,
			     uint64_t len)
{
	if (f->flags & RPMA_FILE_READONLY)
		return file_error_invalid(function, "the file was opened with RPMA_FILE_READONLY");
	if (!file_is_inside(f, offset, len))
		return file_error_invalid(function, "a part of the range is outside the file");
	if (f->persists && f->caps & RPMA_CAP_VERIFY)
		return 0;
	return file_error(RPMA_E_NOSUPP,
			  "%s cannot read the bytes of region '%s' back from a medium", f->s.server,
			  f->s.region.region);
}

/* Only one thread at a time requests a digest, because there is only one f->digest. */
static int file_digest_enter(struct rpma_file *f, const char *function, uint64_t offset,
			     uint64_t len)
{
	int rc;

	pthread_mutex_lock(&f->verify_lock);
	rc = file_enter(f);
	if (!rc) {
		rc = file_digest_check(f, function, offset, len);
		if (!rc)
			return 0;
		file_leave(f, rc);
	}
	pthread_mutex_unlock(&f->verify_lock);
	return rc;
}

static int file_digest_leave(struct rpma_file *f, int rc)
{
	file_leave(f, rc);
	pthread_mutex_unlock(&f->verify_lock);
	return rc;
}

int rpma_file_verify(struct rpma_file *file, const void *buf, size_t len, uint64_t offset)
{
	int rc;

	if (!file || (!buf && len))
		return file_error_invalid(__func__, "file or buf is NULL");
	rc = file_digest_enter(file, __func__, offset, len);
	return rc ? rc : file_digest_leave(file, file_verify(file, buf, len, offset));
}

static int file_digest(struct rpma_file *f, struct rpma_digest *digest, size_t len, uint64_t offset)
{
	uint64_t number = 0;
	int rc = file_digest_post(f, len, offset, &number);

	if (!rc)
		rc = file_wait(f, &f->completed, number, CLOCK_NEVER);
	if (!rc)
		*digest = f->digest;
	return rc;
}

int rpma_file_digest(struct rpma_file *file, struct rpma_digest *digest, size_t len,
		     uint64_t offset)
{
	int rc;

	if (!file || !digest || !len || len > RPMA_FILE_DIGEST_MAX)
		return file_error_invalid(__func__, "file or digest is NULL, or len is not 1 to "
						    "RPMA_FILE_DIGEST_MAX");
	rc = file_digest_enter(file, __func__, offset, len);
	return rc ? rc : file_digest_leave(file, file_digest(file, digest, len, offset));
}
