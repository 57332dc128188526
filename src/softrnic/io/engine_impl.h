/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine_impl.h -- declarations that only the engine*.c files use.
 *
 * Threads of the engine run callbacks. In each loop one thread leads: it waits for events and
 * deadlines and runs their callbacks. A callback, and so its thread, may have to wait for a file
 * system (a page of a mapped file). The guard detects that, and then another thread leads. Before a
 * callback waits for a write-back, its thread steps aside, and another thread leads as soon as the
 * loop has work (engine_aside.c). The former leader becomes a worker at the end of its callback.
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

/* A thread that runs callbacks. Its loop's lock guards it; for a worker, eng.lock does. */
struct eng_runner {
	struct list link;      /* in eng_loop.runners; of a worker in eng.runners */
	struct eng_loop *loop; /* NULL: a worker */
	bool leads;
	bool overdue; /* the guard replaced it */
	bool works;
	unsigned turn;             /* odd while a callback runs */
	unsigned slept;            /* value of `turn` at its last sleep */
	unsigned seen;             /* value of `turn` at the guard's last check */
	struct eng_source *source; /* source of the running callback; NULL: a task runs */
	bool has_worker;           /* a worker is reserved for this runner's loop */
	bool aside;                /* the runner leads, but any worker may take over its loop */
	atomic_bool writes_back;   /* its callback writes back, and holds no lock */
	struct poller_event evs[POLLER_BATCH];
	int n, next; /* unhandled events: next to n */
};

/* After recent callbacks a leader sleeps at most this long before it checks again. So a later
 * deadline, like most time limits, needs no wake-up. */
#define ENGINE_SOON_NS NSEC_PER_SEC

#define STALL_SPARES 8u /* idle workers to keep, after a callback could stall */

/* The entry of a descriptor number; an event carries the number and the generation. */
struct eng_slot {
	struct eng_source *src;
	uint32_t generation;
};

/*
 * The sources that a leader checks before it sleeps (engine_spin.c), guarded by the lock. A leader
 * that was replaced during a callback may still read the times, which only decide how long it
 * checks.
 */
#define SPIN_SOURCES 4
struct eng_spin {
	struct eng_source *sources[SPIN_SOURCES];
	atomic_uint n;
	_Atomic uint64_t came_at; /* time of the poller's last report */
	_Atomic uint64_t done_at; /* end of the last callback for a report */
	_Atomic uint64_t gap_ns;  /* usual time from then until the next event */
	_Atomic uint64_t polled_at, crowded_until;
};

/* Sources, and the threads that run their callbacks. */
struct eng_loop {
	atomic_uint load;     /* sources that are assigned to this loop and not freed */
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
	_Atomic uint64_t sleeping_until; /* the leader waits until this time; 0: it is awake */

	/* engine_stall.c */
	bool vacant; /* a worker must lead, and first handle these events; also under eng.lock */
	struct poller_event left[POLLER_BATCH];
	int n_left;
};

struct eng {
	pthread_mutex_t lock; /* guards the number of loops, and the workers */
	/* the allocated loops; never freed */
	struct eng_loop *loop[ENGINE_THREADS_MAX];
	/* number of loops that accept sources */
	unsigned loops;
	bool opening; /* a thread is starting one more loop */
	bool full;    /* no further loop could be started */
	atomic_uint generation;

	/* engine_stall.c */
	bool guarded;               /* the guard's thread exists */
	pthread_mutex_t guard_lock; /* inner to the loops' locks */
	pthread_cond_t guard_wake;
	bool guard_called;
	atomic_bool guard_sleeps;
	atomic_bool stalled; /* a runner waits in its callback */
	struct poller work;  /* idle workers wait for this poller */
	struct list runners; /* the workers */
	struct list handed;  /* tasks handed to workers */
	unsigned workers, idle_workers;
	unsigned spares; /* number of idle workers to keep */
	unsigned vacant; /* number of loops without a leader */
	unsigned aside;  /* number of runners that stepped aside, or are about to */
};
extern struct eng eng;

/* engine.c */
void engine_free(struct eng_source *src); /* the last reference to the source is gone */

/* engine_loops.c */
struct eng_loop *engine_loop_of(const struct eng_source *src); /* accepts NULL */
int loop_start(struct eng_loop *l);                            /* 0 or -errno */
void loops_atfork_child(void (*child)(struct eng_loop *l));
/* Returns 0 or -errno. */
int engine_thread(void *(*fn)(void *arg), void *arg, const char *name);

/* engine_run.c */
extern __thread struct eng_runner *engine_here; /* NULL: a thread of the application */
void runner_begin(struct eng_runner *r, struct eng_source *src); /* both with the lock */
void runner_end(struct eng_runner *r);
void leader_run(struct eng_runner *me); /* returns when another thread leads */

void runner_finish(struct eng_runner *me); /* after a callback, without the lock */
bool leader_leads(struct eng_runner *me);  /* false: replaced during a callback */

/* engine_spin.c */
void spin_note(struct eng_runner *me, struct eng_source *src); /* bytes of it were reported */
void spin_came(struct eng_spin *s, uint64_t now);              /* the poller reported an event */
void spin_forget(struct eng_spin *s, const struct eng_source *src); /* with the lock */
/* Check for events for a while. *now is the time. Returns the number of events; 0: the caller must
 * ask the poller, and then sleep. */
int leader_spin(struct eng_runner *me, struct poller_event *evs, uint64_t until, uint64_t *now);

/* engine_stall.c */
void *leader_main(void *runner);      /* leads, later works, and frees its runner at the end */
void loop_vacate(struct eng_loop *l); /* with both locks; poller_wake(&eng.work) must follow */
int guard_start(void);                /* with eng.lock: 0 or -errno */
void guard_call(void);                /* have the guard check now; its lock is a leaf */
void guard_notify(void);              /* with a loop's lock or eng.lock: a callback begins */
void stall_expect_in(unsigned loops); /* with eng.lock: this many leaders may wait at once */
void stall_atfork_child(void);

/* engine_aside.c */
void aside_take(
	uint64_t number); /* with eng.lock: the loop's leader, if it is aside, is replaced */

#endif
