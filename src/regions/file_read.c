/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads a file. A small read uses memory of the ring, a large read uses the caller's buffer. */
#include "base/clock.h"
#include "regions/file_impl.h"

/* Post a read. The read also returns the bytes of all earlier writes, because the other end
 * executes operations in order. The thread that takes the completion copies the bytes to `to`;
 * NULL: no copy. */
static int file_read_post(struct rpma_file *f, struct rpma_mr_local *mr, size_t at, size_t len,
			  uint64_t offset, void *to)
{
	struct file_post *post;
	int rc = rpma_read(f->s.conn, mr, at, f->s.remote, offset, len, RPMA_F_COMPLETION_ALWAYS,
			   NULL);

	if (rc)
		return file_post_failed(f, "read from", rc);
	post = file_post_new(f);
	post->is_read = true;
	post->read_mr = NULL;
	post->read_to = to;
	post->read_from = at;
	post->read_len = len;
	return file_post_direct(f);
}

static int file_read_registered(struct rpma_file *f, struct rpma_mr_local *mr, size_t len,
				uint64_t offset)
{
	int rc = 0;

	for (size_t at = 0; at < len && !rc; at += FILE_PIECE) {
		size_t piece = len - at < FILE_PIECE ? len - at : FILE_PIECE;

		rc = file_reserve_direct(f);
		if (!rc)
			rc = file_read_post(f, mr, at, piece, offset + at, NULL);
	}
	return rc;
}

static int file_read_big(struct rpma_file *f, void *buf, size_t len, uint64_t offset)
{
	struct rpma_mr_local *mr = NULL;
	int rc = file_register(f, buf, len, RPMA_MR_USAGE_READ_DST, &mr);

	if (rc)
		return rc;
	rc = file_read_registered(f, mr, len, offset);
	/* After this call the device places no more bytes in the buffer, even if the connection
	 * has failed. */
	if (rc)
		rpma_mr_dereg(&mr);
	else
		f->posts[(f->posted - 1) % FILE_POSTS].read_mr = mr;
	return rc;
}

static int file_read_start(struct rpma_file *f, void *buf, size_t len, uint64_t offset)
{
	int rc;

	if (len >= FILE_BIG)
		return file_read_big(f, buf, len, offset);
	/* The call may begin two posts: one of the collected operations, then one of the read, which
	 * completes last. */
	rc = file_reserve(f, 2, len);
	/* Post before taking ring memory for the read: completions of the earlier posts free
	 * everything up to their ring_end. */
	if (!rc)
		rc = file_post_collected(f);
	if (!rc)
		rc = file_read_post(f, f->ring_mr, file_ring_take(f, len), len, offset, buf);
	return rc;
}

int rpma_file_pread(struct rpma_file *file, void *buf, size_t len, uint64_t offset)
{
	int rc;

	if (!file || (!buf && len))
		return file_error_invalid(__func__, "file or buf is NULL");
	rc = file_enter(file);
	if (rc)
		return rc;
	if (!file_is_inside(file, offset, len))
		rc = file_error_invalid(__func__, "a part of the range is outside the file");
	else if (len)
		rc = file_read_start(file, buf, len, offset);
	if (!rc && len)
		rc = file_wait(file, &file->completed, file->posted, CLOCK_NEVER);
	return file_leave(file, rc);
}

int rpma_file_pread_start(struct rpma_file *file, void *buf, size_t len, uint64_t offset,
			  uint64_t *ticket)
{
	int rc;

	if (!file || !buf || !len || !ticket)
		return file_error_invalid(__func__, "file, buf or ticket is NULL, or len is 0");
	rc = file_enter(file);
	if (rc)
		return rc;
	if (!file_is_inside(file, offset, len))
		rc = file_error_invalid(__func__, "a part of the range is outside the file");
	if (!rc)
		rc = file_read_start(file, buf, len, offset);
	if (!rc)
		file->posts[(file->posted - 1) % FILE_POSTS].ticket = ++file->tickets;
	return file_leave_with(file, rc, ticket);
}
