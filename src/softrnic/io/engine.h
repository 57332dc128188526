/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine.h -- the progress thread, its epoll set and its timers. One leads at a time, from the
 * first socket on; another one takes over while it has to wait.
 *
 * Locks, outer to inner: a connection's lock, an id's lock, then the leaf locks: the
 * engine's, an event queue's, a CQ's, an SRQ's, the MR table's. Nobody waits for a
 * connection's lock while holding another's or a leaf lock.
 */
#ifndef IO_ENGINE_H
#define IO_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

/* Something with a descriptor in the epoll set. Its callbacks run in threads of the engine. */
struct eng_source {
	void (*ready)(struct eng_source *src, uint32_t epoll_events);
	/* Called when nobody else refers to the source any more and none of its callbacks runs. */
	void (*free)(struct eng_source *src);
	struct list free_link;
	struct list all;                        /* every registered source, for fork() */
	void (*forked)(struct eng_source *src); /* in the child: close what was inherited */
	bool alone; /* no callback of it, or of its timers, may begin while another one runs */
	/* The engine's. */
	unsigned running; /* callbacks */
	uint32_t missed;  /* events that came while it was to be left alone */
	bool dying;       /* no callback begins any more; buried when the last one has ended */
};

/* A deadline of a source; fires once, in a thread of the engine. */
struct eng_timer {
	uint64_t at; /* CLOCK_NEVER: not set */
	void (*fire)(struct eng_timer *timer);
	struct eng_source *source; /* NULL: none */
	/* Of timers.c; ref is what points to it, NULL: it is not set. */
	struct eng_timer *child, *next, **ref;
};

/* Work that goes on in a thread of the engine because somebody's budget ran out. */
struct eng_task {
	struct list link;
	void (*run)(struct eng_task *task);
};

/* Edge-triggered for input and, if asked for, output; 0 or -errno. Starts the thread. */
int engine_add(struct eng_source *src, int fd, bool output);
/* Room in the socket is news only to those who ran out of it; reported at once if there is some. */
void engine_watch_output(struct eng_source *src, int fd, bool output);
void engine_remove(struct eng_source *src, int fd); /* before close(fd) */
/* src->free() will be called once no callback of src is under way. */
void engine_free_later(struct eng_source *src);
void engine_set_timer(struct eng_timer *timer, uint64_t at);
/* Queue the task unless it is queued already; returns true if it was not. */
bool engine_defer(struct eng_task *task);
/* Changes in every forked child: objects of another generation are "removed". */
unsigned engine_generation(void);
void engine_atfork_prepare(void);
void engine_atfork_parent(void);
void engine_atfork_child(void);

#endif
