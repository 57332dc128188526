/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * write_back.h -- the write-back of this host's copy for flushes that were only begun.
 *
 * A caller with several tickets begins the next flush instead of waiting for the disk. One
 * write-back then serves all flushes that were begun meanwhile. A thread that waits without a time
 * limit for one of these flushes makes it, or else a thread of the library's own does, so a flush
 * also ends if no thread waits for it. The set's lock protects all of this.
 */
#ifndef MIRROR_WRITE_BACK_H
#define MIRROR_WRITE_BACK_H

#include <pthread.h>

#include "mirror/core/flush.h"

struct rpmirror;

struct write_back {
	pthread_t thread;
	bool has_thread, stopping;
	pthread_cond_t work, ended; /* awaited by the thread; by threads that wait for flushes */
	uint64_t due[FLUSH_MAX];    /* numbers of flushes, in any order */
	uint32_t count;
	/* the lowest number that is due, and that the write-back under way is for; 0: none */
	uint64_t due_first, running_first;
};

void write_back_init(struct write_back *w);
void write_back_fini(struct write_back *w);
/* Returns false if the caller has to write back the flush itself: the thread cannot be started. */
bool write_back_defer(struct rpmirror *m, const uint64_t *seqs, uint32_t count);
/* Locked, with gaps. Wait until no write-back for a flush up to seq is due or under way, or the
 * deadline has passed (CLOCK_NEVER: none). Returns false if there was none. */
bool write_back_await(struct rpmirror *m, uint64_t seq, uint64_t deadline_ns);
/* Not locked. End the thread; flushes that are due stay so. */
void write_back_stop(struct rpmirror *m);

#endif
