/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conn_impl.h -- the inside of a connection, for the files of this room. conn.h is the interface
 * for others.
 *
 * Each connection has one lock. A thread with work for a connection sets a bit in `want` and tries
 * the lock. If another thread holds the lock, that thread finds the bit when it leaves, and does
 * the work. So the engine never waits for an application's thread, and an application's thread that
 * posts or polls does its own I/O without a switch.
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

/* Bits of conn.want. */
enum {
	CONN_READY = READY_READ | READY_WRITE | READY_HANGUP, /* of the link */
	CONN_TIME = 16,                                       /* the deadline has passed */
	CONN_RESUME = 32,    /* the SRQ has receives again, and bytes wait for them */
	CONN_WRITEBACK = 64, /* the write-back is done */
	CONN_AGAIN = 128,    /* a budget ran out; there is more to do */
	CONN_EVICT = 256,    /* end the connection: too many handshakes */
	CONN_DISCONNECT = 512,
	CONN_DISOWN = 1024,   /* its threads will no longer poll or wait */
	CONN_OWN = 2048,      /* the threads that check for bytes have changed */
	CONN_BELL = 4096,     /* call conn_bell_is_due() */
	CONN_RING = 8192,     /* send deferred requests */
	CONN_CUT = 16384,     /* a later connection has named this one: end it */
	CONN_FENCED = 32768,  /* the connections that this one has named are cut */
	CONN_PLAIN = 65536,   /* conn_plain_run() */
	CONN_UNUSED = 131072, /* no thread has polled or waited since the last check of the lease */
};

/*
 * A connection's state for policy.h, and the measures taken. Flags come first, which saves memory.
 */
struct conn_policy {
	/* conn_own.c: which thread receives */
	atomic_bool leased;  /* threads poll, or wait repeatedly (conn_watch.c) */
	atomic_bool waits;   /* the lease is of waiting threads, which arm the CQ, too */
	atomic_bool armed;   /* a CQ was armed since the last wait */
	atomic_bool spun;    /* a leader of the engine checks the link, too */
	bool awaited;        /* the link was told of a wait: wait_end() must follow */
	bool silent;         /* the link reports no bytes */
	bool unfinished;     /* a turn ended, and the polling thread does the rest */
	atomic_bool sends;   /* a send is in progress */
	atomic_uint waiters; /* threads that wait for the link themselves */
	unsigned strays;     /* among them, those that wait for the link below */
	atomic_uint polls;   /* polls and waits; written by one thread of a CQ at a time */
	unsigned seen;       /* value of `polls` at the last check of leases */
	uint64_t waited_at;  /* start of the wait */

	/* conn_doorbell.c: when a Write is sent */
	_Atomic uint64_t since;  /* conn_doorbell_since() */
	struct policy_send send; /* decides whether the next Write is deferred */
	struct policy_send ack;  /* decides whether the next Ack is deferred */
	bool holds_ack;          /* an Ack alone is not sent now: conn_poll_for_user() decides */
	atomic_bool ack_waits;   /* `since` belongs to an Ack */

