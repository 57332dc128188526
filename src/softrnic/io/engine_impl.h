/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine_impl.h -- declarations that only the engine*.c files use.
 *
 * Threads of the engine run callbacks. In each loop one thread leads: it waits for events and
 * deadlines and runs their callbacks. A callback can wait for a file system, for example for a page
 * of a mapped file, and its thread then cannot lead. A separate thread, the guard, detects this and
 * lets another thread lead. Before a callback waits for a write-back, its thread steps aside, and
 * another thread leads as soon as the loop has work (engine_aside.c). The former leader becomes a
 * worker at the end of its callback.
 */
#ifndef IO_ENGINE_IMPL_H
#define IO_ENGINE_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "softrnic/io/engine.h"
#include "softrnic/io/policy.h"
#include "softrnic/io/poller.h"
#include "softrnic/io/stall.h"
#include "softrnic/io/timers.h"

/*
 * A thread that runs callbacks. The struct is guarded by the lock of its loop, or by eng.lock if
 * the thread is a worker.
 */
struct eng_runner {
	struct list link;      /* link in eng_loop.runners, or for a worker in eng.runners */
	struct eng_loop *loop; /* NULL: the thread is a worker */
	bool leads;
	bool overdue; /* the guard has replaced this thread */
	bool works;
	unsigned turn;             /* number that is odd while a callback runs */
	unsigned slept;            /* value of `turn` when the thread slept last */
	unsigned seen;             /* value of `turn` at the guard's last check */
	struct eng_source *source; /* source of the running callback; NULL: a task runs */
	bool has_worker;           /* a worker is reserved for the loop of this thread */
	/* the thread leads its loop, but any worker may take over the loop */
	bool aside;
	atomic_bool writes_back; /* the callback is writing back, and holds no lock */
	struct poller_event evs[POLLER_BATCH];
	int n, next; /* the events that are not handled yet have the indices from `next` to n - 1 */
};

/* A leader that has recently run callbacks sleeps at most this long before it checks the timers
 * again. So a new deadline that is further away wakes no thread; most time limits are such
 * deadlines. */
#define ENGINE_SOON_NS NSEC_PER_SEC

#define STALL_SPARES 8u /* idle workers that are kept after engine_expect_stalls(), for one loop */

/* The entry for a descriptor number. An event contains the number and the generation. */
struct eng_slot {
	struct eng_source *src;
	uint32_t generation;
};

/*
 * The sources that a leader checks before it sleeps (engine_spin.c). The loop's lock guards
 * `sources`, `spare` and each change of `n`. The leader reads `n` without the lock, and any thread
 * that runs a callback of the loop reads and writes the times and `rests` without it. These members
 * are atomic, because a leader that was replaced during its callback uses them at the same time as
 * the new leader.
 */
#define SPIN_SOURCES 4
struct eng_spin {
	struct eng_source *sources[SPIN_SOURCES];
	atomic_uint n;
	_Atomic uint64_t came_at; /* time at which the poller last reported an event */
	_Atomic uint64_t done_at; /* time at which the last callback for a report ended */
	_Atomic uint64_t gap_ns;  /* usual time from done_at to the next event */
	_Atomic uint64_t polled_at, crowded_until;
	struct policy_spare spare;
	atomic_bool rests; /* no CPU was spare at the last check */
};

/* A loop: its sources, and the threads that run their callbacks. */
struct eng_loop {
	atomic_uint load; /* number of sources that are assigned to this loop and not freed */
	/* guards the following members (for `spin` see struct eng_spin); may be taken inside
	 * eng.lock */
	pthread_mutex_t lock;
	struct poller poller;
	bool running;
	struct eng_slot *slots;
	size_t num_slots;
	uint32_t slot_generation;
	struct list sources, to_free, tasks, runners;
	struct list of_parent; /* in a forked child: copies of sources that the parent frees */
	unsigned num_tasks;
	struct eng_runner *leader;
	unsigned index; /* index of this loop in eng.loop */
	struct timers timers;
	struct eng_spin spin;
	/* time until which the leader waits; 0: the leader is awake */
	_Atomic uint64_t sleeping_until;

