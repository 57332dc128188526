/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * here.c -- a short write-back that the submitting thread makes itself.
 *
 * To wake a thread of the pool, and the caches that it finds cold, cost a small part of a
 * write-back on a quick disk, and nothing is gained by it while the submitting thread has nothing
 * else to do. In all other respects such a turn is one of the pool's: it takes one of the file's
 * slots, counts as a slice that may stall, and shares its success and its failure with the slice
 * beside it.
 *
 * Where the file is slow, or was a moment ago (group_measure()), and where others write it back or
 * wait for that, so that their write-back may be shared, the pool does it.
 */
#include "softrnic/persist/pool.h"
#include "softrnic/persist/queue.h"
#include "softrnic/persist/turn.h"

#define HERE_NS (500 * NSEC_PER_US) /* a file whose short write-backs take longer is slow */

/* The calling thread's turn. */
static __thread struct here {
	bool begun;
	struct turn turn;
} here;

static bool here_is_quiet(const struct file *f)
{
	return list_empty(&f->writes.jobs) && !f->slot[0].busy && !f->slot[1].busy;
}

static bool here_is_quick(const struct file *f)
{
	return f->single_ns && f->single_ns <= HERE_NS && !f->medium.remote &&
	       clock_now_ns() >= f->calm_at;
}

bool here_start(struct persist_job *job, struct file *f)
{
	if (here.begun)
		return false;
	pool_lock();
	here.begun = here_is_quiet(f) && here_is_quick(f);
	if (here.begun) {
		queue_begin(job);
		turn_begin_at(&here.turn, f);
	}
	pool_unlock();
	return here.begun;
}

void persist_run_here(void)
{
	struct list finished = LIST_INIT(finished);
	struct reader *reader = NULL; /* a range in the file's own mapping needs none */

	turn_run(&here.turn, &reader);
	pool_lock();
	turn_end(&here.turn, &finished);
	pool_complete(&finished);
	pool_unlock();
	here.begun = false;
}
