/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/io/conn_watch.h"

#include "base/clock.h"
#include "base/log.h"
#include "softrnic/io/alarm.h"
#include "softrnic/io/conn_parts.h"
#include "softrnic/io/policy.h"

/* Limit: if more connections are listed, conn_watch.c does not check each of them for a deferred
 * Write. */
#define WATCH_FEW   8
#define WATCH_BATCH 64 /* greatest number of leases that one check of a polling thread ends */

static void watch_on_alarm(struct eng_source *src, unsigned ready);
static void watch_forked(struct eng_source *src);

/* This is a leaf lock, except that the engine's lock is taken inside it. As long as a connection is
 * listed, the alarm is set, or watch_on_alarm() is about to run. */
static struct {
	pthread_mutex_t lock;
	struct list conns; /* the list holds a reference to each connection in it */
	unsigned leases;
	struct alarm alarm;
	/* a deferred Write needs the alarm, so a renewal of leases must not move the alarm to a
	 * later time */
	atomic_bool for_write;
	/* time at which the engine checks the leases next; 0: there are no leases */
	_Atomic uint64_t look_at;
} watch = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.conns = LIST_INIT(watch.conns),
	.alarm = ALARM_INIT(watch.alarm, watch_on_alarm, watch_forked),
};

void watch_prepare(void)
{
	pthread_mutex_lock(&watch.lock);
	alarm_open(&watch.alarm);
	pthread_mutex_unlock(&watch.lock);
}

uint64_t watch_write_ns(void)
{
	return alarm_pace(&watch.alarm, POLICY_WRITE);
}

/* --- called with watch.lock ----------------------------------------------------------------- */

static void watch_add(struct conn *c)
{
	if (atomic_load(&c->policy.listed))
		return;
	conn_get(c);
	list_add_tail(&watch.conns, &c->policy.link);
	atomic_store(&c->policy.listed, true);
}

/* Remove and return a connection, or NULL if the list is empty. The list's reference moves to the
 * caller. */
static struct conn *watch_pop(void)
{
	struct list *it = list_pop(&watch.conns);
	struct conn *c;

	if (!it)
		return NULL;
	c = container_of(it, struct conn, policy.link);
	atomic_store(&c->policy.listed, false);
	return c;
}

static unsigned watch_count_listed(void)
{
	struct list *it;
	unsigned n = 0;

	list_for_each (it, &watch.conns)
		n++;
	return n;
}

/* Is a Write deferred? If more than WATCH_FEW connections are listed, assume that one has a
 * deferred Write, because checking all of them costs more than a needless alarm. */
static bool watch_has_write(void)
{
	struct list *it;
	int n = 0;

	list_for_each (it, &watch.conns)
		if (n++ == WATCH_FEW ||
		    conn_doorbell_since(container_of(it, struct conn, policy.link)))
			return true;
	return false;
}

/* Set the alarm to this time, or to the next check of leases if that is earlier. */
static bool watch_set(uint64_t now, uint64_t at)
{
	uint64_t look_at = atomic_load_explicit(&watch.look_at, memory_order_relaxed);

	if (look_at && look_at < at)
		at = look_at;
	if (alarm_due(&watch.alarm) == at)
		return true;
	return alarm_set(&watch.alarm, now, at > now ? at - now : 1);
}

/* Set the time of the engine's next check of leases: twice the period after which threads check the
 * leases themselves. */
static bool watch_set_look(uint64_t now, enum policy_use use)
{
	uint64_t at = watch.leases ? now + 2 * alarm_pace(&watch.alarm, use) : 0;
	bool waits = atomic_load(&watch.for_write) && watch_has_write();
	bool keeps = !at || policy_keeps_alarm(alarm_due(&watch.alarm), watch.look_at, at, waits);

	atomic_store_explicit(&watch.look_at, at, memory_order_relaxed);
	if (keeps)
		return true;
	atomic_store(&watch.for_write, false);
	return watch_set(now, at);
}

/* --- deferred Writes ------------------------------------------------------------------------ */

/*
 * Set the alarm so that the Write is not sent too late. In most cases the alarm is already early
 * enough, and the connection is already listed. If the alarm expires before the Write is marked as
 * deferred, no Write is missed: the connection is checked for a Write when it leaves the list, or
 * it stays listed because of its lease.
 */
bool watch_write(struct conn *c, uint64_t now, uint64_t ns)
{
	uint64_t due = alarm_due(&watch.alarm);
	bool watched;

	if (atomic_load(&c->policy.listed) && atomic_load(&watch.for_write) &&
	    policy_alarm_fits(due, now, ns, false))
		return true;
	pthread_mutex_lock(&watch.lock);
	watched = policy_alarm_fits(alarm_due(&watch.alarm), now, ns, watch_has_write()) ||
		  watch_set(now, now + 2 * ns);
	if (watched) {
		atomic_store(&watch.for_write, true);
		watch_add(c);
	}
	pthread_mutex_unlock(&watch.lock);
	return watched;
}

unsigned watch_count(void)
{
	unsigned n;

	pthread_mutex_lock(&watch.lock);
	n = watch_count_listed();
	pthread_mutex_unlock(&watch.lock);
	return n;
}

struct conn *watch_next_write(unsigned *left)
{
	struct conn *found = NULL;
	struct list *it;

	pthread_mutex_lock(&watch.lock);
	for (; !found && *left > 0 && (it = list_pop(&watch.conns)); --*left) {
		struct conn *c = container_of(it, struct conn, policy.link);

		list_add_tail(&watch.conns, it);
		if (conn_doorbell_since(c))
			found = c;
	}
	if (found)
		conn_get(found);
	pthread_mutex_unlock(&watch.lock);
	return found;
}

