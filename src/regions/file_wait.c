/* SPDX-License-Identifier: BSD-3-Clause */
/* Waits for completions, and handles them. */
#include <stdio.h>
#include <string.h>

#include "base/poll.h"
#include "regions/advice.h"
#include "regions/file_impl.h"
#include "regions/session_impl.h"

/* Interval at which the poller checks whether the connection has ended. Only devices that do not
 * complete outstanding operations when the connection ends need this check. */
#define WAIT_SLICE_MS 1000
#define WAIT_TAKE     8

int file_result(const struct rpma_file *f)
{
	return f->failed ? file_error(f->failed, "%s", f->why.text) : 0;
}

void file_wake_all(struct rpma_file *f)
{
	pthread_mutex_lock(&f->sleep_lock);
	f->moves++;
	pthread_cond_broadcast(&f->moved);
	pthread_mutex_unlock(&f->sleep_lock);
}

void file_sleep(struct rpma_file *f, int left_ms)
{
	struct timespec until = {0};
	uint64_t seen;
	int rc = 0;

	if (left_ms >= 0)
		until = clock_timespec(clock_now_ns() + (uint64_t)left_ms * NSEC_PER_MS);
	f->waiting++;
	pthread_mutex_lock(&f->sleep_lock);
	seen = f->moves;
	lock_leave(&f->lock);
	while (f->moves == seen && !rc)
		rc = left_ms < 0 ? pthread_cond_wait(&f->moved, &f->sleep_lock)
				 : pthread_cond_timedwait(&f->moved, &f->sleep_lock, &until);
	pthread_mutex_unlock(&f->sleep_lock);
	lock_enter(&f->lock);
	f->waiting--;
}

int file_enter_failed(struct rpma_file *f)
{
	int rc = file_result(f);

	lock_leave(&f->lock);
	return rc;
}

/* Returns advice after a loss. Only the caller has the bytes written since the last sync, and the
 * bytes may or may not have arrived. */
static const char *file_advice(const struct rpma_file *f)
{
	if (f->failed != RPMA_FILE_E_LOST)
		return "";
	return f->flags & RPMA_FILE_READONLY ? ADVICE_READER : ADVICE_WRITER;
}

void file_drop_reads(struct rpma_file *f)
{
	for (uint64_t i = f->completed; i < f->posted; i++)
		if (f->posts[i % FILE_POSTS].is_read)
			rpma_mr_dereg(&f->posts[i % FILE_POSTS].read_mr);
}

int file_fail(struct rpma_file *f, int code, const struct error *err)
{
	const char *advice;

	if (!f->failed) {
		file_drop_reads(f);
		f->failed = code;
		advice = file_advice(f);
		f->why = *err;
		snprintf(f->why.text, sizeof(f->why.text), "%.*s%s",
			 (int)(sizeof(f->why.text) - strlen(advice) - 1), err->text, advice);
		file_wake(f);
	}
	return file_result(f);
}

int file_post_failed(struct rpma_file *f, const char *what, int rc)
{
	struct error err;

	session_post_failed(&f->s, what, rc, &err);
	return file_fail(f, RPMA_FILE_E_LOST, &err);
}

/* A successful sync makes the writes before it durable, so they are decided. */
static void file_decide(struct rpma_file *f, const struct file_post *post)
{
	f->answered = post->ticket;
	if (!post->range_count) {
		file_ranges_decide_all(&f->ranges, post->ticket);
		f->has_foreign = false;
		return;
	}
	for (unsigned i = 0; i < post->range_count; i++)
		file_ranges_decide(&f->ranges, &post->ranges[i], post->ticket);
}

/* Not inline, to keep the path of syncs short. A read decides no written range. */
static __attribute__((noinline)) void file_complete_read(struct rpma_file *f,
							 struct file_post *post)
{
	if (post->read_to)
		memcpy(post->read_to, f->ring + post->read_from, post->read_len);
	rpma_mr_dereg(&post->read_mr);
	if (post->ticket)
		f->answered = post->ticket;
}

