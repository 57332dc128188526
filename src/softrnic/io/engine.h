/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine.h -- event loops: threads wait for descriptors and deadlines, and run callbacks. The first
 * descriptor starts one loop. As the number of connections grows, they are spread over more loops.
 * In each loop one thread leads; another one takes over while the leader has to wait.
 *
 * Locks, outer to inner: a connection's lock, an id's lock, then the leaf locks: the engine's, an
 * event queue's, a CQ's, an SRQ's, the MR table's. No thread waits for a connection's lock while
 * holding another's or a leaf lock.
 */
#ifndef IO_ENGINE_H
#define IO_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "softrnic/io/poller.h"

#define ENGINE_THREADS_MAX 64

struct eng_loop;

/* The result of a check for bytes. */
enum eng_look {
	ENG_LOOK_NOTHING,
	ENG_LOOK_FOUND,
	ENG_LOOK_OVER, /* other threads check, or none may; as after look_end() */
};

/* An object with a descriptor that the engine watches. Its callbacks, and those of its timers and
 * tasks, run in the threads of its loop. */
struct eng_source {
	void (*ready)(struct eng_source *src, unsigned ready); /* READY_* */
	/* look() checks for READY_READ without the poller, which does not report READY_READ until
	 * look_end(). NULL, both: the source does not support this. */
	enum eng_look (*look)(struct eng_source *src);
	void (*look_end)(struct eng_source *src);
	/* Called after the last reference to the source is gone and its last callback has ended. */
	void (*free)(struct eng_source *src);
	struct list free_link;
	struct list all;                        /* every registered source, for fork() */
	void (*forked)(struct eng_source *src); /* in a child: close the inherited fd */
	bool alone; /* callbacks of this source and of its timers run one at a time */
	/* Used by the engine only: */
	struct eng_loop *loop; /* NULL: the first loop */
	unsigned running;      /* number of running callbacks */
	unsigned missed;       /* READY_* bits that came while no callback could begin */
	bool closed;           /* no further callback begins; freed after the last one */
};

/* A deadline of a source; fires once, in a thread of the engine. */
struct eng_timer {
	uint64_t at; /* CLOCK_NEVER: not set */
	void (*fire)(struct eng_timer *timer);
	struct eng_source *source; /* NULL: none */
	/* Fields of timers.c. ref is the pointer to this timer in the heap; NULL: the timer is not
	 * set. */
	struct eng_timer *child, *next, **ref;
};

/* Work that continues in a thread of the engine, because a turn has ended, or because the present
 * thread must not do it. */
struct eng_task {
	struct list link;
	void (*run)(struct eng_task *task);
	/* the task runs in this source's loop; NULL: in the first loop */
	struct eng_source *source;
	bool queued; /* used by the engine only */
};

/* Choose the loop of the source. Called at most once, before any other call with this source. A
 * source that is not assigned belongs to the first loop. */
void engine_assign(struct eng_source *src);

/* Begin to report the descriptor's readiness, READY_WRITE only if `output`. Starts the loop's
 * thread. Returns 0 or -errno. */
int engine_add(struct eng_source *src, int fd, bool output);
/* Choose the reports: READY_READ only if `input`, READY_WRITE only if `output`, and always
 * READY_HANGUP (with READY_READ). The present readiness is reported again. */
void engine_watch(struct eng_source *src, int fd, bool input, bool output);
void engine_remove(struct eng_source *src, int fd); /* before close(fd) */
/* Add a further descriptor to a source; its readiness is reported in the same way. It must be
 * removed before the first descriptor. */
int engine_add_more(struct eng_source *src, int fd);
void engine_remove_more(struct eng_source *src, int fd);
/* Free later: src->free() is called after the last callback of src has ended. */
void engine_free_later(struct eng_source *src);
void engine_set_timer(struct eng_timer *timer, uint64_t at);
/* Queue the task unless it is already queued. Returns true if this call has queued it. */
bool engine_defer(struct eng_task *task);
/* Differs in every forked child: objects of another generation count as removed. */
unsigned engine_generation(void);
void engine_atfork_prepare(void);
void engine_atfork_parent(void);
void engine_atfork_child(void);

/* The room's part in fork() (fork.c): its locks are taken before. In the child its descriptors are
 * closed, and its objects belong to another generation. */
void io_atfork_prepare(void);
void io_atfork_parent(void);
void io_atfork_child(void);

#endif
