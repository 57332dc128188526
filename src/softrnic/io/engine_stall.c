/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine_stall.c -- what happens when a callback has to wait for a file system.
 *
 * The guard looks at all runners, some times a second while callbacks run and not at all while
 * none does. A leader that is still in the callback in which it was at the look before is replaced.
 * From then on, until no runner waits, callbacks that may wait as well are handed to workers, each
 * of which has nothing else to do.
 *
 * Only the guard starts threads in that state: where the kernel keeps the lock of all mappings
 * during such a wait, pthread_create() waits as well, for the memory of a stack.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "softrnic/io/engine_impl.h"

#define LOOK_NS     (20 * NSEC_PER_MS)
#define QUIET_LOOKS 2 /* after so many that saw no callback the guard sleeps */
#define WORKERS_MAX 256u
#define WORKER_IDLE 5 /* s */
#define SPARES      8u

static struct timespec guard_time(uint64_t ns)
{
	uint64_t at = clock_now_ns() + ns;

	return (struct timespec){.tv_sec = (time_t)(at / NSEC_PER_SEC),
				 .tv_nsec = (long)(at % NSEC_PER_SEC)};
}

/* --- workers ------------------------------------------------------------------------------ */

static unsigned worker_count_work(void)
{
	unsigned n = eng.vacant;
	struct list *it;

	list_for_each (it, &eng.handed)
		n++;
	return n;
}

static bool worker_is_missing(void)
{
	return eng.running &&
	       (eng.workers < eng.spares ||
		(worker_count_work() > eng.idle_workers && eng.workers < WORKERS_MAX));
}

static void guard_call(void)
{
	eng.guard_called = true;
	pthread_cond_signal(&eng.guard_wake);
}

static bool worker_is_idle(void)
{
	return list_empty(&eng.handed) && !eng.vacant;
}

/* False: there was nothing to do for a long time, and others are left to do what comes. */
static bool worker_wait(void)
{
	struct timespec until;
	bool timed_out = false;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += WORKER_IDLE;
	eng.idle_workers++;
	while (worker_is_idle() && !(timed_out && eng.workers > eng.spares)) {
		if (eng.workers > eng.spares)
			timed_out = pthread_cond_timedwait(&eng.work, &eng.lock, &until);
		else
			pthread_cond_wait(&eng.work, &eng.lock);
	}
	eng.idle_workers--;
	return !worker_is_idle();
}

static void worker_run_task(struct eng_runner *me)
{
	struct eng_task *task = container_of(list_pop(&eng.handed), struct eng_task, link);

	runner_begin(me, NULL);
	pthread_mutex_unlock(&eng.lock);
	task->run(task);
	pthread_mutex_lock(&eng.lock);
	runner_end(me);
}

/* Until it is replaced in turn; then its runner is in no list any more. */
static void worker_lead(struct eng_runner *me)
{
	eng.vacant = false;
	eng.workers--;
	eng.leader = me;
	me->works = false;
	me->leads = true;
	me->next = 0;
	me->n = eng.n_left;
	memcpy(me->evs, eng.left, (size_t)me->n * sizeof(*me->evs));
	if (worker_is_missing()) /* for a task for which this one may have been woken */
		guard_call();
	pthread_mutex_unlock(&eng.lock);
	pthread_setname_np(pthread_self(), "softrnic");
	leader_run(me);
	pthread_mutex_lock(&eng.lock);
}

/* The allocator makes room for a thread at its first call, by mmap(): now, not when it waits. */
static void worker_prepare_allocator(void)
{
	void *volatile p = malloc(64);

	free(p);
}

static void *worker_main(void *runner)
{
	struct eng_runner *me = runner;

	engine_here = me;
	worker_prepare_allocator();
	pthread_mutex_lock(&eng.lock);
	while (me->works && worker_wait()) {
		if (eng.vacant)
			worker_lead(me);
		else
			worker_run_task(me);
	}
	if (me->works) {
		list_del(&me->link);
		eng.workers--;
	}
	pthread_mutex_unlock(&eng.lock);
	engine_here = NULL;
	free(me);
	return NULL;
}

