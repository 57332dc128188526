/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * persist.h -- writes back ranges of the pool in this process, for the general method and for deep
 * flushes.
 *
 * A failure is final for the pool. The kernel reports a failed write-back once for each open file.
 * If two threads write back the same file, one thread gets the error and the other thread gets
 * success, although its bytes may be among the lost bytes. So a success counts only after all
 * write-backs that ran at the same time have ended without a failure.
 *
 * Thread-safe.
 */
#ifndef RPMEMD_PERSIST_H
#define RPMEMD_PERSIST_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct persist {
	uint8_t *base;
	uint64_t size;
	/* the mapping is the medium itself: writing back the processor's caches is sufficient */
	bool is_direct;
	/* Writes back a range of whole pages. Returns 0 or -errno. msync(2), except in tests. */
	int (*write_back)(void *addr, size_t len);
	pthread_mutex_t lock;
	pthread_cond_t ended;
	int failed;                 /* -errno of the first failure */
	uint64_t begun;             /* number of write-backs begun */
	struct persist_turn *turns; /* the write-backs that have begun and not ended */
};

void persist_init(struct persist *p, void *base, uint64_t size, bool is_direct);
void persist_fini(struct persist *p);
/* Make a range durable. Returns 0, or -errno of the pool's first failure. -EINVAL: the range is
 * not within the pool; this failure is not final. */
int persist_range(struct persist *p, uint64_t offset, uint64_t len);
/* Make a range durable, and flush the memory's own buffers if the platform supports this. The
 * result is that of persist_range(). */
int persist_deep(struct persist *p, uint64_t offset, uint64_t len);

#endif
