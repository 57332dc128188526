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

#define LOOK_NS       (20 * NSEC_PER_MS)
#define PAUSE_LOOK_NS (1 * NSEC_PER_MS) /* at leaders that pause; after the last pause */
#define PAUSE_LOOKS   40u               /* so many */
#define QUIET_LOOKS   2                 /* after so many that saw no callback the guard sleeps */
#define WORKERS_MAX   256u
#define WORKER_IDLE   5 /* s */
#define SPARES        8u

static struct timespec guard_time(uint64_t ns)
{
	uint64_t at = clock_now_ns() + ns;

	return (struct timespec){.tv_sec = (time_t)(at / NSEC_PER_SEC),
				 .tv_nsec = (long)(at % NSEC_PER_SEC)};
}

/* --- workers, with eng.lock ------------------------------------------------------------------ */

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
	return eng.guarded &&
	       (eng.workers < eng.spares ||
		(worker_count_work() > eng.idle_workers && eng.workers < WORKERS_MAX));
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

/* False: there was nothing to do for a long time, and others are left to do what comes. */
static bool worker_wait(void)
{
	struct timespec until;
	bool timed_out = false;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += WORKER_IDLE;
	eng.idle_workers++;
	while (worker_is_idle() && !(timed_out && eng.workers > eng.spares)) {
		if (eng.workers > eng.spares)
			timed_out = pthread_cond_clockwait(&eng.work, &eng.lock, CLOCK_MONOTONIC,
							   &until);
		else
			pthread_cond_wait(&eng.work, &eng.lock);
	}
	eng.idle_workers--;
	return !worker_is_idle();
}

/* A task's mark is guarded by the lock of its loop: it may be queued there again at once. */
static struct eng_task *worker_take_task(void)
{
	struct eng_task *task = container_of(list_pop(&eng.handed), struct eng_task, link);
	struct eng_loop *l = engine_loop_of(task->source);

	pthread_mutex_lock(&l->lock);
	task->queued = false;
	pthread_mutex_unlock(&l->lock);
	return task;
}

static void worker_run_task(struct eng_runner *me)
{
	struct eng_task *task = worker_take_task();

	runner_begin(me, NULL);
	pthread_mutex_unlock(&eng.lock);
	task->run(task);
	pthread_mutex_lock(&eng.lock);
	runner_end(me);
}

static struct eng_loop *worker_find_vacant(void)
{
	unsigned i = 0;

	while (!eng.loop[i]->vacant)
		i++;
	return eng.loop[i];
}

static void worker_become_leader(struct eng_runner *me, struct eng_loop *l)
{
	eng.vacant--;
	eng.workers--;
	list_del(&me->link);
	pthread_mutex_lock(&l->lock);
	l->vacant = false;
	l->leader = me;
	list_add_tail(&l->runners, &me->link);
	me->loop = l;
	me->works = false;
	me->leads = true;
	me->next = 0;
	me->n = l->n_left;
	memcpy(me->evs, l->left, (size_t)me->n * sizeof(*me->evs));
	pthread_mutex_unlock(&l->lock);
}

