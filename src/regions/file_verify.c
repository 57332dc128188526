/* SPDX-License-Identifier: BSD-3-Clause */
/* Does the server's medium hold what the caller has? */
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "regions/file_impl.h"

#define VERIFY_PIECE (32u << 20)

/* The server reads its medium while this end sums its own bytes. */
static int file_verify_piece(struct rpma_file *f, const void *buf, size_t len, uint64_t offset)
{
	struct rpma_digest here;
	uint64_t number;
	int rc = file_reserve_direct(f);

	if (rc)
		return rc;
	rc = rpma_verify(f->s.conn, f->s.remote, offset, len, RPMA_DIGEST_BLAKE2B, &f->digest,
			 RPMA_F_COMPLETION_ALWAYS, NULL);
	if (rc)
		return file_post_failed(f, "verify at", rc);
	file_post_new(f);
	rc = file_post_direct(f);
	number = f->posted;
	if (rc)
		return rc;
	lock_leave(&f->lock);
	rpma_digest_compute(RPMA_DIGEST_BLAKE2B, buf, len, &here);
	lock_enter(&f->lock);
	rc = file_wait(f, &f->completed, number, CLOCK_NEVER);
	if (rc || rpma_digest_equal(&f->digest, &here))
		return rc;
	return file_error(RPMA_FILE_E_DIFFERS,
			  "the bytes from %" PRIu64 " to %" PRIu64 " of region '%s' of %s are not "
			  "those of the buffer: other bytes were written there, or its medium is "
			  "broken",
			  offset, offset + len, f->s.region.region, f->s.server);
}

static int file_verify(struct rpma_file *f, const void *buf, size_t len, uint64_t offset)
{
	int rc = 0;

	if (!(f->caps & RPMA_CAP_VERIFY) || f->flush_type != RPMA_FLUSH_TYPE_PERSISTENT)
		return file_error(RPMA_E_NOSUPP,
				  "%s cannot read back from a medium what region '%s' holds",
				  f->s.server, f->s.region.region);
	for (size_t at = 0; at < len && !rc; at += VERIFY_PIECE) {
		size_t piece = len - at < VERIFY_PIECE ? len - at : VERIFY_PIECE;

		rc = file_verify_piece(f, (const char *)buf + at, piece, offset + at);
	}
	return rc;
}

int rpma_file_verify(struct rpma_file *file, const void *buf, size_t len, uint64_t offset)
{
	int rc;

	if (!file || (!buf && len))
		return file_error_invalid(__func__, "file or buf is NULL");
	pthread_mutex_lock(&file->verify_lock);
	rc = file_enter(file);
	if (!rc) {
		if (file->flags & RPMA_FILE_READONLY)
			rc = file_error_invalid(__func__,
						"the file was opened with RPMA_FILE_READONLY");
		else if (!file_is_inside(file, offset, len))
			rc = file_error_invalid(__func__,
						"a part of the range is outside the file");
		rc = file_leave(file, rc ? rc : file_verify(file, buf, len, offset));
	}
	pthread_mutex_unlock(&file->verify_lock);
	return rc;
}
