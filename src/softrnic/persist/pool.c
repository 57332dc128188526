/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The pool. Each file has a queue of jobs and FILE_SLOTS slots; files that have both a
 * job and a free slot take turns, and so do the jobs of one file, slice by slice. Jobs that read
 * back have queues of their own and at most READERS_MAX of the threads, because whoever may read
 * the memory may ask for as many digests as he has connections, and others want to flush.
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
#include "softrnic/persist/slices.h"
#include "softrnic/persist/writeback.h"

#define THREADS_MAX  16  /* that are not stuck (slices.h) */
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
	unsigned idle;    /* of them, asleep and not called for */
	unsigned called;  /* of them, but not awake yet */
	unsigned started; /* of them, but not running yet */
	bool watching;    /* one of the idle takes the work when a running slice is stuck */
} pool = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.work = PTHREAD_COND_INITIALIZER,
	.writes = LIST_INIT(pool.writes),
	.reads = LIST_INIT(pool.reads),
};

static struct file_slot *free_slot(struct file *f)
{
	for (int i = 0; i < FILE_SLOTS; i++)
		if (!f->slot[i].busy)
			return &f->slot[i];
	return NULL;
}

static struct file_slot *busy_slot(struct file *f)
{
	for (int i = 0; i < FILE_SLOTS; i++)
		if (f->slot[i].busy)
			return &f->slot[i];
	return NULL;
}

/* A file's turn comes after those of all others that wait already. */
static void update_queue(struct file_queue *q, bool has_room, struct list *all)
{
	if (list_empty(&q->jobs) || !has_room)
		list_del(&q->ready);
	else if (list_empty(&q->ready))
		list_add_tail(all, &q->ready);
}

static void update_ready(struct file *f)
{
	update_queue(&f->writes, free_slot(f) != NULL, &pool.writes);
	update_queue(&f->reads, f->readers < FILE_READERS, &pool.reads);
}

static uintptr_t job_pos(const struct persist_job *job)
{
	return (uintptr_t)job->addr + job->progress;
}

static void enqueue(struct file *f, struct persist_job *job)
{
	list_add_tail(job->reading ? &f->reads.jobs : &f->writes.jobs, &job->node);
	job->waits_for = f;
	update_ready(f);
}

/* The list has one. */
static struct persist_job *dequeue(struct list *jobs)
{
	struct persist_job *job = container_of(jobs->next, struct persist_job, node);

	list_del(&job->node);
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

static void slot_free(struct file *f, struct file_slot *slot, struct list *finished)
{
	struct list *it;

	slot->busy = false;
	while ((it = list_pop(&slot->held))) {
		struct persist_job *held = container_of(it, struct persist_job, node);

		held->waits_for = NULL;
		settle(f, held, finished);
	}
}

/* slot: NULL after a read. */
static void slice_ended(struct file *f, struct file_slot *slot, struct persist_job *job, bool more,
			struct list *finished)
{
	struct file_slot *beside;

	if (slot)
		slot_free(f, slot, finished);
	else
		f->readers--;
	beside = slot ? busy_slot(f) : NULL;
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
		LOG_ERROR_LIMITED("cannot start a thread for write-backs: error %d", r);
	}
}

static bool has_work(void)
{
	return !list_empty(&pool.writes) || !list_empty(&pool.reads);
}

static bool may_write(void)
{
	return !list_empty(&pool.writes) && slices_below(THREADS_MAX, false);
}

static bool may_read(void)
{
	return !list_empty(&pool.reads) && slices_below(THREADS_MAX, false) &&
	       slices_below(READERS_MAX, true);
}

/*
 * A thread that is on its way already will call the next one, if there is more than it can do. For
 * work that has to wait for a place there is one thread that watches: the slices which run now may
 * all turn out to be stuck, and then nothing else happens that would give the work a thread.
 */
static void call_thread_if_ready(void)
{
	if (!has_work() || pool.called || pool.started)
		return;
	if (pool.watching && !may_write() && !may_read())
		return;
	if (pool.idle) {
		pool.idle--;
		pool.called++;
		pthread_cond_signal(&pool.work);
	} else if (pool.threads < THREADS_CAP) {
		start_thread();
	}
}

