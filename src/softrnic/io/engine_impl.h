/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine_impl.h -- what the engine*.c files share and no other file uses.
 *
 * Threads of the engine run callbacks. One of each loop leads: it waits for events and deadlines
 * and runs what is due. A callback may have to wait for a file system (a page of a mapped file),
 * and the thread with it; the guard notices, and then another thread leads. Before a callback waits
 * for a write-back its thread steps aside, and another one leads as soon as anything is to be done
 * (engine_aside.c). What was the leader becomes a worker when its callback ends.
 */
#ifndef IO_ENGINE_IMPL_H
#define IO_ENGINE_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "softrnic/io/engine.h"
#include "softrnic/io/poller.h"
#include "softrnic/io/stall.h"
#include "softrnic/io/timers.h"

/* A thread that runs callbacks. Guarded by its loop's lock; by eng.lock while it is a worker. */
struct eng_runner {
	struct list link;      /* eng_loop.runners; of a worker eng.runners */
	struct eng_loop *loop; /* NULL: a worker */
	bool leads;
	bool overdue; /* the guard replaced it */
	bool works;
	unsigned turn;             /* odd while a callback runs */
	unsigned slept;            /* value of `turn` when it slept last */
	unsigned seen;             /* value of `turn` at the guard's last look */
	struct eng_source *source; /* the callback is this one's; NULL: it is a task's */
	bool has_worker;           /* a worker is reserved for its loop */
	bool aside;                /* it leads, but any worker may take its loop */
	atomic_bool writes_back;   /* in its callback, without anything that others need */
	struct poller_event evs[POLLER_BATCH];
	int n, next; /* events that are not handled yet: next to n */
};

/*
 * After callbacks ran lately, a leader sleeps no longer than this before it looks again. So a later
 * deadline, as most time limits are, needs no wake-up.
 */
#define ENGINE_SOON_NS NSEC_PER_SEC

#define STALL_SPARES 8u /* idle workers, once a callback may stall */

/* What a descriptor's number stands for; an event carries number and generation. */
struct eng_slot {
	struct eng_source *src;
	uint32_t generation;
};

/*
 * What a leader looks at before it sleeps (engine_spin.c). Sources change with the lock. A leader
 * that was replaced in a callback may still look at the times, which only decide how long is
 * looked.
 */
#define SPIN_SOURCES 4
struct eng_spin {
	struct eng_source *sources[SPIN_SOURCES];
	atomic_uint n;
	_Atomic uint64_t came_at; /* when the poller reported something last */
	_Atomic uint64_t done_at; /* when the last callback for something that came had ended */
	_Atomic uint64_t gap_ns;  /* usual time from there until the next event */
	_Atomic uint64_t polled_at, crowded_until;
};

/* Sources, and the threads that run their callbacks. */
struct eng_loop {
	atomic_uint load;     /* sources that were assigned to it and are not freed */
	pthread_mutex_t lock; /* guards all fields below; inner to eng.lock */
	struct poller poller;
	bool running;
	struct eng_slot *slots;
	size_t num_slots;
	uint32_t slot_generation;
	struct list sources, to_free, tasks, runners;
	unsigned num_tasks;
	struct eng_runner *leader;
	unsigned index; /* its place in eng.loop */
	struct timers timers;
	struct eng_spin spin;
	_Atomic uint64_t sleeping_until; /* time until which the leader waits; 0: it is awake */

	/* engine_stall.c */
	bool vacant; /* a worker is to lead, and handle these events first; with eng.lock, too */
	struct poller_event left[POLLER_BATCH];
	int n_left;
};

struct eng {
	pthread_mutex_t lock; /* guards the number of loops, and the workers */
	/* the loops that are allocated; they are never freed */
	struct eng_loop *loop[ENGINE_THREADS_MAX];
	/* number of loops to which sources may be assigned */
	unsigned loops;
	bool opening; /* a thread starts one more loop */
	bool full;    /* no further loop could be started */
	atomic_uint generation;

	/* engine_stall.c */
	bool guarded;               /* the guard's thread is there */
	pthread_mutex_t guard_lock; /* inner to the loops' locks */
	pthread_cond_t guard_wake;
	bool guard_called;
	atomic_bool guard_sleeps;
	atomic_bool stalled; /* a runner waits in its callback */
	struct poller work;  /* idle workers wait for this poller */
	struct list runners; /* workers */
	struct list handed;  /* tasks for workers */
	unsigned workers, idle_workers;
	unsigned spares; /* number of workers that stay although they are idle */
	unsigned vacant; /* loops */
	unsigned aside;  /* runners that stepped aside, or are about to */
};
extern struct eng eng;

/* engine.c */
void engine_free(struct eng_source *src); /* no pointer to the source exists any more */

/* engine_loops.c */
struct eng_loop *engine_loop_of(const struct eng_source *src); /* accepts NULL */
int loop_start(struct eng_loop *l);                            /* 0 or -errno */
void loops_atfork_child(void (*child)(struct eng_loop *l));
/* 0 or -errno. */
int engine_thread(void *(*fn)(void *arg), void *arg, const char *name);

/* engine_run.c */
extern __thread struct eng_runner *engine_here; /* NULL: a thread of the application */
void runner_begin(struct eng_runner *r, struct eng_source *src); /* both with the lock */
void runner_end(struct eng_runner *r);
void leader_run(struct eng_runner *me); /* until another thread leads */

void runner_finish(struct eng_runner *me); /* after a callback, without the lock */
bool leader_leads(struct eng_runner *me);  /* false: it was replaced in a callback */

/* engine_spin.c */
void spin_note(struct eng_runner *me, struct eng_source *src); /* bytes of it were reported */
void spin_came(struct eng_spin *s, uint64_t now);              /* the poller reported something */
void spin_forget(struct eng_spin *s, const struct eng_source *src); /* with the lock */
/*
 * Look for events for a while. *now is the time. Returns the number of events; 0: it is time to ask
 * the poller, and to sleep.
 */
int leader_spin(struct eng_runner *me, struct poller_event *evs, uint64_t until, uint64_t *now);

/* engine_stall.c */
void *leader_main(void *runner);      /* a thread that leads, later works, and frees its runner */
void loop_vacate(struct eng_loop *l); /* with both locks; poller_wake(&eng.work) is to follow */
int guard_start(void);                /* with eng.lock: 0 or -errno */
void guard_call(void);                /* the guard looks now; its lock is a leaf */
void guard_notify(void);              /* with a loop's lock or eng.lock: a callback begins */
void stall_expect_in(unsigned loops); /* with eng.lock: so many leaders may wait at once */
void stall_atfork_child(void);

/* engine_aside.c */
void aside_take(
	uint64_t number); /* with eng.lock: the loop's leader, if it is aside, is replaced */

#endif
