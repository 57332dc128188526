/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conn_impl.h -- the struct of a connection, for the files of this folder. conn.h is the interface
 * for other code.
 *
 * Each connection has one lock. A thread with work for a connection sets a bit in `want` and tries
 * the lock. If another thread holds the lock, that thread finds the bit when it releases the lock,
 * and does the work. So the engine never waits for an application's thread. And an application's
 * thread that posts or polls does its I/O itself, without a switch to another thread.
 *
 * The connection owns its stream, and the stream owns the queue pair. A call on the stream lists
 * the tasks that are due (struct stream_update), and conn_perform() performs them.
 */
#ifndef IO_CONN_IMPL_H
#define IO_CONN_IMPL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "softrnic/io/conn.h"
#include "softrnic/io/conn_doorbell.h"
#include "softrnic/io/engine.h"
#include "softrnic/io/link.h"
#include "softrnic/io/stall.h"
#include "softrnic/persist/persist.h"
#include "softrnic/stream/fence.h"
#include "softrnic/stream/former.h"
#include "softrnic/stream/stream.h"

/* Bits of conn.want: work for the thread that holds the lock. */
enum {
	CONN_READY = READY_READ | READY_WRITE | READY_HANGUP, /* events of the link */
	CONN_TIME = 16,                                       /* the deadline has passed */
	CONN_RESUME = 32,    /* the SRQ has receives again, and bytes wait for them */
	CONN_WRITEBACK = 64, /* the write-back is done */
	CONN_AGAIN = 128,    /* the work exceeded its limit of bytes or time; there is more to do */
	CONN_EVICT = 256,    /* end the connection, because too many handshakes are in progress */
	CONN_DISCONNECT = 512,
	CONN_DISOWN = 1024, /* no thread will poll or wait for the connection any more */
	CONN_OWN = 2048,    /* the set of threads that check for bytes has changed */
	CONN_BELL = 4096,   /* call conn_bell_is_due() */
	CONN_RING = 8192,   /* send deferred requests */
	/* a later connection has named this connection as given up, so it must end */
	CONN_CUT = 16384,
	/* all connections that this connection named as given up have ended */
	CONN_FENCED = 32768,
	CONN_PLAIN = 65536,   /* call conn_plain_run() */
	CONN_UNUSED = 131072, /* no thread has polled or waited since the lease was checked last */
};

/*
 * State that policy.h decides on, and measured times. Flags come first, which saves memory. A
 * *lease* means that threads of the application, not the engine, check for the connection's bytes.
 */
struct conn_policy {
	/* conn_own.c: which thread receives */
	atomic_bool leased; /* there is a lease: threads poll, or wait repeatedly (conn_watch.c) */
	atomic_bool waits;  /* the lease belongs to waiting threads, which also arm the CQ */
	atomic_bool spun;   /* a leader of the engine also checks the link */
	bool awaited;       /* the link's wait_begin() was called: wait_end() must follow */
	bool silent;        /* the link does not report bytes */
	/* a receive stopped at its limit, and the polling thread does the rest */
	bool unfinished;
	atomic_bool sends;   /* a send is in progress */
	atomic_uint waiters; /* threads that wait for the link themselves */
	atomic_uint wait;    /* number of waits that each began soon after the previous one */
	/* number of `waiters` that still wait for the former link, which rings have replaced */
	unsigned strays;
	/* number of polls and waits; only one thread of a CQ at a time writes it */
	atomic_uint polls;
	unsigned seen;      /* value of `polls` at the last check of leases */
	uint64_t waited_at; /* start of the wait */

	/* conn_doorbell.c: when a Write is sent */
	_Atomic uint64_t since;  /* see conn_doorbell_since() */
	struct policy_send send; /* decides whether the next Write is deferred */
	struct policy_send ack;  /* decides whether the next Ack is deferred */
	/* an Ack without other bytes is not sent now, because conn_doorbell.c decides when to send
	 * it */
	bool holds_ack;
	/* the engine has added a completion that the polling thread may not have seen yet */
	bool unseen;
	atomic_bool ack_waits; /* `since` is the time of an Ack, not of a Write */

	/* link in the list of watched connections (conn_watch.c), which holds a reference. The lock
	 * of conn_watch.c guards it */
	struct list link;
	atomic_bool listed;

	struct policy_lease lease; /* conn_own.c: decides whether the next lease may begin */
};

