/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conn.h -- a connection, as the objects of verbs use it. An id owns a connection, a connection
 * drives a queue pair, and a completion queue drives its connections. conn_impl.h defines the
 * struct.
 *
 * Every function takes the connection's lock, unless its comment states otherwise. It also performs
 * all tasks that are due; for example, it sends bytes and reports events. Results are 0 or -errno;
 * functions of verbs itself return 0 or an errno value.
 */
#ifndef IO_CONN_H
#define IO_CONN_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "softrnic/io/link_addr.h"
#include "softrnic/io/policy.h"
#include "softrnic/stream/stream.h"

struct conn;
struct link;
struct stall_count;

/* --- creation and end ----------------------------------------------------------------------- */

/* Reports an event to the connection's id. Called with the connection's lock. */
typedef void conn_event_fn(void *owner, enum stream_event event, int status);

/* `event` and `owner` may both be NULL. The connection then drops events. */
int conn_new(enum stream_role role, bool same_host, conn_event_fn *event, void *owner,
	     struct conn **out);
void conn_get(struct conn *c);
void conn_put(struct conn *c);
/* Was the connection inherited through fork()? If so, only conn_put() may be called on it. Called
 * without the lock. */
bool conn_is_removed(const struct conn *c);
/* Returns the connection that was made after `before`, or the first one if `before` is NULL.
 * Returns NULL at the end. The caller's reference moves from `before` to the result. */
struct conn *conns_next(struct conn *before);
/* Called when the id is destroyed: drop the id's reference, and drop all events from now on. The
 * connection then closes in good order by itself. If the peer's request is unanswered, it is
 * rejected. */
void conn_release(struct conn *c);

/* --- calls of an id ------------------------------------------------------------------------- */

/* made by conn_owner_of(); all processes of the same owner have the same value */
struct conn_owner {
	bool given;
	uint8_t hash[EXT_ID_LEN];
};
/* Make the owner with this name. An empty name means that there is no owner. */
void conn_owner_of(struct conn_owner *owner, const void *name, size_t len);

struct conn_settings {
	uint64_t connect_ns, liveness_ns; /* see stream_set_limits() */
	bool announces_flushes;           /* see stream_set_user_flushes() */
	const struct conn_owner *owner;   /* the owner of an initiator's connection */
};
/* Returns -EINVAL if the connection has already started. */
int conn_configure(struct conn *c, const struct conn_settings *settings);

/* Dial the peer. `from` is this end's address; LINK_NONE means any. *bound is a link to use, or
 * NULL; if the call succeeds the connection owns it. Later failures are reported by an event. */
int conn_connect(struct conn *c, const struct link_addr *from, const struct link_addr *to,
		 struct link **bound, const struct stream_params *params);
int conn_cancel(struct conn *c); /* calls stream_cancel() */
/* If params is NULL, use the depths that the peer requested, and send no private data. */
int conn_accept(struct conn *c, const struct stream_params *params);
int conn_reject(struct conn *c, const void *pdata, uint8_t len);
/* *reports becomes true if an event will report the end after this call. It becomes false if the
 * end is already reported, or if another thread holds the lock for long; that thread then
 * disconnects. */
int conn_disconnect(struct conn *c, bool *reports);
/*
 * Reset the connection, without an event. If a disconnect in good order has begun, and Writes may
 * be on their way, the call first waits for the peer's FIN, at most for the time limit of a
 * disconnect.
 */
void conn_abort(struct conn *c);

/* Returns the peer's parameters (stream_remote()). Called in an event, with the lock. */
const struct stream_params *conn_remote(const struct conn *c);
/* Get the address of this end of the link. Called in an event, with the lock. */
int conn_local(const struct conn *c, struct link_addr *local);
/* Get both addresses of an inbound connection. Called in an event, with the lock. */
void conn_ends(const struct conn *c, struct link_addr *local, struct link_addr *peer);
/* Set the receiver of all further events. Called in an event, with the lock. */
void conn_report_to(struct conn *c, conn_event_fn *event, void *owner);

/* --- the queue pair of a connection --------------------------------------------------------- */

/* Fill in the functions that a connection provides to its QP: all functions of the QP's owner
 * except async(). */
void conn_serve_qp(struct conn *c, struct qp_config *cfg);
/* Called in async(), with the lock, after the QP refused an access. If the peer is to blame, count
 * a violation of the peer's address (admission.h). */
void conn_on_access_error(struct conn *c);
/* the QP of the connection; called in async(), with the lock */
struct ibv_qp *conn_qp(const struct conn *c);

