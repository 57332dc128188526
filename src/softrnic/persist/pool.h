/* SPDX-License-Identifier: BSD-3-Clause */
/* pool.h -- the threads that make write-backs which may block, and the slices that they run. */
#ifndef PERSIST_POOL_H
#define PERSIST_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/list.h"
#include "softrnic/persist/persist.h"
#include "softrnic/persist/region.h"

/* The lock of the queues and of the jobs. A thread that gives it up first wakes threads for the jobs
 * that can run now. */
void pool_lock(void);
void pool_unlock(void);

/*
 * Queue a job that has something to write back. False: there is no thread and none can be
 * started, and nothing has happened. Otherwise job->done() is called, perhaps already.
 */
bool pool_start(struct persist_job *job);

/* With the lock: is there work, but no thread, and none can be started? */
bool pool_needs_help(void);

/* Call done() of these jobs. Called and returns with the lock; others may have it meanwhile. */
void pool_complete(struct list *finished);

/*
 * The same for the calling thread, which is to run it by persist_run_here(). False: other jobs wait
 * at the file, or there is no turn for this one; nothing has happened.
 */
bool here_start(struct persist_job *job, struct file *f);

/*
 * Around what a slice does with the memory by its address. False: the job was abandoned, and the
 * memory may be gone. NULL stands for a job that cannot be abandoned, because it runs inline.
 */
bool pool_touch_begin(struct persist_job *job);
void pool_touch_end(struct persist_job *job);
/* The memory may be gone. */
bool pool_is_abandoned(struct persist_job *job);

/*
 * The slices that run, and how many of them count against the pool's limits.
 *
 * A slice that has run for SLICE_STALLED_NS waits for a file system that does not answer. It costs
 * a stack and no CPU, so it stops counting: otherwise a few such files would take all places and
 * hold up the write-backs of every other file. Slices that read back have a longer limit among
 * themselves: they compute, and on a busy machine computing alone may take that long.
 *
 * All functions are called under the pool's lock.
 */
#define SLICE_STALLED_NS        (100 * NSEC_PER_MS)
#define SLICE_READER_STALLED_NS NSEC_PER_SEC

struct slice {
	struct list node;
	uint64_t start_ns;
	bool reading;
};

void slices_begin(struct slice *slice, bool reading);
void slices_end(struct slice *slice);
/* Do fewer than max slices run that are not stalled?
 * reading: of those that read back, or of all. */
bool slices_below(unsigned max, bool reading);
/* The time at which the next slice will count as stalled; 0, which is past: all do already. */
uint64_t slices_next_stall(void);
/* In the child after a fork(): no slice runs there. */
void slices_forget(void);

#endif
