/* SPDX-License-Identifier: BSD-3-Clause */
/* conn_parts.h -- functions that only the conn*.c files use. All are called with the lock. */
#ifndef IO_CONN_PARTS_H
#define IO_CONN_PARTS_H

#include "softrnic/io/conn_impl.h"

/* May an access to memory that the QP can reach wait for a file system? */
static inline bool conn_can_stall(struct conn *c)
{
	struct stall_count *stall = atomic_load_explicit(&c->stall, memory_order_acquire);

	return stall && atomic_load_explicit(&stall->regions, memory_order_relaxed) > 0;
}

/* conn_run.c */
/* Serve the bits of conn.want. Returns false if another thread has to. */
bool conn_serve(struct conn *c);

extern const struct stream_host conn_host; /* functions that the stream calls */

/* conn_io.c */
bool conn_receive(void *owner, struct stream_update *u);
bool conn_send(void *owner, struct stream_update *u);
/*
 * For a link in memory, if only bytes are due: send posted requests; or process the link's bytes
 * and send the answers. Returns false if other tasks are due; then the caller calls conn_perform().
 */
bool conn_send_directly(struct conn *c);
bool conn_receive_directly(struct conn *c);
/* While nothing can be received: report a reset to the stream, because no receive would find it. */
bool conn_find_reset(struct conn *c, struct stream_update *u);
/* Continue in a thread of the engine that may touch memory. */
void conn_again(struct conn *c);

/* conn_own.c */
/* A thread checks for bytes repeatedly, and will do so again soon. */
bool conn_is_polled(const struct conn *c);
/* CONN_UNUSED: end the lease. The caller then processes arrived bytes, and judges the lease by
 * them. Returns false if there is no lease any more. */
bool conn_own_unused(struct conn *c, struct policy_news *before);
void conn_own_judge(struct conn *c, const struct policy_news *before);
/* Around the receive of a thread that polls or waits. Not called during a lease, because nothing
 * can be learned then. */
void conn_look_begins(struct conn *c);
void conn_look_ends(struct conn *c);
void conn_own_move(struct conn *c);      /* another link is about to replace its link */
void conn_own_forget(struct conn *c);    /* the link is about to be closed */
enum eng_look conn_spin(struct conn *c); /* this one and the next: without the lock */
void conn_spin_end(struct conn *c);
void conn_own_changed(struct conn *c); /* CONN_OWN */

/* conn_origin.c: functions for conn_host, and events of a connection */
bool conn_origin(void *owner, const uint8_t instance[EXT_ID_LEN], struct ext_origin *origin);
void conn_origin_fenced(void *owner, const struct ext_origin *origin);
enum stream_fence conn_origin_identify(void *owner, const struct ext_origin *origin);
void conn_origin_prepare(struct conn *c, struct stream_config *cfg); /* it is being made */
void conn_origin_established(struct conn *c);
void conn_origin_closed(struct conn *c); /* no byte of the connection is placed any more */

/* conn_persist.c */
bool conn_start_job(void *owner, struct stream_update *u);
/* No thread waits for the job any more. A write-back continues, because its bytes may still be
 * needed on the medium. */
void conn_stop_job(void *owner);
void conn_job_done(struct conn *c, int status, struct stream_update *u);
/* Begin the job that is due, if there is one. Returns whether conn_run_job_here() must follow,
 * without the lock. */
bool conn_begin_due_job(struct conn *c);
void conn_run_job_here(struct conn *c);

/* conn_rings.c: change from TCP to rings in shared memory */
void conn_rings_allow(struct conn *c); /* the connection is established */
/* Begin the change to rings, if the connection has carried enough messages. */
void conn_rings_consider(struct conn *c, struct stream_update *u);
/* Continue the meeting: its socket may be ready. */
void conn_rings_look(struct conn *c, struct stream_update *u);
void conn_rings_on_time(struct conn *c, uint64_t now, struct stream_update *u);
void conn_rings_stop(struct conn *c); /* the link is about to be closed */
void conn_rings_forked(struct conn *c);
void conn_rings_on_step(void *owner, const struct qp_link_msg *msg, struct stream_update *u);

/* conn.c */
/* A new stream replaces one that has neither link nor queue pair. Returns 0 or -errno. */
int conn_renew_stream(struct conn *c, enum stream_role role);

/* conn_link.c */
/* Returns what these bits, with which the source was called, mean for the link (READY_*). Without a
 * link they are returned as they are. */
unsigned conn_ready_bits(struct conn *c, unsigned polled);
void conn_dial_done(struct conn *c, struct stream_update *u);
/* Handle the answer to a dial, which counts even if the time limit passed before a thread checked;
 * or dial again. */
void conn_dial_on_time(struct conn *c, struct stream_update *u);
void conn_set_deadline(void *owner, uint64_t at);

#endif
