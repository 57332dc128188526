/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The pool. Each file has a queue of jobs and FILE_SLOTS slots; files that have both a
 * job and a free slot take turns, and so do the jobs of one file, slice by slice.
 *
 * The kernel reports a write-back error once per open file, so that of two slices that
 * run at the same time either may get the error of the other. Hence the success of a job
 * is told, or what it wrote is read back, only when the slice beside its last one has ended
 * well too: until then it is held by that slice's slot.
 */
#include "softrnic/persist/pool.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "base/log.h"
#include "base/sigmask.h"
#include "softrnic/persist/readback.h"
#include "softrnic/persist/reader.h"
#include "softrnic/persist/region.h"
#include "softrnic/persist/writeback.h"

#define THREADS_MAX  16
#define THREAD_STACK ((size_t)512 << 10)
#define IDLE_SEC     5
#define SLICE        ((size_t)64 << 20)

_Static_assert(FILE_SLOTS == 2, "there is at most one slice beside a slice");

static struct {
	pthread_mutex_t lock;
	pthread_cond_t work;
	struct list ready; /* files */
	unsigned threads;
	unsigned idle;    /* of them, asleep and not called for */
	unsigned called;  /* of them, but not awake yet */
	unsigned started; /* of them, but not running yet */
} pool = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.work = PTHREAD_COND_INITIALIZER,
	.ready = LIST_INIT(pool.ready),
};

static struct file_slot *free_slot(struct file *f)
{
	for (int i = 0; i < FILE_SLOTS; i++)
		if (!f->slot[i].busy)
			return &f->slot[i];
	return NULL;
}

static struct file_slot *writing_slot(struct file *f)
{
	for (int i = 0; i < FILE_SLOTS; i++)
		if (f->slot[i].busy && f->slot[i].writing)
			return &f->slot[i];
	return NULL;
}

/* A file's turn comes after those of all others that wait already. */
static void update_ready(struct file *f)
{
	if (list_empty(&f->queue) || !free_slot(f))
		list_del(&f->ready);
	else if (list_empty(&f->ready))
		list_add_tail(&pool.ready, &f->ready);
}

static uintptr_t job_pos(const struct persist_job *job)
{
	return (uintptr_t)job->addr + job->progress;
}

static void enqueue(struct file *f, struct persist_job *job)
{
	list_add_tail(&f->queue, &job->node);
	job->waits_for = f;
	update_ready(f);
}

static struct persist_job *dequeue(struct file *f)
{
	struct persist_job *job = container_of(list_pop(&f->queue), struct persist_job, node);

	job->waits_for = NULL;
	return job;
}

/* Of a job that waits for one of the file's slices. */
static void stop_waiting(struct persist_job *job)
{
	list_del(&job->node);
	update_ready(job->waits_for);
	job->waits_for = NULL;
}

/* Skip what needs no write-back, then queue the job at the next range's file. False: all done. */
static bool enqueue_next(struct persist_job *job)
{
	while (job->progress < job->len) {
		const struct range *r = region_range_at(job->region, job_pos(job));

		if (r->file || job->reading) {
			enqueue(r->file ? r->file : file_of_memory(), job);
			return true;
		}
		job->progress = r->end - (uintptr_t)job->addr;
	}
	if (!job->readback || job->reading)
		return false;
	job->reading = true;
	job->progress = 0;
	return enqueue_next(job);
}

/* The job has nothing more to do on this file: on to the next one, or to the finished. */
static void settle(struct file *f, struct persist_job *job, struct list *finished)
{
	if (!job->status)
		job->status = f->error;
	if (job->status || !enqueue_next(job))
		list_add_tail(finished, &job->node);
}

static void hold(struct file *f, struct file_slot *slot, struct persist_job *job)
{
	list_add_tail(&slot->held, &job->node);
	job->waits_for = f;
}

static void slice_ended(struct file *f, struct file_slot *slot, struct persist_job *job, bool more,
			struct list *finished)
{
	struct file_slot *beside;
	struct list *it;

	slot->busy = false;
	while ((it = list_pop(&slot->held))) {
		struct persist_job *held = container_of(it, struct persist_job, node);

		held->waits_for = NULL;
		settle(f, held, finished);
	}
	beside = job->reading ? NULL : writing_slot(f);
	if (!job->status && more)
		enqueue(f, job);
	else if (!job->status && beside)
		hold(f, beside, job);
	else
		settle(f, job, finished);
	update_ready(f);
}

