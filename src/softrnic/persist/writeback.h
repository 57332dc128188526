/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * writeback.h -- the two halves of a job, each in bounded steps made by the calling thread: bytes
 * are written back, and for a digest read back and summed.
 *
 * *reader is always the calling thread's own; NULL: it has none yet.
 */
#ifndef PERSIST_WRITEBACK_H
#define PERSIST_WRITEBACK_H

#include <stdbool.h>
#include <stdint.h>

#include "softrnic/persist/region.h"

struct reader;

/*
 * Put [start, end) of a range that is not volatile onto its medium. Blocks as long as the file
 * system does. 0 or -errno. A failure of the file's write-back itself is remembered for the file:
 * nothing written to it before can be trusted any more. job: see pool_touch_begin().
 */
int writeback(const struct range *r, uintptr_t start, uintptr_t end, struct persist_job *job,
	      struct reader **reader);
/*
 * The same of [from, to) of a file, all of it in its own mapping, for jobs that share it. Where
 * the file ends is the caller's to judge, afterwards.
 */
int writeback_shared(struct file *f, uint64_t from, uint64_t to);

/* After a short write-back of [start, end), whose folios may have been dirty when they were stored
 * to: the next store to a page there shall make that alone dirty. */
void writeback_split(const struct range *r, uintptr_t start, uintptr_t end);

/* Is a part of r that ends there still inside its file? 0, -EFAULT or another -errno. */
int writeback_check_end(const struct range *r, uintptr_t end, struct persist_job *job);

/* Sets job->readback: 0, -EINVAL or -ENOMEM. */
int readback_begin(struct persist_job *job);
/* Sum [start, end) of a job, a part of r and at most READER_BYTES long. 0 or -errno. */
int readback_slice(struct persist_job *job, const struct range *r, uintptr_t start, uintptr_t end,
		   struct reader **reader);
/* Sum all of a job that has no bytes of files in it, in the calling thread. 0 or -errno. */
int readback_inline(struct persist_job *job);
/* Fill in the digest if status is 0; harmless when the job has no readback. */
void readback_end(struct persist_job *job, int status);

#endif