/* Called, and returns, with the lock; others may have it meanwhile. */
static void workers_start(void)
{
	while (worker_is_missing()) {
		struct eng_runner *r = calloc(1, sizeof(*r));

		if (!r)
			return;
		r->works = true;
		list_add_tail(&eng.runners, &r->link);
		eng.workers++;
		pthread_mutex_unlock(&eng.lock);
		if (!engine_thread(worker_main, r, "softrnic-stall")) {
			pthread_mutex_lock(&eng.lock);
			continue;
		}
		pthread_mutex_lock(&eng.lock);
		list_del(&r->link);
		eng.workers--;
		free(r);
		return;
	}
}

void engine_expect_stalls(void)
{
	pthread_mutex_lock(&eng.lock);
	eng.spares = SPARES;
	workers_start();
	pthread_mutex_unlock(&eng.lock);
}

bool engine_hand_over(struct eng_task *task)
{
	bool queued = false;

	pthread_mutex_lock(&eng.lock);
	if (!list_empty(&task->link))
		goto out;
	if (eng.workers > 0) {
		list_add_tail(&eng.handed, &task->link);
		pthread_cond_signal(&eng.work);
		queued = true;
	}
	if (worker_is_missing())
		guard_call();
out:
	pthread_mutex_unlock(&eng.lock);
	return queued;
}

bool engine_may_stall(void)
{
	if (!engine_here)
		return false;
	return engine_here->works || !atomic_load_explicit(&eng.stalled, memory_order_relaxed);
}

/* --- the guard ---------------------------------------------------------------------------- */

/*
 * The events that it did not get to are its successor's, which is an idle worker or a new one.
 * Nothing is logged here: logging may need the lock, or block as well.
 */
static void guard_replace_leader(void)
{
	struct eng_runner *old = eng.leader;

	eng.n_left = old->n > old->next ? old->n - old->next : 0;
	memcpy(eng.left, old->evs + old->next, (size_t)eng.n_left * sizeof(*eng.left));
	old->n = old->next;
	old->leads = false;
	eng.leader = NULL;
	eng.vacant = true;
	pthread_cond_broadcast(&eng.work);
}

/* Returns whether a callback runs, or has run since the last look. */
static bool guard_look(void)
{
	bool active = false, stalled = false, replace = false;
	struct list *it;

	list_for_each (it, &eng.runners) {
		struct eng_runner *r = container_of(it, struct eng_runner, link);
		bool waits = r->turn % 2 && r->turn == r->seen;

		active |= r->turn % 2 || r->turn != r->seen;
		stalled |= waits;
		replace |= waits && r == eng.leader;
		r->seen = r->turn;
	}
	atomic_store(&eng.stalled, stalled);
	if (replace)
		guard_replace_leader();
	return active;
}

/* Wait until `until`, or until it is signalled: true. */
static bool guard_wait(const struct timespec *until)
{
	int err = 0;

	while (!eng.guard_called && err != ETIMEDOUT)
		err = until ? pthread_cond_timedwait(&eng.guard_wake, &eng.lock, until)
			    : pthread_cond_wait(&eng.guard_wake, &eng.lock);
	return eng.guard_called;
}

static void *guard_main(void *arg)
{
	struct timespec next = guard_time(LOOK_NS);
	uint64_t look_at = 0;
	unsigned quiet = 0;

	pthread_mutex_lock(&eng.lock);
	for (;;) {
		if (clock_now_ns() >= look_at) {
			quiet = guard_look() ? 0 : quiet + 1;
			look_at = clock_now_ns() + LOOK_NS;
			next = guard_time(LOOK_NS);
		}
		workers_start();
		eng.guard_sleeps = quiet >= QUIET_LOOKS;
		if (guard_wait(eng.guard_sleeps ? NULL : &next))
			quiet = 0;
		eng.guard_sleeps = eng.guard_called = false;
	}
	return arg;
}

void guard_notify(void)
{
	if (eng.guard_sleeps && !eng.guard_called)
		guard_call();
}

int guard_start(void)
{
	pthread_condattr_t attr;

	if (eng.guarded)
		return 0;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&eng.guard_wake, &attr);
	pthread_condattr_destroy(&attr);
	if (engine_thread(guard_main, NULL, "softrnic-guard"))
		return -EAGAIN;
	eng.guarded = true;
	return 0;
}

/* Its threads are not here. */
void stall_atfork_child(void)
{
	eng.guarded = eng.guard_sleeps = eng.guard_called = false;
	atomic_store(&eng.stalled, false);
	eng.work = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
	list_init(&eng.handed);
	eng.workers = eng.idle_workers = 0;
	eng.vacant = false;
}
