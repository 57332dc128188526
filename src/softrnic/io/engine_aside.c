/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine_aside.c -- lets another thread lead while a leader itself writes back the flushed bytes of
 * a connection.
 *
 * The leader first steps aside: the poller for which idle workers wait now also watches the loop's
 * poller. If an event of the loop comes before the disk has answered, the event wakes a worker,
 * which takes over the loop. If no event comes, no thread is woken, and the leader continues with
 * its loop. If the loop already has work, or will have work soon, the loop is handed over
 * immediately.
 *
 * The leader holds no lock while it waits. One worker is reserved for each leader that may step
 * aside, and further workers remain for callbacks that stall.
 */
#include "softrnic/io/engine_impl.h"
#include "softrnic/io/stall.h"

#define ASIDE_SOON_NS (2 * NSEC_PER_MS) /* a deadline earlier than this must not wait for a disk */
/* number of idle workers that are not reserved for leaders */
#define ASIDE_SPARES (STALL_SPARES / 2)

bool engine_may_wait(void)
{
	struct eng_runner *me = engine_here;
	bool may;

	if (!me || !me->loop || !engine_may_stall())
		return false;
	pthread_mutex_lock(&me->loop->lock);
	may = me->next == me->n; /* if events are left, the next leader must handle them */
	pthread_mutex_unlock(&me->loop->lock);
	return may;
}

bool engine_may_step_aside(void)
{
	bool may;

	pthread_mutex_lock(&eng.lock);
	may = eng.idle_workers > eng.aside + ASIDE_SPARES;
	eng.aside += may;
	pthread_mutex_unlock(&eng.lock);
	engine_here->has_worker = may;
	return may;
}

/* Called with the loop's lock. */
static bool aside_is_quiet(struct eng_loop *l, uint64_t now)
{
	return list_empty(&l->tasks) && list_empty(&l->to_free) && l->spin.n == 0 &&
	       timers_next(&l->timers) > now + ASIDE_SOON_NS;
}

/* Let the poller of the idle workers watch the loop. Called with the loop's lock. From now on a new
 * task, or a deadline that comes soon, counts as an event, too. Later deadlines are not missed,
 * because the guard checks the leader before they expire. */
static bool aside_watch(struct eng_loop *l, uint64_t now)
{
	uint64_t next = timers_next(&l->timers), soon = now + ENGINE_SOON_NS;

	atomic_store(&l->sleeping_until, next < soon ? next : soon);
	return !poller_watch(&eng.work, &l->poller, l->index, true);
}

static void aside_give_up(struct eng_runner *me)
{
	bool leads;

	pthread_mutex_lock(&eng.lock);
	pthread_mutex_lock(&me->loop->lock);
	leads = me->leads;
	if (leads)
		loop_vacate(me->loop);
	pthread_mutex_unlock(&me->loop->lock);
	pthread_mutex_unlock(&eng.lock);
	if (leads)
		poller_wake(&eng.work);
}

void engine_step_aside(void)
{
	struct eng_runner *me = engine_here;
	uint64_t now = clock_now_ns();
	bool watched = true;

	atomic_store_explicit(&me->writes_back, true, memory_order_relaxed);
	pthread_mutex_lock(&me->loop->lock);
	if (me->leads) {
		watched = aside_is_quiet(me->loop, now) && aside_watch(me->loop, now);
		me->aside = watched;
	}
	pthread_mutex_unlock(&me->loop->lock);
	if (!watched)
		aside_give_up(me);
}

/* Called by a worker with eng.lock. Afterwards this worker or another one becomes the leader of the
 * loop and handles its events. */
void aside_take(uint64_t number)
{
	struct eng_loop *l = eng.loop[number];

	pthread_mutex_lock(&l->lock);
	if (l->leader && l->leader->aside)
		loop_vacate(l);
	pthread_mutex_unlock(&l->lock);
}

void engine_step_back(void)
{
	struct eng_runner *me = engine_here;

	if (!me || !me->has_worker)
		return;
	me->has_worker = false;
	atomic_store_explicit(&me->writes_back, false, memory_order_relaxed);
	pthread_mutex_lock(&me->loop->lock);
	policy_wrote_back(&me->loop->spin.spare, clock_now_ns());
	if (me->aside && me->leads) {
		poller_watch(&eng.work, &me->loop->poller, me->loop->index, false);
		atomic_store(&me->loop->sleeping_until, 0);
	}
	me->aside = false;
	pthread_mutex_unlock(&me->loop->lock);
	pthread_mutex_lock(&eng.lock);
	eng.aside--;
	pthread_mutex_unlock(&eng.lock);
}
