/* SPDX-License-Identifier: BSD-3-Clause */
/* engine_run.c -- the work of a thread of the engine: runs the callbacks of events, deadlines and
 * tasks. */

#include "base/clock.h"
#include "base/log.h"
#include "softrnic/io/config.h"
#include "softrnic/io/engine_impl.h"

__thread struct eng_runner *engine_here;

/* --- callbacks ---------------------------------------------------------------------------- */

void runner_begin(struct eng_runner *r, struct eng_source *src)
{
	r->turn++;
	r->source = src;
	if (src)
		src->running++;
	guard_notify();
}

void runner_end(struct eng_runner *r)
{
	struct eng_source *src = r->source;

	r->turn++;
	r->source = NULL;
	if (src && --src->running == 0 && src->closed)
		list_add_tail(&r->loop->to_free, &src->free_link);
}

/* Called after a callback, without the lock. If the source permits only one callback at a time,
 * handle the events that came during the callback. */
void runner_finish(struct eng_runner *me)
{
	struct eng_source *src = me->source;
	unsigned missed;

	pthread_mutex_lock(&me->loop->lock);
	while (src && (missed = src->missed)) {
		src->missed = 0;
		pthread_mutex_unlock(&me->loop->lock);
		src->ready(src, missed);
		pthread_mutex_lock(&me->loop->lock);
	}
	runner_end(me);
	pthread_mutex_unlock(&me->loop->lock);
}

static bool engine_source_is_occupied(const struct eng_source *src)
{
	return src && src->alone && src->running > 0;
}

static struct eng_source *engine_slot_find(const struct eng_loop *l, uint64_t data)
{
	uint32_t fd = (uint32_t)data;

	if (fd >= l->num_slots || l->slots[fd].generation != data >> 32)
		return NULL;
	return l->slots[fd].src;
}

/* Returns the source of the next event, and begins its callback. Returns NULL if no event is left,
 * or if another thread leads now. */
static struct eng_source *leader_next_event(struct eng_runner *me, unsigned *ready)
{
	struct eng_source *src = NULL;

	pthread_mutex_lock(&me->loop->lock);
	while (!src && me->leads && me->next < me->n) {
		const struct poller_event *ev = &me->evs[me->next++];

		src = engine_slot_find(me->loop, ev->data);
		*ready = ev->ready;
		if (!engine_source_is_occupied(src))
			continue;
		src->missed |= ev->ready;
		src = NULL;
	}
	if (src)
		runner_begin(me, src);
	pthread_mutex_unlock(&me->loop->lock);
	return src;
}

static void leader_run_events(struct eng_runner *me)
{
	struct eng_source *src;
	unsigned ready;

	while ((src = leader_next_event(me, &ready))) {
		src->ready(src, ready);
		if (ready & READY_READ)
			spin_note(me, src);
		runner_finish(me);
	}
}

#define OCCUPIED_NS (2 * NSEC_PER_MS)

static struct eng_timer *leader_next_timer(struct eng_runner *me, uint64_t now)
{
	struct eng_timer *timer = NULL;

	pthread_mutex_lock(&me->loop->lock);
	while (me->leads && (timer = timers_expired(&me->loop->timers, now))) {
		/* a callback may have set the timer after the source was closed */
		if (timer->source && timer->source->closed)
			continue;
		if (!engine_source_is_occupied(timer->source))
			break;
		timers_set(&me->loop->timers, timer, now + OCCUPIED_NS);
	}
	if (timer)
		runner_begin(me, timer->source);
	pthread_mutex_unlock(&me->loop->lock);
	return timer;
}

/* Limit of expired deadlines that are handled in one turn. Thousands may expire at the same time,
 * for example those of heartbeats. After this number the leader handles events first. */
#define TIMERS_MAX 64

static void leader_run_timers(struct eng_runner *me)
{
	uint64_t now = clock_now_ns();
	struct eng_timer *timer;

	for (int n = 0; n < TIMERS_MAX && (timer = leader_next_timer(me, now)); n++) {
		timer->fire(timer);
		runner_finish(me);
	}
}

static struct eng_task *leader_next_task(struct eng_runner *me, unsigned *left)
{
	struct eng_task *task;
	struct list *it = NULL;

