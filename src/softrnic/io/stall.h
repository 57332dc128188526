/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stall.h -- memory whose loads and stores may wait for a file system: which threads may access it,
 * and how much of it a set of connections can reach.
 */
#ifndef IO_STALL_H
#define IO_STALL_H

#include <stdatomic.h>
#include <stdbool.h>

struct eng_source;
struct eng_task;

/*
 * How much such memory a protection domain has. Counted by reference: connections look at it
 * without a lock, also when the domain is gone.
 */
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
/*
 * For a thread that is about to wait for a disk in a callback, without any lock (engine_aside.c).
 * Is it a leader that has nothing else to do, or one that was replaced?
 */
bool engine_may_wait(void);
/* Is there a worker for its loop? That one is reserved until engine_step_back(). */
bool engine_may_step_aside(void);
/* From here on the loop is another thread's as soon as anything is to be done in it. */
void engine_step_aside(void);
/* The disk has answered, or no thread is needed for the loop. Others, and a second call, do
 * nothing by this. */
void engine_step_back(void);
/* From now on memory may have to wait: keep threads ready, for in that state it may be impossible
 * to start any. */
void engine_expect_stalls(void);
/* Queue the task for such a thread. False: it is queued already, or there is none; never both. */
bool engine_hand_over(struct eng_task *task);

#endif
