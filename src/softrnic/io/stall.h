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
 * May the calling thread, in a callback of the source, wait for something short? Only a leader that
 * has served nothing else lately, and that another thread can replace if it takes long.
 */
bool engine_may_pause(const struct eng_source *src);
/* It does so, or has done so, and meanwhile holds nothing that others need: if it is replaced, it
 * is not taken for one that waits for memory. Of any other thread this is ignored. */
void engine_pause(bool begins);
/* From now on memory may have to wait: keep threads ready, for in that state it may be impossible
 * to start any. */
void engine_expect_stalls(void);
/* Queue the task for such a thread. False: it is queued already, or there is none; never both. */
bool engine_hand_over(struct eng_task *task);

#endif
