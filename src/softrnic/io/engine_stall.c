/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine_stall.c -- replaces a thread whose callback waits for a file system.
 *
 * The guard checks all runners a few times a second while callbacks run, and sleeps otherwise. A
 * leader that is still in the same callback as at the previous check is replaced. From then on
 * until no runner waits, callbacks that may also wait are given to workers. A worker has no other
 * work, so it is allowed to wait.
 *
 * In this state only the guard starts threads. If the kernel holds the process's lock of all
 * mappings during such a wait, pthread_create() waits as well, because it needs memory for a stack.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/thread.h"
#include "softrnic/io/engine_impl.h"

#define LOOK_NS        (20 * NSEC_PER_MS)
#define QUIET_LOOKS    2 /* the guard sleeps after this number of checks without a callback */
#define WORKERS_MAX    256u
#define WORKER_IDLE_NS (5 * NSEC_PER_SEC)

/* --- workers: called with eng.lock ---------------------------------------------------------- */

static bool worker_is_missing(void)
{
	unsigned work = eng.vacant;
	struct list *it;

	list_for_each (it, &eng.handed)
		work++;
	return eng.guarded &&
	       (eng.workers < eng.spares || (work > eng.idle_workers && eng.workers < WORKERS_MAX));
}

void guard_call(void)
{
	pthread_mutex_lock(&eng.guard_lock);
	eng.guard_called = true;
	pthread_cond_signal(&eng.guard_wake);
	pthread_mutex_unlock(&eng.guard_lock);
}

static bool worker_is_idle(void)
{
	return list_empty(&eng.handed) && !eng.vacant;
}

/* Called with the lock, which is released during the sleep. */
static void worker_sleep(struct eng_runner *me, uint64_t until)
{
	int n;

	pthread_mutex_unlock(&eng.lock);
	n = poller_wait(&eng.work, me->evs, until, clock_now_ns());
	pthread_mutex_lock(&eng.lock);
	for (int i = 0; i < n; i++)
		if (me->evs[i].data != POLLER_WAKEUP)
			aside_take(me->evs[i].data);
}

/* Returns false after a long time without work; this worker then ends, because other workers can
 * handle later work. */
static bool worker_wait(struct eng_runner *me)
{
	uint64_t end = clock_now_ns() + WORKER_IDLE_NS;

	eng.idle_workers++;
	while (worker_is_idle() && !(eng.workers > eng.spares && clock_now_ns() >= end))
		worker_sleep(me, eng.workers > eng.spares ? end : CLOCK_NEVER);
	eng.idle_workers--;
	return !worker_is_idle();
}

/* Wake another worker if work is left. Called by a worker that has taken one part of the work. */
static void worker_wake_next(void)
{
	if (!worker_is_idle() && eng.idle_workers > 0)
		poller_wake(&eng.work);
}

static void worker_run_task(struct eng_runner *me)
{
	struct eng_task *task = container_of(list_pop(&eng.handed), struct eng_task, link);
	struct eng_loop *l = engine_loop_of(task->source);

	/* The lock of the task's loop guards the flag `queued`, because another thread may queue
	 * the task again immediately. */
	pthread_mutex_lock(&l->lock);
	task->queued = false;
	pthread_mutex_unlock(&l->lock);
	runner_begin(me, NULL);
	worker_wake_next();
	pthread_mutex_unlock(&eng.lock);
	task->run(task);
	pthread_mutex_lock(&eng.lock);
	runner_end(me);
}

static void worker_become_leader(struct eng_runner *me, struct eng_loop *l)
{
	eng.vacant--;
	eng.workers--;
	list_del(&me->link);
	pthread_mutex_lock(&l->lock);
	l->vacant = false;
	l->leader = me;
	atomic_store(&l->sleeping_until, 0);
	list_add_tail(&l->runners, &me->link);
	me->loop = l;
	me->works = false;
	me->leads = true;
	me->next = 0;
	me->n = l->n_left;
	memcpy(me->evs, l->left, (size_t)me->n * sizeof(*me->evs));
	pthread_mutex_unlock(&l->lock);
}