/* --- leases --------------------------------------------------------------------------------- */

bool watch_lease(struct conn *c, uint64_t now)
{
	pthread_mutex_lock(&watch.lock);
	watch.leases++;
	c->policy.leased = watch.look_at || watch_set_look(now, POLICY_WAITS);
	if (c->policy.leased) {
		c->policy.seen = atomic_load_explicit(&c->policy.polls, memory_order_relaxed) - 1;
		watch_add(c);
	} else {
		watch.leases--;
		watch.look_at = 0;
	}
	pthread_mutex_unlock(&watch.lock);
	return c->policy.leased;
}

/* End the lease. The connection stays listed until the alarm expires. */
void watch_lease_end(struct conn *c)
{
	pthread_mutex_lock(&watch.lock);
	watch.leases--;
	c->policy.leased = false;
	pthread_mutex_unlock(&watch.lock);
}

/* Was the lease used since the last check? Sending a large Write may take longer than the period of
 * checks, so a send in progress counts as use. */
static bool watch_is_used(struct conn *c)
{
	unsigned polls = atomic_load_explicit(&c->policy.polls, memory_order_relaxed);
	bool is = polls != c->policy.seen ||
		  atomic_load_explicit(&c->policy.sends, memory_order_relaxed);

	c->policy.seen = polls;
	return is;
}

/*
 * Called with watch.lock: collect the connections whose leases are unused, each with a reference.
 */
static int watch_find_unused(struct conn *unused[WATCH_BATCH])
{
	struct list *it;
	int n = 0;

	list_for_each (it, &watch.conns) {
		struct conn *c = container_of(it, struct conn, policy.link);

		if (n == WATCH_BATCH)
			break;
		if (!c->policy.leased || watch_is_used(c))
			continue;
		conn_get(c);
		unused[n++] = c;
	}
	return n;
}

void conn_leases_renew(uint64_t now, enum policy_use use)
{
	uint64_t pace = alarm_pace(&watch.alarm, use);
	struct conn *unused[WATCH_BATCH];
	int n = 0;

	if (!policy_is_look_due(atomic_load_explicit(&watch.look_at, memory_order_relaxed), now,
				pace))
		return;
	pthread_mutex_lock(&watch.lock);
	if (policy_is_look_due(watch.look_at, now, pace)) {
		n = watch_find_unused(unused);
		watch_set_look(now, use);
	}
	pthread_mutex_unlock(&watch.lock);
	for (int i = 0; i < n; i++) {
		conn_want(unused[i], CONN_UNUSED);
		conn_put(unused[i]);
	}
}

/* --- the alarm ------------------------------------------------------------------------------ */

/*
 * Take the next one of *left connections, and find out which work is due for it (*wants). A
 * connection with a lease stays listed. A connection that leaves the list is always checked for a
 * Write, because a Write may just have been deferred.
 */
static struct conn *watch_next(unsigned *left, bool look, unsigned *wants)
{
	struct conn *c;

	pthread_mutex_lock(&watch.lock);
	c = *left > 0 ? watch_pop() : NULL;
	if (c) {
		--*left;
		*wants = !c->policy.leased || conn_doorbell_since(c) ? CONN_BELL : 0;
	}
	if (c && c->policy.leased) {
		*wants |= look && !watch_is_used(c) ? CONN_UNUSED : 0;
		watch_add(c);
	}
	pthread_mutex_unlock(&watch.lock);
	return c;
}

/* Set the alarm for the connections that stay listed. If the lease of such a connection has ended
 * just now, perhaps because of this alarm, the next alarm removes the connection from the list. */
static void watch_end_expiry(uint64_t now, bool look)
{
	bool is_set = true;

	pthread_mutex_lock(&watch.lock);
	if (look)
		is_set = watch_set_look(now, POLICY_WAITS);
	if (!list_empty(&watch.conns) && !alarm_due(&watch.alarm))
		is_set = watch_set(now, now + 2 * alarm_pace(&watch.alarm, POLICY_WAITS));
	pthread_mutex_unlock(&watch.lock);
	if (!is_set)
		LOG_ERROR("cannot set a timer: a connection that is no longer polled may stall");
}

static void watch_on_alarm(struct eng_source *src, unsigned ready)
{
	uint64_t now = clock_now_ns();
	unsigned n, wants;
	struct conn *c;
	bool look;

	pthread_mutex_lock(&watch.lock);
	alarm_has_expired(&watch.alarm);
	atomic_store(&watch.for_write, false);
	/* At this time no deferred Write needs an earlier alarm. */
	look = watch.look_at && watch.look_at <= now;
	n = watch_count_listed();
	pthread_mutex_unlock(&watch.lock);
	while ((c = watch_next(&n, look, &wants))) {
		if (wants)
			conn_want(c, wants);
		conn_put(c);
	}
	watch_end_expiry(now, look);
}

/* --- fork() --------------------------------------------------------------------------------- */

/* In a forked child: empty the list. The alarm is the parent's, and the child's connections have no
 * link. */
static void watch_forked(struct eng_source *src)
{
	struct conn *c;

	alarm_forked(&watch.alarm);
	while ((c = watch_pop()))
		conn_put(c);
}

void watch_atfork_prepare(void)
{
	pthread_mutex_lock(&watch.lock);
}

void watch_atfork_parent(void)
{
	pthread_mutex_unlock(&watch.lock);
}

void watch_atfork_child(void)
{
	struct list *it;

	list_for_each (it, &watch.conns)
		container_of(it, struct conn, policy.link)->policy.leased = false;
	watch.leases = 0;
	watch.look_at = 0;
	atomic_store(&watch.for_write, false);
	pthread_mutex_unlock(&watch.lock);
}
