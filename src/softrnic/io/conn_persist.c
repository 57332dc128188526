/* SPDX-License-Identifier: BSD-3-Clause */
/* conn_persist.c -- gives the write-backs and digests that the queue pair asks for to the pool, and
 * reports their ends. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "softrnic/io/conn_parts.h"

/* The connection for which this thread is running a job; NULL: none. */
static __thread struct conn *conn_here;

/*
 * Called without the lock when a job has ended, by a thread of the pool or by the thread that ran
 * the job itself (conn_run_job_here()). This second kind of thread continues with its connection
 * afterwards, because the next request may be a flush as well.
 */
static void conn_on_job_end(struct persist_job *job, int status)
{
	struct conn *c = container_of(job, struct conn, job);

	engine_step_back();
	atomic_store(&c->job_status, status);
	if (c == conn_here)
		atomic_fetch_or(&c->want, CONN_WRITEBACK);
	else
		conn_want(c, CONN_WRITEBACK);
	conn_put(c);
}

void conn_job_done(struct conn *c, int status, struct stream_update *u)
{
	persist_region_put(c->job.region);
	/* a cancelled job is reported like a range past the end of a truncated file */
	if (status == -ECANCELED)
		status = -EFAULT;
	if (stream_awaits_job(c->stream)) {
		if (status)
			LOG_INFO("flush of %zu bytes at %p refused: %s", c->job.len, c->job.addr,
				 strerror(-status));
		else if (c->job_answer)
			*c->job_answer = c->job_digest;
	}
	stream_job_end(c->stream, status, clock_now_ns(), u);
}

bool conn_abandon_job(struct conn *c, struct stream_update *u)
{
	if (!stream_awaits_job(c->stream))
		return true;
	if (!persist_abandon(&c->job))
		return false;
	LOG_INFO("flush of %zu bytes at %p refused: its region or connection is gone", c->job.len,
		 c->job.addr);
	stream_job_abandon(c->stream, clock_now_ns(), u);
	return true;
}

bool conn_detach_mr(struct conn *c, struct mr *mr, bool forget, unsigned wait_ms)
{
	struct stream_update u;

	if (!conn_enter_until(c, wait_ms))
		return false;
	/* Abandon the job if it holds this region. A job that does not need the registration
	 * continues. */
	if (stream_awaits_job(c->stream) && c->job_mr == mr && !c->job_lasting)
		conn_abandon_job(c, &u);
	stream_detach_mr(c->stream, mr, forget, &u);
	conn_perform(c, &u);
	conn_leave(c);
	return true;
}

void conn_stop_job(void *owner)
{
	struct conn *c = owner;

	if (c->job.want == PERSIST_DIGEST)
		persist_cancel(&c->job);
}

static void conn_fill_job(struct conn *c, const struct qp_job *wb)
{
	c->job_mr = wb->mr;
	c->job_lasting = wb->lasting;
	c->job = (struct persist_job){
		.region = persist_region_get(wb->mr->backing.persist),
		.addr = wb->addr,
		.len = wb->len,
		.strict = wb->strict,
		.done = conn_on_job_end,
	};
	c->job_answer = NULL;
	if (wb->kind != QP_JOB_DIGEST)
		return;
	c->job_answer = wb->answer;
	c->job.want = PERSIST_DIGEST;
	c->job.alg = wb->alg;
	c->job.digest = &c->job_digest;
}

/* If `here` is not NULL, *here becomes true if this thread must run the job. If `here` is NULL, a
 * thread of the pool runs the job. */
static void conn_submit_job(struct conn *c, bool *here, struct stream_update *u)
{
	int status = 0;

	conn_get(c);
	if (here ? !persist_submit_here(&c->job, &status, here) : !persist_submit(&c->job, &status))
		return;
	conn_put(c);
	conn_job_done(c, status, u);
}

/* Start the next job. There is at most one at a time, because a stream's requests are executed in
 * order. */
bool conn_start_job(void *owner, struct stream_update *u)
{
	struct conn *c = owner;
	struct qp_job wb;

	if (!stream_job_begin(c->stream, &wb, u))
		return false;
	/* the region has stored its durability class, so no thread of the pool is needed */
	if (wb.kind == QP_JOB_CLASS) {
		wb.answer->durability =
			persist_region_class(wb.mr->backing.persist, wb.addr, wb.len);
		stream_job_end(c->stream, 0, clock_now_ns(), u);
		return true;
	}
	conn_fill_job(c, &wb);
	/* If this thread is allowed to wait, it does a write-back itself after it has released the
	 * lock. */
	c->job_due = c->job.want == PERSIST_WRITE_BACK && engine_may_wait();
	if (!c->job_due)
		conn_submit_job(c, NULL, u);
	return true;
}

bool conn_begin_due_job(struct conn *c)
{
	struct stream_update u;
	bool may, here = false;

	while (c->job_due && !here) {
		c->job_due = false;
		stream_look(c->stream, &u);
		may = engine_may_step_aside();
		conn_submit_job(c, may ? &here : NULL, &u);
		if (may && !here)
			engine_step_back();
		if (!here)
			conn_perform(c, &u);
	}
	return here;
}

void conn_run_job_here(struct conn *c)
{
	conn_here = c;
	engine_step_aside();
	persist_run_here();
	/* if another thread reported the end of the job, conn_on_job_end() has not stepped back */
	engine_step_back();
	conn_here = NULL;
}
