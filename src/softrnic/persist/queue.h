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

/* Is there a file with both a job and room? */
bool queue_has_turn(bool reading);
/* Take out the file whose turn it is. The caller has checked that there is one. */
struct file *queue_take_turn(bool reading);
/* The file has a turn again, if it has both a job and room; after any change of these. */
void queue_settle(struct file *f);

/* Queue a job, at its beginning, where it has anything to do. False: it has not. */
bool queue_begin(struct persist_job *job);
/* Take a job out that is queued or unconfirmed. */
void queue_drop(struct persist_job *job);
/* Take out the first job of the file. The caller has checked that there is one. */
struct persist_job *queue_pop(struct file *f, bool reading);

/* A free slot; NULL: there is none. */
struct file_slot *queue_free_slot(struct file *f);
/*
 * The slice in a slot has ended: first the slot's end, then that of each of its jobs. Jobs that are
 * finished go to that list. slot: NULL after a read.
 */
void queue_end_slot(struct file *f, struct file_slot *slot, struct list *finished);
/* more: there is more of the range. */
void queue_end_slice(struct file *f, bool reading, struct persist_job *job, bool more,
		     struct list *finished);

/* The place at which the job's next slice begins. */
static inline uintptr_t queue_job_pos(const struct persist_job *job)
{
	return (uintptr_t)job->addr + job->progress;
}

/* In the child of a fork(). */
void queue_forget(void);

#endif
