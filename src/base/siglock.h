/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * siglock.h -- a lock and events that signal handlers may use, too.
 *
 * Whoever has the lock has all signals blocked but those of faults (thread.h): so a handler never
 * finds it taken by the thread that it interrupted, unless the holder itself faults, which it must
 * not. Nothing but futexes is used.
 */
#ifndef BASE_SIGLOCK_H
#define BASE_SIGLOCK_H

#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>

struct siglock {
	atomic_uint word; /* 0: free; 1: taken; 2: taken, and others wait */
	sigset_t before;  /* of the holder */
};

/* Both of the lock and of what it protects; all zero at first. */
struct siglock_event {
	atomic_uint count;
	unsigned waiters;
};

void siglock_take(struct siglock *l);
void siglock_release(struct siglock *l);

/* The rest is for the holder. */

/* Without the lock, but with signals still blocked: return it with siglock_resume(). *before is for
 * that call. */
void siglock_pause(struct siglock *l, sigset_t *before);
void siglock_resume(struct siglock *l, const sigset_t *before);
/*
 * Release the lock, wait until the event is notified or so long, and take it again. seen: what
 * siglock_seen() was before the caller looked, perhaps without the lock since.
 */
void siglock_wait(struct siglock *l, struct siglock_event *event, unsigned seen, unsigned ms);
void siglock_notify(struct siglock_event *event);

static inline unsigned siglock_seen(const struct siglock_event *event)
{
	return atomic_load(&event->count);
}

#endif
