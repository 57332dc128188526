/* SPDX-License-Identifier: BSD-3-Clause */
/* stream_perform.c -- performs the tasks of an update by the functions of the owner. */
#include "base/clock.h"
#include "softrnic/stream/stream_impl.h"

static void stream_do_event(struct stream *s)
{
	enum stream_event event;
	int status;

	if (stream_take_event(s, &event, &status))
		s->cfg.host->event(s->cfg.owner, event, status);
}

/* Perform the tasks that move bytes and jobs. Returns false if the owner cannot do so now. */
static bool stream_do_work(struct stream *s, struct stream_update *u, unsigned what)
{
	const struct stream_host *host = s->cfg.host;
	void *owner = s->cfg.owner;

	switch (what) {
	case STREAM_DO_RESUME:
		if (!host->may_touch(owner))
			return false;
		stream_resume(s, u);
		return true;
	case STREAM_DO_RECEIVE:
		return host->receive(owner, u);
	case STREAM_DO_SEND:
		return host->send(owner, u);
	default:
		return host->start_job(owner, u);
	}
}

static void stream_do_end(struct stream *s, struct stream_update *u)
{
	const struct stream_host *host = s->cfg.host;
	void *owner = s->cfg.owner;

	if (u->todo & STREAM_DO_STOP_JOB) {
		host->stop_job(owner);
		stream_job_stopped(s, u);
	} else if (u->todo & STREAM_DO_FIN) {
		host->fin(owner);
		stream_fin_sent(s, u);
	} else if (u->todo & STREAM_DO_CLOSE) {
		host->close(owner);
		stream_link_closed(s, u);
	} else if (u->todo & STREAM_DO_REDIAL) {
		stream_redial(s, u);
		host->redial(owner);
		stream_look(s, u);
	}
}

#define STREAM_DO_WORK (STREAM_DO_RESUME | STREAM_DO_RECEIVE | STREAM_DO_SEND | STREAM_DO_JOB)

/* Handle messages about another link. This task comes before bytes, because one direction may carry
 * no bytes until this task is done. */
static void stream_do_link(struct stream *s, struct stream_update *u)
{
	struct qp_link_msg msg;

	if (!qp_link_take(s->qp, &msg))
		stream_look(s, u);
	else if (s->cfg.host->step)
		s->cfg.host->step(s->cfg.owner, &msg, u);
	else if (msg.step == EXT_LINK_SWITCH)
		stream_link_refuse(s, u);
	else
		stream_look(s, u);
}

/* Order of the tasks: events before bytes, and bytes before the end of the link. Within each group
 * the lowest bit comes first. */
void stream_perform(struct stream *s, struct stream_update *u)
{
	unsigned can = STREAM_DO_WORK, what;

	for (;;) {
		if (__builtin_expect(u->todo & STREAM_DO_LINK, 0)) {
			stream_do_link(s, u);
		} else if (u->todo & STREAM_DO_EVENT) {
			stream_do_event(s);
			stream_look(s, u);
		} else if (u->deadline == 0) {
			stream_on_time(s, s->cfg.host->now(s->cfg.owner), u);
		} else if ((what = u->todo & can)) {
			what &= -what;
			if (!stream_do_work(s, u, what))
				can &= ~what;
		} else if (u->todo & ~STREAM_DO_WORK) {
			stream_do_end(s, u);
		} else {
			break;
		}
	}
	if (!s->cfg.host->keeps_bufs || !s->cfg.host->keeps_bufs(s->cfg.owner))
		stream_put_bufs(s);
	s->cfg.host->set_deadline(s->cfg.owner, u->deadline);
}