/* Turn a former leader, or a new thread, into a worker. */
static void worker_add(struct eng_runner *me)
{
	me->loop = NULL;
	me->works = true;
	list_add_tail(&eng.runners, &me->link);
	eng.workers++;
}

/* Lead the loop until another thread replaces this one. */
static void worker_lead(struct eng_runner *me)
{
	unsigned i = 0;

	while (!eng.loop[i]->vacant)
		i++;
	worker_become_leader(me, eng.loop[i]);
	worker_wake_next();
	/* this worker may have been woken for a task, so wake another worker for it */
	if (worker_is_missing())
		guard_call();
	pthread_mutex_unlock(&eng.lock);
	pthread_setname_np(pthread_self(), "softrnic");
	leader_run(me);
	pthread_setname_np(pthread_self(), "softrnic-stall");
	pthread_mutex_lock(&eng.lock);
	worker_add(me);
}

/* Called with the lock. */
static void worker_run(struct eng_runner *me)
{
	while (worker_wait(me)) {
		if (eng.vacant)
			worker_lead(me);
		else
			worker_run_task(me);
	}
	list_del(&me->link);
	eng.workers--;
	pthread_mutex_unlock(&eng.lock);
	engine_here = NULL;
	free(me);
}

static void *worker_main(void *runner)
{
	/* The allocator reserves memory for a thread by mmap() in the thread's first call. Make
	 * this call now, because a later mmap() may have to wait. */
	void *volatile p = malloc(64);

	free(p);
	engine_here = runner;
	pthread_mutex_lock(&eng.lock);
	worker_run(runner);
	return NULL;
}

void *leader_main(void *runner)
{
	engine_here = runner;
	leader_run(runner);
	pthread_setname_np(pthread_self(), "softrnic-stall");
	pthread_mutex_lock(&eng.lock);
	worker_add(runner);
	worker_run(runner);
	return NULL;
}

