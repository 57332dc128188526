/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * group.h -- the jobs that one slice serves.
 *
 * Jobs that wait at a file when a slice of it begins may share its write-back (group commit): a
 * write-back that begins now covers what all of them placed. One msync() of the whole of two ranges
 * costs as much as one of each, as clean pages between them cost nothing; dirty ones that no
 * job covers do. So the gap that is bridged has a reach of its own for each file: a group that took
 * longer than its members one after the other shortens it, down to GROUP_NEAR, where even a dirty
 * gap costs no more than the msync() that it saves; any other group lengthens it again.
 */
#ifndef PERSIST_GROUP_H
#define PERSIST_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "softrnic/persist/region.h"

#define GROUP_NEAR  ((uint64_t)64 << 10)
#define GROUP_SLICE ((uint64_t)64 << 20) /* of a write-back; and the longest reach */

struct reader;

struct group {
	struct list jobs; /* the job whose turn it was is the first one */
	unsigned count;
	size_t bytes;      /* sum of the jobs' requested bytes */
	uint64_t from, to; /* range in the file, if the write-back is shared */
	bool shared;
};

/*
 * Make a group of a job and, where they can share its write-back, jobs that wait at the file. Sets
 * the length of each one's slice. Under the pool's lock.
 */
void group_make(struct group *g, struct file *f, struct persist_job *job);
/* Make a group of one job that is read back. */
void group_make_reading(struct group *g, struct persist_job *job);
/* Does the job's range go on after its slice? */
bool group_has_more(const struct persist_job *job);

/*
 * Run the slice, without the lock. It sets the status of each job, and blocks as long as the file
 * system does. *reader: as in writeback.h.
 */
void group_write_back(struct group *g, struct file *f, struct reader **reader);
void group_read_back(struct group *g, struct reader **reader);
void group_fail(struct group *g, int error);

/*
 * Note the time that a group of the file took, and adapt the file's reach. Under the pool's lock.
 */
void group_measure(const struct group *g, struct file *f, uint64_t took_ns);

#endif
