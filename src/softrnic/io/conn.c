/* SPDX-License-Identifier: BSD-3-Clause */
/* conn.c -- a connection's lock, creation and end. conn_run.c does a connection's work. */
#include "softrnic/io/conn.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "softrnic/io/config.h"
#include "softrnic/io/conn_parts.h"
#include "softrnic/io/conn_plain_impl.h"
#include "softrnic/io/link_shm_meet.h"
#include "softrnic/io/policy.h"

static void conn_ready(struct eng_source *src, unsigned ready);
static enum eng_look conn_look(struct eng_source *src);
static void conn_look_end(struct eng_source *src);
static void conn_free(struct eng_source *src);
static void conn_forked(struct eng_source *src);
static void conn_fire(struct eng_timer *timer);
static void conn_run_task(struct eng_task *task);

/* The list of all connections. The connections' locks may be taken inside its lock. */
static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static struct list registry = LIST_INIT(registry);

static int conn_new_stream(struct conn *c, enum stream_role role)
{
	const struct config *conf = config_get();
	bool crc = conf->crc == CONFIG_CRC_ON || (conf->crc == CONFIG_CRC_AUTO && !c->same_host);
	struct stream_config cfg = stream_config_of(role, crc, conf->extensions);

	cfg.connect_ns = conf->connect_ns;
	cfg.request_ns = conf->request_ns;
	cfg.drain_ns = conf->drain_ns;
	cfg.liveness_ns = conf->liveness_ns;
	cfg.rings = conf->shm && c->same_host ? SHM_VERSION : 0;
	conn_origin_prepare(c, &cfg);
	cfg.host = &conn_host;
	cfg.owner = c;
	return stream_new(&cfg, &c->stream);
}

int conn_renew_stream(struct conn *c, enum stream_role role)
{
	struct stream *old = c->stream;
	int ret = conn_new_stream(c, role);

	if (ret)
		c->stream = old;
	else
		stream_delete(old);
	return ret;
}

int conn_new(enum stream_role role, bool same_host, conn_event_fn *event, void *owner,
	     struct conn **out)
{
	struct conn *c = calloc(1, sizeof(*c));
	int ret;

	if (!c)
		return -ENOMEM;
	c->same_host = same_host;
	ret = conn_new_stream(c, role);
	if (ret) {
		free(c);
		return ret;
	}
	lock_init(&c->lock);
	pthread_mutex_init(&c->wait_lock, NULL);
	thread_cond_init(&c->changed);
	atomic_init(&c->refs, 1);
	c->generation = engine_generation();
	c->event = event;
	c->owner = owner;
	policy_send_init(&c->policy.send);
	policy_send_init(&c->policy.ack);
	list_init(&c->source.all);
	c->source.ready = conn_ready;
	c->source.look = conn_look;
	c->source.look_end = conn_look_end;
	c->source.free = conn_free;
	c->source.forked = conn_forked;
	engine_assign(&c->source);
	c->timer.at = c->timer_at = c->redial_at = CLOCK_NEVER;
	c->timer.fire = conn_fire;
	c->timer.source = &c->source;
	list_init(&c->task.link);
	list_init(&c->policy.link);
	c->task.run = conn_run_task;
	c->task.source = &c->source;
	pthread_mutex_lock(&registry_lock);
	list_add_tail(&registry, &c->everyone);
	pthread_mutex_unlock(&registry_lock);
	*out = c;
	return 0;
}

/* Delete the stream. In a forked child the stream stays as it is, because a thread of the parent
 * may have been in the middle of a call on it. */
static void conn_delete_stream(struct conn *c)
{
	if (conn_is_removed(c)) {
		if (!conn_try_enter(c))
			return;
		lock_leave(&c->lock);
	}
	stream_delete(c->stream);
}

static void conn_free(struct eng_source *src)
{
	struct conn *c = container_of(src, struct conn, source);

	pthread_mutex_lock(&registry_lock);
	list_del(&c->everyone);
	pthread_mutex_unlock(&registry_lock);
	conn_delete_stream(c);
	conn_plain_free(c);
	stall_count_put(atomic_load(&c->stall));
	stall_count_put(c->stall_before);
	pthread_cond_destroy(&c->changed);
	pthread_mutex_destroy(&c->wait_lock);
	free(c);
}

void conn_get(struct conn *c)
{
	atomic_fetch_add(&c->refs, 1);
}

/* Get a reference for a callback. Callbacks may run after the last reference is dropped. The
 * connection is not freed while a callback runs; this function prevents a second free. */
static bool conn_get_unless_dead(struct conn *c)
{
	unsigned refs = atomic_load(&c->refs);

	while (refs && !atomic_compare_exchange_weak(&c->refs, &refs, refs + 1))
		;
	return refs != 0;
}

void conn_put(struct conn *c)
{
	if (atomic_fetch_sub(&c->refs, 1) != 1)
		return;
	if (conn_is_removed(c))
		conn_free(&c->source);
	else
		engine_free_later(&c->source);
}

bool conn_is_removed(const struct conn *c)
{
	return c->generation != engine_generation();
}

void conn_enter(struct conn *c)
{
	lock_enter(&c->lock);
}

bool conn_try_enter(struct conn *c)
{
	return lock_try(&c->lock);
}

bool conn_enter_until(struct conn *c, unsigned ms)
{
	/* In most cases the lock is free, and the clock need not be read. */
	return conn_try_enter(c) ||
	       (ms > 0 && lock_enter_until(&c->lock, clock_now_ns() + ms * NSEC_PER_MS));
}