struct conn_attachment {
	struct qp *qp;
	const struct ibv_qp_init_attr *granted;
	struct stall_count *stall; /* counter of the QP's protection domain */
	/* Counters of the send CQ and of the receive CQ. Each counts the connections of its CQ that
	 * have deferred requests. NULL: both are the same CQ, so the other counter is enough. */
	atomic_uint *waiting[2];
};
/* The connection drives the QP until conn_detach_qp(). */
void conn_attach_qp(struct conn *c, const struct conn_attachment *with);
/* Send deferred requests, so that the CQs no longer count this connection. The caller then removes
 * the connection from the CQs' lists. */
void conn_leave_cqs(struct conn *c);
/* Return the QP to the caller. The function first sends posted requests and waits until a running
 * write-back has finished, both within the time limit of a disconnect. After the call no thread
 * uses the QP. */
struct qp *conn_detach_qp(struct conn *c);

/* The modify and query calls of verbs. Both return 0 or an errno value. The new state must be
 * IBV_QPS_ERR or the present state. */
int conn_modify_qp(struct conn *c, enum ibv_qp_state state);
int conn_query_qp(struct conn *c, struct ibv_qp_attr *attr, struct ibv_qp_init_attr *init);
/* Set the timeout that conn_query_qp() returns. It has no other effect. */
void conn_set_ack_timeout(struct conn *c, uint8_t timeout);
/* A move of a plain queue pair by its user, between two states other than ERR and RESET.
 * conn_move_qp() returns EINVAL if the queue pair is not in `from` any more. */
struct conn_qp_move {
	enum ibv_qp_state from, to;
	bool notify_drained; /* for a move to SQD: see qp_move() */
};
int conn_move_qp(struct conn *c, const struct conn_qp_move *move);
/* Choose which requests of the peer are executed: see qp_permit(). */
int conn_permit_qp(struct conn *c, unsigned access);
/* Copy the first `size` bytes of the counters. */
int conn_counters(struct conn *c, void *counters, size_t size);
/* Returns VEXT_CAP_* flags, or 0 before the connection is established. Called without the lock. */
uint32_t conn_caps(const struct conn *c);

/* Release a region that is about to be deregistered. `forget`: see qp_detach_mr(). Returns false if
 * the lock did not become free within wait_ms. */
bool conn_detach_mr(struct conn *c, struct mr *mr, bool forget, unsigned wait_ms);

/* --- the data path -------------------------------------------------------------------------- */

/*
 * Call qp_post_send(), qp_post_recv() or qp_post_list(). They return ENODEV if conn_is_removed().
 */
int conn_post_send(struct conn *c, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int conn_post_recv(struct conn *c, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int conn_post_list(struct conn *c, const struct vext_wr *wrs, int n, int *posted);
/* Check the send queue again. Called when a connection no longer uses a memory window, because a
 * posted Bind may have waited for this. */
void conn_look_at_sends(struct conn *c);

/*
 * Called when a poll has found its CQ empty: process the bytes that have arrived. `now` is the time
 * if polls follow each other so quickly that no other thread need check for bytes; else 0.
 * Completions go to the taker. Returns false if another thread must process the bytes: it holds the
 * lock already, or this thread must not wait for a file system.
 */
bool conn_drive(struct conn *c, uint64_t now, struct cq_taker *taker);
/* Can the polling thread skip this connection, because it will soon wait for the connection by
 * conn_wait_begin()? Called without the lock. */
bool conn_is_left_to_waits(const struct conn *c);
/* Called when a CQ is armed. `is_empty` is true if the CQ has no completions. *armed_in belongs to
 * this CQ and this connection; it is 0 before the first arming, and then has the number of the
 * connection's wait before the last arming. */
void conn_own_arm(struct conn *c, unsigned *armed_in, bool is_empty);
/* Check the leases (conn_impl.h) if a check is due, and move the alarm to a later time. Called from
 * time to time by threads that poll (POLICY_POLLS) or wait (POLICY_WAITS), without a lock. */
void conn_leases_renew(uint64_t now, enum policy_use use);
/*
 * Called when this thread is about to wait for the link itself. Returns a descriptor for poll(2);
 * the thread must call conn_wait_end() after the poll. Returns -1 if the engine continues to watch
 * the link. `look` is true if the descriptor is readable.
 */
int conn_wait_begin(struct conn *c, uint64_t now);
void conn_wait_end(struct conn *c, bool look);

/* Send deferred requests now. If another thread holds the lock, that thread sends them. */
void conn_ring_soon(struct conn *c);
/* Send the deferred requests of all connections. Waits at most `ms` for the lock of each. */
void doorbells_ring(unsigned ms);
/*
 * Called before the process exits: wait for a short time until the links have taken all posted
 * bytes, and close the links in good order. Without this call the exit of the process would reset
 * the links. If `here` is true, this thread sends as well. If it is false, other threads send, and
 * this call allocates no memory, because it may run in a signal handler.
 */
void conns_send_posted(bool here);

#endif