/* Until it is replaced in turn; then its runner is in no list any more. */
static void worker_lead(struct eng_runner *me)
{
	worker_become_leader(me, worker_find_vacant());
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

void stall_expect_in(unsigned loops)
{
	if (eng.spares == 0)
		return;
	eng.spares = SPARES + loops - 1;
	guard_call();
}

void engine_expect_stalls(void)
{
	pthread_mutex_lock(&eng.lock);
	eng.spares = SPARES + eng.loops - 1;
	workers_start();
	pthread_mutex_unlock(&eng.lock);
}

/* Returns whether it was not queued. */
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
		pthread_cond_signal(&eng.work);
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

/*
 * With both locks. The events that it did not get to are its successor's, which is an idle worker
 * or a new one. Nothing is logged here: logging may need the lock, or block as well.
 */
static void guard_replace_leader(struct eng_loop *l)
{
	struct eng_runner *old = l->leader;

	l->n_left = old->n > old->next ? old->n - old->next : 0;
	memcpy(l->left, old->evs + old->next, (size_t)l->n_left * sizeof(*l->left));
	old->n = old->next;
	old->leads = false;
	l->leader = NULL;
	l->vacant = true;
	eng.vacant++;
	pthread_cond_broadcast(&eng.work);
}

struct guard_sight {
	bool active;  /* a callback runs, or has run since the last look */
	bool stalled; /* one has run all the time since then, and may wait for memory */
};

/* Returns whether the leader, if there is one among them, is still in the same callback. */
static bool guard_look_at(struct list *runners, const struct eng_runner *leader,
			  struct guard_sight *g)
{
	bool leader_waits = false;
	struct list *it;

	list_for_each (it, runners) {
		struct eng_runner *r = container_of(it, struct eng_runner, link);
		bool waits = r->turn % 2 && r->turn == r->seen;

		g->active |= r->turn % 2 || r->turn != r->seen;
		g->stalled |= waits && !r->pauses;
		leader_waits |= waits && r == leader;
		r->seen = r->turn;
	}
	return leader_waits;
}

/* Returns whether a callback runs, or has run since the last look. */
static bool guard_look(void)
{
	struct guard_sight g = {0};

	pthread_mutex_lock(&eng.lock);
	guard_look_at(&eng.runners, NULL, &g);
	for (unsigned i = 0; i < ENGINE_THREADS_MAX && eng.loop[i]; i++) {
		struct eng_loop *l = eng.loop[i];

		pthread_mutex_lock(&l->lock);
		if (guard_look_at(&l->runners, l->leader, &g))
			guard_replace_leader(l);
		pthread_mutex_unlock(&l->lock);
	}
	atomic_store(&eng.stalled, g.stalled);
	pthread_mutex_unlock(&eng.lock);
	return g.active;
}

/* A leader that is still in the same pause is replaced. */
static void guard_look_at_pauses(void)
{
	pthread_mutex_lock(&eng.lock);
	for (unsigned i = 0; i < ENGINE_THREADS_MAX && eng.loop[i]; i++) {
		struct eng_loop *l = eng.loop[i];
		struct eng_runner *r;
		unsigned paused;

		pthread_mutex_lock(&l->lock);
		r = l->leader;
		paused = r ? atomic_load(&r->paused) : 0;
		if (r && r->turn % 2 && r->pauses && paused == r->paused_seen)
			guard_replace_leader(l);
		else if (r)
			r->paused_seen = paused;
		pthread_mutex_unlock(&l->lock);
	}
	pthread_mutex_unlock(&eng.lock);
}

/* How many such looks are left. */
static unsigned guard_watch_pauses(unsigned looks)
{
	if (atomic_exchange(&eng.paused, false))
		looks = PAUSE_LOOKS;
	else if (looks > 0)
		looks--;
	atomic_store(&eng.looks_often, looks > 0);
	if (looks > 0)
		guard_look_at_pauses();
	return looks;
}

/* What begins after this look notifies the guard. */
static bool guard_may_sleep(void)
{
	atomic_store(&eng.guard_sleeps, true);
	if (!guard_look())
		return true;
	atomic_store(&eng.guard_sleeps, false);
	return false;
}

/* Wait until `until`, or until it is signalled: true. */
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
	struct timespec next = guard_time(LOOK_NS), soon;
	uint64_t look_at = 0;
	unsigned quiet = 0, looks = 0;
	bool sleeps;

	for (;;) {
		if (clock_now_ns() >= look_at) {
			quiet = guard_look() ? 0 : quiet + 1;
			look_at = clock_now_ns() + LOOK_NS;
			next = guard_time(LOOK_NS);
		}
		looks = guard_watch_pauses(looks);
		soon = looks > 0 ? guard_time(PAUSE_LOOK_NS) : next;
		pthread_mutex_lock(&eng.lock);
		workers_start();
		pthread_mutex_unlock(&eng.lock);
		sleeps = looks == 0 && quiet >= QUIET_LOOKS && guard_may_sleep();
		if (guard_wait(sleeps ? NULL : &soon))
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
	eng.guarded = eng.guard_called = false;
	eng.guard_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	atomic_store(&eng.guard_sleeps, false);
	atomic_store(&eng.stalled, false);
	atomic_store(&eng.paused, false);
	atomic_store(&eng.looks_often, false);
	eng.work = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
	list_init(&eng.handed);
	eng.workers = eng.idle_workers = eng.vacant = 0;
	if (eng.spares)
		eng.spares = SPARES;
}
