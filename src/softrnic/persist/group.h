/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * group.h -- the jobs that one slice serves.
 *
 * Jobs that wait at a file when a slice of it begins may share its write-back (group commit): a
 * write-back that begins now covers the bytes of all of them. One msync() across two ranges is
 * cheaper than two calls if the pages between them are clean; dirty pages between them cost time.
 * So each file has a reach, the greatest gap that a group bridges. A group that took longer than
 * its jobs would take one after the other shortens the reach, down to GROUP_NEAR, where even a
 * dirty gap costs no more than the msync() that it saves. Any other group lengthens the reach
 * again.
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
	struct list jobs; /* the job whose turn it was comes first */
	unsigned count;
	size_t bytes;      /* sum of the jobs' requested bytes */
	uint64_t from, to; /* range in the file, if the write-back is shared */
	bool shared;
};

/* Group a job with other jobs that wait at the file and can share its write-back. Sets the length
 * of each job's slice. Called under the pool's lock. */
void group_make(struct group *g, struct file *f, struct persist_job *job);
/* Make a group of one job that is read back. */
void group_make_reading(struct group *g, struct persist_job *job);
/* Does the job's range continue after its slice? */
bool group_has_more(const struct persist_job *job);

/* Run the slice without the lock and set the status of each job. Blocks as long as the file system
 * does. *reader: as in writeback.h. */
void group_write_back(struct group *g, struct file *f, struct reader **reader);
void group_read_back(struct group *g, struct reader **reader);
void group_fail(struct group *g, int error);

/* Record the time that a group of the file took, and adapt the file's reach. Called under the
 * pool's lock. */
void group_measure(const struct group *g, struct file *f, uint64_t took_ns);

#endif
