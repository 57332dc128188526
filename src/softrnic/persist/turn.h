/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * turn.h -- a turn of a pool's thread: one slice, for a group of jobs of one file.
 *
 * At most TURNS_MAX slices that are not stalled (pool.h) run at once. Of these at most READERS_MAX
 * read back: a peer that may read the memory may request a digest on each of its connections, and
 * flushes must still find threads.
 */
#ifndef PERSIST_TURN_H
#define PERSIST_TURN_H

#include <stdbool.h>

#include "softrnic/persist/group.h"
#include "softrnic/persist/pool.h"

struct turn {
	struct file *file;
	struct file_slot *slot; /* NULL: reading */
	bool reading;           /* kind of the previous turn, until this one begins */
	struct slice running;
	struct group group;
};

/* Called under the pool's lock: does a file wait for a turn, and may a turn begin? */
bool turn_is_wanted(void);
bool turn_is_possible(void);
/* Called under the pool's lock: may a write-back begin, of any file? */
bool turn_is_left(void);
/* Called under the pool's lock. Returns false if no turn may begin. */
bool turn_begin(struct turn *t);
/* As turn_begin(), for the first job of this file. The caller has checked that the file has a job
 * and a free slot. */
void turn_begin_at(struct turn *t, struct file *f);
/* Called without the lock. *reader: as in writeback.h. */
void turn_run(struct turn *t, struct reader **reader);
/* Called under the pool's lock. Finished jobs are added to the list. */
void turn_end(struct turn *t, struct list *finished);

#endif
