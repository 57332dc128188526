/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine.h -- event loops: threads wait for descriptors and deadlines, and run callbacks. The first
 * descriptor starts one loop. As the number of connections grows, they are spread over more loops.
 * Each loop has one leading thread ("leader"), which waits for its events; another thread takes
 * over the loop while the leader's callback has to wait.
 *
 * Locks, outer to inner: a connection's lock, an id's lock, then the leaf locks: those of the
 * engine, an event queue, a CQ, an SRQ and the MR table. No thread waits for a connection's lock
 * while it holds another connection's lock or a leaf lock.
 */
#ifndef IO_ENGINE_H
#define IO_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "softrnic/io/poller.h"

#define ENGINE_THREADS_MAX 64

struct eng_loop;

/* The result of look(), which checks a source for bytes. */
enum eng_look {
	ENG_LOOK_NOTHING,
	ENG_LOOK_FOUND,
	/* other threads check the source, or this thread is not allowed to check it; the poller
	 * reports the source again */
	ENG_LOOK_OVER,
};

/* An object with a descriptor that the engine watches. Its callbacks, and those of its timers and
 * tasks, run in the threads of its loop. */
struct eng_source {
	void (*ready)(struct eng_source *src, unsigned ready); /* READY_* */
	/*
	 * look() checks for READY_READ without the poller. From the first look() until look_end()
	 * the poller does not report READY_READ. Both are NULL if the source does not support this.
	 */
	enum eng_look (*look)(struct eng_source *src);
	void (*look_end)(struct eng_source *src);
	/* Called after the last reference to the source is gone and its last callback has ended. */
	void (*free)(struct eng_source *src);
	struct list free_link;
	struct list all; /* every registered source, for fork() */
	/* called in a forked child; must close the inherited descriptor */
	void (*forked)(struct eng_source *src);
	bool alone; /* callbacks of this source and of its timers run one at a time */
	/* The following members are used by the engine only. */
	struct eng_loop *loop; /* NULL: the first loop */
	unsigned running;      /* number of running callbacks */
	unsigned missed;       /* READY_* flags of events that came while no callback could begin */
	/* no further callback begins; the source is freed after its last callback */
	bool closed;
};

/* A deadline of a source. When it expires, fire() is called once, in a thread of the engine. */
struct eng_timer {
	uint64_t at; /* time of expiry; CLOCK_NEVER: not set */
	void (*fire)(struct eng_timer *timer);
	struct eng_source *source; /* NULL: the timer belongs to no source */
	/* Members for timers.c. `ref` points to the pointer that leads to this timer in the heap;
	 * NULL: the timer is not set. */
	struct eng_timer *child, *next, **ref;
};

/* Work that continues in a thread of the engine, because the present thread has reached its limit
 * of work, or because it must not do the work. */
struct eng_task {
	struct list link;
	void (*run)(struct eng_task *task);
	/* the source in whose loop the task runs; NULL: the first loop */
	struct eng_source *source;
	bool queued; /* used by the engine only */
};

/* Choose the loop that serves the source. Called at most once, and before all other calls with this
 * source. A source without this call belongs to the first loop. */
void engine_assign(struct eng_source *src);

/* Begin to report the readiness of the descriptor; READY_WRITE is reported only if `output`. Starts
 * the loop's thread. Returns 0 or -errno. */
int engine_add(struct eng_source *src, int fd, bool output);
/* Choose which events are reported: READY_READ only if `input`, READY_WRITE only if `output`, and
 * READY_HANGUP (together with READY_READ) always. The readiness at the time of the call is reported
 * again. */
void engine_watch(struct eng_source *src, int fd, bool input, bool output);
void engine_remove(struct eng_source *src, int fd); /* must be called before close(fd) */
/* Add another descriptor to a source. Events of both are reported by the same calls of ready(). The
 * added descriptor must be removed before the first one. */
int engine_add_more(struct eng_source *src, int fd);
void engine_remove_more(struct eng_source *src, int fd);
/* Call src->free() after the last callback of the source has ended. */
void engine_free_later(struct eng_source *src);
void engine_set_timer(struct eng_timer *timer, uint64_t at);
/* Queue the task unless it is already queued. Returns true if this call has queued it. */
bool engine_defer(struct eng_task *task);
/* Returns a number that is different in every forked child. Objects that were made with another
 * number count as removed. */
unsigned engine_generation(void);
void engine_atfork_prepare(void);
void engine_atfork_parent(void);
void engine_atfork_child(void);

/* fork() for the files of this folder (fork.c). Their locks are taken before fork(). In the child
 * their descriptors are closed, and their objects belong to another generation. */
void io_atfork_prepare(void);
void io_atfork_parent(void);
void io_atfork_child(void);

#endif
