/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine.h -- event loops: threads that wait for descriptors and deadlines and run what is due.
 * One loop is there from the first descriptor on; connections are spread over more of them as their
 * number grows. In each loop one thread leads; another one takes over while it has to wait.
 *
 * Locks, outer to inner: a connection's lock, an id's lock, then the leaf locks: the
 * engine's, an event queue's, a CQ's, an SRQ's, the MR table's. No thread waits for a
 * connection's lock while holding another's or a leaf lock.
 */
#ifndef IO_ENGINE_H
#define IO_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "softrnic/io/poller.h"

#define ENGINE_THREADS_MAX 64

struct eng_loop;

/* The result of a look for bytes. */
enum eng_look {
	ENG_LOOK_NOTHING,
	ENG_LOOK_FOUND,
	ENG_LOOK_OVER, /* other threads look, or no thread may look: the same as after look_end() */
};

/* Something with a descriptor that the engine waits for. Its callbacks, and those of its timers and
 * tasks, run in the threads of its loop. */
struct eng_source {
	void (*ready)(struct eng_source *src, unsigned ready); /* READY_* */
	/*
	 * look() checks by itself whether READY_READ holds, which the poller does not report until
	 * look_end(). NULL, both: the source cannot do that.
	 */
	enum eng_look (*look)(struct eng_source *src);
	void (*look_end)(struct eng_source *src);
	/* Called when nothing refers to the source any more and none of its callbacks runs. */
	void (*free)(struct eng_source *src);
	struct list free_link;
	struct list all;                        /* every registered source, for fork() */
	void (*forked)(struct eng_source *src); /* in the child: close what was inherited */
	bool alone; /* no callback of it, or of its timers, may begin while another one runs */
	/* The engine's own fields. */
	struct eng_loop *loop; /* NULL: the first one */
	unsigned running;      /* callbacks */
	unsigned missed;       /* READY_* that came while no callback could begin */
	bool closed;           /* no callback begins any more; freed when the last one has ended */
};

/* A deadline of a source; fires once, in a thread of the engine. */
struct eng_timer {
	uint64_t at; /* CLOCK_NEVER: not set */
	void (*fire)(struct eng_timer *timer);
	struct eng_source *source; /* NULL: none */
	/* Fields of timers.c. ref is the entry that points to the timer; NULL: it is not set. */
	struct eng_timer *child, *next, **ref;
};

/*
 * Work that continues in a thread of the engine, because a turn was over, or because the present
 * thread must not do it.
 */
struct eng_task {
	struct list link;
	void (*run)(struct eng_task *task);
	/* the task runs in this source's loop; NULL: in the first loop */
	struct eng_source *source;
	bool queued; /* the engine's */
};

/* Choose the loop that serves the source. Called at most once, before any other call with this
 * source. A source that is not assigned belongs to the first loop. */
void engine_assign(struct eng_source *src);

/* Report what it becomes ready for, READY_WRITE only
 * if `output`; 0 or -errno. Starts the thread. */
int engine_add(struct eng_source *src, int fd, bool output);
/* Report READY_READ only if `input`, READY_WRITE only if `output`, READY_HANGUP in any case (with
 * READY_READ); what it is ready for now is reported anew. */
void engine_watch(struct eng_source *src, int fd, bool input, bool output);
void engine_remove(struct eng_source *src, int fd); /* before close(fd) */
/* A further descriptor of a source that has one; what it becomes ready for is reported alike. It is
 * removed before the first one. */
int engine_add_more(struct eng_source *src, int fd);
void engine_remove_more(struct eng_source *src, int fd);
/* Deferred free: src->free() is called once no callback of src is under way. */
void engine_free_later(struct eng_source *src);
void engine_set_timer(struct eng_timer *timer, uint64_t at);
/* Queue the task unless it is queued already; returns true if it was not. */
bool engine_defer(struct eng_task *task);
/* Changes in every forked child: objects of another generation are "removed". */
unsigned engine_generation(void);
void engine_atfork_prepare(void);
void engine_atfork_parent(void);
void engine_atfork_child(void);

/* What fork() does to this room (fork.c): its locks are taken before, and in the child its
 * descriptors are closed and its objects belong to another generation. */
void io_atfork_prepare(void);
void io_atfork_parent(void);
void io_atfork_child(void);

#endif
