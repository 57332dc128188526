/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lock.h -- a lock with inline functions, for code that takes a lock several times in each
 * operation. Here taking and releasing are one atomic instruction each; pthread_mutex_t needs two
 * calls and about 60 instructions. A waiting thread sleeps on a futex. The lock works within one
 * process and is not recursive. The scheduler decides which waiting thread gets the lock next.
 *
 * Taking and releasing are sequentially consistent: if a lock_try() fails, loads of the holder that
 * follow its lock_leave() see all stores of the thread before that lock_try().
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

bool lock_spin(struct lock *l, uint64_t ns); /* the slow part of lock_try_for() */

/*
 * Try for at most ns nanoseconds, without sleeping. Waking a thread on another CPU takes longer
 * than a thread usually holds the lock.
 */
static inline bool lock_try_for(struct lock *l, uint64_t ns)
{
	return __builtin_expect(lock_try(l), 1) || lock_spin(l, ns);
}

/*
 * Like lock_enter(), but with a time limit by the monotonic clock (clock.h). Returns false if the
 * lock was not free before the limit.
 */
bool lock_enter_until(struct lock *l, uint64_t at_ns);

static inline void lock_leave(struct lock *l)
{
	if (__builtin_expect(atomic_exchange(&l->word, 0) == 2, 0))
		lock_wake(l);
}

#endif
