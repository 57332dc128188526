/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * here.c -- a write-back in the submitting thread.
 *
 * On a quick disk, waking a thread of the pool and its cold caches cost a considerable part of a
 * write-back. So a submitting thread that may wait runs the write-back itself. In all other
 * respects its turn is like a turn of the pool: it takes one of the file's slots and one of the
 * pool's turns, counts as a slice that may stall, and shares success and failure with the slice
 * beside it.
 *
 * Where other jobs wait at the file already, the new job is queued with them: one write-back then
 * serves all of them.
 */
#include "softrnic/persist/pool.h"
#include "softrnic/persist/queue.h"
#include "softrnic/persist/reader.h"
#include "softrnic/persist/turn.h"

/* The calling thread's turn. */
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

/* Returns whether the thread must run another slice: jobs that waited for this slice have no other
 * thread. */
static bool here_run_turn(struct reader **reader)
{
	struct list finished = LIST_INIT(finished);
	bool more;

	turn_run(&here.turn, reader);
	pool_lock();
	turn_end(&here.turn, &finished);
	pool_complete(&finished);
	more = pool_needs_help() && turn_begin(&here.turn);
	pool_unlock();
	return more;
}

void persist_run_here(void)
{
	struct reader *reader = NULL; /* a range in the file's own mapping needs no reader */

	while (here_run_turn(&reader))
		;
	reader_delete(reader);
	here.begun = false;
}
