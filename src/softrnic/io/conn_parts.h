/* SPDX-License-Identifier: BSD-3-Clause */
/* conn_parts.h -- functions that only the conn*.c files use. All are called with the lock. */
#ifndef IO_CONN_PARTS_H
#define IO_CONN_PARTS_H

#include "softrnic/io/conn_impl.h"

/* Can an access to memory that the QP can reach wait for a file system? */
static inline bool conn_can_stall(struct conn *c)
{
	struct stall_count *stall = atomic_load_explicit(&c->stall, memory_order_acquire);

	return stall && atomic_load_explicit(&stall->regions, memory_order_relaxed) > 0;
}

/* conn_run.c */
/* Do the work for the bits of conn.want. Returns false if another thread has to do it. */
bool conn_serve(struct conn *c);

extern const struct stream_host conn_host; /* functions of the connection that the stream calls */

/* conn_io.c */
bool conn_receive(void *owner, struct stream_update *u);
bool conn_send(void *owner, struct stream_update *u);
/*
 * Used for a link in memory, if moving bytes is the only work that is due. The first function sends
 * posted requests; the second processes the link's bytes and sends the answers. They return false
 * if other tasks are due; the caller must then call conn_perform().
 */
bool conn_send_directly(struct conn *c);
bool conn_receive_directly(struct conn *c);
/* Report a reset to the stream. Called while nothing can be received, because no receive would find
 * the reset. */
bool conn_find_reset(struct conn *c, struct stream_update *u);
/* Continue the work in a thread of the engine that may access memory. */
void conn_again(struct conn *c);

/* conn_own.c */
/* Does a thread check for bytes repeatedly, so that it will soon check again? */
bool conn_is_polled(const struct conn *c);
/* For CONN_UNUSED: end the lease. The caller must then process arrived bytes, and call
 * conn_own_judge(). Returns false if there is no lease any more. */
bool conn_own_unused(struct conn *c, struct policy_news *before);
void conn_own_judge(struct conn *c, const struct policy_news *before);
/* Called before and after each receive from the link by a thread that polls or waits. Not called
 * during a lease, when the thread's behaviour shows nothing new. */
void conn_look_begins(struct conn *c);
void conn_look_ends(struct conn *c);
/* Called when another link is about to replace the present link, or to be used for receiving. */
void conn_own_move(struct conn *c);
void conn_own_forget(struct conn *c); /* the link is about to be closed */
/* this function and the next are called without the lock */
enum eng_look conn_spin(struct conn *c);
void conn_spin_end(struct conn *c);
void conn_own_changed(struct conn *c); /* apply CONN_OWN */

/* conn_origin.c: functions for conn_host, and events of a connection */
bool conn_origin(void *owner, const uint8_t instance[EXT_ID_LEN], struct ext_origin *origin);
void conn_origin_fenced(void *owner, const struct ext_origin *origin);
enum stream_fence conn_origin_identify(void *owner, const struct ext_origin *origin);
/* called when the connection is made */
void conn_origin_prepare(struct conn *c, struct stream_config *cfg);
void conn_origin_established(struct conn *c);
void conn_origin_closed(struct conn *c); /* no later byte is placed */

/* conn_persist.c */
bool conn_start_job(void *owner, struct stream_update *u);
/* No thread waits for the job's result any more. A digest is cancelled; a write-back continues,
 * because its bytes may still have to reach the medium. */
void conn_stop_job(void *owner);
void conn_job_done(struct conn *c, int status, struct stream_update *u);
/* Begin the job that is due, if there is one. Returns true if the caller must call
 * conn_run_job_here() after it has released the lock. */
bool conn_begin_due_job(struct conn *c);
void conn_run_job_here(struct conn *c);

/* conn_rings.c: change from TCP to rings in shared memory */
/* Called when the connection is established: from now on it is allowed to change to rings. */
void conn_rings_allow(struct conn *c);
/* Begin the change to rings, if the connection has carried enough messages. */
void conn_rings_consider(struct conn *c, struct stream_update *u);
/* Continue the meeting. Called when its socket may be ready. */
void conn_rings_look(struct conn *c, struct stream_update *u);
void conn_rings_on_time(struct conn *c, uint64_t now, struct stream_update *u);
void conn_rings_stop(struct conn *c); /* called when the link is about to be closed */
void conn_rings_forked(struct conn *c);
void conn_rings_on_step(void *owner, const struct qp_link_msg *msg, struct stream_update *u);

/* conn.c */
/* Make a new stream for the connection. The old stream must have neither a link nor a queue pair.
 * Returns 0 or -errno. */
int conn_renew_stream(struct conn *c, enum stream_role role);

/* conn_link.c */
/* Convert the bits that the poller reported into READY_* flags of the link. Without a link the bits
 * are returned unchanged. */
unsigned conn_ready_bits(struct conn *c, unsigned polled);
void conn_dial_done(struct conn *c, struct stream_update *u);
/* Called when the time limit of a dial has passed. If the dial has been answered meanwhile, handle
 * the answer, although no thread checked for it in time. Otherwise dial again. */
void conn_dial_on_time(struct conn *c, struct stream_update *u);
void conn_set_deadline(void *owner, uint64_t at);

#endif
