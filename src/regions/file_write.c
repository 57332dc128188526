/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes to a file. Small writes are copied and collected, large writes are sent from the caller's
 * buffer. */
#include <limits.h>
#include <string.h>

#include "base/clock.h"
#include "base/word.h"
#include "regions/file_impl.h"

/* Collect the bytes. The bytes join the run if they continue the run both in the file and in the
 * ring. */
static inline int file_collect(struct rpma_file *f, const void *buf, size_t len, uint64_t offset)
{
	size_t at = file_ring_take(f, len);
	bool adjacent =
		f->run.len && f->run.at + f->run.len == at && f->run.offset + f->run.len == offset;
	int rc = adjacent ? 0 : file_close_run(f, RPMA_F_COMPLETION_ON_ERROR);

	if (rc)
		return rc;
	memcpy(f->ring + at, buf, len);
	if (!adjacent)
		f->run = (struct file_run){.at = at, .offset = offset};
	f->run.len += len;
	f->unposted += len;
	file_ranges_note(&f->ranges, offset, len, f->tickets + 1);
	return 0;
}

static int file_write_piece(struct rpma_file *f, const struct rpma_mr_local *mr, size_t at,
			    size_t len, uint64_t offset)
{
	int rc = file_reserve_direct(f);

	if (rc)
		return rc;
	rc = rpma_write(f->s.conn, f->s.remote, offset, mr, at, len, RPMA_F_COMPLETION_ALWAYS,
			NULL);
	if (rc)
		return file_post_failed(f, "write to", rc);
	file_ranges_note(&f->ranges, offset, len, f->tickets + 1);
	file_post_new(f);
	return file_post_direct(f);
}

static int file_write_registered(struct rpma_file *f, const struct rpma_mr_local *mr, size_t len,
				 uint64_t offset)
{
	int rc = 0;

	for (size_t at = 0, piece; at < len && !rc; at += piece) {
		piece = word_piece(offset + at, len - at, FILE_PIECE);
		rc = file_write_piece(f, mr, at, piece, offset + at);
	}
	return rc ? rc : file_wait(f, &f->completed, f->posted, CLOCK_NEVER);
}

static int file_write_big(struct rpma_file *f, const void *buf, size_t len, uint64_t offset)
{
	struct rpma_mr_local *mr = NULL;
	int rc = file_register(f, (void *)(uintptr_t)buf, len, RPMA_MR_USAGE_WRITE_SRC, &mr);

	if (rc)
		return rc;
	rc = file_write_registered(f, mr, len, offset);
	rpma_mr_dereg(&mr);
	return rc;
}

static inline int file_write(struct rpma_file *f, const void *buf, size_t len, uint64_t offset)
{
	int rc;

	if (len >= FILE_BIG)
		return file_write_big(f, buf, len, offset);
	if (!len)
		return 0;
	rc = file_reserve(f, 2, len);
	if (!rc)
		rc = file_collect(f, buf, len, offset);
	if (!rc && (f->unposted >= FILE_COLLECT || f->operations - f->left >= FILE_BATCH_WRITE))
		rc = file_post_collected(f);
	return rc;
}

/* Refuse a range with the reason. Returns 0 for an empty range inside the file. */
static __attribute__((noinline)) int
file_write_refuse(const struct rpma_file *f, const char *function, uint64_t offset, uint64_t len)
{
	if (f->flags & RPMA_FILE_READONLY)
		return file_error_invalid(function, "the file was opened with RPMA_FILE_READONLY");
	if (!file_is_inside(f, offset, len))
		return file_error_invalid(function, "a part of the range is outside the file");
	if (len && (offset < f->write_from || offset + len > f->write_to))
		return file_error_invalid(function,
					  "a part of the range is not reserved for this writer");
	return 0;
}

/* Check only that the range is in the part reserved for this writer: that part is inside the
 * file. */
static inline int file_write_check(const struct rpma_file *f, const char *function, uint64_t offset,
				   uint64_t len)
{
	bool may = len && offset >= f->write_from && offset <= f->write_to &&
		   len <= f->write_to - offset && !(f->flags & RPMA_FILE_READONLY);

	return __builtin_expect(may, 1) ? 0 : file_write_refuse(f, function, offset, len);
}

int rpma_file_pwrite(struct rpma_file *file, const void *buf, size_t len, uint64_t offset)
{
	int rc;

	if (!file || (!buf && len))
		return file_error_invalid(__func__, "file or buf is NULL");
	rc = file_enter(file);
	if (rc)
		return rc;
	rc = file_write_check(file, __func__, offset, len);
	return file_leave(file, rc ? rc : file_write(file, buf, len, offset));
}

static int file_iov_check(const struct iovec *iov, int iovcnt, uint64_t *len)
{
	*len = 0;
	if (!iov || iovcnt < 0 || iovcnt > IOV_MAX)
		return -1;
	for (int i = 0; i < iovcnt; i++) {
		if (!iov[i].iov_base && iov[i].iov_len)
			return -1;
		if (__builtin_add_overflow(*len, iov[i].iov_len, len))
			return -1;
	}
	return 0;
}

int rpma_file_pwritev(struct rpma_file *file, const struct iovec *iov, int iovcnt, uint64_t offset)
{
	uint64_t len;
	int rc;

	if (!file || file_iov_check(iov, iovcnt, &len))
		return file_error_invalid(__func__, "file, iov or iovcnt is wrong");
	rc = file_enter(file);
	if (rc)
		return rc;
	rc = file_write_check(file, __func__, offset, len);
	for (int i = 0; i < iovcnt && !rc; i++) {
		rc = file_write(file, iov[i].iov_base, iov[i].iov_len, offset);
		offset += iov[i].iov_len;
	}
	return file_leave(file, rc);
}
