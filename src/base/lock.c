/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/lock.h"

#include <errno.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

/*
 * until: a monotonic time, or NULL. The function may return early, so its callers check the lock
 * again. The function preserves errno, because posting a request must not change errno.
 */
static bool lock_sleep(struct lock *l, const struct timespec *until)
{
	int before = errno;
	bool over = syscall(SYS_futex, &l->word, FUTEX_WAIT_BITSET_PRIVATE, 2, until, NULL,
			    FUTEX_BITSET_MATCH_ANY) != 0 &&
		    errno == ETIMEDOUT;

	errno = before;
	return !over;
}

#define SPIN_TRIES 16u /* number of tries between two readings of the clock */

static void lock_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__) || defined(__arm__)
	__asm__ volatile("yield");
#endif
}

/* Read until the lock is free. Reads let the holder keep the cache line until it releases the
 * lock. */
static bool lock_spin_once(struct lock *l)
{
	for (unsigned i = 0; i < SPIN_TRIES; i++) {
		if (atomic_load_explicit(&l->word, memory_order_relaxed) == 0 && lock_try(l))
			return true;
		lock_pause();
	}
	return false;
}

bool lock_spin(struct lock *l, uint64_t ns)
{
	uint64_t end = clock_now_ns() + ns;

	do {
		if (lock_spin_once(l))
			return true;
	} while (clock_now_ns() < end);
	return false;
}

void lock_wait(struct lock *l)
{
	while (atomic_exchange(&l->word, 2))
		lock_sleep(l, NULL);
}

/* A thread that gives up leaves the value 2, which costs the holder one needless system call. */
bool lock_enter_until(struct lock *l, uint64_t at_ns)
{
	const struct timespec until = clock_timespec(at_ns);

	if (lock_try(l))
		return true;
	while (atomic_exchange(&l->word, 2))
		if (!lock_sleep(l, &until))
			return false;
	return true;
}

/* The lock is already free, so its memory may already be unmapped. The call is safe, because the
 * kernel uses only the address. */
void lock_wake(struct lock *l)
{
	int before = errno;

	syscall(SYS_futex, &l->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	errno = before;
}