	pthread_mutex_lock(&me->loop->lock);
	if (me->leads && *left > 0)
		it = list_pop(&me->loop->tasks);
	task = it ? container_of(it, struct eng_task, link) : NULL;
	if (task) {
		task->queued = false;
		me->loop->num_tasks--;
		--*left;
		runner_begin(me, NULL);
	}
	pthread_mutex_unlock(&me->loop->lock);
	return task;
}

/* Run each task that is queued now once. Tasks that are queued meanwhile run in a later turn. */
static void leader_run_tasks(struct eng_runner *me)
{
	struct eng_task *task;
	unsigned left;

	pthread_mutex_lock(&me->loop->lock);
	left = me->loop->num_tasks;
	pthread_mutex_unlock(&me->loop->lock);
	while ((task = leader_next_task(me, &left))) {
		task->run(task);
		runner_finish(me);
	}
}

static void leader_free_sources(struct eng_runner *me)
{
	struct list *it;

	for (;;) {
		pthread_mutex_lock(&me->loop->lock);
		it = list_pop(&me->loop->to_free);
		if (it)
			spin_forget(&me->loop->spin,
				    container_of(it, struct eng_source, free_link));
		pthread_mutex_unlock(&me->loop->lock);
		if (!it)
			return;
		engine_free(container_of(it, struct eng_source, free_link));
	}
}

/* --- waiting ------------------------------------------------------------------------------ */

/* May the leader wait, and until when? Returns false if the loop has work, or if another thread
 * leads now. */
static bool leader_may_wait(struct eng_runner *me, uint64_t now, uint64_t *until)
{
	uint64_t at, soon = me->turn == me->slept ? CLOCK_NEVER : now + ENGINE_SOON_NS;
	struct eng_loop *l = me->loop;
	bool may;

	pthread_mutex_lock(&l->lock);
	at = timers_next(&l->timers);
	may = me->leads && list_empty(&l->tasks) && list_empty(&l->to_free) && at > now;
	*until = at < soon ? at : soon;
	if (may) {
		me->slept = me->turn;
		atomic_store(&l->sleeping_until, *until);
	}
	pthread_mutex_unlock(&l->lock);
	return may;
}

bool leader_leads(struct eng_runner *me)
{
	bool leads;

	pthread_mutex_lock(&me->loop->lock);
	leads = me->leads;
	pthread_mutex_unlock(&me->loop->lock);
	return leads;
}

/* Wait for events. For a short, bounded time the leader spins, that is, it keeps the CPU busy. */
static int leader_wait(struct eng_runner *me, uint64_t now, uint64_t until)
{
	bool spins = config_get()->spin_ns > 0;
	int n = 0;

	if (spins) {
		n = leader_spin(me, me->evs, until, &now);
		/* another thread leads now, and handles the events */
		if (n == 0 && !leader_leads(me))
			return 0;
	}
	if (n == 0) {
		n = poller_wait(&me->loop->poller, me->evs, until, now);
		if (spins && n > 0)
			spin_came(&me->loop->spin, clock_now_ns());
	}
	atomic_store(&me->loop->sleeping_until, 0);
	return n;
}

static bool leader_goes_on(struct eng_runner *me)
{
	bool does;

	pthread_mutex_lock(&me->loop->lock);
	does = me->leads;
	if (!does)
		list_del(&me->link);
	pthread_mutex_unlock(&me->loop->lock);
	return does;
}

/* A thread that takes over a loop first handles events that the previous leader left. */
void leader_run(struct eng_runner *me)
{
	uint64_t now, until;

	for (;;) {
		leader_run_events(me);
		now = clock_now_ns();
		if (!leader_may_wait(me, now, &until)) {
			leader_run_timers(me);
			leader_run_tasks(me);
			leader_free_sources(me);
			if (!leader_goes_on(me))
				break;
			/* check for events without waiting, and then for other work again */
			until = 0;
		}
		/* leave no event for a thread that takes over during leader_wait() */
		me->n = me->next = 0;
		me->n = leader_wait(me, now, until);
	}
	if (me->overdue)
		LOG_INFO("the progress thread waited in a callback, so another thread has taken "
			 "over");
	me->overdue = false;
}
