/* SPDX-License-Identifier: BSD-3-Clause */
/* conn_persist.c -- write-backs that the queue pair asks for, done by the pool. */
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "softrnic/engine/conn_parts.h"

/* From a pool thread, without the lock. */
static void conn_job_done(struct persist_job *job, int status)
{
	struct conn *c = container_of(job, struct conn, job);

	atomic_store(&c->job_status, status);
	conn_want(c, CONN_WRITEBACK);
	conn_put(c);
}

void conn_writeback_done(struct conn *c, int status)
{
	c->job_busy = false;
	if (status)
		LOG_INFO("flush of %zu bytes at %p refused: %s", c->job.len, c->job.addr,
			 strerror(-status));
	if (c->qp)
		qp_on_writeback(c->qp, status);
	cm_stream_poke(c->stream, clock_now_ns());
}

/* At most one at a time: a stream's requests are executed in order. True: one finished inline. */
bool conn_writeback(struct conn *c)
{
	struct qp_writeback wb;
	int status = 0;

	if (c->job_busy || !c->qp || !qp_next_writeback(c->qp, &wb))
		return false;
	c->job = (struct persist_job){
		.region = wb.mr->persist,
		.addr = wb.addr,
		.len = wb.len,
		.strict = wb.strict,
		.done = conn_job_done,
	};
	c->job_busy = true;
	conn_get(c);
	if (!persist_submit(&c->job, &status))
		return false;
	conn_put(c);
	conn_writeback_done(c, status);
	return true;
}
