/* SPDX-License-Identifier: BSD-3-Clause */
/* Syncs a file: flushes everything, or some ranges, after the collected writes. */
#include <string.h>

#include "base/poll.h"
#include "regions/file_impl.h"

/* Flush everything by one operation. */
static inline int file_add_flush_all(struct rpma_file *f, int flags)
{
	/* Flush the whole region if a former connection left unflushed bytes, which a flush of all
	 * Writes of this connection does not cover, or if the peer does not support such a
	 * flush. */
	if (f->has_foreign || !(f->caps & RPMA_CAP_FLUSH_ALL))
		return rpma_batch_flush(f->batch, f->s.remote, 0, 0, f->flush_type, flags, NULL);
	return rpma_batch_flush_all(f->batch, f->flush_type, flags, NULL);
}

/* Add a flush for each range. Only the last flush gives a completion. */
static int file_add_flushes(struct rpma_file *f, const struct file_post *post)
{
	int rc = 0;

	for (unsigned i = 0; i < post->range_count && !rc; i++)
		rc = rpma_batch_flush(f->batch, f->s.remote, post->ranges[i].offset,
				      post->ranges[i].length, f->flush_type,
				      i + 1 < post->range_count ? RPMA_F_COMPLETION_ON_ERROR
								: RPMA_F_COMPLETION_ALWAYS,
				      NULL);
	return rc;
}

/* Post a sync, which gets the next ticket. */
static inline int file_sync_post(struct rpma_file *f, struct file_post *post, unsigned operations)
{
	int rc;

	f->operations += operations;
	rc = file_post(f);
	if (!rc)
		post->ticket = ++f->tickets;
	return rc;
}

static unsigned file_sync_take_ranges(struct file_post *post, const struct rpma_file_range *ranges,
				      size_t count)
{
	unsigned n = 0;

	for (size_t i = 0; i < count && count <= FILE_SYNC_RANGES; i++)
		if (ranges[i].length)
			post->ranges[n++] = ranges[i];
	return n;
}

/* Inline, because each sync calls this function and the compiler would make two functions of it. */
static inline __attribute__((always_inline)) int
file_sync_start(struct rpma_file *f, const struct rpma_file_range *ranges, size_t count)
{
	struct file_post *post;
	unsigned n;
	int rc = file_reserve(f, FILE_SYNC_RANGES + 1, 0);

	if (!rc)
		rc = file_close_run(f, RPMA_F_COMPLETION_ON_ERROR);
	if (rc)
		return rc;
	post = file_post_new(f);
	post->range_count = n = file_sync_take_ranges(post, ranges, count);
	rc = n ? file_add_flushes(f, post) : file_add_flush_all(f, RPMA_F_COMPLETION_ALWAYS);
	return rc ? file_post_failed(f, "flush at", rc) : file_sync_post(f, post, n ? n : 1);
}

static inline int file_sync_check(struct rpma_file *f, const char *function,
				  const struct rpma_file_range *ranges, size_t count)
{
	if (f->flags & RPMA_FILE_READONLY)
		return file_error_invalid(function, "the file was opened with RPMA_FILE_READONLY");
	for (size_t i = 0; i < count; i++)
		if (!file_is_inside(f, ranges[i].offset, ranges[i].length))
			return file_error_invalid(function, "a range is outside the file");
	return 0;
}

/* Enter the file and begin a sync. On 0 the caller must leave the file. */
static inline __attribute__((always_inline)) int
file_sync_begin(struct rpma_file *f, const char *function, const struct rpma_file_range *ranges,
		size_t count)
{
	int rc = file_enter(f);

	if (rc)
		return rc;
	rc = file_sync_check(f, function, ranges, count);
	if (!rc)
		rc = file_sync_start(f, ranges, count);
	return rc ? file_leave(f, rc) : 0;
}

/* Returns 0 if the ticket was answered, and an error if it was lost with a former connection. */
static int file_ticket_look_up(const struct rpma_file *f, uint64_t ticket)
{
	for (unsigned i = 0; i < f->gap_count; i++)
		if (ticket > f->gaps[i].from && ticket <= f->gaps[i].to)
			return file_error(RPMA_FILE_E_LOST,
					  "the connection of that sync has ended without its "
					  "answer: see rpma_file_get_undecided(3)");
	return 0;
}

/* Wait for a sync that this call began. The lock was not released since the begin, so the sync
 * cannot have an answer yet. */
static inline int file_sync_wait(struct rpma_file *f)
{
	return file_wait(f, &f->answered, f->tickets, CLOCK_NEVER);
}

/* Wait for a sync that an earlier call began, and that may have ended. */
static int file_sync_look(struct rpma_file *f, uint64_t ticket, int timeout_ms)
{
	if (ticket > f->answered && !f->failed && !f->polls)
		file_take(f);
	return ticket <= f->answered
		       ? file_ticket_look_up(f, ticket)
		       : file_wait(f, &f->answered, ticket, poll_deadline(timeout_ms));
}

