/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pool.c -- write-backs and digests that may block, in threads of the library's own.
 *
 * Life of a job
 *
 *   persist_submit() --> done inline: volatile memory, short DAX ranges, short digests of both
 *        |
 *        v                     slice ended, more of the range left
 *     queued (waits_for) <-----------------------------------------+
 *        |                                                         |
 *        | a thread picks the file, then its first job             |
 *        v                                                         |
 *     running (one slice; touching: uses the memory by address) ---+
 *        |                                                         |
 *        | last slice of a range, while the file's                 | no other slice runs
 *        v other slot is busy                                      v
 *     unconfirmed (waits_for) ---- the other slice ended ----> range done
 *                                                                  |
 *     next range: queued at its file. All ranges written back:     |
 *     a digest goes through them again (reading). Otherwise:       v
 *                                                 finished: done() is called once
 *
 * The first error finishes a job from any state. A cancelled job finishes at once if it is queued
 * or unconfirmed, and with the end of its slice if it is running. An abandoned job is cancelled and
 * in addition no longer touches its memory.
 *
 * Why "unconfirmed": the kernel reports a write-back error once per open file description, so that
 * of two slices of one file that run at the same time either may get the error of the other.
 * Success is therefore reported, and what was written is read back, only when the slice beside the
 * job's last one has ended well, too.
 *
 * Turns. Each file has a queue of jobs and FILE_SLOTS slots. Files that have both a job and a free
 * slot take turns, and so do the jobs of one file, slice by slice. Jobs that read back have queues
 * of their own and at most READERS_MAX of the threads: a peer that may read the memory may request
 * a digest on each of its connections, and flushes must still find threads.
 *
 * Threads are started when work needs them, up to THREADS_MAX that are not stalled and THREADS_CAP
 * in all, and end after IDLE_SEC without work. Each that reads has a helper of its own (reader.c).
 *
 * Locks. pool.lock guards the queues, the slots and the members of a job from `node` on. It is
 * released around a slice and around done(), which may free the job. The table of files has a lock
 * of its own (file.c), which is taken before pool.lock where both are needed: in fork() only.
 */
#include "softrnic/persist/pool.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "base/thread.h"
#include "softrnic/persist/reader.h"
#include "softrnic/persist/region.h"
#include "softrnic/persist/writeback.h"

#define THREADS_MAX  16  /* that are not stalled (pool.h) */
#define THREADS_CAP  256 /* in all */
#define READERS_MAX  4
#define THREAD_STACK ((size_t)512 << 10)
#define IDLE_SEC     5
#define SLICE        ((size_t)64 << 20)

_Static_assert(FILE_SLOTS == 2, "there is at most one slice beside a slice");

static struct {
	pthread_mutex_t lock;
	pthread_cond_t work;
	struct list writes, reads; /* files, by their queues' `ready` */
	unsigned threads;
	unsigned idle;    /* of them, asleep and not woken */
	unsigned woken;   /* of them, signalled but not running yet */
	unsigned started; /* of them, but not running yet */
	bool watching;    /* an idle one takes the work when a running slice stalls */
} pool = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.work = PTHREAD_COND_INITIALIZER,
	.writes = LIST_INIT(pool.writes),
	.reads = LIST_INIT(pool.reads),
};

static struct file_slot *pool_free_slot(struct file *f)
{
	for (int i = 0; i < FILE_SLOTS; i++)
		if (!f->slot[i].busy)
			return &f->slot[i];
	return NULL;
}

static struct file_slot *pool_busy_slot(struct file *f)
{
	for (int i = 0; i < FILE_SLOTS; i++)
		if (f->slot[i].busy)
			return &f->slot[i];
	return NULL;
}

/* A file queues behind all that wait already. */
static void pool_update_queue(struct file_queue *q, bool has_room, struct list *all)
{
	if (list_empty(&q->jobs) || !has_room)
		list_del(&q->ready);
	else if (list_empty(&q->ready))
		list_add_tail(all, &q->ready);
}

