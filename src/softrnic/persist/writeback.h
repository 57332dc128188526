/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * writeback.h -- the two halves of a job, in bounded steps of the calling thread: bytes are written
 * back, and for a digest read back and summed.
 *
 * *reader always belongs to the calling thread; NULL: the thread has none yet.
 */
#ifndef PERSIST_WRITEBACK_H
#define PERSIST_WRITEBACK_H

#include <stdbool.h>
#include <stdint.h>

#include "softrnic/persist/region.h"

struct reader;

/*
 * Write back [start, end) of a range that is not volatile. Blocks as long as the file system does.
 * Returns 0 or -errno. A failed write-back is remembered for the file: earlier writes to the file
 * may be lost. job: see pool_touch_begin().
 */
int writeback(const struct range *r, uintptr_t start, uintptr_t end, struct persist_job *job,
	      struct reader **reader);
/* As writeback(), for [from, to) of a file that is all in its own mapping, for jobs that share it.
 * Afterwards the caller checks the end of the file. */
int writeback_shared(struct file *f, uint64_t from, uint64_t to);

/* To be called after a short write-back of [start, end), whose folios may have been dirty before
 * the stores: the next store to a page shall make only this page dirty. */
void writeback_split(const struct range *r, uintptr_t start, uintptr_t end);

/* Is a part of r that ends at `end` still inside its file? Returns 0, -EFAULT or another -errno. */
int writeback_check_end(const struct range *r, uintptr_t end, struct persist_job *job);

/* Set job->readback. Returns 0, -EINVAL or -ENOMEM. */
int readback_begin(struct persist_job *job);
/* Sum [start, end) of a job, a part of r of at most READER_BYTES. Returns 0 or -errno. */
int readback_slice(struct persist_job *job, const struct range *r, uintptr_t start, uintptr_t end,
		   struct reader **reader);
/* Sum a job without bytes of files in the calling thread. Returns 0 or -errno. */
int readback_inline(struct persist_job *job);
/* Fill in the digest if status is 0. Has no effect on a job without readback. */
void readback_end(struct persist_job *job, int status);

#endif
