/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conn_lease.c -- how long threads that poll, or wait again and again, own a connection.
 *
 * Such threads look for its bytes by themselves, so its link reports none, and each arrival wakes
 * nobody. That ends when no poll and no wait came between two looks at the leases. The threads make
 * these looks as well, and put off the alarm at which the engine makes the next one. So the engine
 * is woken only when all of them have stopped.
 */
#include "base/clock.h"
#include "base/log.h"
#include "softrnic/io/alarm.h"
#include "softrnic/io/conn_parts.h"
#include "softrnic/io/policy.h"

#define LEASE_BATCH 64 /* end at one look */

static void leases_on_alarm(struct eng_source *src, unsigned ready);
static void leases_forked(struct eng_source *src);

/* A leaf lock, but that the engine's is taken inside. */
static struct {
	pthread_mutex_t lock;
	struct list conns;
	struct alarm alarm;
} leases = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.conns = LIST_INIT(leases.conns),
	.alarm = ALARM_INIT(leases.alarm, leases_on_alarm, leases_forked),
};

/* The next look of a thread that polls comes after this time, the engine's after twice as much. */
static uint64_t lease_look_ns(void)
{
	return alarm_pace(&leases.alarm, POLICY_LEASE_NS);
}

/* With leases.lock. */
static bool leases_set_alarm(uint64_t now)
{
	return alarm_set(&leases.alarm, now, 2 * lease_look_ns());
}

void conn_leases_prepare(void)
{
	pthread_mutex_lock(&leases.lock);
	alarm_open(&leases.alarm);
	pthread_mutex_unlock(&leases.lock);
}

/* With leases.lock. */
static bool leases_will_be_looked_at(uint64_t now)
{
	return alarm_due(&leases.alarm) || leases_set_alarm(now);
}

bool conn_lease_begin(struct conn *c, uint64_t now)
{
	pthread_mutex_lock(&leases.lock);
	c->own.leased = leases_will_be_looked_at(now);
	if (c->own.leased) {
		c->own.seen = atomic_load_explicit(&c->own.polls, memory_order_relaxed) - 1;
		list_add_tail(&leases.conns, &c->own.link);
	}
	pthread_mutex_unlock(&leases.lock);
	return c->own.leased;
}

void conn_lease_end(struct conn *c)
{
	pthread_mutex_lock(&leases.lock);
	list_del(&c->own.link);
	pthread_mutex_unlock(&leases.lock);
	c->own.leased = false;
	c->own.armed = false;
	atomic_store(&c->own.waits, false);
}

/* --- looks ---------------------------------------------------------------------------------- */

/* To send a large Write takes longer than a look. */
static bool lease_is_used(struct conn *c)
{
	unsigned polls = atomic_load_explicit(&c->own.polls, memory_order_relaxed);
	bool is = polls != c->own.seen || atomic_load_explicit(&c->own.sends, memory_order_relaxed);

	c->own.seen = polls;
	return is;
}

/* With leases.lock: those whose lease was not used, with a reference each. One in the list has a
 * link, whose reference ends after it has left the list. */
static int leases_find_unused(struct conn *unused[LEASE_BATCH])
{
	struct list *it;
	int n = 0;

	list_for_each (it, &leases.conns) {
		struct conn *c = container_of(it, struct conn, own.link);

		if (n == LEASE_BATCH)
			break;
		if (lease_is_used(c))
			continue;
		conn_get(c);
		unused[n++] = c;
	}
	return n;
}

static bool leases_are_due(uint64_t now)
{
	return policy_is_look_due(alarm_due(&leases.alarm), now, lease_look_ns());
}

static void leases_look(uint64_t now)
{
	struct conn *unused[LEASE_BATCH];
	int n = 0;

	pthread_mutex_lock(&leases.lock);
	if (leases_are_due(now)) {
		n = leases_find_unused(unused);
		alarm_has_expired(&leases.alarm);
		if (!list_empty(&leases.conns) && !leases_set_alarm(now))
			LOG_ERROR("no timer: a connection that is polled no more may stall");
	}
	pthread_mutex_unlock(&leases.lock);
	for (int i = 0; i < n; i++) {
		conn_want(unused[i], CONN_DISOWN);
		conn_put(unused[i]);
	}
}

static void leases_on_alarm(struct eng_source *src, unsigned ready)
{
	leases_look(clock_now_ns());
}

void conn_leases_renew(uint64_t now)
{
	if (leases_are_due(now))
		leases_look(now);
}

/* --- fork() --------------------------------------------------------------------------------- */

static void leases_forked(struct eng_source *src)
{
	alarm_forked(&leases.alarm);
}

void conn_leases_atfork_prepare(void)
{
	pthread_mutex_lock(&leases.lock);
}

void conn_leases_atfork_parent(void)
{
	pthread_mutex_unlock(&leases.lock);
}

/* Their links are closed in the child. */
void conn_leases_atfork_child(void)
{
	struct list *it;

	while ((it = list_pop(&leases.conns)))
		container_of(it, struct conn, own.link)->own.leased = false;
	pthread_mutex_unlock(&leases.lock);
}
