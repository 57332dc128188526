/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pool.c -- runs write-backs and digests that may block, in the library's own threads.
 *
 * Life of a job
 *
 *   persist_submit() --> done inline: volatile memory, short DAX ranges, short digests of both
 *        |
 *        v                     slice ended, more of the range left
 *     queued (waits_for) <-----------------------------------------+
 *        |                                                         |
 *        | its file has a turn, and it is the first,               |
 *        | or may share the write-back of the first (group.h)      |
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
 * The first error finishes a job from any state. A cancelled job finishes immediately if it is
 * queued or unconfirmed, and with the end of its slice if it is running. An abandoned job is
 * cancelled and in addition no longer touches its memory.
 *
 * Why "unconfirmed": the kernel reports a write-back error once per open file description, so if
 * two slices of one file run at the same time, either of them may get the error of the other. A
 * job's success is therefore reported, and its bytes are read back, only after the file's other
 * slice that ran beside the job's last slice has also succeeded.
 *
 * Threads are started when work needs them (turn.h), and end after IDLE_SEC without work. A thread
 * that has work for an idle thread begins a turn (permission to run one slice) on its behalf, so
 * the idle thread starts without taking the lock. The thread that became idle last is used first.
 * Each thread that reads files has its own helper thread (reader.c).
 *
 * Locks. pool.lock guards the queues (queue.h), the slots and the members of a job from `node` on.
 * It is released around a slice and around done(), which may free the job. The table of files has a
 * separate lock (file.c). Only fork() takes both locks, the one of the table first.
 */
#include "softrnic/persist/pool.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "base/thread.h"
#include "softrnic/persist/queue.h"
#include "softrnic/persist/reader.h"
#include "softrnic/persist/turn.h"
#include "softrnic/persist/writeback.h"

#define THREADS_CAP  256 /* greatest number of threads, including those of stalled slices */
#define THREAD_STACK ((size_t)512 << 10)
#define IDLE_SEC     5

struct worker {
	struct list node; /* link in the list of idle workers, or of workers to wake */
	bool idle;
	bool watches;
	/* another thread has begun a turn (permission to run one slice) for this worker */
	bool has_turn;
	struct turn turn;
	atomic_bool called; /* set after the other members; the semaphore is posted after it */
	sem_t wake;
	struct reader *reader;
};

static struct {
	pthread_mutex_t lock;
	struct list idle; /* idle workers; the one that became idle last is at the end */
	unsigned threads;
	unsigned started; /* number of workers that are started but do not run yet */
	bool watching;    /* an idle worker watches for a running slice that stalls */
	bool called;      /* the worker that watches has been woken and does not run yet */
} pool = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.idle = LIST_INIT(pool.idle),
};

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

static struct worker *pool_last_idle(void)
{
	return list_empty(&pool.idle) ? NULL : container_of(pool.idle.prev, struct worker, node);
}

static void worker_begin_idle(struct worker *w, bool watches)
{
	w->idle = true;
	w->watches = watches;
	w->has_turn = false;
	pool.watching |= watches;
	list_add_tail(&pool.idle, &w->node);
}

static void worker_end_idle(struct worker *w)
{
	w->idle = false;
	if (w->watches)
		pool.watching = false;
	list_del(&w->node);
}

static void worker_call(struct worker *w, bool has_turn, struct list *calls)
{
	worker_end_idle(w);
	w->has_turn = has_turn;
	list_add_tail(calls, &w->node);
}

/*
 * Give work to idle workers. If there are none, start one thread at a time. While work waits
 * because too many slices run, one idle worker watches the running slices: if all of them stall, no
 * other event would start a thread for the work. The caller wakes the workers in `calls` after it
 * releases the lock.
 */
static void pool_dispatch(struct list *calls)
{
	struct worker *w;

	while ((w = pool_last_idle()) && turn_begin(&w->turn))
		worker_call(w, true, calls);
	if (!turn_is_wanted() || pool.started || pool.called)
		return;
	if (pool.watching && !turn_is_possible())
		return;
	if (w) {
		pool.called = true;
		worker_call(w, false, calls);
	} else if (pool.threads < THREADS_CAP) {
		pool_start_thread();
	}
}

static void pool_wake(struct list *calls)
{
	struct list *it;

	while ((it = list_pop(calls))) {
		struct worker *w = container_of(it, struct worker, node);

		atomic_store_explicit(&w->called, true, memory_order_release);
		sem_post(&w->wake);
	}
}

void pool_lock(void)
{
	pthread_mutex_lock(&pool.lock);
}

