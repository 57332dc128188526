/* SPDX-License-Identifier: BSD-3-Clause */
/* cancel.c -- ends jobs early, and releases their memory. */
#include <errno.h>

#include "softrnic/persist/pool.h"
#include "softrnic/persist/queue.h"
#include "softrnic/persist/writeback.h"

/* End a job that is still in a queue. The owner's done() may free the job. */
static void cancel_queued(struct persist_job *job)
{
	readback_end(job, -ECANCELED);
	job->done(job, -ECANCELED);
}

/* Called under the lock. Returns true if the job was queued. */
static bool cancel_mark(struct persist_job *job)
{
	bool queued = job->waits_for != NULL;

	job->cancelled = true;
	if (queued)
		queue_drop(job);
	return queued;
}

void persist_cancel(struct persist_job *job)
{
	bool queued;

	pool_lock();
	queued = cancel_mark(job);
	pool_unlock();
	if (queued)
		cancel_queued(job);
}

bool persist_abandon(struct persist_job *job)
{
	bool queued, touching;

	pool_lock();
	queued = cancel_mark(job);
	job->abandoned = true;
	touching = job->touching;
	pool_unlock();
	if (queued)
		cancel_queued(job);
	return !touching;
}

bool pool_touch_begin(struct persist_job *job)
{
	bool may;

	if (!job)
		return true;
	pool_lock();
	may = !job->abandoned;
	job->touching = may;
	pool_unlock();
	return may;
}

void pool_touch_end(struct persist_job *job)
{
	if (!job)
		return;
	pool_lock();
	job->touching = false;
	pool_unlock();
}

bool pool_is_abandoned(struct persist_job *job)
{
	bool is;

	if (!job)
		return false;
	pool_lock();
	is = job->abandoned;
	pool_unlock();
	return is;
}
