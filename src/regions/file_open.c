/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens files, opens them again after a loss, and closes them. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/poll.h"
#include "base/thread.h"
#include "regions/file_impl.h"

#define OPEN_TIMEOUT_MS 60000
#define OPEN_PAUSE_MS   50
/* Longest duration of one attempt if reconnect_ms is set, so that there is time for a second
 * attempt. */
#define OPEN_ATTEMPT_MS 2000

static int file_choose_flush(struct rpma_file *f, struct error *err)
{
	int type = 0;

	rpma_mr_remote_get_flush_type(f->s.remote, &type);
	f->persists = type & RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT;
	f->flush_type = RPMA_FLUSH_TYPE_PERSISTENT;
	if (f->persists || f->flags & RPMA_FILE_READONLY)
		return 0;
	f->flush_type = RPMA_FLUSH_TYPE_VISIBILITY;
	if (f->flags & RPMA_FILE_VOLATILE_OK)
		return 0;
	return error_set(err, ERROR_LOCAL, EMEDIUMTYPE,
			 "region '%s' of %s is %s memory that its server cannot persist; "
			 "RPMA_FILE_VOLATILE_OK accepts that",
			 f->s.region.region, f->s.server,
			 rpma_utils_durability_2str(f->s.region.durability));
}

/* A later open must find the region of the first open: the same name and size. */
static int file_take_region(struct rpma_file *f, struct error *err)
{
	const struct hello_reply *region = &f->s.region;

	if (f->length && region->size != f->length)
		return error_set(err, ERROR_REFUSED, HELLO_FILE_REPLACED,
				 "region '%s' of %s had %llu bytes before and has %llu now",
				 region->region, f->s.server, (unsigned long long)f->length,
				 (unsigned long long)region->size);
	f->length = region->size;
	f->durability = (enum rpma_durability)region->durability;
	f->content = region->content;
	snprintf(f->target.region, sizeof(f->target.region), "%s", region->region);
	snprintf(f->device, sizeof(f->device), "%s", f->s.device);
	if (!f->write_to && f->claims)
		f->write_to = f->length;
	if (f->write_from > f->length || f->write_to > f->length)
		return error_set(err, ERROR_ARGUMENT, EINVAL,
				 "write_offset and write_length are outside region '%s' of %llu "
				 "bytes",
				 region->region, (unsigned long long)f->length);
	return file_choose_flush(f, err);
}

static int file_prepare(struct rpma_file *f, struct error *err)
{
	int rc = session_register(&f->s, f->ring, FILE_RING, &f->ring_mr, err);

	if (rc)
		return rc;
	rc = rpma_batch_new(f->s.conn, FILE_BATCH, &f->batch);
	if (!rc)
		rc = rpma_conn_get_remote_caps(f->s.conn, &f->caps);
	return rc ? session_post_failed(&f->s, "prepare the connection to", rc, err) : 0;
}

static void file_disconnect(struct rpma_file *f)
{
	file_drop_reads(f);
	rpma_batch_delete(&f->batch);
	rpma_mr_dereg(&f->ring_mr);
	session_close(&f->s);
}

static int file_connect_once(struct rpma_file *f, int timeout_ms, struct error *err)
{
	struct session_opts opts = {.server = f->target.server,
				    .region = f->target.region,
				    .access = f->flags & RPMA_FILE_READONLY ? HELLO_READ
									    : HELLO_WRITE,
				    .depth = FILE_DEPTH,
				    .timeout_ms = timeout_ms,
				    .owner = f->owner[0] ? f->owner : NULL};
	int rc = session_open_with_file(&f->s, &opts, f->secret_file, err);

	if (rc)
		return rc;
	f->s.timeout_ms = f->timeout_ms;
	rc = file_take_region(f, err);
	if (!rc)
		rc = file_prepare(f, err);
	if (!rc)
		rc = file_claim(f, err);
	if (rc)
		file_disconnect(f);
	return rc;
}

/* Returns true for a failure that may be temporary: the server restarts, or has not noticed the end
 * of a former writer yet. */
static bool file_may_pass(const struct error *err)
{
	return err->kind == ERROR_UNREACHED || err->kind == ERROR_FAILED ||
	       (err->kind == ERROR_REFUSED &&
		(err->cause == HELLO_BEING_WRITTEN || err->cause == HELLO_FILE_UNKNOWN));
}

static int file_connect(struct rpma_file *f, struct error *err)
{
	uint64_t deadline = poll_deadline(f->reconnect_ms);
	bool is_long = f->timeout_ms < 0 || f->timeout_ms > OPEN_ATTEMPT_MS;
	int attempt_ms = f->reconnect_ms && is_long ? OPEN_ATTEMPT_MS : f->timeout_ms;
	int rc;

	for (;;) {
		rc = file_connect_once(f, attempt_ms, err);
		if (!rc || !file_may_pass(err) || poll_ms_left(deadline) == 0)
			return rc;
		poll(NULL, 0, OPEN_PAUSE_MS);
	}
}

static void file_free(struct rpma_file *f)
{
	free(f->ring);
	free(f->secret_file);
	pthread_mutex_destroy(&f->verify_lock);
	pthread_cond_destroy(&f->moved);
	pthread_mutex_destroy(&f->sleep_lock);
	free(f);
}

const struct rpma_file_options *file_options_or_defaults(const struct rpma_file_options *o)
{
	static const struct rpma_file_options defaults = {.size = sizeof(defaults)};

	return o ? o : &defaults;
}

