/* SPDX-License-Identifier: BSD-3-Clause */
/* conn_link.c -- the link of a connection: dials, accepts, watches and closes it. */
#include <errno.h>

#include "base/clock.h"
#include "softrnic/io/config.h"
#include "softrnic/io/conn_parts.h"
#include "softrnic/io/conn_plain_impl.h"
#include "softrnic/io/conn_watch.h"

#define REDIAL_NS (20 * NSEC_PER_MS)

void conn_set_deadline(void *owner, uint64_t at)
{
	struct conn *c = owner;

	if (!c->link)
		at = CLOCK_NEVER;
	if (c->redial_at < at)
		at = c->redial_at;
	if (c->plain && c->plain->deadline < at)
		at = c->plain->deadline;
	if (at == c->timer_at)
		return;
	c->timer_at = at;
	engine_set_timer(&c->timer, at);
}

uint32_t conn_segment(const struct conn *c)
{
	return c->link ? c->link->ops->segment(c->link) : 0;
}

unsigned conn_ready_bits(struct conn *c, unsigned polled)
{
	if (!c->link || !polled)
		return polled;
	return c->link->ops->ready(c->link, polled);
}

/*
 * Returns true if a refused dial will be repeated. Some programs send their port to the peer before
 * they listen on it; on hardware such a program works, because a connect by rdma_cm takes long
 * enough. If the next attempt would begin after the time limit for connecting, the refusal is
 * reported instead.
 */
static bool conn_redials_later(struct conn *c, int ret)
{
	uint64_t now = clock_now_ns();

	if (ret != -ECONNREFUSED || now >= c->patient_until ||
	    now + REDIAL_NS >= stream_deadline(c->stream))
		return false;
	c->redial_at = now + REDIAL_NS;
	return true;
}

/* Called when the TCP connection is established. */
static void conn_on_dialed(struct conn *c, struct stream_update *u)
{
	if (c->plain)
		conn_plain_on_dialed(c);
	stream_on_dialed(c->stream, conn_segment(c), clock_now_ns(), u);
}

void conn_dial_done(struct conn *c, struct stream_update *u)
{
	int ret;

	if (c->redial_at != CLOCK_NEVER)
		return;
	ret = c->link->ops->connecting->dialed(c->link);
	if (ret == -EINPROGRESS || conn_redials_later(c, ret))
		return;
	c->dialing = false;
	if (ret)
		stream_on_dial_failed(c->stream, -ret, clock_now_ns(), u);
	else
		conn_on_dialed(c, u);
}

static int conn_watch(struct conn *c, bool write)
{
	int ret = c->link->ops->connecting->watch(c->link, &c->source, write);

	if (ret)
		return ret;
	c->registered = true;
	c->watching = write;
	c->writable = !write;
	conn_get(c);
	watch_prepare();
	return 0;
}

void conn_close(struct conn *c)
{
	bool orderly = c->outlives || stream_is_orderly(c->stream);

	if (!c->link)
		return;
	c->timer_at = c->redial_at = CLOCK_NEVER;
	engine_set_timer(&c->timer, CLOCK_NEVER);
	conn_own_forget(c);
	conn_rings_stop(c);
	stream_watch_given_up(c->stream, NULL);
	if (orderly)
		c->link->ops->close(c->link);
	else
		c->link->ops->reset(c->link);
	c->link = NULL;
	conn_origin_closed(c);
	c->readable = c->writable = c->hangup = c->dialing = c->watching = false;
	c->reset = 0;
	atomic_store_explicit(&c->alarm, 0, memory_order_relaxed);
	if (c->registered) {
		c->registered = false;
		conn_put(c);
	}
}

/* Returns 0 if the link is connected immediately, which usually happens only on the same host. If
 * `dialing` is set afterwards, the dial is in progress or will be repeated. */
static int conn_dial_link(struct conn *c)
{
	int ret = c->link->ops->connecting->dial(c->link, &c->dst);

	if (!ret)
		ret = c->link->ops->connecting->dialed(c->link);
	c->dialing = ret != 0;
	if (ret && ret != -EINPROGRESS && !conn_redials_later(c, ret))
		return ret;
	return 0;
}

int conn_dial(struct conn *c, struct link *bound)
{
	const struct link_ops *ops = link_of(&c->dst);
	struct stream_update u; /* not used: the caller performs the tasks */
	int ret = 0;

	if (!c->patient_until)
		c->patient_until = clock_now_ns() + config_get()->refused_ns;
	c->link = bound;
	if (!bound)
		ret = ops ? ops->connecting->create(&c->src, &c->dst, &c->link) : -EAFNOSUPPORT;
	if (!ret)
		ret = conn_dial_link(c);
	if (!ret)
		ret = conn_watch(c, c->dialing);
	if (ret) {
		conn_close(c);
		stream_on_dial_failed(c->stream, -ret, clock_now_ns(), &u);
	} else if (!c->dialing) {
		conn_on_dialed(c, &u);
	}
	return ret;
}

static void conn_dial_again(struct conn *c, struct stream_update *u)
{
	int ret;

	c->redial_at = CLOCK_NEVER;
	c->writable = c->hangup = false;
	ret = conn_dial_link(c);
	if (ret) {
		stream_on_dial_failed(c->stream, -ret, clock_now_ns(), u);
		return;
	}
	if (!c->dialing) {
		c->writable = true;
		conn_on_dialed(c, u);
		return;
	}
	c->watching = true;
	c->link->ops->watch_write(c->link, true);
}

void conn_dial_on_time(struct conn *c, struct stream_update *u)
{
	uint64_t now = clock_now_ns();

	if (c->redial_at == CLOCK_NEVER)
		conn_dial_done(c, u);
	else if (now >= stream_deadline(c->stream))
		stream_on_dial_failed(c->stream, ECONNREFUSED, now, u);
	else if (now >= c->redial_at)
		conn_dial_again(c, u);
}

int conn_adopt(struct conn *c, struct link *link)
{
	struct stream_update u;
	int ret;

	c->link = link;
	ret = conn_watch(c, false);
	if (ret) {
		c->link = NULL;
		return ret;
	}
	stream_on_incoming(c->stream, clock_now_ns(), &u);
	conn_perform(c, &u);
	return 0;
}

void conn_abandon(struct conn *c)
{
	conn_origin_give_up(c);
	c->owner = NULL;
	c->abandoned = true;
}