struct conn {
	struct lock lock;
	atomic_uint want;
	atomic_uint refs;
	atomic_uint alarm; /* the link may have ended; set without the lock */
	unsigned generation;
	atomic_uint ack_timeout; /* value that conn_query_qp() reports */
	atomic_uint caps;  /* VEXT_CAP_* flags, valid after establishment; read without the lock */
	struct link *link; /* NULL: the connection has no link */
	bool registered;   /* the link reports its readiness to the engine */
	bool dialing, readable, writable, hangup;
	bool reading;  /* bytes are taken from the link in the present round of work */
	bool watching; /* the link will report when it takes bytes again */
	/* the process is about to end, and sent bytes must still arrive (conn_exit.c) */
	bool outlives;
	bool quiet; /* the process is in exit(), and the link's events are not reported
			    (conn_exit.c) */
	/* the id has released the connection, and conn_perform() ends it in good order */
	bool abandoned;
	bool same_host;
	bool may_meet; /* the connection may change to shared memory after enough messages */
	bool has_met;  /* one attempt to change to shared memory was made; there is no second one */
	/* -errno of the error that ended the link; unread bytes may remain; 0: no error */
	int reset;
	uint64_t patient_until; /* a refused dial is repeated until this time; 0: not dialed yet */
	/* time of the next dial after a refusal; CLOCK_NEVER: there is none */
	uint64_t redial_at;
	struct stream *stream;
	/*
	 * state of a home connection (conn_plain.h); NULL for an id's connection and for a carrier
	 */
	struct conn_plain *plain;
	struct conn_turn {
		size_t moved;
		/*
		 * time at which the second piece began. Most turns have only one piece and read no
		 * clock
		 */
		uint64_t begun;
	} rx_turn, tx_turn;
	struct meet *meet;               /* the meeting that prepares rings; NULL: there is none */
	struct ibv_qp_init_attr qp_init; /* the limits that were granted to the queue pair */
	/* Counters of the send CQ and of the receive CQ. Each counts the connections of its CQ that
	 * have data to send. It is changed under this connection's lock. NULL: this connection is
	 * not counted. */
	atomic_uint *cq_waiting[2];
	/* counter of the protection domain of the QP; NULL: the connection has had no QP yet */
	_Atomic(struct stall_count *) stall;
	struct stall_count *stall_before; /* counter of the previous QP's protection domain */

	conn_event_fn *event;
	void *owner; /* NULL after the id has released the connection */

	/* for a dial: the addresses of this end and of the peer; src LINK_NONE: any address */
	struct link_addr src, dst;

	struct conn_receive { /* the last receive */
		/* bytes offered to the link, and the part of them in registered memory */
		size_t room, direct;
	} receive;

	struct conn_policy policy;

	/*
	 * Guarded by the lock of the tables in conn_origin.c. The stream's role decides which
	 * member is used.
	 */
	union {
		struct conn_initiator {
			struct former former;
			struct conn_owner owner;
			/* the target has closed the connections of the owner's other processes */
			bool owner_is_named;
		} initiator;
		struct fence_member fenced; /* used by a responder */
	};

	struct list everyone; /* link in the list of all connections */
	struct eng_source source;
	struct eng_timer timer;
	/* time to which the timer was set; only the engine reads the timer's own fields */
	uint64_t timer_at;
	struct eng_task task;

	struct persist_job job;
	struct vext_digest job_digest;
	/* where the result of the job is stored; NULL: the job has no result */
	struct vext_digest *job_answer;
	struct mr *job_mr; /* description of the region that the job holds */
	bool job_lasting;  /* the job does not need the registration of its region */
	bool job_due;      /* the job begins after the lock is released */
	atomic_int job_status;

	pthread_mutex_t wait_lock; /* signalled when the connection changes */
	pthread_cond_t changed;
	unsigned changes;
	atomic_uint waiters;
};

/* Time at which the first deferred Write was posted, or at which an Ack was deferred. 0: nothing is
 * deferred. */
static inline uint64_t conn_doorbell_since(const struct conn *c)
{
	return atomic_load_explicit(&c->policy.since, memory_order_relaxed);
}

/* Is an Ack deferred, and no Write? */
static inline bool conn_ack_waits(const struct conn *c)
{
	return atomic_load_explicit(&c->policy.ack_waits, memory_order_relaxed);
}

/* Take and release the lock. conn_leave() first does the work for bits that other threads set
 * meanwhile. */
void conn_enter(struct conn *c);
void conn_leave(struct conn *c);
bool conn_try_enter(struct conn *c);
/*
 * Takes the lock for a thread of the application. The thread tries for a short time before it
 * sleeps. If an access to this connection's memory can wait for a file system, another thread may
 * hold the lock for long, so the function has a time limit in this case. Returns 0 or ETIMEDOUT.
 */
#define CONN_CALLER_MS 1000u
#define CONN_LOOK_MS   100u /* longer than a busy scheduler pauses the thread that holds the lock */
int conn_enter_caller(struct conn *c, unsigned ms);
/* returns false if the lock did not become free within `ms` */
bool conn_enter_until(struct conn *c, unsigned ms);
/*
 * Is the calling thread allowed to access the memory of this connection? If an access to the memory
 * can wait for a file system, a thread of the application must not make it. While a thread of the
 * engine waits, only worker threads are allowed to access the memory.
 */
