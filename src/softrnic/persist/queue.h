/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * queue.h -- keeps the jobs that wait for a turn (turn.h) of their file, and decides which file's
 * job runs next.
 *
 * Each file has a queue of jobs and FILE_SLOTS slots. Files that have both a job and a free slot
 * take turns: each gets one slice at a time. The jobs of one file also take turns. Jobs that read
 * back have separate queues and limits.
 *
 * All functions are called under the pool's lock.
 */
#ifndef PERSIST_QUEUE_H
#define PERSIST_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "softrnic/persist/region.h"

/* Does a file have both a job and a free slot? */
bool queue_has_turn(bool reading);
/* Remove and return the first file of the list of files with a job and a free slot. The caller has
 * checked that the list is not empty. */
struct file *queue_take_turn(bool reading);
/* Add the file to the list of files with a job and a free slot, or remove it. Must be called after
 * any change of its jobs or slots. */
void queue_settle(struct file *f);

/* Queue a job at the file of its first range. Returns false if the job has nothing to do. */
bool queue_begin(struct persist_job *job);
/* Remove a job that is queued or unconfirmed. */
void queue_drop(struct persist_job *job);
/* Remove and return the first job of the file. The caller has checked that there is one. */
struct persist_job *queue_pop(struct file *f, bool reading);

/* Returns a free slot, or NULL. */
struct file_slot *queue_free_slot(struct file *f);
/* Handle the end of a slice: queue_end_slot() frees the slot, and queue_end_slice() then handles
 * each job of the slice. Both add finished jobs to `finished`. `slot` is NULL after a slice that
 * read back. */
void queue_end_slot(struct file *f, struct file_slot *slot, struct list *finished);
/* `more` is true if the job's range has further bytes. */
void queue_end_slice(struct file *f, bool reading, struct persist_job *job, bool more,
		     struct list *finished);

/* The address at which the job's next slice begins. */
static inline uintptr_t queue_job_pos(const struct persist_job *job)
{
	return (uintptr_t)job->addr + job->progress;
}

/* Called in a forked child: empty the lists. */
void queue_forget(void);

#endif
