/* SPDX-License-Identifier: BSD-3-Clause */
/* pool.h -- the threads that run blocking write-backs, and their slices. */
#ifndef PERSIST_POOL_H
#define PERSIST_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/list.h"
#include "softrnic/persist/persist.h"
#include "softrnic/persist/region.h"

/* The lock of the queues and of the jobs. A thread that releases it first wakes threads for the
 * jobs that can run now. */
void pool_lock(void);
void pool_unlock(void);

/* Queue a job with bytes to write back. Returns false if no thread exists and none can be started;
 * then nothing has changed. Otherwise job->done() is called, perhaps before this call returns. */
bool pool_start(struct persist_job *job);

/* Called with the lock: does work wait although no thread exists and none can be started? */
bool pool_needs_help(void);

/* Call done() of these jobs. Called and returns with the lock, which it releases meanwhile. */
void pool_complete(struct list *finished);

/* As pool_start(), for the calling thread, which must run the job by persist_run_here(). Returns
 * false if other jobs wait at the file, or no turn is free; then nothing has changed. */
bool here_start(struct persist_job *job, struct file *f);

/*
 * Call these before and after a slice accesses the memory through its address. If the job was
 * abandoned, pool_touch_begin() returns false: the memory may be gone, so do not access it, and do
 * not call pool_touch_end(). NULL stands for an inline job, which cannot be abandoned.
 */
bool pool_touch_begin(struct persist_job *job);
void pool_touch_end(struct persist_job *job);
/* Has the job been abandoned? Then the memory may be gone. */
bool pool_is_abandoned(struct persist_job *job);

/*
 * The running slices, and how many of them count against the pool's limits.
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
/* Are fewer than max slices running, without stalled ones? reading: count only slices that read
 * back. */
bool slices_below(unsigned max, bool reading);
/* Time at which the next slice will count as stalled; 0, which is past: all slices are stalled
 * already. */
uint64_t slices_next_stall(void);
/* In a forked child, where no slice runs. */
void slices_forget(void);

#endif