bool conn_may_touch(struct conn *c);
/* Has the peer given up the connection, so that its unread bytes must not be executed? They are
 * executed if the peer's FIN came before the reset (conn_io.c). The caller holds the lock. */
bool conn_is_over(struct conn *c);
/*
 * Set bits of `want`, and cause a thread to do the work. Any thread without the lock may call this.
 */
void conn_want(struct conn *c, unsigned bits);
/*
 * Perform the tasks of the update that are possible now. The other tasks stay due until an event of
 * the link, a timer, the end of a job or another thread continues them. The caller holds the lock.
 */
void conn_perform(struct conn *c, struct stream_update *u);
/* Does the same as conn_perform(), with a new update. */
void conn_settle(struct conn *c);
/*
 * Process the link's arrived bytes. Returns true if bytes had arrived. A link in memory is checked
 * up to `looks` times, because this costs less than releasing and taking the lock again, and finds
 * bytes as soon as they arrive. The caller holds the lock.
 */
bool conn_poll(struct conn *c, unsigned looks);
/* number of checks by a thread that has no other work */
#define CONN_LOOKS 256
static inline unsigned conn_looks(const struct conn *c) /* number of checks by a polling thread */
{
	return atomic_load_explicit(&c->policy.leased, memory_order_relaxed) &&
			       !atomic_load_explicit(&c->policy.waits, memory_order_relaxed)
		       ? CONN_LOOKS
		       : 1;
}
/*
 * Which thread checks for bytes (conn_own.c). A polling thread counts each of its polls. When polls
 * follow each other quickly, conn_own() is called with the lock. From then on no thread is woken
 * when bytes arrive, until the polls cease or conn_disown() is called with the lock. Polling
 * threads call conn_leases_renew() from time to time.
 */
static inline void conn_count_poll(struct conn *c)
{
	unsigned polls = atomic_load_explicit(&c->policy.polls, memory_order_relaxed);

	atomic_store_explicit(&c->policy.polls, polls + 1, memory_order_relaxed);
}
void conn_own(struct conn *c, uint64_t now);
void conn_disown(struct conn *c);
/* End the lease. Called when conn_may_touch() is false for threads of the application. The caller
 * does not hold the lock. */
void conn_untouchable(struct conn *c);
/* Does the same as conn_perform(), and also receives from the link. The caller holds the lock. */
void conn_perform_and_read(struct conn *c, struct stream_update *u);
/* Wait until anything about the connection changes, at most until the deadline. The caller holds
 * the lock; the function releases it while it waits. */
void conn_wait_change(struct conn *c, uint64_t deadline);
/*
 * Give up the running write-back or digest. The queue pair no longer waits for the job, and other
 * threads need not wait until the job releases the region's memory. A failure is still remembered
 * for the file. Returns false if the job uses the memory, so that the caller must wait for the
 * job's end. The caller holds the lock.
 */
bool conn_abandon_job(struct conn *c, struct stream_update *u);

/* The following functions are called with the lock. */
/* `bound` is a link that the connection takes over, or NULL. */
int conn_dial(struct conn *c, struct link *bound);
int conn_adopt(struct conn *c, struct link *link); /* take over an accepted link */
void conn_close(struct conn *c);                   /* close the link immediately */
/*
 * Called when the owner is being destroyed: drop events from now on, and reject an unanswered
 * request. The next conn_settle() ends the connection in good order. Within an event, the code
 * after the event calls conn_settle().
 */
void conn_abandon(struct conn *c);
/* Set the owner of the connection. A later process may have the same owner. Called before the dial;
 * the caller holds the lock. */
void conn_set_owner(struct conn *c, const struct conn_owner *owner);
/* List the connection among those that this process has accepted. Called before stream_accept();
 * the caller holds the lock. */
void conn_origin_arrives(struct conn *c);
/* Record that the connection is given up. Called before the end of the connection is reported to
 * the user; the caller holds the lock. */
void conn_origin_give_up(struct conn *c);
uint32_t conn_segment(const struct conn *c); /* see link_ops.segment(); 0 without a link */
/* Leave the quiet state that exit() began (conn_exit.c), if the connection is in it. Called when
 * the connection is closed; the caller holds the lock. */
void conn_end_quiet(struct conn *c);

/* Called by fork.c around fork(). */
void conns_atfork_prepare(void);
void conns_atfork_release(void);
void conn_origin_atfork_prepare(void);
void conn_origin_atfork_parent(void);
void conn_origin_atfork_child(void);

#endif
