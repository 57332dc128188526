/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * commit.h -- one write-back of a file for all threads that wait for one (group commit).
 *
 * Write-backs follow each other in turns. A turn covers what was put into the file before it began:
 * a thread that comes while one runs belongs to the next. The first thread of a turn makes the
 * write-back, the others sleep. A turn that fails fails for all of its threads, and so do all later
 * turns: the kernel reports a lost page once, perhaps to another turn than the page's.
 */
#ifndef MIRROR_COMMIT_H
#define MIRROR_COMMIT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct commit {
	pthread_mutex_t lock;
	pthread_cond_t ended[2]; /* of a turn; index 1 for odd numbers */
	uint64_t begun, done;    /* numbers of the last turn that has begun, and has ended */
	int error;               /* -errno of the first turn that failed */
};

void commit_init(struct commit *c);
void commit_fini(struct commit *c);
/* Blocks. write_back(arg), of any caller, returns 0 or -errno; commit_join() returns the same. */
int commit_join(struct commit *c, int (*write_back)(void *arg), void *arg);

#endif
