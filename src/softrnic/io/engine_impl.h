/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine_impl.h -- what the engine*.c files share and no other file uses.
 *
 * Threads of the engine run callbacks. One of them leads: it waits for events and deadlines and
 * runs what is due. A callback may have to wait for a file system (a page of a mapped file), and
 * the thread with it; the guard notices, and then another thread leads. What was the leader ends
 * when its callback does.
 */
#ifndef IO_ENGINE_IMPL_H
#define IO_ENGINE_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "softrnic/io/engine.h"
#include "softrnic/io/poller.h"
#include "softrnic/io/stall.h"
#include "softrnic/io/timers.h"

/* A thread that runs callbacks. Guarded by eng.lock. */
struct eng_runner {
	struct list link; /* eng.runners */
	bool leads;
	bool works;
	unsigned turn;             /* odd while a callback runs */
	unsigned seen;             /* the guard's: the turn at its last look */
	struct eng_source *source; /* whose callback it is; NULL: a task's */
	struct poller_event evs[POLLER_BATCH];
	int n, next; /* events that are not handled yet: next to n */
};

/* What a descriptor's number stands for; an event carries number and generation. */
struct eng_slot {
	struct eng_source *src;
	uint32_t generation;
};

struct eng {
	pthread_mutex_t lock;
	struct poller poller;
	bool running;
	struct eng_slot *slots;
	size_t num_slots;
	uint32_t slot_generation;
	struct list sources, to_free, tasks, runners;
	struct eng_runner *leader;
	struct timers timers;
	uint64_t sleeping_until; /* until then the leader waits; 0: awake */
	atomic_bool spinning;    /* the leader waits without giving up the CPU */
	atomic_uint generation;

	/* engine_stall.c */
	bool guarded; /* the guard's thread is there */
	bool guard_sleeps, guard_called;
	pthread_cond_t guard_wake;
	atomic_bool stalled; /* some runner waits in its callback */
	pthread_cond_t work;
	struct list handed; /* tasks for workers */
	unsigned workers, idle_workers;
	unsigned spares; /* so many workers stay although they have nothing to do */
	bool vacant;     /* a worker is to lead, and handle these events first */
	struct poller_event left[POLLER_BATCH];
	int n_left;
};
extern struct eng eng;

/* engine.c: 0 or -errno. */
int engine_thread(void *(*fn)(void *arg), void *arg, const char *name);

/* engine_run.c */
extern __thread struct eng_runner *engine_here; /* NULL: a thread of the application */
void runner_begin(struct eng_runner *r, struct eng_source *src); /* both with eng.lock */
void runner_end(struct eng_runner *r);
void leader_run(struct eng_runner *me); /* until another thread leads */
void *leader_main(void *runner);        /* likewise, as a thread that frees its runner */

/* engine_stall.c: with eng.lock. */
int guard_start(void);   /* 0 or -errno */
void guard_notify(void); /* a callback begins */
void stall_atfork_child(void);

#endif
