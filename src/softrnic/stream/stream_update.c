/* SPDX-License-Identifier: BSD-3-Clause */
/* stream_update.c -- what is to be done, from the state of the stream and of its queue pair. */
#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "softrnic/stream/stream_impl.h"

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

/* Towards the end of the link; full operation has none of it. */
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
	unsigned due = stream_qp_due(s), todo = 0;
	bool has_bytes = stream_has_bytes(s, due);

	if (s->n_events)
		todo |= STREAM_DO_EVENT;
	if (s->resume_due)
		todo |= STREAM_DO_RESUME;
	if (s->rx_into == STREAM_RX_NOTHING && stream_takes_bytes(s, due))
		todo |= STREAM_DO_RECEIVE;
	if (has_bytes)
		todo |= STREAM_DO_SEND;
	todo |= stream_todo_of_job(s, due);
	if (s->state != STREAM_LIVE)
		todo |= stream_todo_of_link(s, has_bytes);
	u->todo = todo;
	u->deadline = stream_needs_time(s, due, has_bytes) ? 0 : stream_deadline(s);
}

void stream_report(struct stream *s, struct stream_update *u)
{
	if (s->state >= STREAM_DRAINING)
		stream_settle_end(s);
	stream_look(s, u);
}

uint64_t stream_deadline(const struct stream *s)
{
	uint64_t at = s->deadline < s->hold_notice ? s->deadline : s->hold_notice;

	return at < s->liveness.at ? at : s->liveness.at;
}
