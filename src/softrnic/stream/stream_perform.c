/* SPDX-License-Identifier: BSD-3-Clause */
/* stream_perform.c -- do what is to be done, by the functions of the owner. */
#include "base/clock.h"
#include "softrnic/stream/stream_impl.h"

static void stream_do_event(struct stream *s)
{
	enum stream_event event;
	int status;

	if (stream_take_event(s, &event, &status))
		s->cfg.host->event(s->cfg.owner, event, status);
}

/* What moves bytes and jobs, as far as the owner can. False: nothing of it. */
static bool stream_do_work(struct stream *s, struct stream_update *u, unsigned *can)
{
	const struct stream_host *host = s->cfg.host;
	void *owner = s->cfg.owner;
	unsigned due = u->todo & *can, did;
	bool done = true;

	if (due & STREAM_DO_RESUME) {
		did = STREAM_DO_RESUME;
		done = host->may_touch(owner);
		if (done)
			stream_resume(s, u);
	} else if (due & STREAM_DO_RECEIVE) {
		did = STREAM_DO_RECEIVE;
		done = host->receive(owner, u);
	} else if (due & STREAM_DO_SEND) {
		did = STREAM_DO_SEND;
		done = host->send(owner, u);
	} else if (due & STREAM_DO_JOB) {
		did = STREAM_DO_JOB;
		done = host->start_job(owner, u);
	} else {
		return false;
	}
	if (!done)
		*can &= ~did;
	return true;
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

#define STREAM_DO_END                                                                              \
	(STREAM_DO_STOP_JOB | STREAM_DO_FIN | STREAM_DO_CLOSE | STREAM_DO_REDIAL)

void stream_perform(struct stream *s, struct stream_update *u)
{
	unsigned can = ~0u;

	for (;;) {
		if (u->todo & STREAM_DO_EVENT) {
			stream_do_event(s);
			stream_look(s, u);
		} else if (u->deadline == 0) {
			stream_on_time(s, s->cfg.host->now(s->cfg.owner), u);
		} else if (!stream_do_work(s, u, &can)) {
			if (!(u->todo & STREAM_DO_END))
				break;
			stream_do_end(s, u);
		}
	}
	stream_put_bufs(s);
	s->cfg.host->set_deadline(s->cfg.owner, u->deadline);
}