	/* conn_watch.c: link in the list of watched connections, which holds a reference; guarded
	 * by that file's lock */
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
	atomic_uint caps;  /* VEXT_CAP_* after establishment; read without the lock */
	struct link *link; /* NULL: none */
	bool registered;   /* the link reports its readiness to the engine */
	bool dialing, readable, writable, hangup;
	bool reading;   /* this round of work takes bytes from the link */
	bool watching;  /* the link reports when it takes bytes again */
	bool outlives;  /* the process ends, and sent bytes must arrive (conn_exit.c) */
	bool quiet;     /* the process is in exit(), and the link's events are not reported
			    (conn_exit.c) */
	bool abandoned; /* the id has released it: conn_perform() ends it in good order */
	bool same_host;
	bool may_meet; /* may change to shared memory after enough messages */
	bool has_met;  /* one attempt was made; no second one follows */
	/* error that ended the link, though unread bytes may remain: -errno; 0: none */
	int reset;
	uint64_t patient_until; /* a refused dial is repeated until this time; 0: not dialed yet */
	/* time of the next dial after a refusal; CLOCK_NEVER: none follows */
	uint64_t redial_at;
	struct stream *stream;
	struct conn_plain *plain; /* of a home (conn_plain.h); NULL: an id's, or a carrier */
	struct conn_turn {
		size_t moved;
		/*
		 * time at which the second piece began: most turns have one piece, and read no
		 * clock
		 */
		uint64_t begun;
	} rx_turn, tx_turn;
	struct meet *meet;               /* the meeting that prepares rings; NULL: there is none */
	struct ibv_qp_init_attr qp_init; /* the granted limits */
	/* Counters of the send CQ and of the receive CQ. Each has the number of the CQ's
	 * connections with data to send, and is changed under this connection's lock. NULL: this
	 * connection is not counted. */
	atomic_uint *cq_waiting[2];
	_Atomic(struct stall_count *) stall; /* of the QP's protection domain; NULL: no QP yet */
	struct stall_count *stall_before;    /* counter of the previous QP */

	conn_event_fn *event;
	void *owner; /* NULL after the id has released it */

	struct link_addr src, dst; /* the addresses to dial; src LINK_NONE: any */

	struct conn_receive { /* the last receive */
		/* bytes offered to the link, and the part of them in registered memory */
		size_t room, direct;
	} receive;

	struct conn_policy policy;

	/*
	 * Guarded by the tables' lock of conn_origin.c. The stream's role decides which one is
	 * used.
	 */
	union {
		struct conn_initiator {
			struct former former;
			struct conn_owner owner;
			/* the target has ended the connections of the owner's other processes */
			bool owner_is_named;
		} initiator;
		struct fence_member fenced; /* used by a responder */
	};

	struct list everyone; /* in the list of all connections */
	struct eng_source source;
	struct eng_timer timer;
	/* time to which the timer was set; only the engine uses the timer's own fields */
	uint64_t timer_at;
	struct eng_task task;

	struct persist_job job;
	struct vext_digest job_digest;
	struct vext_digest *job_answer; /* place for the result; NULL: none */
	struct mr *job_mr;              /* the description that it holds */
	bool job_lasting;               /* the job needs no registration of its region */
	bool job_due;                   /* the job begins when the lock is released */
	atomic_int job_status;

	pthread_mutex_t wait_lock; /* signalled when the connection changes */
	pthread_cond_t changed;
	unsigned changes;
	atomic_uint waiters;
};

/* Time at which the first deferred Write was posted, or an Ack was deferred; 0: nothing is
 * deferred. */
static inline uint64_t conn_doorbell_since(const struct conn *c)
{
	return atomic_load_explicit(&c->policy.since, memory_order_relaxed);
}

/* Is an Ack deferred, and not a Write? */
static inline bool conn_ack_waits(const struct conn *c)
{
	return atomic_load_explicit(&c->policy.ack_waits, memory_order_relaxed);
}

/* Take the lock. conn_leave() serves the bits that other threads set meanwhile. */
void conn_enter(struct conn *c);
void conn_leave(struct conn *c);
bool conn_try_enter(struct conn *c);
/*
 * For a thread of the application: as conn_enter(), but with a time limit if this connection's
 * memory may wait for a file system: then another thread may hold the lock for long. Returns 0 or
 * ETIMEDOUT.
 */
#define CONN_CALLER_MS 1000u
#define CONN_LOOK_MS   100u /* longer than a busy scheduler's pause of the lock's holder */
int conn_enter_caller(struct conn *c, unsigned ms);
bool conn_enter_until(struct conn *c, unsigned ms); /* false: the lock was not free within `ms` */
/*
 * May the calling thread access the memory of this connection? If the memory can wait for a file
 * system, a thread of the application may not, and no thread may while others wait. The engine has
 * threads for this.
 */
