/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conn_own.c -- who looks for a connection's bytes.
 *
 * As a rule the link reports them, and a thread of the engine is woken. A thread that polls looks
 * for them anyway: so after some polls in quick succession the link reports bytes no more, and each
 * arrival wakes nobody. While any connection is owned in this way the engine looks at short
 * intervals, and takes back what was not polled since its last look. Arming the completion queue
 * takes back at once: after that the application waits.
 *
 * A thread that waits for a completion by poll(2) waits for the link's descriptor as well, and owns
 * the connection for so long: an arrival wakes that thread and not the engine's, which would only
 * wake it in turn.
 */
#include <errno.h>

#include "base/clock.h"
#include "softrnic/io/conn_parts.h"

#define OWN_LOOK_NS (300 * NSEC_PER_US)
#define OWN_BATCH   64 /* taken back at one look */

static void own_look(struct eng_timer *timer);

/* The connections that polling threads own. The lock is a leaf. */
static struct {
	pthread_mutex_t lock;
	struct list conns;
	struct eng_timer timer;
} own = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.conns = LIST_INIT(own.conns),
	.timer = {.at = CLOCK_NEVER, .fire = own_look},
};

/* --- of one connection, with its lock ------------------------------------------------------- */

static bool conn_can_be_owned(const struct conn *c)
{
	return c->registered && c->link->ops->report_read && !c->hangup &&
	       stream_state(c->stream) == STREAM_LIVE;
}

/* Does a thread wait for this link? One that waits for the link before it does not look here. */
static bool conn_is_awaited(struct conn *c)
{
	unsigned waiters = atomic_load(&c->own.waiters);

	if (c->own.strays > waiters)
		c->own.strays = waiters;
	return waiters > c->own.strays;
}

/* The link reports bytes exactly while nobody looks for them. */
static void conn_own_settle(struct conn *c)
{
	bool owned = c->own.polled || c->own.spun || conn_is_awaited(c);

	if (owned == c->own.silent || !c->registered)
		return;
	c->own.silent = owned;
	if (c->link->ops->report_read(c->link, !owned))
		atomic_fetch_or(&c->want, READY_READ);
}

static void conn_own_leave(struct conn *c)
{
	pthread_mutex_lock(&own.lock);
	list_del(&c->own.link);
	pthread_mutex_unlock(&own.lock);
	c->own.polled = false;
}

/* Before bytes are taken: those that follow wake nobody then. */
static void conn_own_end_wait(struct conn *c)
{
	if (!c->registered || !c->own.awaited || conn_is_awaited(c))
		return;
	c->own.awaited = false;
	if (c->link->ops->wait_end)
		c->link->ops->wait_end(c->link);
}

void conn_own_changed(struct conn *c)
{
	if (!c->registered)
		return;
	conn_own_end_wait(c);
	conn_own_settle(c);
}

void conn_own(struct conn *c)
{
	bool first;

	if (c->own.polled || !conn_can_be_owned(c))
		return;
	c->own.polled = true;
	conn_own_settle(c);
	pthread_mutex_lock(&own.lock);
	first = list_empty(&own.conns);
	c->own.seen = atomic_load_explicit(&c->own.polls, memory_order_relaxed) - 1;
	list_add_tail(&own.conns, &c->own.link);
	pthread_mutex_unlock(&own.lock);
	if (first)
		engine_set_timer(&own.timer, clock_now_ns() + OWN_LOOK_NS);
}

void conn_disown(struct conn *c)
{
	if (!c->own.polled)
		return;
	conn_own_leave(c);
	conn_own_changed(c);
}

void conn_own_forget(struct conn *c)
{
	if (c->own.polled)
		conn_own_leave(c);
	c->own.silent = c->own.awaited = false;
	c->own.strays = atomic_load(&c->own.waiters);
	atomic_store(&c->own.spun, false);
}

/* What was said to the link does not hold for the one that takes its place. */
void conn_own_move(struct conn *c)
{
	if (c->own.awaited && c->link->ops->wait_end)
		c->link->ops->wait_end(c->link);
	if (c->own.silent)
		c->link->ops->report_read(c->link, true);
	conn_own_forget(c);
	atomic_fetch_or(&c->want, READY_READ);
}

/* --- a leader that spins -------------------------------------------------------------------- */

