/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * commit.h -- group commit: one write-back of a file for all threads that wait for a write-back.
 *
 * Write-backs follow one another and are numbered as turns. A turn covers the bytes that were put
 * into the file before the turn began, so a thread that arrives during a turn belongs to the next
 * turn. The first thread of a turn makes the write-back, the others sleep. After a failure all
 * threads of that turn and of all later turns get the error. The kernel reports a lost page only
 * once, perhaps in a later turn than the turn of the page.
 */
#ifndef MIRROR_COMMIT_H
#define MIRROR_COMMIT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct commit {
	pthread_mutex_t lock;
	pthread_cond_t ended[2]; /* signalled when a turn has ended; index 1 for odd numbers */
	/* number of the last turn that has begun, and of the last that has ended */
	uint64_t begun, done;
	int error; /* -errno of the first turn that failed */
};

void commit_init(struct commit *c);
void commit_fini(struct commit *c);
/* Wait until a turn that began after this call has finished. In each turn one of the waiting
 * threads calls its own write_back(arg), which returns 0 or -errno. Returns 0, or the error of the
 * first turn that failed. */
int commit_join(struct commit *c, int (*write_back)(void *arg), void *arg);

#endif
