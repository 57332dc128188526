/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * here.c -- runs a write-back in the thread that submits it.
 *
 * To wake a thread of the pool, whose caches are cold, takes a considerable part of the time of a
 * write-back to a quick disk. So a submitting thread that may wait runs the write-back itself. In
 * all other respects the slice is like one that a thread of the pool runs. It takes one of the
 * file's slots, counts against the pool's limit of running slices, may stall, and shares success
 * and failure with another slice of the same file that runs at the same time.
 *
 * If other jobs already wait in the file's queue, the new job is queued with them, so that one
 * write-back serves all of them.
 */
#include "softrnic/persist/pool.h"
#include "softrnic/persist/queue.h"
#include "softrnic/persist/reader.h"
#include "softrnic/persist/turn.h"

/* The turn (permission to run one slice) of the calling thread. */
static __thread struct here {
	bool begun;
	struct turn turn;
} here;

bool here_start(struct persist_job *job, struct file *f)
{
	if (here.begun)
		return false;
	pool_lock();
	here.begun = list_empty(&f->writes.jobs) && queue_free_slot(f) && turn_is_left();
	if (here.begun) {
		queue_begin(job);
		turn_begin_at(&here.turn, f);
	}
	pool_unlock();
	return here.begun;
}

void persist_run_here(void)
{
	/* stays NULL for a range in the library's own mapping of the file, which needs no reader */
	struct reader *reader = NULL;
	bool more;

	do {
		struct list finished = LIST_INIT(finished);

		turn_run(&here.turn, &reader);
		pool_lock();
		turn_end(&here.turn, &finished);
		pool_complete(&finished);
		/* run another slice if jobs wait, and the pool has no thread for them */
		more = pool_needs_help() && turn_begin(&here.turn);
		pool_unlock();
	} while (more);
	reader_delete(reader);
	here.begun = false;
}
