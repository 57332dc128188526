/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * commit.h -- one write-back of a file for all threads that wait for one (group commit).
 *
 * Write-backs follow each other in turns. A turn covers the bytes that were put into the file
 * before its begin: a thread that arrives during a turn belongs to the next one. The first thread
 * of a turn makes the write-back, the others sleep. After a failure all threads of that turn and of
 * all later ones get the error, because the kernel reports a lost page only once, perhaps to a
 * later turn than the page's.
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
/* Blocks until the turn has ended. The write_back(arg) of any of its threads is called. It returns
 * 0 or -errno, and so does commit_join(). */
int commit_join(struct commit *c, int (*write_back)(void *arg), void *arg);

#endif
