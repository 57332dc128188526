/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/siglock.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"

/* The function may return early, so its callers check their condition again. The function
 * preserves errno, because a signal handler must not change errno. */
static void siglock_futex_wait(atomic_uint *word, unsigned seen, const struct timespec *timeout)
{
	int before = errno;

	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, timeout, NULL, 0);
	errno = before;
}

static void siglock_futex_wake(atomic_uint *word, int count)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

static void siglock_lock(struct siglock *l)
{
	unsigned free = 0;

	if (atomic_compare_exchange_strong(&l->word, &free, 1))
		return;
	while (atomic_exchange(&l->word, 2))
		siglock_futex_wait(&l->word, 2, NULL);
}

static void siglock_unlock(struct siglock *l)
{
	if (atomic_exchange(&l->word, 0) == 2)
		siglock_futex_wake(&l->word, 1);
}

void siglock_take(struct siglock *l)
{
	sigset_t before;

	thread_block_signals(&before);
	siglock_lock(l);
	l->before = before;
}

void siglock_release(struct siglock *l)
{
	sigset_t before = l->before;

	siglock_unlock(l);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void siglock_pause(struct siglock *l, sigset_t *before)
{
	*before = l->before;
	siglock_unlock(l);
}

void siglock_resume(struct siglock *l, const sigset_t *before)
{
	siglock_lock(l);
	l->before = *before;
}

void siglock_wait(struct siglock *l, struct siglock_event *event, unsigned seen, unsigned ms)
{
	struct timespec timeout = {.tv_sec = ms / 1000,
				   .tv_nsec = (long)(ms % 1000) * (long)NSEC_PER_MS};
	sigset_t before;

	event->waiters++;
	siglock_pause(l, &before);
	siglock_futex_wait(&event->count, seen, &timeout);
	siglock_resume(l, &before);
	event->waiters--;
}

void siglock_notify(struct siglock_event *event)
{
	atomic_fetch_add(&event->count, 1);
	if (event->waiters)
		siglock_futex_wake(&event->count, INT_MAX);
}
