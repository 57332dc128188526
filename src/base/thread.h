/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * thread.h -- threads of a library inside an application's process.
 *
 * Signals. Such a thread blocks every signal that the application may wait for or handle, so that
 * no handler of the application runs in it. The signals of faults stay open: the kernel kills a
 * process whose fault signal is blocked.
 *
 * Descriptors. Closing any descriptor of a file drops the POSIX locks that the process holds on the
 * file: fcntl(2) locks belong to a descriptor table. A thread that opens and closes files of the
 * application therefore leaves the application's table first.
 */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Run fn(arg) in a thread with that signal mask. stack: size in bytes, or 0 for the system's
 * default. *thread is for pthread_join(); NULL: the thread is detached. 0 or -errno.
 */
int thread_start(pthread_t *thread, size_t stack, void *(*fn)(void *arg), void *arg);
/* A condition whose timed waits are by the monotonic clock. */
void thread_cond_init(pthread_cond_t *cond);
/* Block these signals in the calling thread. *before gets the previous mask. Async-signal-safe. */
void thread_block_signals(sigset_t *before);
/*
 * Give the calling thread a descriptor table of its own, which is empty, so that no file of the
 * application stays open in it. False: the thread still uses the application's table, and must open
 * nothing.
 */
bool thread_leave_descriptors(void);

#endif
