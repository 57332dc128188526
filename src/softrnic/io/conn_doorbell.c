/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/io/conn_doorbell.h"

#include "base/clock.h"
#include "softrnic/io/conn_parts.h"
#include "softrnic/io/conn_watch.h"
#include "softrnic/io/policy.h"

static void doorbell_count(struct conn *c, int by)
{
	for (int i = 0; i < 2; i++)
		if (c->cq_waiting[i])
			atomic_fetch_add_explicit(c->cq_waiting[i], (unsigned)by,
						  memory_order_relaxed);
}

/* Record the time from which requests are deferred. Returns false if nothing may be deferred,
 * because there is no alarm that would end the wait. */
static bool doorbell_wait_since(struct conn *c, uint64_t now)
{
	if (!watch_write(c, now, watch_write_ns()))
		return false;
	atomic_store_explicit(&c->policy.since, now, memory_order_relaxed);
	return true;
}

/* Returns the kind of the posted requests. POLICY_OTHER means that the requests must not be
 * deferred, or that deferring them would save no send. */
static enum policy_posted doorbell_posted(const struct conn *c)
{
	static const enum policy_posted posted[] = {[QP_AWAITED] = POLICY_OTHER,
						    [QP_WRITES_WAIT] = POLICY_A_WRITE,
						    [QP_SENDS_WAIT] = POLICY_A_SEND};

	if (!c->writable || !c->link || !c->link->ops->gathers_sends)
		return POLICY_OTHER;
	return posted[stream_may_wait(c->stream)];
}

/* --- Acks ------------------------------------------------------------------------------------ */

/* Called when requests are posted. If an Ack was due before, record whether the requests followed
 * so soon that the Ack could be sent with them. The rules are those for a deferred Write. */
static void doorbell_ack_followed(struct conn *c)
{
	struct policy_send *s = &c->policy.ack;

	if (policy_post_needs_time(s) || conn_ack_waits(c) || s->late)
		policy_on_post(s, POLICY_OTHER, conn_ack_waits(c),
			       policy_post_needs_time(s) ? clock_now_ns() : 0);
}

/* Called at the end of a poll, when nothing but an Ack is due: send or defer the Ack. `completes`
 * is true if the poll returns a completion. */
static void doorbell_ack(struct conn *c, bool completes)
{
	struct policy_send *s = &c->policy.ack;
	uint64_t now = clock_now_ns();

	if (completes && !conn_doorbell_since(c) &&
	    policy_on_post(s, POLICY_A_WRITE, false, now) == POLICY_WAIT &&
	    doorbell_wait_since(c, now)) {
		atomic_store_explicit(&c->policy.ack_waits, true, memory_order_relaxed);
		return;
	}
	conn_settle(c);
	if (completes)
		policy_sent(s, now);
}

void conn_poll_for_user(struct conn *c, unsigned looks)
{
	uint64_t before;

	if (conn_ack_waits(c) && !c->policy.unseen) {
		/* The previous poll returned a completion, but the thread has posted nothing since.
		 * So the Ack was deferred in vain. */
		policy_sent_by_alarm(&c->policy.ack);
		conn_ring(c);
	}
	c->policy.unseen = false;
	before = stream_news(c->stream).completed;
	c->policy.holds_ack = true;
	conn_poll(c, looks);
	c->policy.holds_ack = false;
	if (__builtin_expect(stream_owes_ack_only(c->stream), 0))
		doorbell_ack(c, stream_news(c->stream).completed != before);
}

/*
 * If several threads wait, the first one receives the message and defers its Ack, and the others
 * find no bytes: they do not send the Ack. If they find another message, the Ack is sent, because
 * its time must not be extended.
 */
void conn_poll_for_wait(struct conn *c)
{
	bool was_deferred = conn_doorbell_since(c) != 0, completes;
	uint64_t before = stream_news(c->stream).completed;

	c->policy.holds_ack = c->link && c->link->ops->gathers_sends;
	conn_poll(c, 1);
	if (!c->policy.holds_ack)
		return;
	c->policy.holds_ack = false;
	if (!stream_owes_ack_only(c->stream))
		return;
	completes = stream_news(c->stream).completed != before;
	if (was_deferred && (completes || !conn_ack_waits(c)))
		conn_settle(c);
	else if (!was_deferred)
		doorbell_ack(c, completes);
}

