/* SPDX-License-Identifier: BSD-3-Clause */
/* Claims the part of the region that this client writes, either as bytes or as a file. */
#include <string.h>

#include "base/clock.h"
#include "regions/file_impl.h"

/* Before the claim succeeds, another writer may be writing to the range, and the content after a
 * crash is unknown. */
int file_claim(struct rpma_file *f, struct error *err)
{
	int rc;

	if (!f->claims)
		return 0;
	if (!f->begin.is_file) {
		f->begin.offset = f->write_from;
		f->begin.length = f->write_to - f->write_from;
	}
	f->begin.former = f->claim;
	rc = session_put_begin(&f->s, &f->begin, err);
	if (!rc)
		f->claim = f->s.claim;
	return rc;
}

int file_sync_rest(struct rpma_file *f)
{
	bool is_needed = f->ranges.count || f->unposted || f->posted > f->completed;

	return is_needed ? rpma_file_sync(f, NULL, 0) : 0;
}

static int file_claim_refuse(const struct rpma_file *f, const char *function, uint64_t from,
			     uint64_t to)
{
	if (!(f->flags & RPMA_FILE_UNCLAIMED) || f->claims || f->has_put)
		return file_error_invalid(
			function,
			"the file was not opened with RPMA_FILE_UNCLAIMED, or has claimed its "
			"range already");
	if (from > to || to > f->length)
		return file_error_invalid(function, "a part of the range is outside the file");
	return 0;
}

/* Call this once for each connection, because the server accepts only one announcement. */
static int file_claim_now(struct rpma_file *f, const struct hello_begin *begin, uint64_t to)
{
	struct error err;
	int rc;

	/* Wait for the completions of all posts, so that the next completion belongs to a question. */
	rc = file_wait(f, &f->completed, f->posted, CLOCK_NEVER);
	if (rc)
		return rc;
	f->begin = *begin;
	f->write_from = begin->offset;
	f->write_to = to;
	f->claims = true;
	if (!file_claim(f, &err))
		return 0;
	f->claims = false;
	f->write_from = f->write_to = 0;
	return file_fail(f, file_error_code(&err), &err);
}

static int file_claim_late(struct rpma_file *f, const char *function,
			   const struct hello_begin *begin, bool is_to_end)
{
	uint64_t to = begin->offset + begin->length;
	int rc = file_enter(f);

	if (rc)
		return rc;
	if (is_to_end)
		to = f->length;
	rc = file_claim_refuse(f, function, begin->offset, to);
	return file_leave(f, rc ? rc : file_claim_now(f, begin, to));
}

int rpma_file_claim(struct rpma_file *file, uint64_t offset, uint64_t length)
{
	struct hello_begin begin = {.offset = offset, .length = length};

	if (!file)
		return file_error_invalid(__func__, "file is NULL");
	return file_claim_late(file, __func__, &begin, !length);
}

int rpma_file_put_begin(struct rpma_file *file, uint64_t length, uint64_t time_ns)
{
	struct hello_begin begin = {.is_file = true, .length = length, .time_ns = time_ns};

	if (!file)
		return file_error_invalid(__func__, "file is NULL");
	return file_claim_late(file, __func__, &begin, length == HELLO_LENGTH_UNKNOWN);
}

static int file_put_end_now(struct rpma_file *f, uint64_t length, const uint8_t *digest)
{
	struct hello_content content = {
		.state = HELLO_CONTENT_WHOLE, .length = length, .time_ns = f->begin.time_ns};
	struct error err;

	memcpy(content.digest, digest, sizeof(content.digest));
	if (session_put_end(&f->s, &content, &err))
		return file_fail(f, file_error_code(&err), &err);
	f->has_put = true;
	f->claims = false; /* another connection would start the put from the beginning */
	f->write_from = f->write_to = 0;
	return 0;
}

static int file_put_end_check(const struct rpma_file *f, const char *function, uint64_t length)
{
	if (!f->claims || !f->begin.is_file)
		return file_error_invalid(function, "rpma_file_put_begin() has not begun a put");
	if (length > f->write_to ||
	    (f->begin.length != HELLO_LENGTH_UNKNOWN && length != f->begin.length))
		return file_error_invalid(
			function,
			"length differs from that of rpma_file_put_begin(), or is greater than the "
			"region");
	return 0;
}

int rpma_file_put_end(struct rpma_file *file, uint64_t length, const uint8_t digest[32])
{
	int rc;

	if (!file || !digest)
		return file_error_invalid(__func__, "file or digest is NULL");
	rc = file_enter(file);
	if (rc)
		return rc;
	rc = file_leave(file, file_put_end_check(file, __func__, length));
	if (!rc)
		rc = file_sync_rest(file);
	if (rc)
		return rc;
	rc = file_enter(file);
	return rc ? rc : file_leave(file, file_put_end_now(file, length, digest));
}
