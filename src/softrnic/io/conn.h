/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conn.h -- a connection: a socket, the stream on it, and the threads that drive them.
 *
 * One lock per connection. A thread that has something for a connection sets a bit in `want`
 * and tries the lock; if another thread holds it, that one finds the bit when it leaves
 * and does the work. So the engine never waits for an application's thread,
 * and an application's thread that posts or polls does its own I/O without a switch.
 *
 * The connection owns its stream, and the stream owns the queue pair. A call on the stream says what
 * is to be done next (struct stream_update), and conn_perform() does it.
 */
#ifndef IO_CONN_H
#define IO_CONN_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "softrnic/stream/stream.h"
#include "softrnic/io/engine.h"
#include "softrnic/io/stall.h"
#include "softrnic/io/trace.h"
#include "softrnic/persist/persist.h"

/* Bits of conn.want. */
enum {
	CONN_READABLE = 1,   /* the socket may have bytes */
	CONN_WRITABLE = 2,   /* the socket may take bytes */
	CONN_HANGUP = 4,     /* read until the end: no shortcut */
	CONN_TIME = 8,       /* the deadline has passed */
	CONN_RESUME = 16,    /* what waits for receives may go on: its SRQ has some again */
	CONN_WRITEBACK = 32, /* the write-back is done */
	CONN_AGAIN = 64,     /* a budget ran out; there is more to do */
	CONN_EVICT = 128,    /* end it: too many handshakes */
	CONN_DISCONNECT = 256,
};

/* Reports to the id that the connection belongs to. Called with the connection's lock. */
typedef void conn_event_fn(void *owner, enum stream_event event, int status);

struct conn_link { /* a place in a CQ's list of connections behind it */
	struct list link;
	struct conn *conn;
};

struct conn {
	pthread_mutex_t lock;
	atomic_uint want;
	atomic_uint refs;
	unsigned generation;
	int fd;          /* -1: none */
	bool registered; /* with the engine */
	bool dialing, readable, writable, hangup;
	bool reading;   /* this visit of the connection takes bytes from the socket */
	bool watching;  /* the engine reports when the socket takes bytes again */
	bool abandoned; /* by its id: conn_perform() ends it in good order */
	bool same_host;
	uint64_t patient_until; /* until then a refused dial is repeated; 0: not dialed yet */
	uint64_t redial_at;     /* CLOCK_NEVER: no refused dial waits for its repetition */
	struct stream *stream;
	struct conn_turn {
		size_t moved;
		uint64_t begun; /* of its second piece: most turns have one, and need no clock */
	} rx_turn, tx_turn;
	struct trace *trace;             /* NULL: not traced */
	atomic_uint caps;                /* VEXT_CAP_*, once established; read without the lock */
	struct ibv_qp_init_attr qp_init; /* as granted */
	struct conn_link send_link, recv_link;
	_Atomic(struct stall_count *) stall; /* of the QP's protection domain; NULL: no QP yet */
	struct stall_count *stall_before;    /* of the QP before this one */

	conn_event_fn *event;
	void *owner; /* NULL once the id let go */

	struct sockaddr_storage src, dst; /* src.ss_family 0: any */

	struct list everyone; /* in the list of all connections */
	struct eng_source source;
	struct eng_timer timer;
	uint64_t timer_at; /* what it was set to; its own fields are the engine's */
	struct eng_task task;

	struct persist_job job;
	struct vext_digest job_digest;
	struct vext_digest *job_answer; /* where the queue pair wants it; NULL: none */
	bool job_lasting;               /* it needs no registration of its region */
	atomic_int job_status;

	pthread_mutex_t wait_lock; /* for those who wait for the connection to change */
	pthread_cond_t changed;
	unsigned changes;
	atomic_uint waiters;

	bool cut_armed; /* test aid: break after cut_left more bytes */
	uint64_t cut_left;
};

int conn_new(enum stream_role role, bool same_host, conn_event_fn *event, void *owner,
	     struct conn **out);
void conn_get(struct conn *c);
void conn_put(struct conn *c);

/* Take the lock; leaving does what others asked for meanwhile. */
void conn_enter(struct conn *c);
void conn_leave(struct conn *c);
bool conn_try_enter(struct conn *c);
/*
 * From a thread of the application: like conn_enter(), but where memory may have to wait for a file
 * system, and somebody does so with the lock, only for so long. 0 or ETIMEDOUT.
 */
#define CONN_CALLER_MS 1000u
#define CONN_LOOK_MS   10u
int conn_enter_caller(struct conn *c, unsigned ms);
bool conn_enter_until(struct conn *c, unsigned ms); /* false: the lock was held for that long */
/*
 * May the calling thread load from and store to the memory of this connection? A thread of the
 * application may not where that may wait for a file system, nor any thread while others wait; the
 * engine has threads for that.
 */
bool conn_may_touch(struct conn *c);
/* With the lock: the memory that the connection's QP can reach. */
void conn_set_stall(struct conn *c, struct stall_count *count);
/* Ask for work from any thread without the lock. */
void conn_want(struct conn *c, unsigned bits);
/*
 * With the lock: do what a call on the stream said is to be done, as far as it can be done now. What
 * cannot stays to be done, and an event of the socket, a timer, the end of a job or another thread
 * comes back to it.
 */
void conn_perform(struct conn *c, struct stream_update *u);
/* The same where no call on the stream was made. */
void conn_settle(struct conn *c);
/* With the lock: the same, and take what the socket has. */
void conn_poll(struct conn *c);
/* With the lock, likewise, behind a posted receive. */
void conn_perform_and_read(struct conn *c, struct stream_update *u);
/* With the lock, which is given up meanwhile: wait for any change, at most until the deadline. */
void conn_wait_change(struct conn *c, uint64_t deadline);
/*
 * With the lock: the queue pair waits for its write-back or digest no more, nor do others for the
 * region's memory; its outcome is remembered for the file. False: it uses the memory, its end must
 * be awaited.
 */
bool conn_abandon_job(struct conn *c, struct stream_update *u);
/* With the lock: a region goes away. forget: see qp_detach_mr(). */
void conn_detach_mr(struct conn *c, struct mr *mr, bool forget);

/* With the lock. */
int conn_dial(struct conn *c,
	      int bound_fd);            /* bound_fd: -1, or a bound socket that is taken over */
int conn_adopt(struct conn *c, int fd); /* an accepted socket */
void conn_close(struct conn *c);        /* the socket, at once */
/* Its owner is gone: no event is reported any more. conn_settle() behind it, or the event that it is
 * called from, ends the connection in good order, and rejects a request without an answer. */
void conn_abandon(struct conn *c);
bool sockaddr_same_host(const struct sockaddr *a, const struct sockaddr *b);
uint32_t conn_mss(const struct conn *c);
bool conn_is_removed(const struct conn *c); /* inherited through fork() */

/* The connection that was made after `before` (NULL: the first), or NULL. The caller's reference
 * passes from the one to the other. */
struct conn *conns_next(struct conn *before);
void conns_atfork_prepare(void);
void conns_atfork_release(void);

#endif
