/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stream_update.c -- finds the tasks that are due, from the state of the stream and its queue pair.
 */
#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "softrnic/stream/stream_impl.h"

#define STREAM_AGAIN_NS NSEC_PER_MS /* time until the next check of a memory window in use */

/* --- events --------------------------------------------------------------------------------- */

void stream_push_event(struct stream *s, enum stream_event event, int status)
{
	assert(s->n_events < STREAM_EVENTS_MAX);
	s->events[s->n_events].event = event;
	s->events[s->n_events].status = status;
	s->n_events++;
}

void stream_end(struct stream *s, enum stream_event event, int status)
{
	if (s->ended)
		return;
	s->ended = true;
	stream_push_event(s, event, status);
}

bool stream_take_event(struct stream *s, enum stream_event *event, int *status)
{
	if (!s->n_events)
		return false;
	*event = s->events[0].event;
	*status = s->events[0].status;
	s->n_events--;
	memmove(s->events, s->events + 1, s->n_events * sizeof(s->events[0]));
	return true;
}

/* --- the update ----------------------------------------------------------------------------- */

enum stream_rx_into stream_rx_target(const struct stream *s)
{
	bool qp = stream_runs_qp(s) && !s->fin_in && !qp_is_failed(s->qp);

	switch (s->state) {
	case STREAM_REQ_SENT:
	case STREAM_REQ_WAIT:
		return STREAM_RX_FRAME;
	case STREAM_REQ_RCVD:
		return STREAM_RX_PROBE;
	case STREAM_REP_SENT:
	case STREAM_HELLO:
	case STREAM_LIVE:
	case STREAM_DRAINING:
		return qp ? STREAM_RX_QP : STREAM_RX_NOTHING;
	case STREAM_CLOSING:
		if (qp)
			return STREAM_RX_QP;
		return s->fin_in ? STREAM_RX_NOTHING : STREAM_RX_DISCARD;
	case STREAM_LINGERING:
		return s->fin_in ? STREAM_RX_NOTHING : STREAM_RX_DISCARD;
	case STREAM_IDLE:
	case STREAM_DIALING:
	case STREAM_CLOSED:
		return STREAM_RX_NOTHING;
	}
	return STREAM_RX_NOTHING;
}

/*
 * Is the QP allowed to send? If the QP has failed and the stream is closing, it sends only the
 * Terminate.
 */
static bool stream_qp_sends(const struct stream *s, unsigned due)
{
	switch (s->state) {
	case STREAM_HELLO:
	case STREAM_LIVE:
	case STREAM_DRAINING:
		return true;
	case STREAM_CLOSING:
		return !s->fin_out && due & QP_DUE_FAILED;
	case STREAM_IDLE:
	case STREAM_DIALING:
	case STREAM_REQ_SENT:
	case STREAM_REQ_WAIT:
	case STREAM_REQ_RCVD:
	case STREAM_REP_SENT:
	case STREAM_LINGERING:
	case STREAM_CLOSED:
		return false;
	}
	return false;
}

bool stream_has_bytes(const struct stream *s, unsigned due)
{
	if (s->state >= STREAM_LINGERING)
		return false;
	if (!stream_frame_is_sent(s) || s->rest_sent < s->rest_len)
		return true;
	return due & QP_DUE_SEND && stream_qp_sends(s, due);
}

/* Tasks that end the link. */
static unsigned stream_todo_of_link(const struct stream *s, bool has_bytes)
{
	if (s->state == STREAM_CLOSED)
		return s->closed ? 0 : STREAM_DO_CLOSE;
	if (s->redial)
		return STREAM_DO_REDIAL;
	if (s->fin_out)
		return 0;
	if (s->state == STREAM_LINGERING || (s->state == STREAM_CLOSING && !has_bytes))
		return STREAM_DO_FIN;
	return 0;
}