void conn_ack_in_vain(struct conn *c)
{
	if (!conn_ack_waits(c))
		return;
	policy_in_vain(&c->policy.ack);
	conn_ring(c);
}

/* Take the lock to send deferred requests. Returns false if another thread holds the lock: that
 * thread then sends them. */
static bool conn_enter_to_ring(struct conn *c)
{
	if (!conn_try_enter(c)) {
		conn_want(c, CONN_RING);
		return false;
	}
	policy_looked(&c->policy.send);
	return true;
}

void conn_ack_in_vain_soon(struct conn *c)
{
	if (!conn_ack_waits(c) || !conn_enter_to_ring(c))
		return;
	conn_ack_in_vain(c);
	conn_leave(c);
}

bool conn_may_hold_acks(const struct conn *c)
{
	return c->link && c->link->ops->gathers_sends && policy_watches_memory(&c->policy.lease);
}

void conn_read_for_memory(struct conn *c, struct stream_update *u)
{
	struct qp_news before = stream_news(c->stream), now;

	c->policy.holds_ack = true;
	conn_perform_and_read(c, u);
	c->policy.holds_ack = false;
	now = stream_news(c->stream);
	c->policy.unseen = now.completed != before.completed;
	if (stream_owes_ack_only(c->stream))
		doorbell_ack(c, now.written != before.written);
}

/* --- posting --------------------------------------------------------------------------------- */

void conn_perform_posted(struct conn *c)
{
	struct policy_send *s = &c->policy.send;
	enum policy_posted posted = doorbell_posted(c);
	enum policy_write todo =
		policy_on_post(s, posted, conn_doorbell_since(c) && !conn_ack_waits(c),
			       policy_post_needs_time(s) ? clock_now_ns() : 0);
	struct stream_update u;

	if (todo == POLICY_JOINS)
		return;
	if (todo == POLICY_WAIT && doorbell_wait_since(c, clock_now_ns())) {
		doorbell_count(c, 1);
		return;
	}
	doorbell_ack_followed(c);
	if (!conn_send_directly(c)) {
		stream_expect(c->stream, STREAM_DO_SEND, &u);
		conn_perform(c, &u);
	}
	if (posted == POLICY_A_WRITE)
		policy_sent(s, clock_now_ns());
}

void conn_rung(struct conn *c)
{
	if (!conn_doorbell_since(c))
		return;
	atomic_store_explicit(&c->policy.since, 0, memory_order_relaxed);
	if (conn_ack_waits(c))
		atomic_store_explicit(&c->policy.ack_waits, false, memory_order_relaxed);
	else
		doorbell_count(c, -1);
}

void conn_ring(struct conn *c)
{
	if (!conn_doorbell_since(c))
		return;
	conn_rung(c);
	conn_settle(c);
}

void conn_ring_soon(struct conn *c)
{
	if (!conn_doorbell_since(c) || !conn_enter_to_ring(c))
		return;
	conn_ring(c);
	conn_leave(c);
}

bool conn_bell_is_due(struct conn *c)
{
	uint64_t since = conn_doorbell_since(c), pace = watch_write_ns(), now;

	if (!since)
		return false;
	now = clock_now_ns();
	if (!policy_is_overdue(since, now, pace) && watch_write(c, now, since + pace - now))
		return false;
	policy_sent_by_alarm(conn_ack_waits(c) ? &c->policy.ack : &c->policy.send);
	return true;
}

/* --- all connections ---------------------------------------------------------------------- */

void doorbells_ring(unsigned ms)
{
	unsigned left = watch_count();
	struct conn *c;

	while ((c = watch_next_write(&left))) {
		if (conn_is_removed(c)) {
			/* A forked child does not send the requests of its parent. */
		} else if (conn_enter_until(c, ms)) {
			conn_ring(c);
			conn_leave(c);
		} else {
			conn_want(c, CONN_RING);
		}
		conn_put(c);
	}
}
