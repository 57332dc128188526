/* SPDX-License-Identifier: BSD-3-Clause */
/* conn_run.c -- one round of work on a connection: what was asked for, and all that follows. */
#include "base/clock.h"
#include "base/log.h"
#include "softrnic/io/conn_parts.h"

static void conn_changed(struct conn *c)
{
	if (!atomic_load(&c->waiters))
		return;
	pthread_mutex_lock(&c->wait_lock);
	c->changes++;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->wait_lock);
}

/* The end of the stream: FIN when everything is out, close when nothing is expected any more. */
static void conn_finish(struct conn *c)
{
	if (c->link && stream_wants_fin(c->stream)) {
		c->link->ops->end_sending(c->link);
		stream_fin_done(c->stream, clock_now_ns());
	}
	if (c->link && stream_wants_close(c->stream) && !c->redial)
		conn_close(c);
}

/* Nobody wants the connection any more. A peer that waits for an answer to its request gets one. */
static void conn_give_up(struct conn *c)
{
	uint64_t now = clock_now_ns();

	if (stream_state(c->stream) == STREAM_REQ_RCVD)
		stream_reject(c->stream, NULL, 0, now);
	else if (stream_disconnect(c->stream, now))
		stream_abort(c->stream);
}

void conn_pump(struct conn *c)
{
	if (c->receive.pending && stream_rx_has_moved(c->stream))
		conn_cancel_receive(c);
	if (c->doomed) {
		c->doomed = false;
		conn_give_up(c);
	}
	do {
		conn_tx(c);
	} while (conn_writeback(c));
	/* Also when it failed just now and the socket takes nothing: its time limit begins. */
	if (c->qp && qp_is_failed(c->qp)) {
		stream_poke(c->stream, clock_now_ns());
		conn_cancel_digest(c);
	}
	conn_finish(c);
	if (c->redial) {
		c->redial = false;
		conn_close(c);
		conn_dial(c, NULL);
	}
	conn_reclaim(c);
	conn_update_timer(c);
	conn_changed(c);
}

void conn_poll(struct conn *c)
{
	c->readable = true;
	conn_rx(c);
	conn_pump(c);
}

void conn_resume(struct conn *c)
{
	if (qp_rx_waits_for_receive(c->qp)) {
		if (conn_may_touch(c)) {
			qp_rx_resume(c->qp);
		} else {
			atomic_fetch_or(&c->want, CONN_KICK);
			conn_again(c);
		}
	}
	conn_rx(c);
	conn_pump(c);
}

/* What has come counts, before its sender is judged. */
static void conn_on_time(struct conn *c)
{
	c->timer_at = CLOCK_NEVER;
	conn_rx(c);
	if (c->link && stream_is_deaf(c->stream))
		stream_on_unacknowledged(c->stream, c->link->ops->unacknowledged_ns(c->link),
					 clock_now_ns());
	if (stream_state(c->stream) == STREAM_DIALING && c->dialing)
		conn_dial_on_time(c);
	stream_on_time(c->stream, clock_now_ns());
}

/*
 * What is wanted and may be done by this thread; 0: it is for others. An answer to a flush with
 * nothing behind it takes no look at memory. What is wanted from now on stays.
 */
static unsigned conn_take_wants(struct conn *c)
{
	if (conn_may_touch(c))
		return atomic_exchange(&c->want, 0);
	if (atomic_load(&c->want) != CONN_WRITEBACK || !c->qp || qp_requests(c->qp) > 1)
		return 0;
	return atomic_fetch_and(&c->want, ~(unsigned)CONN_WRITEBACK) & CONN_WRITEBACK;
}

bool conn_serve(struct conn *c)
{
	bool idle_output = false;
	unsigned want = conn_take_wants(c), ready;

	if (!want)
		return false;
	/* Whoever has completed its request meanwhile stays. */
	if ((want & CONN_DOOM) && c->owner && stream_state(c->stream) == STREAM_REQ_WAIT)
		c->event(c->owner, STREAM_EV_DEAD, -ECONNABORTED);
	if (want & CONN_WRITEBACK)
		conn_writeback_done(c, atomic_load(&c->job_status));
	if (want & CONN_BYE)
		stream_disconnect(c->stream, clock_now_ns());
	ready = conn_ready_bits(c, want & CONN_READY);
	if (ready & READY_RECEIVED)
		conn_rx_ended(c);
	if (ready & READY_READ)
		c->readable = true;
	if (ready & READY_HANGUP)
		c->hangup = true;
	if (ready & READY_WRITE) {
		c->writable = true;
		if (c->dialing && c->link)
			conn_dial_done(c);
		idle_output = c->watching;
	}
	if ((want & CONN_KICK) && c->qp)
		qp_rx_resume(c->qp);
	if (want & CONN_TIME)
		conn_on_time(c);
	if (want & CONN_KICK)
		stream_poke(c->stream, clock_now_ns());
	conn_rx(c);
	conn_pump(c);
	/* Nothing filled the socket again, so the next acknowledgements are no news. */
	if (idle_output && c->writable && c->link) {
		c->watching = false;
		c->link->ops->watch_write(c->link, false);
	}
	return true;
}