int rpma_file_sync_start(struct rpma_file *file, const struct rpma_file_range *ranges, size_t count,
			 uint64_t *ticket)
{
	int rc;

	if (!file || !ticket || (!ranges && count))
		return file_error_invalid(__func__, "file, ranges or ticket is NULL");
	rc = file_sync_begin(file, __func__, ranges, count);
	return rc ? rc : file_leave_with(file, rc, ticket);
}

/* Do not call file_enter(), because an answered sync keeps its result after a failure of the
 * file. */
int rpma_file_sync_wait(struct rpma_file *file, uint64_t ticket, int timeout_ms)
{
	int rc;

	if (!file)
		return file_error_invalid(__func__, "file is NULL");
	lock_enter(&file->lock);
	file->inside++;
	if (!ticket || ticket > file->tickets)
		rc = file_error_invalid(__func__, "no operation has that ticket");
	else
		rc = file_sync_look(file, ticket, timeout_ms);
	return file_leave(file, rc);
}

int rpma_file_sync(struct rpma_file *file, const struct rpma_file_range *ranges, size_t count)
{
	int rc;

	if (!file || (!ranges && count))
		return file_error_invalid(__func__, "file or ranges is NULL");
	rc = file_sync_begin(file, __func__, ranges, count);
	return rc ? rc : file_leave(file, file_sync_wait(file));
}

/* Send all written bytes, the word, and the word's flush as one post. */
static int file_store8_at_once(struct rpma_file *f, uint64_t offset, uint64_t value)
{
	struct file_post *post;
	char word[8];
	int rc = file_reserve(f, 4, 0);

	memcpy(word, &value, sizeof(word));
	if (!rc)
		rc = file_close_run(f, RPMA_F_COMPLETION_ON_ERROR);
	if (rc)
		return rc;
	post = file_post_new(f);
	file_ranges_note(&f->ranges, offset, sizeof(word), f->tickets + 1);
	rc = file_add_flush_all(f, RPMA_F_COMPLETION_ON_ERROR);
	if (!rc)
		rc = rpma_batch_atomic_write(f->batch, f->s.remote, offset, word,
					     RPMA_F_COMPLETION_ON_ERROR, NULL);
	if (!rc)
		rc = rpma_batch_flush(f->batch, f->s.remote, offset, sizeof(word), f->flush_type,
				      RPMA_F_COMPLETION_ALWAYS, NULL);
	return rc ? file_post_failed(f, "write to", rc) : file_sync_post(f, post, 3);
}

/* Send the word only after the sync of the earlier writes was answered. */
static int file_store8_in_steps(struct rpma_file *f, uint64_t offset, uint64_t value)
{
	char word[8];
	int rc = file_sync_start(f, NULL, 0);

	memcpy(word, &value, sizeof(word));
	if (!rc)
		rc = file_sync_wait(f);
	if (!rc)
		rc = file_reserve_direct(f);
	if (rc)
		return rc;
	rc = rpma_atomic_write(f->s.conn, f->s.remote, offset, word, RPMA_F_COMPLETION_ALWAYS,
			       NULL);
	if (rc)
		return file_post_failed(f, "write to", rc);
	file_ranges_note(&f->ranges, offset, sizeof(word), f->tickets + 1);
	file_post_new(f);
	rc = file_post_direct(f);
	return rc ? rc : file_sync_start(f, NULL, 0);
}

static int file_store8_check(struct rpma_file *f, const char *function, uint64_t offset)
{
	if (f->flags & RPMA_FILE_READONLY)
		return file_error_invalid(function, "the file was opened with RPMA_FILE_READONLY");
	if (offset % RPMA_ATOMIC_WRITE_ALIGNMENT)
		return file_error_invalid(function, "offset is no multiple of 8");
	if (!file_is_inside(f, offset, 8) || offset < f->write_from || offset + 8 > f->write_to)
		return file_error_invalid(
			function, "the word is outside the file, or not reserved for this writer");
	return 0;
}

/* Enter the file and begin a store. On 0 the caller must leave the file. */
static int file_store8_begin(struct rpma_file *f, const char *function, uint64_t offset,
			     uint64_t value)
{
	static const uint32_t needed = RPMA_CAP_ATOMIC_WRITE | RPMA_CAP_FLUSH;
	int rc = file_enter(f);

	if (rc)
		return rc;
	rc = file_store8_check(f, function, offset);
	if (!rc)
		rc = (f->caps & needed) == needed ? file_store8_at_once(f, offset, value)
						  : file_store8_in_steps(f, offset, value);
	return rc ? file_leave(f, rc) : 0;
}

int rpma_file_store8_start(struct rpma_file *file, uint64_t offset, uint64_t value,
			   uint64_t *ticket)
{
	int rc;

	if (!file || !ticket)
		return file_error_invalid(__func__, "file or ticket is NULL");
	rc = file_store8_begin(file, __func__, offset, value);
	return rc ? rc : file_leave_with(file, rc, ticket);
}

int rpma_file_store8(struct rpma_file *file, uint64_t offset, uint64_t value)
{
	int rc;

	if (!file)
		return file_error_invalid(__func__, "file is NULL");
	rc = file_store8_begin(file, __func__, offset, value);
	return rc ? rc : file_leave(file, file_sync_wait(file));
}