/* Threads of the application come first. */
static bool conn_can_be_spun(struct conn *c)
{
	return conn_can_be_owned(c) && conn_may_touch(c) && !c->own.polled &&
	       atomic_load(&c->own.waiters) == 0;
}

enum eng_look conn_spin(struct conn *c)
{
	enum eng_look look = ENG_LOOK_OVER;

	if (!conn_try_enter(c))
		return ENG_LOOK_NOTHING; /* who has the lock looks */
	c->own.spun = conn_can_be_spun(c);
	conn_own_settle(c);
	if (c->own.spun)
		look = conn_poll(c, CONN_LOOKS) ? ENG_LOOK_FOUND : ENG_LOOK_NOTHING;
	conn_leave(c);
	return look;
}

void conn_spin_end(struct conn *c)
{
	c->own.spun = false;
	conn_want(c, CONN_OWN);
}

/* --- threads that wait ---------------------------------------------------------------------- */

/* Bytes that the connection has not taken, because it waits for a receive, would end each wait at
 * once. */
static bool conn_can_be_awaited(const struct conn *c)
{
	return conn_can_be_owned(c) && c->link->ops->wait_begin && !c->readable;
}

static int conn_own_await(struct conn *c)
{
	int fd;

	conn_is_awaited(c); /* strays that have gone do not count for this one */
	atomic_fetch_add(&c->own.waiters, 1);
	conn_own_settle(c);
	fd = c->link->ops->wait_begin(c->link);
	if (fd >= 0) {
		c->own.awaited = true;
		return fd;
	}
	atomic_fetch_sub(&c->own.waiters, 1);
	conn_own_changed(c);
	atomic_fetch_or(&c->want, READY_READ);
	return -1;
}

int conn_wait_begin(struct conn *c)
{
	int fd = -1;

	if (!conn_may_touch(c) || !conn_try_enter(c))
		return -1;
	if (conn_can_be_awaited(c))
		fd = conn_own_await(c);
	conn_leave(c);
	return fd;
}

void conn_wait_end(struct conn *c, bool look)
{
	atomic_fetch_sub(&c->own.waiters, 1);
	if (!conn_may_touch(c) || !conn_try_enter(c)) {
		conn_want(c, CONN_OWN | (look ? READY_READ : 0));
		return;
	}
	conn_own_end_wait(c);
	if (look)
		conn_poll(c, 1);
	conn_own_changed(c);
	conn_leave(c);
}

/* --- the engine's look ---------------------------------------------------------------------- */

static bool own_was_polled(struct conn *c)
{
	unsigned polls = atomic_load_explicit(&c->own.polls, memory_order_relaxed);
	bool was = polls != c->own.seen;

	c->own.seen = polls;
	return was;
}

/* Connections that were not polled, with a reference each. One in the list has a link, whose
 * reference ends after it has left the list. */
static int own_find_idle(struct conn *idle[OWN_BATCH], bool *any)
{
	struct list *it;
	int n = 0;

	pthread_mutex_lock(&own.lock);
	list_for_each (it, &own.conns) {
		struct conn *c = container_of(it, struct conn, own.link);

		if (n == OWN_BATCH)
			break;
		if (own_was_polled(c))
			continue;
		conn_get(c);
		idle[n++] = c;
	}
	*any = !list_empty(&own.conns);
	pthread_mutex_unlock(&own.lock);
	return n;
}

static void own_look(struct eng_timer *timer)
{
	struct conn *idle[OWN_BATCH];
	bool any;
	int n = own_find_idle(idle, &any);

	for (int i = 0; i < n; i++) {
		conn_want(idle[i], CONN_DISOWN);
		conn_put(idle[i]);
	}
	if (any)
		engine_set_timer(timer, clock_now_ns() + OWN_LOOK_NS);
}

/* --- fork() --------------------------------------------------------------------------------- */

void conns_own_atfork_prepare(void)
{
	pthread_mutex_lock(&own.lock);
}

void conns_own_atfork_parent(void)
{
	pthread_mutex_unlock(&own.lock);
}

/* Their links are closed in the child. */
void conns_own_atfork_child(void)
{
	struct list *it;

	while ((it = list_pop(&own.conns)))
		container_of(it, struct conn, own.link)->own.polled = false;
	own.timer = (struct eng_timer){.at = CLOCK_NEVER, .fire = own_look};
	pthread_mutex_unlock(&own.lock);
}
