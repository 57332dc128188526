/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * group.h -- collects jobs that can share one write-back.
 *
 * Work on a file is done in slices. Jobs that wait in the file's queue when a slice begins can
 * share the slice's write-back (group commit), because a write-back that begins now covers the
 * bytes of all these jobs. One msync() across two ranges is cheaper than two calls if the pages
 * between them are clean; dirty pages between them cost time. So each file has a reach: the
 * greatest gap that a group may bridge. If a group took longer than its jobs would have taken one
 * after the other, the reach becomes shorter, down to GROUP_NEAR, where even a dirty gap costs no
 * more than the msync() that it saves. After any other group the reach becomes longer again.
 */
#ifndef PERSIST_GROUP_H
#define PERSIST_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "softrnic/persist/region.h"

#define GROUP_NEAR ((uint64_t)64 << 10)
/* greatest length of a write-back's slice, and of a file's reach */
#define GROUP_SLICE ((uint64_t)64 << 20)

struct reader;

struct group {
	struct list jobs; /* the first job is the one for which the slice was begun */
	unsigned count;
	size_t bytes;      /* sum of the jobs' requested bytes */
	uint64_t from, to; /* the shared write-back's range in the file; used only if `shared` */
	bool shared;
};

/* Form a group of this job and other jobs of the file's queue that can share its write-back. Sets
 * the length of each job's slice. Called under the pool's lock. */
void group_make(struct group *g, struct file *f, struct persist_job *job);
/* Form a group of one job, whose bytes are read back. */
void group_make_reading(struct group *g, struct persist_job *job);
/* Does the job's range continue after the job's slice? */
bool group_has_more(const struct persist_job *job);

/* Run the slice without the pool's lock, and set the status of each job. Blocks as long as the file
 * system does. `reader`: see writeback.h. */
void group_write_back(struct group *g, struct file *f, struct reader **reader);
void group_read_back(struct group *g, struct reader **reader);
void group_fail(struct group *g, int error);

/* Adapt the file's reach to the time that this group took. Called under the pool's lock. */
void group_measure(const struct group *g, struct file *f, uint64_t took_ns);

#endif