/* A job of a file, and what its slice takes up there; the slot is NULL for a read. */
static struct persist_job *begin_slice(struct file *f, bool reading, struct slice *slice,
				       struct file_slot **slot)
{
	struct persist_job *job = dequeue(reading ? &f->reads.jobs : &f->writes.jobs);

	*slot = reading ? NULL : free_slot(f);
	if (reading)
		f->readers++;
	else
		(*slot)->busy = true;
	slices_begin(slice, reading);
	update_ready(f);
	call_thread_if_ready();
	return job;
}

/* Called and returns with the lock held. */
static void run_slice(struct file *f, bool reading, struct reader **reader, struct list *finished)
{
	struct file_slot *slot;
	struct slice running;
	struct persist_job *job = begin_slice(f, reading, &running, &slot);
	uintptr_t pos = job_pos(job), job_end = (uintptr_t)job->addr + job->len;
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
	slice_ended(f, slot, job, end < range_end, finished);
}

/* The file whose turn it is, or NULL. A thread that can do both reads after it has written, and
 * the other way round, so that neither waits for ever where only one thread can be started. */
static struct file *take_turn(bool *reading)
{
	bool may = may_write();
	struct list *turn;

	*reading = may_read() && (!*reading || !may);
	if (!may && !*reading)
		return NULL;
	turn = list_pop(*reading ? &pool.reads : &pool.writes);
	return *reading ? container_of(turn, struct file, reads.ready)
			: container_of(turn, struct file, writes.ready);
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

/* True: called for. False: not before that time. */
static bool wait_for_call(uint64_t until_ns)
{
	struct timespec until = {.tv_sec = (time_t)(until_ns / NSEC_PER_SEC),
				 .tv_nsec = (long)(until_ns % NSEC_PER_SEC)};
	int r = 0;

	pool.idle++;
	while (!pool.called && r != ETIMEDOUT)
		r = pthread_cond_clockwait(&pool.work, &pool.lock, CLOCK_MONOTONIC, &until);
	if (!pool.called) {
		pool.idle--;
		return false;
	}
	pool.called--;
	return true;
}

/* Sleep until there may be something to do; false: there was nothing for a long time. */
static bool wait_for_work(void)
{
	bool watch = has_work() && !pool.watching;

	if (!watch)
		return wait_for_call(clock_now_ns() + IDLE_SEC * NSEC_PER_SEC);
	pool.watching = true;
	wait_for_call(slices_next_stuck());
	pool.watching = false;
	return true;
}

static void *run_thread(void *arg)
{
	struct list finished = LIST_INIT(finished);
	struct reader *reader = NULL;
	bool reading = false;
	struct file *f;

	pthread_setname_np(pthread_self(), "rpma-persist");
	pthread_mutex_lock(&pool.lock);
	pool.started--;
	do {
		while ((f = take_turn(&reading))) {
			run_slice(f, reading, &reader, &finished);
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
	job->reading = job->cancelled = job->abandoned = job->touching = false;
	enqueue_next(job);
	call_thread_if_ready();
	started = pool.threads > 0;
	if (!started)
		stop_waiting(job);
	pthread_mutex_unlock(&pool.lock);
	return started;
}

/* Of a job that waited until now; it may be gone afterwards. */
static void cancel_waiting(struct persist_job *job)
{
	readback_end(job, -ECANCELED);
	job->done(job, -ECANCELED);
}

/* Under the lock. True: it waited. */
static bool mark_cancelled(struct persist_job *job)
{
	bool waited = job->waits_for != NULL;

	job->cancelled = true;
	if (waited)
		stop_waiting(job);
	return waited;
}

void persist_cancel(struct persist_job *job)
{
	bool waited;

	pthread_mutex_lock(&pool.lock);
	waited = mark_cancelled(job);
	pthread_mutex_unlock(&pool.lock);
	if (waited)
		cancel_waiting(job);
}

bool persist_abandon(struct persist_job *job)
{
	bool waited, touching;

	pthread_mutex_lock(&pool.lock);
	waited = mark_cancelled(job);
	job->abandoned = true;
	touching = job->touching;
	pthread_mutex_unlock(&pool.lock);
	if (waited)
		cancel_waiting(job);
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
	pool.threads = pool.idle = pool.called = pool.started = 0;
	pthread_mutex_unlock(&pool.lock);
	files_atfork_child();
}
