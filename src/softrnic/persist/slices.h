/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * slices.h -- the slices that run in the pool, and how many of them count against its limits.
 *
 * A slice that has run for STUCK_NS waits for a file system that does not answer. It costs a
 * stack and no CPU, so it leaves its place to others: else a few such files would take all places,
 * and hold up the write-backs of every other file. Of those that read back more patience is needed
 * among themselves: they compute, and on a busy machine that alone may take longer.
 *
 * All functions are called under the pool's lock.
 */
#ifndef PERSIST_SLICES_H
#define PERSIST_SLICES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/list.h"

#define STUCK_NS        (100 * NSEC_PER_MS)
#define READER_STUCK_NS NSEC_PER_SEC

struct slice {
	struct list node;
	uint64_t start_ns;
	bool reading;
};

void slices_begin(struct slice *slice, bool reading);
void slices_end(struct slice *slice);
/* Are fewer than max running that are not stuck? Of those that read back, or of all. */
bool slices_below(unsigned max, bool reading);
/* When the next slice will count as stuck; 0, which is past: all do already. */
uint64_t slices_next_stuck(void);
/* In the child of a fork(), where none is running. */
void slices_forget(void);

#endif
