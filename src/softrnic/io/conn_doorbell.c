/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/io/conn_doorbell.h"

#include "base/clock.h"
#include "softrnic/io/alarm.h"
#include "softrnic/io/conn_parts.h"
#include "softrnic/io/policy.h"

static void doorbells_on_alarm(struct eng_source *src, unsigned ready);
static void doorbells_forked(struct eng_source *src);

/*
 * One alarm for all connections. It is set to twice doorbell_ns(), and put off when a Write is
 * about to wait and less than doorbell_ns() is left. So a loop that posts all the time costs one
 * call in that time at most, and wakes nobody. A leaf lock, but that the engine's is taken inside.
 */
static struct {
	pthread_mutex_t lock;
	struct list conns;
	struct alarm alarm;
} bells = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.conns = LIST_INIT(bells.conns),
	.alarm = ALARM_INIT(bells.alarm, doorbells_on_alarm, doorbells_forked),
};

/* So long may a Write wait, and at most twice as long. */
static uint64_t doorbell_ns(void)
{
	return alarm_pace(&bells.alarm, POLICY_WRITE_NS);
}

void conn_doorbell_init(struct conn *c)
{
	list_init(&c->bell.link);
	policy_send_init(&c->bell.send);
}

/* --- the alarm ---------------------------------------------------------------------------- */

void doorbells_prepare(void)
{
	pthread_mutex_lock(&bells.lock);
	alarm_open(&bells.alarm);
	pthread_mutex_unlock(&bells.lock);
}

#define DOORBELLS_FEW 8

/* With bells.lock: does one of those that are listed wait? Of many, one is taken to. */
static bool doorbells_wait(void)
{
	struct list *it;
	int n = 0;

	list_for_each (it, &bells.conns)
		if (n++ == DOORBELLS_FEW ||
		    conn_doorbell_since(container_of(it, struct conn_doorbell, link)))
			return true;
	return false;
}

/*
 * With the connection's lock: the alarm is to ask conn_bell_is_due(), `ns` to 2 * `ns` from now. If
 * it is about to do so, the connection is still listed, and what has happened until then counts.
 */
static bool doorbell_watch(struct conn *c, uint64_t now, uint64_t ns)
{
	bool watched;

	if (atomic_load(&c->bell.listed) &&
	    policy_alarm_fits(alarm_due(&bells.alarm), now, ns, false))
		return true;
	pthread_mutex_lock(&bells.lock);
	watched = policy_alarm_fits(alarm_due(&bells.alarm), now, ns, doorbells_wait()) ||
		  alarm_set(&bells.alarm, now, 2 * ns);
	if (watched && !atomic_load(&c->bell.listed)) {
		conn_get(c);
		list_add_tail(&bells.conns, &c->bell.link);
		atomic_store(&c->bell.listed, true);
	}
	pthread_mutex_unlock(&bells.lock);
	return watched;
}

/* The list's reference goes over to the caller. NULL: there is none. */
static struct conn *doorbells_pop(void)
{
	struct list *it;
	struct conn *c = NULL;

	pthread_mutex_lock(&bells.lock);
	it = list_pop(&bells.conns);
	if (it) {
		c = container_of(it, struct conn, bell.link);
		atomic_store(&c->bell.listed, false);
	}
	pthread_mutex_unlock(&bells.lock);
	return c;
}

static unsigned doorbells_expired(void)
{
	struct list *it;
	unsigned n = 0;

	pthread_mutex_lock(&bells.lock);
	alarm_has_expired(&bells.alarm);
	list_for_each (it, &bells.conns)
		n++;
	pthread_mutex_unlock(&bells.lock);
	return n;
}

/* Those that are listed again meanwhile have a time of their own. */
static void doorbells_on_alarm(struct eng_source *src, unsigned ready)
{
	unsigned n = doorbells_expired();
	struct conn *c;

	while (n-- > 0 && (c = doorbells_pop())) {
		conn_want(c, CONN_BELL);
		conn_put(c);
	}
}

/* The alarm is the parent's. */
static void doorbells_forked(struct eng_source *src)
{
	struct conn *c;

	alarm_forked(&bells.alarm);
	while ((c = doorbells_pop()))
		conn_put(c);
}

/* --- one connection ----------------------------------------------------------------------- */

static void doorbell_count(struct conn *c, int by)
{
	for (int i = 0; i < 2; i++)
		if (c->cq_waiting[i])
			atomic_fetch_add_explicit(c->cq_waiting[i], (unsigned)by,
						  memory_order_relaxed);
}

/* False: it cannot wait, as nothing would end that. */
static bool doorbell_wait(struct conn *c)
{
	uint64_t now = clock_now_ns();

	if (!doorbell_watch(c, now, doorbell_ns()))
		return false;
	atomic_store_explicit(&c->bell.since, now, memory_order_relaxed);
	doorbell_count(c, 1);
	return true;
}

/* A send could be saved, and could be made at any time. */
static bool doorbell_may_wait(const struct conn *c)
{
	return c->writable && c->link && c->link->ops->gathers_sends && stream_may_wait(c->stream);
}

void conn_perform_posted(struct conn *c)
{
	struct policy_send *s = &c->bell.send;
	bool may_wait = doorbell_may_wait(c);
	enum policy_write todo = policy_on_post(s, may_wait, conn_doorbell_since(&c->bell),
						policy_post_needs_time(s) ? clock_now_ns() : 0);
	struct stream_update u;

	if (todo == POLICY_JOINS || (todo == POLICY_WAIT && doorbell_wait(c)))
		return;
	if (!conn_send_short(c)) {
		stream_look_at_posts(c->stream, &u);
		conn_perform(c, &u);
	}
	if (may_wait)
		policy_sent(s, clock_now_ns());
}

void conn_rung(struct conn *c)
{
	if (!conn_doorbell_since(&c->bell))
		return;
	atomic_store_explicit(&c->bell.since, 0, memory_order_relaxed);
	doorbell_count(c, -1);
}

void conn_ring(struct conn *c)
{
	if (!conn_doorbell_since(&c->bell))
		return;
	conn_rung(c);
	conn_settle(c);
}

void conn_ring_soon(struct conn *c)
{
	if (!conn_doorbell_since(&c->bell))
		return;
	if (!conn_try_enter(c)) {
		conn_want(c, CONN_RING);
		return;
	}
	conn_ring(c);
	conn_leave(c);
}

bool conn_bell_is_due(struct conn *c)
{
	uint64_t since = conn_doorbell_since(&c->bell), pace = doorbell_ns(), now;

	if (!since)
		return false;
	now = clock_now_ns();
	if (!policy_is_overdue(since, now, pace) && doorbell_watch(c, now, since + pace - now))
		return false;
	policy_sent_by_alarm(&c->bell.send);
	return true;
}

/* --- all of them -------------------------------------------------------------------------- */

void doorbells_ring(unsigned ms)
{
	struct conn *c;

	while ((c = doorbells_pop())) {
		if (conn_is_removed(c)) {
			/* a parent's, in its child */
		} else if (conn_enter_until(c, ms)) {
			conn_ring(c);
			conn_leave(c);
		} else {
			conn_want(c, CONN_RING);
		}
		conn_put(c);
	}
}

void doorbells_atfork_prepare(void)
{
	pthread_mutex_lock(&bells.lock);
}

void doorbells_atfork_release(void)
{
	pthread_mutex_unlock(&bells.lock);
}
