/* SPDX-License-Identifier: BSD-3-Clause */
/* pool.h -- the threads that run write-backs and digests, which may block, and the limits of the
 * slices that run at the same time. */
#ifndef PERSIST_POOL_H
#define PERSIST_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/list.h"
#include "softrnic/persist/persist.h"
#include "softrnic/persist/region.h"

/* The lock of the queues and of the jobs. Before a thread releases it, pool_unlock() wakes threads
 * for the jobs that can run now. */
void pool_lock(void);
void pool_unlock(void);

/* Queue a job with bytes to write back. Returns false, and changes nothing, if no thread exists and
 * none can be started. If it returns true, job->done() is called, possibly before the return. */
bool pool_start(struct persist_job *job);

/* Does work wait although no thread exists and none can be started? The caller holds the lock. */
bool pool_needs_help(void);

/* Call done() of these jobs. The caller holds the lock; this function releases the lock during each
 * done() and takes it again. */
void pool_complete(struct list *finished);

/* Start a job that the calling thread must run by persist_run_here(). Returns false, and changes
 * nothing, if other jobs wait in the file's queue, or too many slices run. */
bool here_start(struct persist_job *job, struct file *f);

/*
 * A slice that accesses the memory through its address calls pool_touch_begin() before the access
 * and pool_touch_end() afterwards. If the job was abandoned, pool_touch_begin() returns false: the
 * memory may be gone, so the slice must not access it, and must not call pool_touch_end(). `job` is
 * NULL for an inline job, which cannot be abandoned.
 */
bool pool_touch_begin(struct persist_job *job);
void pool_touch_end(struct persist_job *job);
/* Was the job abandoned? Its memory may be gone then. */
bool pool_is_abandoned(struct persist_job *job);

/*
 * The running slices, and how many of them count against the pool's limits.
 *
 * A slice that has run for SLICE_STALLED_NS waits for a file system that does not answer. Such a
 * slice costs a stack and no CPU, so it no longer counts against the limits: otherwise a few such
 * files would use up the limit and delay the write-backs of every other file. Slices that read back
 * count longer against their own limit: they compute digests, and on a busy machine this alone may
 * take SLICE_STALLED_NS.
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
/* Are fewer than `max` slices running? Stalled slices do not count. `reading`: count only slices
 * that read back. */
bool slices_below(unsigned max, bool reading);
/* Returns the time at which the next slice will count as stalled, or 0 if all slices are stalled
 * already. */
uint64_t slices_next_stall(void);
/* Called in a forked child, where no slice runs: empty the list. */
void slices_forget(void);

#endif
