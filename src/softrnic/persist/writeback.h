/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * writeback.h -- runs the two parts of a job in the calling thread, in steps of bounded length:
 * write bytes back, and for a digest also read them back and sum them.
 *
 * *reader belongs to the calling thread. It is NULL if the thread has no reader yet.
 */
#ifndef PERSIST_WRITEBACK_H
#define PERSIST_WRITEBACK_H

#include <stdint.h>

#include "softrnic/persist/region.h"

struct reader;

/*
 * Write back [start, end) of a range that is not volatile. Blocks as long as the file system does.
 * Returns 0 or -errno. A failed write-back is remembered for the file, because earlier writes to
 * the file may be lost. `job`: see pool_touch_begin().
 */
int writeback(const struct range *r, uintptr_t start, uintptr_t end, struct persist_job *job,
	      struct reader **reader);
/* Write back [from, to) of a file, for jobs that share the write-back. The library's own mapping
 * contains the whole range. The caller checks the size of the file afterwards. */
int writeback_shared(struct file *f, uint64_t from, uint64_t to);

/* Must be called after a short write-back of [start, end). Folios of this range may have been dirty
 * before the stores. After the call the next store to a page makes only this page dirty. */
void writeback_split(const struct range *r, uintptr_t start, uintptr_t end);

/* Is a part of r that ends at `end` still inside its file? Returns 0, -EFAULT or another -errno. */
int writeback_check_end(const struct range *r, uintptr_t end, struct persist_job *job);

/* Prepare job->readback. Returns 0, -EINVAL or -ENOMEM. */
int readback_begin(struct persist_job *job);
/* Add [start, end) to the job's digest. The range is a part of r and has at most READER_BYTES.
 * Returns 0 or -errno. */
int readback_slice(struct persist_job *job, const struct range *r, uintptr_t start, uintptr_t end,
		   struct reader **reader);
/* Compute the digest of a job that has no bytes in files, in the calling thread. Returns 0 or
 * -errno. */
int readback_inline(struct persist_job *job);
/* Store the digest if status is 0. Does nothing for a job without readback. */
void readback_end(struct persist_job *job, int status);

#endif