static void pool_update_ready(struct file *f)
{
	pool_update_queue(&f->writes, pool_free_slot(f) != NULL, &pool.writes);
	pool_update_queue(&f->reads, f->readers < FILE_READERS, &pool.reads);
}

static uintptr_t pool_job_pos(const struct persist_job *job)
{
	return (uintptr_t)job->addr + job->progress;
}

static void pool_enqueue(struct file *f, struct persist_job *job)
{
	list_add_tail(job->reading ? &f->reads.jobs : &f->writes.jobs, &job->node);
	job->waits_for = f;
	pool_update_ready(f);
}

/* The list is not empty. */
static struct persist_job *pool_dequeue(struct list *jobs)
{
	struct persist_job *job = container_of(jobs->next, struct persist_job, node);

	list_del(&job->node);
	job->waits_for = NULL;
	return job;
}

/* For a job that is queued or unconfirmed. */
static void pool_unqueue(struct persist_job *job)
{
	list_del(&job->node);
	pool_update_ready(job->waits_for);
	job->waits_for = NULL;
}

/* Skip what needs no write-back, then queue the job at the next range's file. False: all done. */
static bool pool_enqueue_next(struct persist_job *job)
{
	while (job->progress < job->len) {
		const struct range *r = region_range_at(job->region, pool_job_pos(job));

		if (r->file || job->reading) {
			pool_enqueue(r->file ? r->file : file_of_memory(), job);
			return true;
		}
		job->progress = r->end - (uintptr_t)job->addr;
	}
	if (!job->readback || job->reading)
		return false;
	job->reading = true;
	job->progress = 0;
	return pool_enqueue_next(job);
}

/* The job is through with a range on f: it goes on to the next range, or to `finished`. */
static void pool_range_done(struct file *f, struct persist_job *job, struct list *finished)
{
	if (!job->status)
		job->status = f->error;
	if (job->status || !pool_enqueue_next(job))
		list_add_tail(finished, &job->node);
}

static void pool_hold(struct file *f, struct file_slot *slot, struct persist_job *job)
{
	list_add_tail(&slot->unconfirmed, &job->node);
	job->waits_for = f;
}

static void pool_release_slot(struct file *f, struct file_slot *slot, struct list *finished)
{
	struct list *it;

	slot->busy = false;
	while ((it = list_pop(&slot->unconfirmed))) {
		struct persist_job *other = container_of(it, struct persist_job, node);

		other->waits_for = NULL;
		pool_range_done(f, other, finished);
	}
}

/* slot: NULL after a read. */
static void pool_slice_ended(struct file *f, struct file_slot *slot, struct persist_job *job,
			     bool more, struct list *finished)
{
	struct file_slot *beside;

	if (slot)
		pool_release_slot(f, slot, finished);
	else
		f->readers--;
	beside = slot ? pool_busy_slot(f) : NULL;
	if (!job->status && more)
		pool_enqueue(f, job);
	else if (!job->status && beside)
		pool_hold(f, beside, job);
	else
		pool_range_done(f, job, finished);
	pool_update_ready(f);
}

static void *pool_thread(void *arg);

static void pool_start_thread(void)
{
	int r = thread_start(NULL, THREAD_STACK, pool_thread, NULL);

	if (!r) {
		pool.threads++;
		pool.started++;
	} else if (!pool.threads) {
		LOG_ERROR_LIMITED("cannot start a thread for write-backs: %s", strerror(-r));
	}
}

static bool pool_has_work(void)
{
	return !list_empty(&pool.writes) || !list_empty(&pool.reads);
}

static bool pool_may_write(void)
{
	return !list_empty(&pool.writes) && slices_below(THREADS_MAX, false);
}

static bool pool_may_read(void)
{
	return !list_empty(&pool.reads) && slices_below(THREADS_MAX, false) &&
	       slices_below(READERS_MAX, true);
}

