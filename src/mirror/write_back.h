/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * write_back.h -- the write-back of this host's copy for flushes that were only begun.
 *
 * A caller with several tickets begins the next flush instead of waiting for the disk. One
 * write-back then serves all flushes that were begun meanwhile. A thread that waits without a time
 * limit for one of these flushes makes this write-back. If there is no such thread, a thread of the
 * library makes it, so a flush also ends if no thread waits for it. The set's lock protects all of
 * this.
 */
#ifndef MIRROR_WRITE_BACK_H
#define MIRROR_WRITE_BACK_H

#include <pthread.h>

#include "mirror/core/flush.h"

struct rpmirror;

struct write_back {
	pthread_t thread;
	bool has_thread, stopping;
	pthread_cond_t work, ended; /* work wakes the thread; ended wakes threads that wait */
	uint64_t due[FLUSH_MAX];    /* numbers of flushes, in any order */
	uint32_t count;
	/* lowest number that is due; lowest number of the write-back under way; 0: none */
	uint64_t due_first, running_first;
};

void write_back_init(struct write_back *w);
void write_back_fini(struct write_back *w);
/* Leave the write-back of these flushes to the thread, or to threads that wait for the flushes.
 * Returns false if the caller has to write the flushes back itself: no ticket is outstanding, or
 * the thread cannot be started. */
bool write_back_defer(struct rpmirror *m, const uint64_t *seqs, uint32_t count);
/* Wait until no write-back for a flush up to seq is due or under way, or the deadline has passed
 * (CLOCK_NEVER: none). Returns false if no such write-back was due or under way. Called with the
 * set's lock, which is released meanwhile. */
bool write_back_await(struct rpmirror *m, uint64_t seq, uint64_t deadline_ns);
/* End the thread; flushes that are due stay due. Called without the set's lock. */
void write_back_stop(struct rpmirror *m);

#endif
