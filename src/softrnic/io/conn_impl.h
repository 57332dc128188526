/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conn_impl.h -- the inside of a connection: what it consists of, and what the files of this room
 * do with it. conn.h is what others may ask of it.
 *
 * One lock per connection. A thread that has something for a connection sets a bit in `want`
 * and tries the lock; if another thread holds it, that one finds the bit when it leaves
 * and does the work. So the engine never waits for an application's thread,
 * and an application's thread that posts or polls does its own I/O without a switch.
 *
 * The connection owns its stream, and the stream owns the queue pair. A call on the stream says
 * what is to be done next (struct stream_update), and conn_perform() does it.
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
	CONN_RESUME = 32,    /* what waits for receives may go on: its SRQ has some again */
	CONN_WRITEBACK = 64, /* the write-back is done */
	CONN_AGAIN = 128,    /* a budget ran out; there is more to do */
	CONN_EVICT = 256,    /* end it: too many handshakes */
	CONN_DISCONNECT = 512,
	CONN_DISOWN = 1024,   /* its threads are about to do something else than to poll or wait */
	CONN_OWN = 2048,      /* other threads look for bytes now, or none does */
	CONN_BELL = 4096,     /* conn_bell_is_due() is to be asked */
	CONN_RING = 8192,     /* what waits is to be sent */
	CONN_CUT = 16384,     /* a later connection has named it: end it */
	CONN_FENCED = 32768,  /* those that it named are cut */
	CONN_PLAIN = 65536,   /* conn_plain_run() */
	CONN_UNUSED = 131072, /* no thread has polled or waited since the last look at its lease */
};

/* What a connection has of policy.h, and what was done about it. Flags first, which keeps it small. */
struct conn_policy {
	/* conn_own.c: which thread receives */
	atomic_bool leased;  /* threads poll, or wait again and again (conn_watch.c) */
	atomic_bool waits;   /* they wait: arming the CQ belongs to that */
	atomic_bool armed;   /* a CQ was armed since the last wait */
	atomic_bool spun;    /* a leader of the engine looks for them, too */
	bool awaited;        /* the link knows of them: wait_end() is to follow */
	bool silent;         /* the link reports no bytes */
	bool unfinished;     /* a turn was over, and the rest is left to the thread that polls */
	atomic_bool sends;   /* bytes are being sent */
	atomic_uint waiters; /* threads that wait for its link themselves */
	unsigned strays;     /* of these, those that wait for the link before this one */
	atomic_uint polls;   /* and waits; written by one thread of a CQ at a time */
	unsigned seen;       /* of these, at the last look at leases */
	uint64_t waited_at;  /* when the wait began */

	/* conn_doorbell.c: when a Write leaves */
	_Atomic uint64_t since;  /* conn_doorbell_since() */
	struct policy_send send; /* does the next Write wait? */
	struct policy_send ack;  /* does the next Ack? */
	bool holds_ack;          /* an Ack alone is not sent: conn_poll_for_user() decides */
	atomic_bool ack_waits;   /* `since` is that of an Ack */

	/* conn_watch.c, with its lock: of all that are watched, which are referred to */
	struct list link;
	atomic_bool listed;

	struct policy_lease lease; /* conn_own.c: may the next one begin? */
};

struct conn {
	struct lock lock;
	atomic_uint want;
	atomic_uint refs;
	atomic_uint alarm; /* the link's end may be here; set without the lock */
	unsigned generation;
	atomic_uint caps;  /* VEXT_CAP_*, once established; read without the lock */
	struct link *link; /* NULL: none */
	bool registered;   /* the link reports what it is ready for */
	bool dialing, readable, writable, hangup;
	bool reading;   /* this visit of the connection takes bytes from the link */
	bool watching;  /* the link reports when it takes bytes again */
	bool outlives;  /* the process ends, and what was sent is to arrive (conn_exit.c) */
	bool quiet;     /* the process is in exit(), and the link's events are not reported
			    (conn_exit.c) */
	bool abandoned; /* by its id: conn_perform() ends it in good order */
	bool same_host;
	bool may_meet; /* with its peer, in shared memory, once it has carried enough */
	bool has_met;  /* one attempt was made; there is no second one */
	/* what the link has ended with, while bytes may be there still: -errno; 0: none */
	int reset;
	uint64_t patient_until; /* time until which a refused dial is repeated; 0: not dialed yet */
	/* time of the next dial after a refusal; CLOCK_NEVER: none is to follow */
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
	struct meet *meet;               /* the meeting that leads to rings; NULL: there is none */
	struct ibv_qp_init_attr qp_init; /* the limits that were granted */
	/* Counters of the send CQ and of the receive CQ. Each has the number of the CQ's
	 * connections with data to send, and is changed under this connection's lock. NULL: this
	 * connection is not counted. */
	atomic_uint *cq_waiting[2];
	_Atomic(struct stall_count *) stall; /* of the QP's protection domain; NULL: no QP yet */
	struct stall_count *stall_before;    /* count of the previous QP */

	conn_event_fn *event;
	void *owner; /* NULL once the id has released it */

	struct link_addr src, dst; /* addresses to dial; src LINK_NONE: any */

	struct conn_receive { /* the last one */
		/* bytes offered to the link; part of them that is in registered memory */
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
		struct fence_member fenced; /* a responder */
	};

