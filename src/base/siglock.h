/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * siglock.h -- a lock and events that signal handlers may use, too.
 *
 * The holder has all signals blocked except the signals of faults (thread.h). So a handler never
 * finds the lock taken by the thread that it interrupted, provided that the holder causes no
 * fault. The lock uses only futexes.
 */
#ifndef BASE_SIGLOCK_H
#define BASE_SIGLOCK_H

#include <signal.h>
#include <stdatomic.h>

struct siglock {
	atomic_uint word; /* 0: free; 1: taken; 2: taken, and other threads wait */
	sigset_t before;  /* the holder's signal mask before it took the lock */
};

/* Zero the lock, and the data that it protects, before the first use. */
struct siglock_event {
	atomic_uint count;
	unsigned waiters;
};

void siglock_take(struct siglock *l);
void siglock_release(struct siglock *l);

/* Only the holder of the lock may call the functions below. */

/*
 * Release the lock, but keep the signals blocked. siglock_resume() takes the lock again, and needs
 * *before.
 */
void siglock_pause(struct siglock *l, sigset_t *before);
void siglock_resume(struct siglock *l, const sigset_t *before);
/*
 * Release the lock, wait until the event is notified or the time is over, and take the lock again.
 * seen: the value that siglock_seen() returned before the caller checked its condition. The lock
 * may have been released since that call.
 */
void siglock_wait(struct siglock *l, struct siglock_event *event, unsigned seen, unsigned ms);
void siglock_notify(struct siglock_event *event);

static inline unsigned siglock_seen(const struct siglock_event *event)
{
	return atomic_load(&event->count);
}

#endif
