/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * turn.h -- what a thread of the pool does next: one slice, for a group of jobs of one file.
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
	bool reading;           /* the previous turn's, until this one begins */
	struct slice running;
	struct group group;
};

/* Under the pool's lock: does a file wait for a turn; and may one begin? */
bool turn_is_wanted(void);
bool turn_is_possible(void);
/* Under the pool's lock: may a write-back begin, whichever file it is of? */
bool turn_is_left(void);
/* Under the pool's lock. False: none may begin. */
bool turn_begin(struct turn *t);
/*
 * The same for the first job of that file. The caller has checked that it has a job and a free
 * slot.
 */
void turn_begin_at(struct turn *t, struct file *f);
/* Without the lock. *reader: as in writeback.h. */
void turn_run(struct turn *t, struct reader **reader);
/* Under the pool's lock. Jobs that are finished go to that list. */
void turn_end(struct turn *t, struct list *finished);

#endif