	struct list everyone; /* in the list of all connections */
	struct eng_source source;
	struct eng_timer timer;
	/* the time to which the timer was set; the timer's own fields are the engine's */
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

/* Time at which the first waiting Write was posted, or an Ack began to wait; 0: none waits. */
static inline uint64_t conn_doorbell_since(const struct conn *c)
{
	return atomic_load_explicit(&c->policy.since, memory_order_relaxed);
}

/* Is it an Ack that waits since then, and not a Write? */
static inline bool conn_ack_waits(const struct conn *c)
{
	return atomic_load_explicit(&c->policy.ack_waits, memory_order_relaxed);
}

/* Take the lock. conn_leave() does what other threads asked for meanwhile. */
void conn_enter(struct conn *c);
void conn_leave(struct conn *c);
bool conn_try_enter(struct conn *c);
/*
 * From a thread of the application: like conn_enter(), but with a time limit if memory of this
 * connection may wait for a file system, as another thread may then hold the lock for long. 0 or
 * ETIMEDOUT.
 */
#define CONN_CALLER_MS 1000u
#define CONN_LOOK_MS   100u /* longer than a scheduler's pause of the holder on a busy machine */
int conn_enter_caller(struct conn *c, unsigned ms);
bool conn_enter_until(struct conn *c, unsigned ms); /* false: the lock was held for that long */
/*
 * May the calling thread load from and store to the memory of this connection? A thread of the
 * application may not where that may wait for a file system, nor any thread while others wait; the
 * engine has threads for that.
 */
bool conn_may_touch(struct conn *c);
/* With the lock: has the peer given up, so that bytes in front of its end do not count any more?
 * They count if its FIN came first (conn_io.c). */
bool conn_is_over(struct conn *c);
/* Ask for work. Called from any thread, without the lock. */
void conn_want(struct conn *c, unsigned bits);
/*
 * With the lock: do what the stream's update asks for, as far as that is possible now. The rest
 * stays due. An event of the link, a timer, the end of a job or another thread comes back to it.
 */
void conn_perform(struct conn *c, struct stream_update *u);
/* The same without a call on the stream before. */
void conn_settle(struct conn *c);
/*
 * With the lock: take the bytes that the link has. Returns whether there were any. A link in memory
 * is looked at `looks` times: that costs less than to leave the connection and to enter it again,
 * and finds bytes as soon as they come.
 */
bool conn_poll(struct conn *c, unsigned looks);
#define CONN_LOOKS 256                                  /* of a thread that does nothing else */
static inline unsigned conn_looks(const struct conn *c) /* of one that polls */
{
	return atomic_load_explicit(&c->policy.leased, memory_order_relaxed) &&
			       !atomic_load_explicit(&c->policy.waits, memory_order_relaxed)
		       ? CONN_LOOKS
		       : 1;
}
/*
 * Which thread looks for bytes (conn_own.c). A thread that polls counts each of its looks.
 * conn_own(), with the lock, is called when looks follow each other quickly. From then on an
 * arrival wakes no thread, until looks cease or conn_disown() is called, with the lock as well.
 * Such threads call conn_leases_renew() now and then.
 */
static inline void conn_count_poll(struct conn *c)
{
	unsigned polls = atomic_load_explicit(&c->policy.polls, memory_order_relaxed);

	atomic_store_explicit(&c->policy.polls, polls + 1, memory_order_relaxed);
}
void conn_own(struct conn *c, uint64_t now);
void conn_disown(struct conn *c);
/* Without the lock: threads of the application may not touch its memory, or may again. */
void conn_untouchable(struct conn *c);
/* With the lock, after a receive was posted: the same, and bytes of the link are taken as well. */
void conn_perform_and_read(struct conn *c, struct stream_update *u);
/* With the lock, which is released meanwhile: wait for any change, at most until the deadline. */
void conn_wait_change(struct conn *c, uint64_t deadline);
/*
 * With the lock: the queue pair does not wait any more for its write-back or digest, and other
 * threads do not wait for the region's memory. The outcome is remembered for the file. Returns
 * false if the job uses the memory, so that its end must be awaited.
 */
bool conn_abandon_job(struct conn *c, struct stream_update *u);

/* With the lock. */
/* bound: a link that becomes the connection's, or NULL */
int conn_dial(struct conn *c, struct link *bound);
int conn_adopt(struct conn *c, struct link *link); /* an accepted one */
void conn_close(struct conn *c);                   /* the link, at once */
/*
 * Its owner is destroyed, so no event is reported any more. After this call conn_settle(), or the
 * event that the call comes from, ends the connection in good order, and rejects a request that has
 * no answer.
 */
void conn_abandon(struct conn *c);
/* With the lock, before the dial: set the owner, which may be another process later. */
void conn_set_owner(struct conn *c, const struct conn_owner *owner);
/* With the lock, before stream_accept(). */
void conn_origin_arrives(struct conn *c);
/* With the lock: the user is about to see that the connection has ended. */
void conn_origin_give_up(struct conn *c);
uint32_t conn_segment(const struct conn *c); /* 0: the connection has no link */
/*
 * With the lock, in a call that ends the connection: end the quiet state of conn_end_quiet(), if
 * there is one.
 */
void conn_end_quiet(struct conn *c);

/* fork.c: around fork() */
void conns_atfork_prepare(void);
void conns_atfork_release(void);
void conn_origin_atfork_prepare(void);
void conn_origin_atfork_parent(void);
void conn_origin_atfork_child(void);

#endif