void pool_unlock(void)
{
	struct list calls = LIST_INIT(calls);

	pool_dispatch(&calls);
	pthread_mutex_unlock(&pool.lock);
	pool_wake(&calls);
}

/* Returns false if the time limit passed and the worker was not called. */
static bool worker_wait(struct worker *w, uint64_t until_ns)
{
	struct timespec until = clock_timespec(until_ns);
	int r;

	do
		r = until_ns == CLOCK_NEVER ? sem_wait(&w->wake)
					    : sem_clockwait(&w->wake, CLOCK_MONOTONIC, &until);
	while (r < 0 && errno == EINTR);
	return !r && atomic_exchange_explicit(&w->called, false, memory_order_acquire);
}

enum worker_news {
	WORKER_HAS_TURN, /* the worker has a turn (may run one slice), and does not hold the lock */
	WORKER_LOOKS,    /* the worker must look for stalled slices, and holds the lock */
	WORKER_ENDS,     /* there was no work for IDLE_SEC; the worker holds the lock */
};

/* Called with the lock, and releases it while the worker sleeps. The result states whether the lock
 * is held. */
static enum worker_news worker_sleep(struct worker *w)
{
	bool watches = turn_is_wanted() && !pool.watching;
	uint64_t until_ns =
		watches ? slices_next_stall() : clock_now_ns() + IDLE_SEC * NSEC_PER_SEC;

	worker_begin_idle(w, watches);
	pool_unlock();
	if (!worker_wait(w, until_ns)) {
		pool_lock();
		if (w->idle) {
			worker_end_idle(w);
			return watches ? WORKER_LOOKS : WORKER_ENDS;
		}
		/* another thread has just called the worker and posts the semaphore next */
		pthread_mutex_unlock(&pool.lock);
		worker_wait(w, CLOCK_NEVER);
	}
	if (w->has_turn)
		return WORKER_HAS_TURN;
	pool_lock();
	pool.called = false;
	return WORKER_LOOKS;
}

/* Called with the lock. Returns true, with the lock released, if the worker may run a slice.
 * Returns false, with the lock held, if the worker shall end. */
static bool worker_get_turn(struct worker *w)
{
	enum worker_news news = WORKER_LOOKS;

	while (news == WORKER_LOOKS) {
		if (turn_begin(&w->turn)) {
			pool_unlock();
			return true;
		}
		news = worker_sleep(w);
	}
	return news == WORKER_HAS_TURN;
}

/* done() may free the job and the file, so neither is used after it. */
void pool_complete(struct list *finished)
{
	struct list *it;

	if (list_empty(finished))
		return;
	pool_unlock();
	while ((it = list_pop(finished))) {
		struct persist_job *job = container_of(it, struct persist_job, node);

		readback_end(job, job->status);
		job->done(job, job->status);
	}
	pool_lock();
}

static void *pool_thread(void *arg)
{
	struct list finished = LIST_INIT(finished);
	struct worker w = {.idle = false};

	pthread_setname_np(pthread_self(), "rpma-persist");
	sem_init(&w.wake, 0, 0);
	pool_lock();
	pool.started--;
	while (worker_get_turn(&w)) {
		turn_run(&w.turn, &w.reader);
		pool_lock();
		turn_end(&w.turn, &finished);
		pool_complete(&finished);
	}
	pool.threads--;
	pool_unlock();
	sem_destroy(&w.wake);
	reader_delete(w.reader);
	return NULL;
}

bool pool_start(struct persist_job *job)
{
	struct list calls = LIST_INIT(calls);
	bool started;

	pool_lock();
	queue_begin(job);
	pool_dispatch(&calls);
	/*
	 * If no slice may begin now, the job waits for a running slice to end, and the thread of
	 * that slice continues with the job.
	 */
	started = pool.threads > 0 || !turn_is_wanted();
	if (!started)
		queue_drop(job);
	pthread_mutex_unlock(&pool.lock);
	pool_wake(&calls);
	return started;
}

bool pool_needs_help(void)
{
	if (turn_is_wanted() && !pool.threads)
		pool_start_thread();
	return turn_is_wanted() && !pool.threads;
}

void persist_atfork_prepare(void)
{
	files_atfork_prepare();
	pool_lock();
}

void persist_atfork_parent(void)
{
	pthread_mutex_unlock(&pool.lock);
	files_atfork_parent();
}

void persist_atfork_child(void)
{
	list_init(&pool.idle);
	queue_forget();
	slices_forget();
	pool.watching = pool.called = false;
	pool.threads = pool.started = 0;
	pthread_mutex_unlock(&pool.lock);
	files_atfork_child();
}
