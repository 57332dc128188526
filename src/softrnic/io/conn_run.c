/* SPDX-License-Identifier: BSD-3-Clause */
/* conn_run.c -- one round of work on a connection: does the work in `want`, and performs all tasks
 * that follow from it. */
#include <errno.h>

#include "base/clock.h"
#include "base/log.h"
#include "softrnic/io/bufs.h"
#include "softrnic/io/conn_parts.h"
#include "softrnic/io/conn_plain_impl.h"

/* --- the stream's tasks --------------------------------------------------------------------- */

static void *conn_get_buf(void *owner, enum stream_buf kind)
{
	return buf_get(kind == STREAM_BUF_RX ? BUF_RX : BUF_TX);
}

static void conn_put_buf(void *owner, enum stream_buf kind, void *buf)
{
	buf_put(kind == STREAM_BUF_RX ? BUF_RX : BUF_TX, buf);
}

/* Does a thread poll? It will borrow the buffers again soon, so the stream then keeps its empty
 * buffers. After the polling stops, this function is called again. */
static bool conn_keeps_bufs(void *owner)
{
	return conn_is_polled(owner);
}

static uint64_t conn_unacknowledged_ns(void *owner)
{
	struct conn *c = owner;

	return c->link ? c->link->ops->unacknowledged_ns(c->link) : 0;
}

static bool conn_has_ended(void *owner)
{
	struct conn *c = owner;

	return c->link && c->link->ops->has_ended(c->link);
}

static uint64_t conn_now(void *owner)
{
	return clock_now_ns();
}

static bool conn_touches(void *owner)
{
	if (conn_may_touch(owner))
		return true;
	conn_again(owner);
	return false;
}

static void conn_on_event(void *owner, enum stream_event event, int status)
{
	struct conn *c = owner;

	if (event == STREAM_EV_ESTABLISHED && stream_qp(c->stream))
		atomic_store(&c->caps, VEXT_CAP_KNOWN | stream_caps(c->stream));
	if (event == STREAM_EV_ESTABLISHED) {
		conn_rings_allow(c);
		conn_origin_established(c);
	} else if (event != STREAM_EV_REPLIED) {
		conn_origin_give_up(c);
	}
	if (c->plain)
		conn_plain_on_event(c, event, status);
	if (c->owner)
		c->event(c->owner, event, status);
}

static void conn_send_fin(void *owner)
{
	struct conn *c = owner;

	if (c->link)
		c->link->ops->end_sending(c->link);
}

static void conn_close_link(void *owner)
{
	conn_close(owner);
}

static void conn_redial(void *owner)
{
	struct conn *c = owner;

	conn_close(c);
	conn_dial(c, NULL);
	/* send the request now, because no other event would cause this */
	if (c->link && !c->dialing)
		conn_again(c);
}

const struct stream_host conn_host = {
	.get_buf = conn_get_buf,
	.put_buf = conn_put_buf,
	.keeps_bufs = conn_keeps_bufs,
	.unacknowledged_ns = conn_unacknowledged_ns,
	.has_ended = conn_has_ended,
	.now = conn_now,
	.may_touch = conn_touches,
	.event = conn_on_event,
	.receive = conn_receive,
	.send = conn_send,
	.start_job = conn_start_job,
	.stop_job = conn_stop_job,
	.fin = conn_send_fin,
	.close = conn_close_link,
	.redial = conn_redial,
	.step = conn_rings_on_step,
	.origin = conn_origin,
	.fenced = conn_origin_fenced,
	.identify = conn_origin_identify,
	.set_deadline = conn_set_deadline,
};

/* --- a round of work ------------------------------------------------------------------------ */

/* Called after the id has released the connection: end the connection. If the peer waits for an
 * answer to its request, reject the request. */
static void conn_give_up(struct conn *c, struct stream_update *u)
{
	uint64_t now = clock_now_ns();

	c->abandoned = false;
	if (stream_state(c->stream) == STREAM_REQ_RCVD)
		stream_reject(c->stream, NULL, 0, now, u);
	else if (stream_disconnect(c->stream, now, u))
		stream_abort(c->stream, u);
}

void conn_perform(struct conn *c, struct stream_update *u)
{
	c->rx_turn = c->tx_turn = (struct conn_turn){0};
	c->policy.unfinished = false;
	do {
		if (c->abandoned)
			conn_give_up(c, u);
		stream_perform(c->stream, u);
		if (__builtin_expect(c->may_meet, 0))
			conn_rings_consider(c, u);
	} while (c->abandoned);
	if (!atomic_load(&c->waiters))
		return;
	pthread_mutex_lock(&c->wait_lock);
	c->changes++;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->wait_lock);
}

void conn_settle(struct conn *c)
{
	struct stream_update u;

	stream_look(c->stream, &u);
	conn_perform(c, &u);
}

void conn_perform_and_read(struct conn *c, struct stream_update *u)
{
	c->reading = true;
	conn_perform(c, u);
	c->reading = false;
	if (__builtin_expect(c->hangup, 0) && conn_find_reset(c, u))
		conn_perform(c, u);
}

/* Does the link take bytes again? A link whose reports of bytes are off does not report room
 * either, if it has the operation has_room(). */
static bool conn_finds_room(struct conn *c, const struct link_ops *ops)
{
	if (c->writable || !ops->in_place || !ops->in_place->has_room(c->link))
		return false;
	c->writable = true;
	return true;
}

