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

#endif
