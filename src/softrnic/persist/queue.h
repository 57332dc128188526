/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * queue.h -- jobs that wait at their files, and the turns that files take.
 *
 * Each file has a queue of jobs and FILE_SLOTS slots. Files that have both a job and a free slot
 * take turns, and so do the jobs of one file, slice by slice. Jobs that read back have queues and
 * limits of their own.
 *
 * All functions are called under the pool's lock.
 */
#ifndef PERSIST_QUEUE_H
#define PERSIST_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "softrnic/persist/region.h"

/* Is there a file with both a job and a free slot? */
bool queue_has_turn(bool reading);
/* Remove and return the file whose turn it is. The caller has checked that there is one. */
struct file *queue_take_turn(bool reading);
/* Give the file a turn again, if it has both a job and a free slot. To be called after any change
 * of these. */
void queue_settle(struct file *f);

/* Queue a job at its first range. Returns false if it has nothing to do. */
bool queue_begin(struct persist_job *job);
/* Remove a job that is queued or unconfirmed. */
void queue_drop(struct persist_job *job);
/* Remove and return the first job of the file. The caller has checked that there is one. */
struct persist_job *queue_pop(struct file *f, bool reading);

/* Returns a free slot, or NULL. */
struct file_slot *queue_free_slot(struct file *f);
/* Handle the end of a slot's slice, and then, by queue_end_slice(), the end of each of its jobs'
 * slices. Finished jobs are added to `finished`. slot: NULL after a read. */
void queue_end_slot(struct file *f, struct file_slot *slot, struct list *finished);
/* more: the range has further bytes. */
void queue_end_slice(struct file *f, bool reading, struct persist_job *job, bool more,
		     struct list *finished);

/* The address at which the job's next slice begins. */
static inline uintptr_t queue_job_pos(const struct persist_job *job)
{
	return (uintptr_t)job->addr + job->progress;
}

/* In a forked child. */
void queue_forget(void);

#endif