/*
 * One thread at a time is woken or started; it wakes the next one if there is more work. For work
 * that has to wait for a place one idle thread watches: all slices that run now may stall, and then
 * no other event would give the work a thread.
 */
static void pool_wake_if_ready(void)
{
	if (!pool_has_work() || pool.woken || pool.started)
		return;
	if (pool.watching && !pool_may_write() && !pool_may_read())
		return;
	if (pool.idle) {
		pool.idle--;
		pool.woken++;
		pthread_cond_signal(&pool.work);
	} else if (pool.threads < THREADS_CAP) {
		pool_start_thread();
	}
}

/* Takes a job of the file, and a place for its slice; the slot is NULL for a read. */
static struct persist_job *pool_begin_slice(struct file *f, bool reading, struct slice *slice,
					    struct file_slot **slot)
{
	struct persist_job *job = pool_dequeue(reading ? &f->reads.jobs : &f->writes.jobs);

	*slot = reading ? NULL : pool_free_slot(f);
	if (reading)
		f->readers++;
	else
		(*slot)->busy = true;
	slices_begin(slice, reading);
	pool_update_ready(f);
	pool_wake_if_ready();
	return job;
}

/* Called and returns with the lock held. */
static void pool_run_slice(struct file *f, bool reading, struct reader **reader,
			   struct list *finished)
{
	struct file_slot *slot;
	struct slice running;
	struct persist_job *job = pool_begin_slice(f, reading, &running, &slot);
	uintptr_t pos = pool_job_pos(job), job_end = (uintptr_t)job->addr + job->len;
	const struct range *r = region_range_at(job->region, pos);
	uintptr_t range_end = r->end < job_end ? r->end : job_end;
	size_t slice = reading ? READER_BYTES : SLICE;
	uintptr_t end = range_end - pos > slice ? pos + slice : range_end;
	bool failed = false;

	job->status = f->error;
	if (!job->status) {
		pthread_mutex_unlock(&pool.lock);
		job->status = reading ? readback_slice(job, r, pos, end, reader)
				      : writeback(r, pos, end, job, reader, &failed);
		if (failed)
			file_fail(f, job->status);
		pthread_mutex_lock(&pool.lock);
	}
	if (job->cancelled && !job->status)
		job->status = -ECANCELED;
	job->progress += end - pos;
	slices_end(&running);
	pool_slice_ended(f, slot, job, end < range_end, finished);
}

/*
 * The next file, or NULL. A thread that may do both alternates between writing and reading, so that
 * neither waits for ever if only one thread can be started.
 */
static struct file *pool_next_file(bool *reading)
{
	bool may = pool_may_write();
	struct list *turn;

	*reading = pool_may_read() && (!*reading || !may);
	if (!may && !*reading)
		return NULL;
	turn = list_pop(*reading ? &pool.reads : &pool.writes);
	return *reading ? container_of(turn, struct file, reads.ready)
			: container_of(turn, struct file, writes.ready);
}

/* Called and returns with the lock held. After done() neither job nor file may be touched. */
static void pool_complete(struct list *finished)
{
	struct list *it;

	if (list_empty(finished))
		return;
	pool_wake_if_ready();
	pthread_mutex_unlock(&pool.lock);
	while ((it = list_pop(finished))) {
		struct persist_job *job = container_of(it, struct persist_job, node);

		readback_end(job, job->status);
		job->done(job, job->status);
	}
	pthread_mutex_lock(&pool.lock);
}

/* True: woken. False: not before that time. */
static bool pool_sleep(uint64_t until_ns)
{
	struct timespec until = {.tv_sec = (time_t)(until_ns / NSEC_PER_SEC),
				 .tv_nsec = (long)(until_ns % NSEC_PER_SEC)};
	int r = 0;

	pool.idle++;
	while (!pool.woken && r != ETIMEDOUT)
		r = pthread_cond_clockwait(&pool.work, &pool.lock, CLOCK_MONOTONIC, &until);
	if (!pool.woken) {
		pool.idle--;
		return false;
	}
	pool.woken--;
	return true;
}

