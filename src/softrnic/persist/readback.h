/* SPDX-License-Identifier: BSD-3-Clause */
/* readback.h -- the second half of a digest job: what was written back is read and summed. */
#ifndef PERSIST_READBACK_H
#define PERSIST_READBACK_H

#include <stdint.h>

#include "softrnic/persist/persist.h"
#include "softrnic/persist/region.h"

struct reader;

/* Sets job->readback: 0, -EINVAL or -ENOMEM. */
int readback_begin(struct persist_job *job);
/*
 * Sum [start, end) of a job, a part of r and at most a READER_BYTES long. *reader is the calling
 * thread's own; NULL: it has none yet. 0 or -errno.
 */
int readback_slice(struct persist_job *job, const struct range *r, uintptr_t start, uintptr_t end,
		   struct reader **reader);
/* Sum all of a job that has no bytes of files in it, in the calling thread. 0 or -errno. */
int readback_inline(struct persist_job *job);
/* Fill in the digest if status is 0; harmless when the job has no readback. */
void readback_end(struct persist_job *job, int status);

#endif
