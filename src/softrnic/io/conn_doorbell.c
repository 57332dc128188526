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

/* False: the Write cannot wait, as no alarm would end the wait. */
static bool doorbell_wait(struct conn *c)
{
	uint64_t now = clock_now_ns();

	if (!watch_write(c, now, watch_write_ns()))
		return false;
	atomic_store_explicit(&c->policy.since, now, memory_order_relaxed);
	doorbell_count(c, 1);
	return true;
}

/* Would waiting save a send, and could the Write be sent at any time? */
static bool doorbell_may_wait(const struct conn *c)
{
	return c->writable && c->link && c->link->ops->gathers_sends && stream_may_wait(c->stream);
}

void conn_perform_posted(struct conn *c)
{
	struct policy_send *s = &c->policy.send;
	bool may_wait = doorbell_may_wait(c);
	enum policy_write todo = policy_on_post(s, may_wait, conn_doorbell_since(c),
						policy_post_needs_time(s) ? clock_now_ns() : 0);
	struct stream_update u;

	if (todo == POLICY_JOINS || (todo == POLICY_WAIT && doorbell_wait(c)))
		return;
	if (!conn_send_directly(c)) {
		stream_expect(c->stream, STREAM_DO_SEND, &u);
		conn_perform(c, &u);
	}
	if (may_wait)
		policy_sent(s, clock_now_ns());
}

void conn_rung(struct conn *c)
{
	if (!conn_doorbell_since(c))
		return;
	atomic_store_explicit(&c->policy.since, 0, memory_order_relaxed);
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
	if (!conn_doorbell_since(c))
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
	uint64_t since = conn_doorbell_since(c), pace = watch_write_ns(), now;

	if (!since)
		return false;
	now = clock_now_ns();
	if (!policy_is_overdue(since, now, pace) && watch_write(c, now, since + pace - now))
		return false;
	policy_sent_by_alarm(&c->policy.send);
	return true;
}

/* --- all of them -------------------------------------------------------------------------- */

void doorbells_ring(unsigned ms)
{
	unsigned left = watch_count();
	struct conn *c;

	while ((c = watch_next_write(&left))) {
		if (conn_is_removed(c)) {
			/* a child does not send what its parent posted */
		} else if (conn_enter_until(c, ms)) {
			conn_ring(c);
			conn_leave(c);
		} else {
			conn_want(c, CONN_RING);
		}
		conn_put(c);
	}
}