	/* members for engine_stall.c: */
	/* a worker must become the leader, and first handle the events in `left`; eng.lock is also
	 * held for each change */
	bool vacant;
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

	/* members for engine_stall.c: */
	bool guarded;               /* the guard's thread exists */
	pthread_mutex_t guard_lock; /* may be taken inside the loops' locks */
	pthread_cond_t guard_wake;
	bool guard_called;
	atomic_bool guard_sleeps;
	atomic_bool stalled; /* a thread waits in its callback */
	struct poller work;  /* the poller that idle workers wait for */
	struct list runners; /* the workers */
	struct list handed;  /* tasks handed to workers */
	unsigned workers, idle_workers;
	unsigned spares; /* number of idle workers to keep */
	unsigned vacant; /* number of loops without a leader */
	unsigned aside;  /* number of leaders that have stepped aside or are about to */
};
extern struct eng eng;

/* engine.c */
/* Free a closed source after its last callback has ended. */
void engine_free(struct eng_source *src);

/* in engine_loops.c: */
struct eng_loop *engine_loop_of(const struct eng_source *src); /* accepts NULL */
int loop_start(struct eng_loop *l);                            /* 0 or -errno */
void loops_atfork_child(void (*child)(struct eng_loop *l));
/* Returns 0 or -errno. */
int engine_thread(void *(*fn)(void *arg), void *arg, const char *name);

/* in engine_run.c: */
extern __thread struct eng_runner *engine_here; /* NULL in a thread of the application */
/* Called when a callback begins, and when it ends, with the lock that guards the runner. `src` is
 * NULL for a task. */
void runner_begin(struct eng_runner *r, struct eng_source *src);
void runner_end(struct eng_runner *r);
void leader_run(struct eng_runner *me); /* returns when another thread leads */

/* called after each callback of a leader, without the lock */
void runner_finish(struct eng_runner *me);
/* Returns false if another thread leads now. */
bool leader_leads(struct eng_runner *me);

/* engine_spin.c */
/* Called after the callback for bytes that the poller reported. Adds the source to those that the
 * leader checks, if the leader is permitted to spin and there is room for the source. */
void spin_note(struct eng_runner *me, struct eng_source *src);
void spin_came(struct eng_spin *s, uint64_t now); /* record the time of a reported event */
/* Do not check the source any more. Called with the lock. */
void spin_forget(struct eng_spin *s, const struct eng_source *src);
/* Check for events for a short time, at most until `until`. *now is the time; the function updates
 * it. Returns the number of events in `evs`. If it returns 0, the caller must wait in the poller,
 * unless another thread leads now. */
int leader_spin(struct eng_runner *me, struct poller_event *evs, uint64_t until, uint64_t *now);

/* in engine_stall.c: */
/* The function of a loop's first thread: it leads, works as a worker after another thread has
 * replaced it, and frees its runner at the end. */
void *leader_main(void *runner);
/* Take the lead from the loop's leader, so that a worker can take over the loop. Called with
 * eng.lock and the loop's lock. Unless the caller is a worker or the guard, it must call
 * poller_wake(&eng.work) afterwards. */
void loop_vacate(struct eng_loop *l);
int guard_start(void); /* called with eng.lock; returns 0 or -errno */
void guard_call(void); /* make the guard check now; takes only a leaf lock */
/* Wake the guard if it sleeps. Called with a loop's lock or eng.lock when a callback begins. */
void guard_notify(void);
/* Keep enough workers for `loops` leaders that wait at the same time. Called with eng.lock. */
void stall_expect_in(unsigned loops);
void stall_atfork_child(void);

/* in engine_aside.c: */
/* Replace the leader of loop `number` if it has stepped aside. Called by a worker with eng.lock. */
void aside_take(uint64_t number);

#endif
