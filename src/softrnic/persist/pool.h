/* SPDX-License-Identifier: BSD-3-Clause */
/* pool.h -- the threads that make write-backs which may block. */
#ifndef PERSIST_POOL_H
#define PERSIST_POOL_H

#include <stdbool.h>

#include "softrnic/persist/persist.h"

/*
 * Queue a job that has something to write back. False: there is no thread and none can be
 * started, and nothing has happened. Otherwise job->done() is called, perhaps already.
 */
bool pool_start(struct persist_job *job);

/*
 * Around what a slice does with the memory by its address. False: the job was abandoned, and the
 * memory may be gone. NULL stands for a job that nobody can abandon, because it runs inline.
 */
bool pool_touch_begin(struct persist_job *job);
void pool_touch_end(struct persist_job *job);
/* The memory may be gone meanwhile. */
bool pool_is_abandoned(struct persist_job *job);

#endif