bool conn_may_touch(struct conn *c);
/* Called with the lock: has the peer given up, so that bytes before its end no longer count? They
 * count if its FIN came first (conn_io.c). */
bool conn_is_over(struct conn *c);
/* Set bits of `want`, and have a thread serve them. Called from any thread, without the lock. */
void conn_want(struct conn *c, unsigned bits);
/* Called with the lock: perform the tasks of the update, as far as possible now. The rest stays due
 * until an event of the link, a timer, the end of a job or another thread continues it. */
void conn_perform(struct conn *c, struct stream_update *u);
/* As conn_perform(), with a fresh update. */
void conn_settle(struct conn *c);
/*
 * Called with the lock: process the link's arrived bytes. Returns whether there were any. A link in
 * memory is checked `looks` times: this costs less than to leave and to enter the connection again,
 * and finds bytes as soon as they arrive.
 */
bool conn_poll(struct conn *c, unsigned looks);
#define CONN_LOOKS 256                                  /* for a thread without other work */
static inline unsigned conn_looks(const struct conn *c) /* for a polling thread */
{
	return atomic_load_explicit(&c->policy.leased, memory_order_relaxed) &&
			       !atomic_load_explicit(&c->policy.waits, memory_order_relaxed)
		       ? CONN_LOOKS
		       : 1;
}
/*
 * Which thread checks for bytes (conn_own.c). A polling thread counts each of its polls. When polls
 * follow each other quickly, conn_own() is called with the lock. From then on an arrival wakes no
 * thread, until the polls cease or conn_disown() is called with the lock. Such threads call
 * conn_leases_renew() now and then.
 */
static inline void conn_count_poll(struct conn *c)
{
	unsigned polls = atomic_load_explicit(&c->policy.polls, memory_order_relaxed);

	atomic_store_explicit(&c->policy.polls, polls + 1, memory_order_relaxed);
}
void conn_own(struct conn *c, uint64_t now);
void conn_disown(struct conn *c);
/* Called without the lock: threads of the application may no longer access the connection's memory,
 * or may again. */
void conn_untouchable(struct conn *c);
/* Called with the lock, after a receive was posted: as conn_perform(), and also take bytes from the
 * link. */
void conn_perform_and_read(struct conn *c, struct stream_update *u);
/* Called with the lock, which is released meanwhile: wait for any change, at most until the
 * deadline. */
void conn_wait_change(struct conn *c, uint64_t deadline);
/*
 * Called with the lock: the queue pair no longer waits for its write-back or digest, and other
 * threads do not wait for the region's memory. A failure is still remembered for the file. Returns
 * false if the job uses the memory, so that the caller must wait for its end.
 */
bool conn_abandon_job(struct conn *c, struct stream_update *u);

/* Called with the lock. */
/* bound: a link that the connection takes over, or NULL */
int conn_dial(struct conn *c, struct link *bound);
int conn_adopt(struct conn *c, struct link *link); /* take over an accepted link */
void conn_close(struct conn *c);                   /* close the link at once */
/*
 * The owner is destroyed, so events are dropped from now on. After this call conn_settle(), or the
 * event that the call comes from, ends the connection in good order, and rejects an unanswered
 * request.
 */
void conn_abandon(struct conn *c);
/* Called with the lock, before the dial: set the owner, which may later be another process. */
void conn_set_owner(struct conn *c, const struct conn_owner *owner);
/* Called with the lock, before stream_accept(). */
void conn_origin_arrives(struct conn *c);
/* Called with the lock: the user is about to see that the connection has ended. */
void conn_origin_give_up(struct conn *c);
uint32_t conn_segment(const struct conn *c); /* 0: the connection has no link */
/* Called with the lock, in a call that ends the connection: end the quiet state of
 * conn_end_quiet(), if there is one. */
void conn_end_quiet(struct conn *c);

/* fork.c: around fork() */
void conns_atfork_prepare(void);
void conns_atfork_release(void);
void conn_origin_atfork_prepare(void);
void conn_origin_atfork_parent(void);
void conn_origin_atfork_child(void);

#endif