bool file_options_are_valid(const struct rpma_file_options *o)
{
	if (o->size < sizeof(*o))
		return false;
	if (o->flags & ~(RPMA_FILE_READONLY | RPMA_FILE_VOLATILE_OK | RPMA_FILE_UNCLAIMED))
		return false;
	if (o->flags & RPMA_FILE_UNCLAIMED &&
	    (o->flags & RPMA_FILE_READONLY || o->write_offset || o->write_length))
		return false;
	if (o->timeout_ms < -1 || o->reconnect_ms < -1)
		return false;
	return !o->owner || (o->owner[0] && strlen(o->owner) <= RPMA_CONN_OWNER_MAX);
}

int file_options_timeout(const struct rpma_file_options *o)
{
	return o->timeout_ms ? o->timeout_ms : OPEN_TIMEOUT_MS;
}

static int file_take_options(struct rpma_file *f, const struct rpma_file_options *o)
{
	if (!file_options_are_valid(o))
		return -1;
	snprintf(f->owner, sizeof(f->owner), "%s", o->owner ? o->owner : "");
	f->flags = o->flags;
	f->claims = !(o->flags & (RPMA_FILE_READONLY | RPMA_FILE_UNCLAIMED));
	f->timeout_ms = file_options_timeout(o);
	f->reconnect_ms = o->reconnect_ms;
	f->write_from = o->write_offset;
	if (o->write_length &&
	    __builtin_add_overflow(o->write_offset, o->write_length, &f->write_to))
		return -1;
	return 0;
}

static struct rpma_file *file_new(const struct rpma_file_options *options)
{
	struct rpma_file *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	lock_init(&f->lock);
	pthread_mutex_init(&f->sleep_lock, NULL);
	pthread_mutex_init(&f->verify_lock, NULL);
	thread_cond_init(&f->moved);
	f->ring = aligned_alloc(4096, FILE_RING);
	if (options->secret_file)
		f->secret_file = strdup(options->secret_file);
	if (f->ring && (f->secret_file || !options->secret_file))
		return f;
	file_free(f);
	return NULL;
}

int rpma_file_open(const char *target, const struct rpma_file_options *options,
		   struct rpma_file **file_ptr)
{
	struct rpma_file *f;
	struct error err;
	int rc;

	if (!target || !file_ptr)
		return file_error_invalid(__func__, "target or file_ptr is NULL");
	options = file_options_or_defaults(options);
	f = file_new(options);
	if (!f)
		return file_error(RPMA_E_NOMEM, "%s: out of memory", __func__);
	if (file_take_options(f, options)) {
		file_free(f);
		return file_error_invalid(__func__, "a member of options is wrong");
	}
	rc = target_parse(target, &f->target, &err);
	if (!rc)
		rc = file_connect(f, &err);
	if (rc) {
		file_free(f);
		return file_error_of(&err);
	}
	*file_ptr = f;
	return 0;
}

/* Give up all operations that were posted on the former connection: their tickets get no answer
 * any more. */
static void file_reset(struct rpma_file *f)
{
	struct file_gap *gaps = f->gaps;

	if (f->answered < f->tickets) {
		if (f->gap_count == FILE_GAPS) {
			/* The array has no room for another gap, so join the two oldest. Answered
			 * tickets between the two gaps then count as lost, which is harmless. */
			gaps[0].to = gaps[1].to;
			memmove(gaps + 1, gaps + 2, (FILE_GAPS - 2) * sizeof(*gaps));
			f->gap_count--;
		}
		gaps[f->gap_count++] = (struct file_gap){f->answered, f->tickets};
	}
	f->answered = f->tickets;
	f->completed = f->posted;
	f->ended = f->left = f->operations;
	f->unposted = f->run.len = 0;
	f->ring_tail = f->ring_head;
	f->silent_ms = 0;
	file_ranges_merge(&f->ranges, f->tickets + 1);
	f->has_foreign = f->ranges.count > 0;
}

/* No other call may be inside the file. The caller holds the lock, which is released while the
 * session connects. */
static int file_reopen(struct rpma_file *f)
{
	struct error err;
	int rc;

	while (f->inside > 1)
		file_sleep(f, -1);
	lock_leave(&f->lock);
	file_disconnect(f);
	rc = file_connect(f, &err);
	lock_enter(&f->lock);
	if (rc && file_error_code(&err) == RPMA_FILE_E_TAKEN) {
		f->failed = RPMA_FILE_E_TAKEN;
		f->why = err;
	}
	if (rc)
		return file_error_of(&err);
	file_reset(f);
	f->failed = 0;
	return 0;
}

int rpma_file_reopen(struct rpma_file *file)
{
	int rc = 0;

	if (!file)
		return file_error_invalid(__func__, "file is NULL");
	lock_enter(&file->lock);
	while (file->is_reopening)
		file_sleep(file, -1);
	file->inside++;
	if (file->failed == RPMA_FILE_E_TAKEN) {
		/* another writer has the claim, so no later attempt can succeed */
		rc = file_result(file);
	} else if (file->failed) {
		file->is_reopening = true;
		rc = file_reopen(file);
		file->is_reopening = false;
		file_wake(file);
	}
	return file_leave(file, rc);
}

/* Ask for the server's verdict. 0: the durable bytes will be found under the file's name. */
static int file_finish(struct rpma_file *f)
{
	struct error err;
	int rc;

	if (f->failed || !f->claims)
		return file_result(f);
	rc = file_sync_rest(f);
	if (!rc && session_confirm(&f->s, &err))
		rc = file_error_of(&err);
	return rc;
}

int rpma_file_close(struct rpma_file **file_ptr)
{
	struct rpma_file *f;
	int rc;

	if (!file_ptr)
		return file_error_invalid(__func__, "file_ptr is NULL");
	f = *file_ptr;
	if (!f)
		return 0;
	rc = file_finish(f);
	file_disconnect(f);
	file_free(f);
	*file_ptr = NULL;
	return rc;
}
