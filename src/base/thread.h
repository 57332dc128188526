/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * thread.h -- threads of a library inside an application's process.
 *
 * Signals. A library's thread blocks every signal that the application may wait for or handle, so
 * that no handler of the application runs in that thread. The signals of faults stay unblocked:
 * the kernel kills a process whose fault signal is blocked.
 *
 * Descriptors. Closing any descriptor of a file drops the POSIX locks (fcntl(2)) that the process
 * holds on the file, because these locks belong to a descriptor table. Therefore a thread that
 * opens and closes files of the application first leaves the application's descriptor table.
 */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * Run fn(arg) in a new thread that blocks signals as described at the head of this file. stack:
 * size in bytes, or 0 for the system's default. *thread is for pthread_join(); if thread is NULL,
 * the thread is detached. Returns 0 or -errno.
 */
int thread_start(pthread_t *thread, size_t stack, void *(*fn)(void *arg), void *arg);
/* Initialize a condition variable whose timed waits use the monotonic clock. */
void thread_cond_init(pthread_cond_t *cond);
/* Block the application's signals in the calling thread. *before gets the previous mask.
 * Async-signal-safe. */
void thread_block_signals(sigset_t *before);
/*
 * Give the calling thread its own, empty descriptor table, so that no file of the application
 * stays open in that table. Returns false if the thread still uses the application's table; then
 * the thread must open no file.
 */
bool thread_leave_descriptors(void);

static inline int thread_disable_cancel(void)
{
	int before;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	return before;
}
static inline void thread_restore_cancel(const int *before)
{
	int unused;

	pthread_setcancelstate(*before, &unused);
}
/* A declaration: from here to the end of the block the thread cannot be cancelled (pthreads(7)). */
#define THREAD_NOT_CANCELLED                                                                       \
	__attribute__((unused, cleanup(thread_restore_cancel))) const int cancel_before_ =         \
		thread_disable_cancel()

#endif
