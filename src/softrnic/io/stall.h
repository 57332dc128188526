/* SPDX-License-Identifier: BSD-3-Clause */
/* stall.h -- memory whose loads and stores may wait for a file system: the threads that may access
 * it, and the amount that connections can reach. */
#ifndef IO_STALL_H
#define IO_STALL_H

#include <stdatomic.h>
#include <stdbool.h>

struct eng_source;
struct eng_task;

/* The amount of such memory in a protection domain. Counted by reference: connections read it
 * without a lock, even after the domain is gone. */
struct stall_count {
	atomic_uint refs;
	atomic_uint regions;
};
struct stall_count *stall_count_new(void); /* NULL: out of memory */
struct stall_count *stall_count_get(struct stall_count *count);
void stall_count_put(struct stall_count *count); /* accepts NULL */

/*
 * May the calling thread wait for a file system? Threads of applications must not. While a thread
 * of the engine waits, only workers may.
 */
bool engine_may_stall(void);
/* For a thread that is about to wait for a disk in a callback, without any lock (engine_aside.c):
 * is it a leader without other work, or a replaced one? */
bool engine_may_wait(void);
/* Is a worker available for this thread's loop? The worker is reserved until engine_step_back(). */
bool engine_may_step_aside(void);
/* From here on another thread takes over the loop as soon as the loop has work. */
void engine_step_aside(void);
/* The disk has answered, or no thread is needed for the loop. For other threads, and at a second
 * call, this has no effect. */
void engine_step_back(void);
/* From now on memory accesses may wait: keep threads ready, because in that state it may be
 * impossible to start any. */
void engine_expect_stalls(void);
/* Queue the task for a thread that may wait. Returns false if it is already queued or no such
 * thread exists; a task is never queued twice. */
bool engine_hand_over(struct eng_task *task);

#endif
