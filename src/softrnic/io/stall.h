/* SPDX-License-Identifier: BSD-3-Clause */
/* stall.h -- memory whose loads and stores may wait for a file system ("stall"): which threads may
 * access it, and how much of it connections can reach. */
#ifndef IO_STALL_H
#define IO_STALL_H

#include <stdatomic.h>
#include <stdbool.h>

struct eng_source;
struct eng_task;

/* The amount of such memory in a protection domain. It is reference-counted, because connections
 * read it without a lock, even after the domain is gone. */
struct stall_count {
	atomic_uint refs;
	atomic_uint regions;
};
struct stall_count *stall_count_new(void); /* returns NULL if out of memory */
struct stall_count *stall_count_get(struct stall_count *count);
void stall_count_put(struct stall_count *count); /* accepts NULL */

/*
 * Is the calling thread allowed to wait for a file system? A thread of an application must not
 * wait. While a thread of the engine waits, only worker threads are allowed to wait as well.
 */
bool engine_may_stall(void);
/* Is this thread allowed to wait for a disk in a callback, without any lock (engine_aside.c)? Only
 * a leader without other work is, and a leader that was replaced. */
bool engine_may_wait(void);
/* Is a worker available to take over this thread's loop? The worker is reserved until
 * engine_step_back(). */
bool engine_may_step_aside(void);
/* From here on a worker takes over this thread's loop as soon as the loop has work. */
void engine_step_aside(void);
/* End engine_step_aside(), and release the worker that engine_may_step_aside() reserved. Called
 * after the disk has answered, or if no worker is needed. Does nothing in a thread without a
 * reserved worker. */
void engine_step_back(void);
/* Called before the first memory whose accesses can wait is used: start threads in advance, because
 * it may be impossible to start a thread while another one waits. */
void engine_expect_stalls(void);
/* Queue the task for a thread that may wait. Returns false if the task is already queued (it is
 * never queued twice), or if there is no such thread. */
bool engine_hand_over(struct eng_task *task);

#endif
