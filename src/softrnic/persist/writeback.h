/* SPDX-License-Identifier: BSD-3-Clause */
/* writeback.h -- one bounded write-back, made by the calling thread. */
#ifndef PERSIST_WRITEBACK_H
#define PERSIST_WRITEBACK_H

#include <stdbool.h>
#include <stdint.h>

#include "softrnic/persist/region.h"

struct reader;

/*
 * Put [start, end) of a range that is not volatile onto its medium. Blocks as long as the
 * file system does. 0 or -errno; *failed tells that the file's write-back itself failed,
 * so that nothing written to it before can be trusted any more. job: see pool_touch_begin().
 * *reader: the thread's own, for a FILE range; NULL: it has none yet.
 */
int writeback(const struct range *r, uintptr_t start, uintptr_t end, struct persist_job *job,
	      struct reader **reader, bool *failed);

/* Is a part of r that ends there still inside its file? 0, -EFAULT or another -errno. */
int writeback_check_end(const struct range *r, uintptr_t end, struct persist_job *job);

#endif
