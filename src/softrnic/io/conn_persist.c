/* SPDX-License-Identifier: BSD-3-Clause */
/* conn_persist.c -- write-backs and digests that the queue pair asks for, done by the pool. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "softrnic/io/conn_parts.h"

/* From a pool thread, without the lock. */
static void conn_job_done(struct persist_job *job, int status)
{
	struct conn *c = container_of(job, struct conn, job);

	atomic_store(&c->job_status, status);
	conn_want(c, CONN_WRITEBACK);
	conn_put(c);
}

/* The queue pair learns what became of what it asked for. */
static void conn_answer_job(struct conn *c, int status)
{
	if (status == -ECANCELED) /* the range is as gone as that of a file cut short */
		status = -EFAULT;
	if (status)
		LOG_INFO("flush of %zu bytes at %p refused: %s", c->job.len, c->job.addr,
			 strerror(-status));
	if (c->qp) {
		if (c->job_answer && !status)
			*c->job_answer = c->job_digest;
		qp_on_job(c->qp, status);
	}
	stream_poke(c->stream, clock_now_ns());
}

void conn_writeback_done(struct conn *c, int status)
{
	bool abandoned = c->job_abandoned;

	c->job_busy = c->job_abandoned = false;
	persist_region_put(c->job.region);
	if (!abandoned)
		conn_answer_job(c, status);
}

bool conn_awaits_writeback(const struct conn *c)
{
	return c->job_busy && !c->job_abandoned;
}

bool conn_abandon_writeback(struct conn *c)
{
	if (!conn_awaits_writeback(c))
		return true;
	if (!persist_abandon(&c->job))
		return false;
	c->job_abandoned = true;
	conn_answer_job(c, -ECANCELED);
	return true;
}

void conn_detach_writeback(struct conn *c, const struct persist_region *region)
{
	/* What asks for no hold of its region goes on without it. */
	if (conn_awaits_writeback(c) && c->job.region == region && !c->job_lasting)
		conn_abandon_writeback(c);
}

void conn_cancel_digest(struct conn *c)
{
	if (c->job_busy && c->job.want == PERSIST_DIGEST)
		persist_cancel(&c->job);
}

static void conn_classify(struct conn *c, const struct qp_job *wb)
{
	wb->answer->durability = persist_region_class(wb->mr->backing.persist, wb->addr, wb->len);
	qp_on_job(c->qp, 0);
}

static void conn_fill_job(struct conn *c, const struct qp_job *wb)
{
	c->job_lasting = wb->lasting;
	c->job = (struct persist_job){
		.region = persist_region_get(wb->mr->backing.persist),
		.addr = wb->addr,
		.len = wb->len,
		.strict = wb->strict,
		.done = conn_job_done,
	};
	c->job_answer = NULL;
	if (wb->kind != QP_JOB_DIGEST)
		return;
	c->job_answer = wb->answer;
	c->job.want = PERSIST_DIGEST;
	c->job.alg = wb->alg;
	c->job.digest = &c->job_digest;
}

/* At most one at a time: a stream's requests are executed in order. True: one finished inline. */
bool conn_writeback(struct conn *c)
{
	struct qp_job wb;
	int status = 0;

	if (c->job_busy || !c->qp || !qp_next_job(c->qp, &wb))
		return false;
	if (wb.kind == QP_JOB_CLASS) {
		conn_classify(c, &wb);
		return true;
	}
	conn_fill_job(c, &wb);
	c->job_busy = true;
	conn_get(c);
	if (!persist_submit(&c->job, &status))
		return false;
	conn_put(c);
	conn_writeback_done(c, status);
	return true;
}
