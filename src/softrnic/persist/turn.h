/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * turn.h -- decides when a thread may run a slice. A turn is the permission to run one slice, for a
 * group of jobs of one file.
 *
 * At most TURNS_MAX slices that are not stalled (pool.h) run at the same time. At most READERS_MAX
 * of them read back. Otherwise a peer that is permitted to read the memory could request a digest
 * on each of its connections, and leave no thread for flushes.
 */
#ifndef PERSIST_TURN_H
#define PERSIST_TURN_H

#include <stdbool.h>

#include "softrnic/persist/group.h"
#include "softrnic/persist/pool.h"

struct turn {
	struct file *file;
	struct file_slot *slot; /* the slot of a write-back; NULL: the slice reads back */
	/* true: the slice reads back; before turn_begin() it describes the previous slice */
	bool reading;
	struct slice running;
	struct group group;
};

/* Called under the pool's lock. turn_is_wanted(): does a file have a job and a free slot?
 * turn_is_possible(): can a slice of such a file begin now, within the limits? */
bool turn_is_wanted(void);
bool turn_is_possible(void);
/* Called under the pool's lock: are fewer than TURNS_MAX slices running? */
bool turn_is_left(void);
/* Called under the pool's lock. Returns false if no slice may begin now. */
bool turn_begin(struct turn *t);
/* Begin a slice for the first job of this file. The caller has checked that the file has a job and
 * a free slot. */
void turn_begin_at(struct turn *t, struct file *f);
/* Run the slice. Called without the lock. `reader`: see writeback.h. */
void turn_run(struct turn *t, struct reader **reader);
/* Called under the pool's lock. Adds the jobs that are finished to the list. */
void turn_end(struct turn *t, struct list *finished);

#endif
