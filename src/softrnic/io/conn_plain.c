/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conn_plain.c -- makes and frees the home connection of a plain queue pair, and moves the queue
 * pair for its user. conn_plain_do.c performs what the meeting decides.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "softrnic/io/config.h"
#include "softrnic/io/conn_parts.h"
#include "softrnic/io/conn_plain_impl.h"

/* --- what the user does --------------------------------------------------------------------- */

int conn_plain_rtr(struct conn *c, const struct conn_plain_rtr *with)
{
	struct conn_plain *p = c->plain;
	int ret = conn_enter_caller(c, CONN_CALLER_MS);
	struct meeting_todo todo;

	if (ret)
		return ret;
	p->rtr = *with;
	p->warned_rejected = p->warned_rejects = false;
	p->has_rts = false;
	qp_set_rnr_timer(stream_qp(c->stream), with->min_rnr_timer);
	meeting_on_rtr(&p->meeting, &p->rtr.ends, clock_now_ns(), &todo);
	conn_plain_do(c, &todo);
	conn_settle(c);
	conn_leave(c);
	return 0;
}

int conn_plain_rts(struct conn *c, const struct conn_plain_rts *with)
{
	struct conn_plain *p = c->plain;
	int ret = conn_enter_caller(c, CONN_CALLER_MS);
	struct meeting_todo todo;
	struct stream_update u;
	uint64_t retry_ns;

	if (ret)
		return ret;
	p->rts = *with;
	p->has_rts = true;
	qp_set_rnr_timer(stream_qp(c->stream), with->min_rnr_timer);
	qp_set_rnr_retry(stream_qp(c->stream), with->rnr_retry);
	retry_ns = p->rtr.ends.uc ? CLOCK_NEVER : meeting_retry_ns(with->timeout, with->retry_cnt);
	meeting_on_retry_limits(&p->meeting, retry_ns, config_get()->retry_ns, clock_now_ns(),
				&todo);
	conn_plain_do(c, &todo);
	conn_plain_compare_psns(c);
	conn_plain_limit_requests(c, &u);
	conn_settle(c);
	conn_leave(c);
	return 0;
}

static void plain_leave(struct conn *c, enum meeting_leave how)
{
	struct meeting_todo todo;

	meeting_on_leave(&c->plain->meeting, how, &todo);
	conn_plain_do(c, &todo);
}

int conn_plain_reset(struct conn *c, struct qp *fresh)
{
	int ret = conn_enter_caller(c, CONN_CALLER_MS);
	struct stream_update u;
	struct qp *qp;

	if (ret)
		return ret;
	conn_end_quiet(c);
	conn_disown(c);
	conn_ring(c);
	/* the job uses the application's memory, so wait for its end */
	while (!conn_abandon_job(c, &u))
		conn_wait_change(c, clock_now_ns() + NSEC_PER_SEC);
	plain_leave(c, MEETING_LEAVE_RESET);
	qp = stream_take_back_qp(c->stream, &u);
	qp_replace(qp, fresh);
	stream_attach_qp(c->stream, qp);
	(void)conn_plain_renew_stream(c, c->same_host);
	conn_settle(c);
	conn_leave(c);
	return 0;
}

void conn_plain_failed(struct conn *c)
{
	conn_enter(c);
	plain_leave(c, MEETING_LEAVE_ERR);
	conn_settle(c);
	conn_leave(c);
}

void conn_plain_leave(struct conn *c)
{
	struct conn_plain *p = c->plain;
	struct qp_dial *dial;

	conn_enter(c);
	qp_port_shut(&p->place);
	p->shut = true;
	plain_leave(c, MEETING_LEAVE_DESTROY);
	while ((dial = qp_port_remove(&p->place, NULL)))
		conn_plain_drop(dial, MEET_NO_QP);
	p->deadline = CLOCK_NEVER;
	conn_leave(c);
}

/* --- creation and end ----------------------------------------------------------------------- */

int conn_plain_new(struct conn **out, uint32_t *qpn)
{
	struct conn_plain *p = calloc(1, sizeof(*p));
	struct conn *c = NULL;
	int ret = p ? conn_new(STREAM_INITIATOR, false, NULL, NULL, &c) : -ENOMEM;

	if (!ret)
		ret = qp_port_take(&p->place, c);
	if (ret) {
		if (c)
			conn_release(c);
		free(p);
		return ret;
	}
	meeting_init(&p->meeting);
	p->deadline = CLOCK_NEVER;
	stream_set_meets(c->stream);
	c->plain = p;
	*qpn = p->place.qpn;
	*out = c;
	return 0;
}

void conn_plain_free(struct conn *c)
{
	if (!c->plain)
		return;
	qp_port_give(&c->plain->place);
	free(c->plain);
}