/* Sleep until there may be work; false: there was none for IDLE_SEC. */
static bool pool_wait(void)
{
	bool watch = pool_has_work() && !pool.watching;

	if (!watch)
		return pool_sleep(clock_now_ns() + IDLE_SEC * NSEC_PER_SEC);
	pool.watching = true;
	pool_sleep(slices_next_stall());
	pool.watching = false;
	return true;
}

static void *pool_thread(void *arg)
{
	struct list finished = LIST_INIT(finished);
	struct reader *reader = NULL;
	bool reading = false;
	struct file *f;

	pthread_setname_np(pthread_self(), "rpma-persist");
	pthread_mutex_lock(&pool.lock);
	pool.started--;
	do {
		while ((f = pool_next_file(&reading))) {
			pool_run_slice(f, reading, &reader, &finished);
			pool_complete(&finished);
		}
	} while (pool_wait());
	pool.threads--;
	pthread_mutex_unlock(&pool.lock);
	reader_delete(reader);
	return NULL;
}

bool pool_start(struct persist_job *job)
{
	bool started;

	pthread_mutex_lock(&pool.lock);
	job->progress = 0;
	job->status = 0;
	job->reading = job->cancelled = job->abandoned = job->touching = false;
	pool_enqueue_next(job);
	pool_wake_if_ready();
	started = pool.threads > 0;
	if (!started)
		pool_unqueue(job);
	pthread_mutex_unlock(&pool.lock);
	return started;
}

/* For a job that was queued until now; done() may free it. */
static void pool_cancel_queued(struct persist_job *job)
{
	readback_end(job, -ECANCELED);
	job->done(job, -ECANCELED);
}

/* Under the lock. True: it was queued. */
static bool pool_mark_cancelled(struct persist_job *job)
{
	bool queued = job->waits_for != NULL;

	job->cancelled = true;
	if (queued)
		pool_unqueue(job);
	return queued;
}

void persist_cancel(struct persist_job *job)
{
	bool queued;

	pthread_mutex_lock(&pool.lock);
	queued = pool_mark_cancelled(job);
	pthread_mutex_unlock(&pool.lock);
	if (queued)
		pool_cancel_queued(job);
}

bool persist_abandon(struct persist_job *job)
{
	bool queued, touching;

	pthread_mutex_lock(&pool.lock);
	queued = pool_mark_cancelled(job);
	job->abandoned = true;
	touching = job->touching;
	pthread_mutex_unlock(&pool.lock);
	if (queued)
		pool_cancel_queued(job);
	return !touching;
}

bool pool_touch_begin(struct persist_job *job)
{
	bool may;

	if (!job)
		return true;
	pthread_mutex_lock(&pool.lock);
	may = !job->abandoned;
	job->touching = may;
	pthread_mutex_unlock(&pool.lock);
	return may;
}

void pool_touch_end(struct persist_job *job)
{
	if (!job)
		return;
	pthread_mutex_lock(&pool.lock);
	job->touching = false;
	pthread_mutex_unlock(&pool.lock);
}

bool pool_is_abandoned(struct persist_job *job)
{
	bool is;

	if (!job)
		return false;
	pthread_mutex_lock(&pool.lock);
	is = job->abandoned;
	pthread_mutex_unlock(&pool.lock);
	return is;
}

void persist_atfork_prepare(void)
{
	files_atfork_prepare();
	pthread_mutex_lock(&pool.lock);
}

void persist_atfork_parent(void)
{
	pthread_mutex_unlock(&pool.lock);
	files_atfork_parent();
}

void persist_atfork_child(void)
{
	pool.work = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
	list_init(&pool.writes);
	list_init(&pool.reads);
	slices_forget();
	pool.watching = false;
	pool.threads = pool.idle = pool.woken = pool.started = 0;
	pthread_mutex_unlock(&pool.lock);
	files_atfork_child();
}