static void file_complete(struct rpma_file *f)
{
	struct file_post *post = &f->posts[f->completed % FILE_POSTS];

	if (post->is_read)
		file_complete_read(f, post);
	else if (post->ticket)
		file_decide(f, post);
	f->ring_tail = post->ring_end;
	f->ended = post->operations;
	f->completed++;
}

static __attribute__((noinline)) void file_take_failed(struct rpma_file *f, const struct ibv_wc *wc)
{
	struct error err;

	session_check(&f->s, wc, &err);
	if (rpma_wc_get_reason(f->s.conn, wc, NULL) == RPMA_REASON_WRITE_BACK)
		file_fail(f, RPMA_FILE_E_MEDIUM, &err);
	else
		file_fail(f, file_error_code(&err), &err);
}

static __attribute__((noinline)) void file_take_verdict(struct rpma_file *f,
							const struct ibv_wc *wc)
{
	struct error err;

	session_take_verdict(&f->s, wc->byte_len, &err);
	file_fail(f, file_error_code(&err), &err);
}

/* After a failure no completion counts as a success. */
static void file_take_one(struct rpma_file *f, const struct ibv_wc *wc)
{
	f->silent_ms = 0;
	if (wc->status != IBV_WC_SUCCESS)
		file_take_failed(f, wc);
	else if (f->failed)
		return;
	else if (wc->opcode & IBV_WC_RECV)
		file_take_verdict(f, wc);
	else
		file_complete(f);
}

void file_take(struct rpma_file *f)
{
	struct ibv_wc wc[WAIT_TAKE];
	int got, rc;

	do {
		rc = rpma_cq_get_wc(f->s.completions.cq, WAIT_TAKE, wc, &got);
		for (int i = 0; !rc && i < got; i++)
			file_take_one(f, &wc[i]);
	} while (!rc && got == WAIT_TAKE);
	if (rc && rc != RPMA_E_NO_COMPLETION)
		file_post_failed(f, "take completions from", rc);
}

/* Handle a wait without a completion: check whether the connection has ended, or the time limit is
 * reached. */
static __attribute__((noinline)) void file_take_silence(struct rpma_file *f, unsigned ms)
{
	enum rpma_conn_event event;
	struct error err;

	f->silent_ms += ms;
	if (!rpma_conn_next_event_timeout(f->s.conn, 0, &event) && event != RPMA_CONN_ESTABLISHED)
		error_set(&err, ERROR_FAILED, 0, "%s closed the connection", f->s.server);
	else if (f->timeout_ms >= 0 && f->silent_ms >= (unsigned)f->timeout_ms)
		error_set(&err, ERROR_FAILED, RPMA_E_NO_COMPLETION, "%s has not answered for %g s",
			  f->s.server, f->timeout_ms / 1000.0);
	else
		return;
	file_fail(f, RPMA_FILE_E_LOST, &err);
}

/* Become the poller: wait without the lock, then take the completions. */
static void file_poll(struct rpma_file *f, int left_ms)
{
	int ms = WAIT_SLICE_MS, rc;

	if (left_ms >= 0 && left_ms < ms)
		ms = left_ms;
	if (f->timeout_ms >= 0 && f->timeout_ms - (int)f->silent_ms < ms)
		ms = f->timeout_ms - (int)f->silent_ms;
	f->polls = true;
	lock_leave(&f->lock);
	rc = rpma_cq_wait_timeout(f->s.completions.cq, ms);
	lock_enter(&f->lock);
	f->polls = false;
	file_take(f);
	if (rc == RPMA_E_NO_COMPLETION && !f->failed)
		file_take_silence(f, (unsigned)ms);
	else if (rc && !f->failed)
		file_post_failed(f, "wait for", rc);
	file_wake(f);
}

int file_wait(struct rpma_file *f, const uint64_t *counter, uint64_t value, uint64_t deadline)
{
	while (*counter < value && !f->failed) {
		int left_ms = poll_ms_left(deadline);

		if (left_ms == 0)
			return RPMA_E_AGAIN;
		if (f->polls)
			file_sleep(f, left_ms);
		else
			file_poll(f, left_ms);
	}
	return *counter < value ? file_result(f) : 0;
}
