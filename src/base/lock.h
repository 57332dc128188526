/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lock.h -- a lock that is taken and released in line, for paths that do so several times an
 * operation: a pthread_mutex_t takes two calls and some 60 instructions for what is one atomic
 * operation each. A thread that has to wait sleeps on a futex, as with a mutex. The lock works
 * within one process and is not recursive; the scheduler decides which waiting thread gets it next.
 *
 * Taking and releasing are sequentially consistent: what a thread stores before its lock_try()
 * fails is seen by the holder in loads that follow its lock_leave().
 */
#ifndef BASE_LOCK_H
#define BASE_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct lock {
	atomic_uint word; /* 0: free; 1: taken; 2: taken, and other threads may wait */
};

static inline void lock_init(struct lock *l)
{
	atomic_init(&l->word, 0);
}

static inline bool lock_try(struct lock *l)
{
	unsigned free = 0;

	return atomic_compare_exchange_strong(&l->word, &free, 1);
}

void lock_wait(struct lock *l); /* the slow part of lock_enter() */
void lock_wake(struct lock *l); /* the slow part of lock_leave() */

static inline void lock_enter(struct lock *l)
{
	if (__builtin_expect(!lock_try(l), 0))
		lock_wait(l);
}

/*
 * The same with a time limit in monotonic time (clock.h). Returns false if the lock was held until
 * then.
 */
bool lock_enter_until(struct lock *l, uint64_t at_ns);

static inline void lock_leave(struct lock *l)
{
	if (__builtin_expect(atomic_exchange(&l->word, 0) == 2, 0))
		lock_wake(l);
}

#endif
