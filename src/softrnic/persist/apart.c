/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/persist/apart.h"

#include <signal.h>
#include <stddef.h>
#include <unistd.h>

#include "base/sigmask.h"

#define THREAD_STACK ((size_t)256 << 10)

int apart_start(pthread_t *thread, void *(*fn)(void *arg), void *arg)
{
	sigset_t mask, before;
	pthread_attr_t attr;
	int r = pthread_attr_init(&attr);

	if (r)
		return -r;
	pthread_attr_setstacksize(&attr, THREAD_STACK);
	sigmask_of_library_thread(&mask);
	pthread_sigmask(SIG_SETMASK, &mask, &before);
	r = pthread_create(thread, &attr, fn, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return -r;
}

bool apart_enter(const char *thread_name)
{
	pthread_setname_np(pthread_self(), thread_name);
	/* The kernel leaves the whole range out of the copy, so nothing is even held for a moment.
	 */
	return !close_range(0, ~0u, CLOSE_RANGE_UNSHARE);
}
