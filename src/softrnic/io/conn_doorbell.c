/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/io/conn_doorbell.h"

#include "base/clock.h"
#include "softrnic/io/alarm.h"
#include "softrnic/io/conn_parts.h"

#define DOORBELL_NS       40000u /* so long may a Write wait at least: doorbell_ns() */
#define DOORBELL_EARLY_NS 5000u  /* not so much less that another look is worth it */
#define DOORBELL_SOON_NS  20000u /* what is posted within this time could have been waited for */

/*
 * A Write waits once so many in a row were followed soon. The number grows when a Write waited
 * alone until the alarm and the next post was a Write, too: then nothing was to follow it. If the
 * next post was another request, its thread had only been held up. FOLLOWED_MAX in a row bring the
 * first number back.
 */
#define FOLLOWED_MIN   2u
#define FOLLOWED_MAX   4096u
#define FOLLOWED_GROWS 16u

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
	return alarm_pace(&bells.alarm, DOORBELL_NS);
}

void conn_doorbell_init(struct conn *c)
{
	list_init(&c->bell.link);
	c->bell.needed = FOLLOWED_MIN;
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

/* Too late is never right; too early is, while others wait. */
static bool doorbells_expire_in(uint64_t from, uint64_t to)
{
	uint64_t due = alarm_due(&bells.alarm);

	return due >= from && due <= to;
}

/*
 * With the connection's lock: the alarm is to ask conn_bell_is_due(), `ns` to 2 * `ns` from now. If
 * it is about to do so, the connection is still listed, and what has happened until then counts.
 */
static bool doorbell_watch(struct conn *c, uint64_t now, uint64_t ns)
{
	bool watched;

	if (atomic_load(&c->bell.listed) && doorbells_expire_in(now + ns, now + 2 * ns))
		return true;
	pthread_mutex_lock(&bells.lock);
	watched = doorbells_expire_in(doorbells_wait() ? 1 : now + ns, now + 2 * ns) ||
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

/* The alarm sends what waited. */
static void doorbell_waited_in_vain(struct conn_doorbell *b)
{
	b->followed = 0;
	b->late = b->alone;
}

static void doorbell_count_followed(struct conn_doorbell *b)
{
	if (b->followed < FOLLOWED_MAX)
		b->followed++;
	else
		b->needed = FOLLOWED_MIN;
}

static void doorbell_was_alone(struct conn_doorbell *b)
{
	b->needed *= FOLLOWED_GROWS;
	if (b->needed > FOLLOWED_MAX)
		b->needed = FOLLOWED_MAX;
}

/* Something is posted: did the Write before it wait in vain, or would it have? */
static void doorbell_followed(struct conn_doorbell *b, bool by_write)
{
	if (conn_doorbell_since(b)) {
		b->alone = false;
		doorbell_count_followed(b);
	} else if (b->sent_at) {
		if (clock_now_ns() - b->sent_at <= DOORBELL_SOON_NS)
			doorbell_count_followed(b);
		else
			b->followed = 0;
		b->sent_at = 0;
	} else if (b->late) {
		if (by_write)
			doorbell_was_alone(b);
		b->late = false;
	}
}

/* False: it cannot wait, as nothing would end that. */
static bool doorbell_wait(struct conn *c)
{
	uint64_t now;

	if (conn_doorbell_since(&c->bell))
		return true;
	if (c->bell.followed < c->bell.needed)
		return false;
	now = clock_now_ns();
	if (!doorbell_watch(c, now, doorbell_ns()))
		return false;
	c->bell.alone = true;
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
	bool may_wait = doorbell_may_wait(c);
	struct stream_update u;

	doorbell_followed(&c->bell, may_wait);
	if (may_wait && doorbell_wait(c))
		return;
	if (!conn_send_short(c)) {
		stream_look_at_posts(c->stream, &u);
		conn_perform(c, &u);
	}
	if (may_wait)
		c->bell.sent_at = clock_now_ns();
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
	uint64_t since = conn_doorbell_since(&c->bell), limit = doorbell_ns(), now, waited;

	if (!since)
		return false;
	now = clock_now_ns();
	waited = now - since;
	if (waited + DOORBELL_EARLY_NS < limit && doorbell_watch(c, now, limit - waited))
		return false;
	doorbell_waited_in_vain(&c->bell);
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
