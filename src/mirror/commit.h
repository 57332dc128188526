/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * commit.h -- one write-back of a file for all threads that wait for one (group commit).
 *
 * Write-backs follow each other in turns. A turn covers what was put into the file before it began:
 * a thread that comes while one runs belongs to the next. The first thread of a turn makes the
 * write-back, the others sleep. A turn that fails fails for all of its threads, and so do all later
 * ones: the kernel reports a lost page once, perhaps not to the turn that it belongs to.
 */
#ifndef MIRROR_COMMIT_H
#define MIRROR_COMMIT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct commit {
	pthread_mutex_t lock;
	pthread_cond_t ended[2]; /* a turn; by whether its number is odd */
	uint64_t begun, done;    /* number of the last turn that did */
	int error;               /* -errno of the first that failed */
};

void commit_init(struct commit *c);
void commit_fini(struct commit *c);
/* Blocks. write_back(arg), of any caller, returns 0 or -errno; so does this. */
int commit_join(struct commit *c, int (*write_back)(void *arg), void *arg);

#endif
