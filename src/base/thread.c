/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/thread.h"

#include <time.h>
#include <unistd.h>

void thread_block_signals(sigset_t *before)
{
	static const int faults[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP};
	sigset_t mask;

	sigfillset(&mask);
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		sigdelset(&mask, faults[i]);
	pthread_sigmask(SIG_SETMASK, &mask, before);
}

void thread_cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
}

int thread_start(pthread_t *thread, size_t stack, void *(*fn)(void *arg), void *arg)
{
	pthread_attr_t attr;
	pthread_t detached;
	sigset_t before;
	int r = pthread_attr_init(&attr);

	if (r)
		return -r;
	if (stack)
		pthread_attr_setstacksize(&attr, stack);
	if (!thread)
		pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	/* A new thread inherits its creator's mask, so block the signals around the creation. */
	thread_block_signals(&before);
	r = pthread_create(thread ? thread : &detached, &attr, fn, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return -r;
}

/* The kernel does not copy the descriptors of the range, so the new table is empty. */
bool thread_leave_descriptors(void)
{
	return !close_range(0, ~0u, CLOSE_RANGE_UNSHARE);
}
