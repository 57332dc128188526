/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conn_own.c -- decides which thread checks for a connection's bytes (doc/policy.md, R1 to R7).
 *
 * Usually the link reports bytes, which wakes a thread of the engine. A polling thread checks for
 * bytes without a report. So after some polls in quick succession the link stops reporting bytes,
 * and no thread is woken when bytes arrive, until the polls cease (conn_watch.c). When the
 * completion queue is armed, the link immediately reports bytes again, because the application is
 * about to wait.
 *
 * A thread that waits for a completion by poll(2) also waits for the link's descriptor, and owns
 * the connection while it waits: bytes that arrive wake this thread directly, and not the engine's
 * thread first. If the thread soon waits again, it also owns the connection between the waits:
 * arming the queue, polling and posting then need no system call for the link. So arming each queue
 * once between two waits changes nothing, but arming one of them twice ends the ownership.
 */

#include "base/clock.h"
#include "softrnic/io/conn_parts.h"
#include "softrnic/io/conn_watch.h"
#include "softrnic/io/policy.h"

/* --- one connection, called with its lock -------------------------------------------------- */

static bool conn_can_be_owned(const struct conn *c)
{
	return c->registered && c->link->ops->polling && !c->hangup &&
	       stream_state(c->stream) == STREAM_LIVE;
}

/*
 * Does a thread wait for this link? A thread that still waits for a replaced link does not count.
 */
static bool conn_is_awaited(struct conn *c)
{
	unsigned waiters = atomic_load(&c->policy.waiters);

	if (c->policy.strays > waiters)
		c->policy.strays = waiters;
	return waiters > c->policy.strays;
}

/* Returns which threads check for bytes, except waiting threads, which conn_is_awaited() finds.
 * Called with or without the lock. */
static struct policy_lookers conn_lookers(const struct conn *c)
{
	return (struct policy_lookers){
		.leased = atomic_load_explicit(&c->policy.leased, memory_order_relaxed),
		.waits = atomic_load_explicit(&c->policy.waits, memory_order_relaxed),
		.spun = atomic_load_explicit(&c->policy.spun, memory_order_relaxed),
	};
}

/* Make the link report bytes exactly as long as no other thread checks for them. */
static void conn_own_settle(struct conn *c)
{
	struct policy_lookers l = conn_lookers(c);
	bool owned;

	l.waiting = conn_is_awaited(c);
	owned = !policy_link_reports(&l);
	if (owned == c->policy.silent || !c->registered)
		return;
	c->policy.silent = owned;
	if (c->link->ops->polling->report_read(c->link, !owned))
		atomic_fetch_or(&c->want, READY_READ);
}

/* Called before bytes are received. If no thread waits any more, end the link's wait, so that later
 * bytes wake no thread. */
static void conn_own_end_wait(struct conn *c)
{
	if (!c->registered || !c->policy.awaited || conn_is_awaited(c))
		return;
	c->policy.awaited = false;
	c->link->ops->polling->wait_end(c->link);
}

bool conn_is_polled(const struct conn *c)
{
	struct policy_lookers l = conn_lookers(c);

	return policy_is_polled(&l);
}

/* --- changes -------------------------------------------------------------------------------- */

/* Do the work that a polling thread has left unfinished. */
static void conn_own_finish(struct conn *c)
{
	if (c->policy.unfinished && !conn_is_polled(c))
		conn_again(c);
}

void conn_own_changed(struct conn *c)
{
	if (!c->registered)
		return;
	conn_own_end_wait(c);
	conn_own_settle(c);
	conn_own_finish(c);
}

static struct policy_news conn_news(const struct conn *c)
{
	struct qp_news news = stream_news(c->stream);

	return (struct policy_news){.written = news.written, .completed = news.completed};
}

void conn_look_begins(struct conn *c)
{
	struct policy_news now = conn_news(c);

	policy_look_begins(&c->policy.lease, &now);
}

void conn_look_ends(struct conn *c)
{
	struct policy_news now = conn_news(c);

	policy_look_ends(&c->policy.lease, &now);
}

void conn_own(struct conn *c, uint64_t now)
{
	if (!c->policy.leased && conn_can_be_owned(c) && policy_may_lease(&c->policy.lease) &&
	    watch_lease(c, now))
		conn_own_settle(c);
}

static void conn_end_lease(struct conn *c)
{
	watch_lease_end(c);
	conn_look_ends(c);
	atomic_store(&c->policy.waits, false);
}

void conn_disown(struct conn *c)
{
	if (!c->policy.leased)
		return;
	conn_end_lease(c);
	conn_own_changed(c);
}

bool conn_own_unused(struct conn *c, struct policy_news *before)
{
	if (!c->policy.leased)
		return false;
	*before = conn_news(c);
	conn_disown(c);
	c->readable = true;
	return true;
}

void conn_own_judge(struct conn *c, const struct policy_news *before)
{
	struct policy_news now = conn_news(c);

	policy_lease_unused(&c->policy.lease, before, &now);
}