static void *run_thread(void *arg);

static void start_thread(void)
{
	sigset_t mask, before;
	pthread_attr_t attr;
	pthread_t thread;
	int r;

	if (pthread_attr_init(&attr))
		return;
	pthread_attr_setstacksize(&attr, THREAD_STACK);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigmask_of_library_thread(&mask);
	pthread_sigmask(SIG_SETMASK, &mask, &before);
	r = pthread_create(&thread, &attr, run_thread, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	if (!r) {
		pool.threads++;
		pool.started++;
	} else if (!pool.threads) {
		LOG_ERROR("cannot start a thread for write-backs: error %d", r);
	}
}

/* A thread that is on its way already will call the next one, if there is more than it can do. */
static void call_thread_if_ready(void)
{
	if (list_empty(&pool.ready) || pool.called || pool.started)
		return;
	if (pool.idle) {
		pool.idle--;
		pool.called++;
		pthread_cond_signal(&pool.work);
	} else if (pool.threads < THREADS_MAX) {
		start_thread();
	}
}

/* Called and returns with the lock held. */
static void run_slice(struct file *f, struct reader **reader, struct list *finished)
{
	struct persist_job *job = dequeue(f);
	struct file_slot *slot = free_slot(f);
	uintptr_t pos = job_pos(job), job_end = (uintptr_t)job->addr + job->len;
	const struct range *r = region_range_at(job->region, pos);
	uintptr_t range_end = r->end < job_end ? r->end : job_end;
	size_t slice = job->reading ? READER_BYTES : SLICE;
	uintptr_t end = range_end - pos > slice ? pos + slice : range_end;
	bool failed = false;

	slot->busy = true;
	slot->writing = !job->reading;
	update_ready(f);
	call_thread_if_ready();
	job->status = f->error;
	if (!job->status) {
		pthread_mutex_unlock(&pool.lock);
		job->status = job->reading ? readback_slice(job->readback, r, pos, end, reader)
					   : writeback(r, pos, end, &failed);
		pthread_mutex_lock(&pool.lock);
	}
	if (failed && !f->error)
		f->error = job->status;
	if (job->cancelled && !job->status)
		job->status = -ECANCELED;
	job->progress += end - pos;
	slice_ended(f, slot, job, end < range_end, finished);
}

/* Called and returns with the lock held. After done() neither job nor file may be touched. */
static void tell_finished(struct list *finished)
{
	struct list *it;

	if (list_empty(finished))
		return;
	call_thread_if_ready();
	pthread_mutex_unlock(&pool.lock);
	while ((it = list_pop(finished))) {
		struct persist_job *job = container_of(it, struct persist_job, node);

		readback_end(job, job->status);
		job->done(job, job->status);
	}
	pthread_mutex_lock(&pool.lock);
}

/* Sleep until called for; false: not called for a long time. */
static bool wait_for_work(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += IDLE_SEC;
	pool.idle++;
	while (!pool.called)
		if (pthread_cond_timedwait(&pool.work, &pool.lock, &until) == ETIMEDOUT &&
		    !pool.called) {
			pool.idle--;
			return false;
		}
	pool.called--;
	return true;
}

static void *run_thread(void *arg)
{
	struct list finished = LIST_INIT(finished), *turn;
	struct reader *reader = NULL;

	pthread_setname_np(pthread_self(), "rpma-persist");
	pthread_mutex_lock(&pool.lock);
	pool.started--;
	do {
		while ((turn = list_pop(&pool.ready))) {
			run_slice(container_of(turn, struct file, ready), &reader, &finished);
			tell_finished(&finished);
		}
	} while (wait_for_work());
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
	job->reading = job->cancelled = false;
	enqueue_next(job);
	call_thread_if_ready();
	started = pool.threads > 0;
	if (!started)
		stop_waiting(job);
	pthread_mutex_unlock(&pool.lock);
	return started;
}

void persist_cancel(struct persist_job *job)
{
	bool waited;

	pthread_mutex_lock(&pool.lock);
	job->cancelled = true;
	waited = job->waits_for != NULL;
	if (waited)
		stop_waiting(job);
	pthread_mutex_unlock(&pool.lock);
	if (waited) {
		readback_end(job, -ECANCELED);
		job->done(job, -ECANCELED);
	}
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
	list_init(&pool.ready);
	pool.threads = pool.idle = pool.called = pool.started = 0;
	pthread_mutex_unlock(&pool.lock);
	files_atfork_child();
}