bool conn_poll(struct conn *c, unsigned looks)
{
	const struct link_ops *ops = c->link ? c->link->ops : NULL;
	struct stream_update u;
	bool more;

	if (!ops)
		return false;
	more = conn_finds_room(c, ops) || c->policy.unfinished;
	if (!ops->in_place || c->readable || ops->in_place->pending(c->link, more ? 1 : looks))
		c->readable = true;
	else if (!more)
		return false;
	if (!more && conn_receive_directly(c))
		return true;
	if (more)
		stream_look(c->stream, &u);
	else
		stream_expect(c->stream, STREAM_DO_RECEIVE, &u);
	conn_perform_and_read(c, &u);
	return c->rx_turn.moved > 0 || c->tx_turn.moved > 0;
}

/* Called when the deadline has passed. Before the stream judges whether the peer is alive, process
 * received bytes and an end after them, even if the link has not reported them. */
static void conn_on_time(struct conn *c, struct stream_update *u)
{
	c->readable |= c->policy.silent;
	if (c->registered && c->link->ops->in_place) {
		c->link->ops->in_place->look_for_end(c->link);
		c->readable = true;
	}
	conn_perform_and_read(c, u);
	if (c->meet)
		conn_rings_on_time(c, clock_now_ns(), u);
	c->timer_at = CLOCK_NEVER; /* the timer has expired */
	if (stream_state(c->stream) == STREAM_DIALING && c->dialing)
		conn_dial_on_time(c, u);
	if (c->plain)
		conn_plain_on_time(c);
	stream_on_time(c->stream, clock_now_ns(), u);
}

/*
 * Take the bits of the work that this thread is allowed to do. Returns 0 if other threads must do
 * all of it. Any thread is allowed to do work that touches no registered memory: to answer a flush
 * that no request follows, and to end the connection for CONN_CUT. Bits that are set later stay
 * set.
 */
static unsigned conn_take_wants(struct conn *c)
{
	if (conn_may_touch(c))
		return atomic_exchange(&c->want, 0);
	if (atomic_load(&c->want) & CONN_CUT)
		return atomic_fetch_and(&c->want, ~(unsigned)CONN_CUT) & CONN_CUT;
	if (atomic_load(&c->want) != CONN_WRITEBACK || stream_requests(c->stream) > 1)
		return 0;
	return atomic_fetch_and(&c->want, ~(unsigned)CONN_WRITEBACK) & CONN_WRITEBACK;
}

static void conn_on_ready(struct conn *c, unsigned ready, struct stream_update *u)
{
	if (ready & READY_READ)
		c->readable = true;
	if (ready & READY_HANGUP)
		c->hangup = true;
	if (__builtin_expect(c->meet != NULL, 0))
		conn_rings_look(c, u);
	if (ready & READY_WRITE) {
		c->writable = true;
		if (c->dialing && c->link)
			conn_dial_done(c, u);
	}
}

static void conn_on_wants(struct conn *c, unsigned want, struct stream_update *u)
{
	if (want & CONN_WRITEBACK)
		conn_job_done(c, atomic_load(&c->job_status), u);
	if (want & CONN_CUT)
		stream_cut_off(c->stream, u);
	if (want & CONN_FENCED)
		stream_fence_end(c->stream, clock_now_ns(), u);
	if (want & CONN_DISCONNECT)
		stream_disconnect(c->stream, clock_now_ns(), u);
	conn_on_ready(c, want & CONN_READY, u);
	if (want & CONN_OWN)
		conn_own_changed(c);
	if (want & CONN_DISOWN)
		conn_disown(c);
	if (want & CONN_RESUME)
		stream_resume(c->stream, u);
	if (want & CONN_TIME)
		conn_on_time(c, u);
}

bool conn_serve(struct conn *c)
{
	unsigned want = conn_take_wants(c);
	struct stream_update u;
	bool idle_output, unused;
	struct policy_news before;

	if (!want)
		return false;
	if (c->quiet)
		return true;
	if (want & CONN_BELL && !conn_bell_is_due(c))
		want &= ~(unsigned)CONN_BELL;
	if (!want)
		return true;
	if (want & (CONN_BELL | CONN_RING))
		conn_rung(c);
	/* CONN_EVICT has no effect if the request is complete. */
	if ((want & CONN_EVICT) && c->owner && stream_state(c->stream) == STREAM_REQ_WAIT)
		c->event(c->owner, STREAM_EV_DEAD, -ECONNABORTED);
	want = (want & ~(unsigned)CONN_READY) | conn_ready_bits(c, want & CONN_READY);
	if (want == READY_READ && !c->meet)
		stream_expect(c->stream, STREAM_DO_RECEIVE, &u);
	else
		stream_look(c->stream, &u);
	unused = want & CONN_UNUSED && conn_own_unused(c, &before);
	conn_on_wants(c, want, &u);
	idle_output = (want & READY_WRITE) && c->watching;
	/* a link in memory reports room together with bytes */
	if ((want & ~(unsigned)READY_WRITE) == READY_READ && conn_may_hold_acks(c))
		conn_read_for_memory(c, &u);
	else
		conn_perform_and_read(c, &u);
	if (__builtin_expect(unused, 0))
		conn_own_judge(c, &before);
	/* No byte was sent since the link last reported that it takes bytes, so it still takes
	 * bytes. */
	if (idle_output && c->writable && c->link) {
		c->watching = false;
		c->link->ops->watch_write(c->link, false);
	}
	if (__builtin_expect(want & CONN_PLAIN, 0))
		conn_plain_run(c);
	return true;
}