bool conn_is_left_to_waits(const struct conn *c)
{
	return atomic_load_explicit(&c->policy.waits, memory_order_relaxed);
}

void conn_own_arm(struct conn *c, unsigned *armed_in, bool is_empty)
{
	unsigned wait = atomic_load_explicit(&c->policy.wait, memory_order_relaxed);
	struct policy_lookers l = conn_lookers(c);
	bool armed_before = *armed_in == wait;

	*armed_in = wait;
	if (is_empty)
		conn_ack_in_vain_soon(c);
	if (policy_arm_ends_lease(&l, armed_before))
		conn_want(c, CONN_DISOWN);
}

void conn_untouchable(struct conn *c)
{
	if (atomic_load_explicit(&c->policy.leased, memory_order_relaxed))
		conn_want(c, CONN_DISOWN);
}

void conn_own_forget(struct conn *c)
{
	if (c->policy.leased)
		conn_end_lease(c);
	c->policy.silent = c->policy.awaited = false;
	c->policy.strays = atomic_load(&c->policy.waiters);
	atomic_store(&c->policy.spun, false);
}

/* End the lease, and undo the settings of the present link for polls and waits, because later bytes
 * arrive by another link, which does not have these settings. */
void conn_own_move(struct conn *c)
{
	if (c->policy.awaited)
		c->link->ops->polling->wait_end(c->link);
	if (c->policy.silent)
		c->link->ops->polling->report_read(c->link, true);
	if (c->policy.leased)
		conn_end_lease(c);
	conn_own_forget(c);
	conn_own_finish(c);
	atomic_fetch_or(&c->want, READY_READ);
}

/* --- a spinning leader ---------------------------------------------------------------------- */

enum eng_look conn_spin(struct conn *c)
{
	enum eng_look look = ENG_LOOK_OVER;

	if (!conn_try_enter(c))
		/* the thread that holds the lock checks for bytes itself */
		return ENG_LOOK_NOTHING;
	/* threads of the application have priority over a spinning leader of the engine */
	c->policy.spun = conn_can_be_owned(c) && conn_may_touch(c) && !c->policy.leased &&
			 atomic_load(&c->policy.waiters) == 0;
	conn_own_changed(c);
	if (c->policy.spun)
		look = conn_poll(c, CONN_LOOKS) ? ENG_LOOK_FOUND : ENG_LOOK_NOTHING;
	conn_leave(c);
	return look;
}

void conn_spin_end(struct conn *c)
{
	c->policy.spun = false;
	conn_want(c, CONN_OWN);
}

/* --- threads that wait ---------------------------------------------------------------------- */

static int conn_own_await(struct conn *c)
{
	int fd;

	conn_is_awaited(c); /* forget waits for a former link: they do not count for this link */
	atomic_fetch_add(&c->policy.waiters, 1);
	conn_own_settle(c);
	fd = c->link->ops->polling->wait_begin(c->link);
	if (fd >= 0) {
		c->policy.awaited = true;
		return fd;
	}
	atomic_fetch_sub(&c->policy.waiters, 1);
	conn_own_changed(c);
	atomic_fetch_or(&c->want, READY_READ);
	return -1;
}

/* Called when the thread begins a wait. If its previous wait began only a short time ago, it will
 * probably wait again soon: give it the lease between its waits. */
static void conn_own_between_waits(struct conn *c, uint64_t now)
{
	bool again = policy_waits_again(c->policy.waited_at, now);

	c->policy.waited_at = now;
	conn_count_poll(c);
	if (!again)
		return;
	conn_own(c, now);
	atomic_fetch_add_explicit(&c->policy.wait, 1, memory_order_relaxed);
	atomic_store_explicit(&c->policy.waits, c->policy.leased, memory_order_relaxed);
	conn_own_finish(c);
}

int conn_wait_begin(struct conn *c, uint64_t now)
{
	int fd = -1;

	if (!conn_may_touch(c)) {
		conn_untouchable(c);
		return -1;
	}
	if (!conn_try_enter(c))
		return -1;
	conn_ack_in_vain(c);
	if (!c->policy.leased)
		conn_look_begins(c);
	/* While the connection waits for a posted receive, its unread bytes would end each poll(2)
	 * of the link immediately. */
	if (conn_can_be_owned(c) && !c->readable) {
		conn_own_between_waits(c, now);
		fd = conn_own_await(c);
	}
	conn_leave(c);
	return fd;
}

void conn_wait_end(struct conn *c, bool look)
{
	atomic_fetch_sub(&c->policy.waiters, 1);
	if (!conn_may_touch(c) || !conn_try_enter(c)) {
		conn_want(c, CONN_OWN | (look ? READY_READ : 0));
		return;
	}
	conn_own_end_wait(c);
	if (look)
		conn_poll_for_wait(c);
	if (!c->policy.leased)
		conn_look_ends(c);
	conn_own_changed(c);
	conn_leave(c);
}