/* Tasks outside of full operation. */
static unsigned stream_todo_of_ends(const struct stream *s, unsigned due)
{
	bool has_bytes = stream_has_bytes(s, due);
	unsigned todo = stream_todo_of_link(s, has_bytes);
	enum stream_rx_into into = stream_rx_target(s);

	if (into == STREAM_RX_QP ? due & QP_DUE_RECEIVE : into != STREAM_RX_NOTHING)
		todo |= STREAM_DO_RECEIVE;
	if (has_bytes)
		todo |= STREAM_DO_SEND;
	return todo;
}

/* Tasks in full operation, where all bytes belong to the queue pair. */
static unsigned stream_todo_live(const struct stream *s, unsigned due)
{
	unsigned todo = 0;

	if ((due & (QP_DUE_RECEIVE | QP_DUE_FAILED)) == QP_DUE_RECEIVE)
		todo |= STREAM_DO_RECEIVE;
	if (due & QP_DUE_SEND)
		todo |= STREAM_DO_SEND;
	return todo;
}

static unsigned stream_todo_of_job(const struct stream *s, unsigned due)
{
	if (s->job == STREAM_JOB_NONE)
		return due & QP_DUE_JOB ? STREAM_DO_JOB : 0;
	if (s->job == STREAM_JOB_RUNNING && !s->job_stopped && due & QP_DUE_FAILED)
		return STREAM_DO_STOP_JOB;
	return 0;
}

void stream_look(const struct stream *s, struct stream_update *u)
{
	unsigned due = stream_qp_due(s);
	unsigned todo =
		s->state == STREAM_LIVE ? stream_todo_live(s, due) : stream_todo_of_ends(s, due);
	uint64_t again;

	todo |= stream_todo_of_job(s, due);
	if (__builtin_expect(due & QP_DUE_LINK, 0))
		todo |= STREAM_DO_LINK;
	if (s->n_events)
		todo |= STREAM_DO_EVENT;
	if (s->resume_due)
		todo |= STREAM_DO_RESUME;
	u->todo = todo;
	u->deadline = stream_deadline(s);
	if ((due & QP_DUE_FAILED || s->agreed.hold_tx) &&
	    stream_needs_time(s, due, todo & STREAM_DO_SEND))
		u->deadline = 0;
	if (__builtin_expect(!(due & QP_DUE_RECEIVE), 0) && stream_stall_is_new(s))
		u->deadline = 0;
	if (__builtin_expect(due & QP_DUE_RNR, 0))
		u->deadline = 0;
	if (__builtin_expect(due & QP_DUE_AGAIN, 0)) {
		/* check a memory window that is in use again soon */
		again = stream_after(s->cfg.host->now(s->cfg.owner), STREAM_AGAIN_NS);
		u->deadline = again < u->deadline ? again : u->deadline;
	}
}

/* Lists only this task; when it is performed, the tasks that follow from it are found. */
void stream_expect(const struct stream *s, unsigned todo, struct stream_update *u)
{
	if (__builtin_expect(stream_settles_at(s), 0)) {
		stream_look(s, u);
		return;
	}
	u->todo = todo;
	u->deadline = stream_deadline(s);
}

void stream_report(struct stream *s, struct stream_update *u)
{
	if (s->state >= STREAM_DRAINING)
		stream_settle_end(s);
	stream_look(s, u);
}

bool stream_settles_at(const struct stream *s)
{
	return s->state != STREAM_LIVE || s->agreed.hold_tx || stream_qp_is_failed(s);
}

void stream_report_at(struct stream *s, uint64_t now, struct stream_update *u)
{
	if (stream_settles_at(s))
		stream_settle(s, now);
	stream_report(s, u);
}

uint64_t stream_deadline(const struct stream *s)
{
	uint64_t at = s->deadline < s->hold_notice ? s->deadline : s->hold_notice;

	at = at < s->rnr_at ? at : s->rnr_at;
	return at < s->liveness.due ? at : s->liveness.due;
}