/* Called with the lock, which is released while threads start. */
static void workers_start(void)
{
	while (worker_is_missing()) {
		struct eng_runner *r = calloc(1, sizeof(*r));

		if (!r)
			return;
		worker_add(r);
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

void stall_expect_in(unsigned loops)
{
	if (eng.spares == 0)
		return;
	eng.spares = STALL_SPARES + loops - 1;
	guard_call();
}

void engine_expect_stalls(void)
{
	pthread_mutex_lock(&eng.lock);
	eng.spares = STALL_SPARES + eng.loops - 1;
	workers_start();
	pthread_mutex_unlock(&eng.lock);
}

/* Mark the task as queued. Returns true if it was not queued before. */
static bool stall_mark_queued(struct eng_task *task)
{
	struct eng_loop *l = engine_loop_of(task->source);
	bool queued;

	pthread_mutex_lock(&l->lock);
	queued = task->queued;
	task->queued = true;
	pthread_mutex_unlock(&l->lock);
	return !queued;
}

bool engine_hand_over(struct eng_task *task)
{
	bool queued = false;

	pthread_mutex_lock(&eng.lock);
	if (eng.workers > 0 && stall_mark_queued(task)) {
		list_add_tail(&eng.handed, &task->link);
		poller_wake(&eng.work);
		queued = true;
	}
	if (worker_is_missing())
		guard_call();
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

/* Give up the leader's role. The next leader, an idle worker or a new one, handles the events that
 * this leader did not reach. Nothing is logged here, because logging may take locks or block. */
void loop_vacate(struct eng_loop *l)
{
	struct eng_runner *old = l->leader;

	l->n_left = old->n > old->next ? old->n - old->next : 0;
	memcpy(l->left, old->evs + old->next, (size_t)l->n_left * sizeof(*l->left));
	old->n = old->next;
	old->leads = false;
	l->leader = NULL;
	l->vacant = true;
	eng.vacant++;
}

struct guard_sight {
	bool active; /* a callback is running, or has run since the last check */
	/* the same callback is running since the last check, and may be waiting for memory */
	bool stalled;
};

/*
 * Look at all runners. Returns true if the leader is among them and still runs the same callback.
 */
static bool guard_look_at(struct list *runners, const struct eng_runner *leader,
			  struct guard_sight *g)
{
	bool leader_waits = false;
	struct list *it;

	list_for_each (it, runners) {
		struct eng_runner *r = container_of(it, struct eng_runner, link);
		bool waits = r->turn % 2 && r->turn == r->seen;

		g->active |= r->turn % 2 || r->turn != r->seen;
		g->stalled |= waits && !r->writes_back;
		leader_waits |= waits && r == leader;
		r->seen = r->turn;
	}
	return leader_waits;
}

/* Returns true if a callback is running, or has run since the last check. */
static bool guard_look(void)
{
	struct guard_sight g = {0};

	pthread_mutex_lock(&eng.lock);
	guard_look_at(&eng.runners, NULL, &g);
	for (unsigned i = 0; i < ENGINE_THREADS_MAX && eng.loop[i]; i++) {
		struct eng_loop *l = eng.loop[i];

		pthread_mutex_lock(&l->lock);
		if (guard_look_at(&l->runners, l->leader, &g)) {
			l->leader->overdue = true;
			loop_vacate(l);
		}
		pthread_mutex_unlock(&l->lock);
	}
	atomic_store(&eng.stalled, g.stalled);
	worker_wake_next();
	pthread_mutex_unlock(&eng.lock);
	return g.active;
}

/* Can the guard sleep? A callback that begins after this check wakes the guard. */
static bool guard_may_sleep(void)
{
	atomic_store(&eng.guard_sleeps, true);
	if (!guard_look())
		return true;
	atomic_store(&eng.guard_sleeps, false);
	return false;
}

/* Wait until the time `until`. Returns true if the guard was signalled earlier. */
static bool guard_wait(const struct timespec *until)
{
	bool called;
	int err = 0;

	pthread_mutex_lock(&eng.guard_lock);
	while (!eng.guard_called && err != ETIMEDOUT)
		err = until ? pthread_cond_timedwait(&eng.guard_wake, &eng.guard_lock, until)
			    : pthread_cond_wait(&eng.guard_wake, &eng.guard_lock);
	called = eng.guard_called;
	eng.guard_called = false;
	atomic_store(&eng.guard_sleeps, false);
	pthread_mutex_unlock(&eng.guard_lock);
	return called;
}

static void *guard_main(void *arg)
{
	struct timespec next = clock_timespec(clock_now_ns() + LOOK_NS);
	uint64_t look_at = 0;
	unsigned quiet = 0;
	bool sleeps;

	for (;;) {
		if (clock_now_ns() >= look_at) {
			quiet = guard_look() ? 0 : quiet + 1;
			look_at = clock_now_ns() + LOOK_NS;
			next = clock_timespec(clock_now_ns() + LOOK_NS);
		}
		pthread_mutex_lock(&eng.lock);
		workers_start();
		pthread_mutex_unlock(&eng.lock);
		sleeps = quiet >= QUIET_LOOKS && guard_may_sleep();
		if (guard_wait(sleeps ? NULL : &next))
			quiet = 0;
	}
	return arg;
}

void guard_notify(void)
{
	if (atomic_load(&eng.guard_sleeps) && atomic_exchange(&eng.guard_sleeps, false))
		guard_call();
}

int guard_start(void)
{
	int ret;

	if (eng.guarded)
		return 0;
	ret = poller_open(&eng.work);
	if (ret) {
		poller_close(&eng.work);
		return ret;
	}
	thread_cond_init(&eng.guard_wake);
	if (engine_thread(guard_main, NULL, "softrnic-guard")) {
		poller_close(&eng.work);
		return -EAGAIN;
	}
	eng.guarded = true;
	return 0;
}

/* In a forked child: the parent's threads do not exist, so reset their state. */
void stall_atfork_child(void)
{
	eng.guarded = eng.guard_called = false;
	eng.guard_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	atomic_store(&eng.guard_sleeps, false);
	atomic_store(&eng.stalled, false);
	poller_close(&eng.work);
	list_init(&eng.handed);
	eng.workers = eng.idle_workers = eng.vacant = eng.aside = 0;
	if (eng.spares)
		eng.spares = STALL_SPARES;
}