int conn_enter_caller(struct conn *c, unsigned ms)
{
	if (lock_try_for(&c->lock, POLICY_POST_NS))
		return 0;
	if (conn_can_stall(c))
		return conn_enter_until(c, ms) ? 0 : ETIMEDOUT;
	conn_enter(c);
	return 0;
}

bool conn_may_touch(struct conn *c)
{
	return !conn_can_stall(c) || engine_may_stall();
}

/* Do the work for bits of `want` that other threads set while this thread held the lock, because
 * their trylock failed. Other threads set a bit before their trylock, and this thread reads the
 * bits after its unlock, so no bit is missed. */
static __attribute__((noinline)) void conn_leave_serving(struct conn *c)
{
	bool served = true, here;

	do {
		if (atomic_load(&c->want))
			served = conn_serve(c);
		here = __builtin_expect(c->job_due, 0) && conn_begin_due_job(c);
		lock_leave(&c->lock);
		if (here)
			conn_run_job_here(c);
	} while (served && atomic_load(&c->want) && conn_try_enter(c));
	/* conn_again() is called only after the unlock: before it the trylock of the engine's
	 * thread would fail */
	if (!served)
		conn_again(c);
}

/* In most cases no bit of `want` is set. */
void conn_leave(struct conn *c)
{
	if (__builtin_expect(atomic_load(&c->want) || c->job_due, 0)) {
		conn_leave_serving(c);
		return;
	}
	lock_leave(&c->lock);
	if (__builtin_expect(atomic_load(&c->want), 0) && conn_try_enter(c))
		conn_leave_serving(c);
}

void conn_want(struct conn *c, unsigned bits)
{
	atomic_fetch_or(&c->want, bits);
	if (conn_try_enter(c))
		conn_leave(c);
}

static void conn_ready(struct eng_source *src, unsigned ready)
{
	struct conn *c = container_of(src, struct conn, source);

	if (!conn_get_unless_dead(c))
		return;
	/* set the alarm before taking the lock, because another thread may hold the lock */
	if (__builtin_expect(ready & READY_HANGUP, 0))
		atomic_store_explicit(&c->alarm, 1, memory_order_relaxed);
	conn_want(c, ready);
	conn_put(c);
}

static enum eng_look conn_look(struct eng_source *src)
{
	struct conn *c = container_of(src, struct conn, source);
	enum eng_look look;

	if (!conn_get_unless_dead(c))
		return ENG_LOOK_OVER;
	look = conn_spin(c);
	conn_put(c);
	return look;
}

static void conn_look_end(struct eng_source *src)
{
	struct conn *c = container_of(src, struct conn, source);

	if (!conn_get_unless_dead(c))
		return;
	conn_spin_end(c);
	conn_put(c);
}

static void conn_fire(struct eng_timer *timer)
{
	struct conn *c = container_of(timer, struct conn, timer);

	if (!conn_get_unless_dead(c))
		return;
	conn_want(c, CONN_TIME);
	conn_put(c);
}

/* Run a queued task. The task holds a reference to the connection. */
static void conn_run_task(struct eng_task *task)
{
	struct conn *c = container_of(task, struct conn, task);

	/* engine_hand_over() also returns false if the task was queued again meanwhile; the new
	 * entry in the queue has its own reference. */
	if (!conn_may_touch(c) && engine_hand_over(task))
		return;
	conn_want(c, CONN_AGAIN);
	conn_put(c);
}

void conn_again(struct conn *c)
{
	conn_get(c);
	if (!engine_defer(&c->task))
		conn_put(c);
}

void conn_wait_change(struct conn *c, uint64_t deadline)
{
	struct timespec ts = clock_timespec(deadline);
	unsigned seen;
	int ret = 0;

	pthread_mutex_lock(&c->wait_lock);
	seen = c->changes;
	atomic_fetch_add(&c->waiters, 1);
	pthread_mutex_unlock(&c->wait_lock);
	conn_leave(c);
	pthread_mutex_lock(&c->wait_lock);
	while (c->changes == seen && ret != ETIMEDOUT)
		ret = pthread_cond_timedwait(&c->changed, &c->wait_lock, &ts);
	atomic_fetch_sub(&c->waiters, 1);
	pthread_mutex_unlock(&c->wait_lock);
	conn_enter(c);
}

/* In a forked child the lock may stay taken for ever by a thread of the parent. So do not take the
 * lock, and only close the link without any effect on the peer. */
static void conn_forked(struct eng_source *src)
{
	struct conn *c = container_of(src, struct conn, source);

	conn_rings_forked(c);
	c->link->ops->forked(c->link);
	c->link = NULL;
	c->registered = false;
	conn_put(c);
}

struct conn *conns_next(struct conn *before)
{
	struct conn *found = NULL;
	struct list *it;

	pthread_mutex_lock(&registry_lock);
	it = before ? before->everyone.next : registry.next;
	for (; it != &registry && !found; it = it->next) {
		struct conn *c = container_of(it, struct conn, everyone);

		if (!conn_is_removed(c) && conn_get_unless_dead(c))
			found = c;
	}
	pthread_mutex_unlock(&registry_lock);
	if (before)
		conn_put(before);
	return found;
}

void conns_atfork_prepare(void)
{
	pthread_mutex_lock(&registry_lock);
}

void conns_atfork_release(void)
{
	pthread_mutex_unlock(&registry_lock);
}
