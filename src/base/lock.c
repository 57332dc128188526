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

void lock_wait(struct lock *l)
{
	while (atomic_exchange(&l->word, 2))
		lock_sleep(l, NULL);
}

/* A thread that gives up leaves the value 2, which costs the holder one needless system call. */
bool lock_enter_until(struct lock *l, uint64_t at_ns)
{
	const struct timespec until = {.tv_sec = (time_t)(at_ns / NSEC_PER_SEC),
				       .tv_nsec = (long)(at_ns % NSEC_PER_SEC)};

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
