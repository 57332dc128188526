/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conn.h -- a connection, as the objects of verbs use it: an id owns one, a connection drives a
 * queue pair, and a completion queue drives its connections. conn_impl.h has its inside.
 *
 * Every function takes the connection's lock for the time that it needs, unless its comment states
 * otherwise, and performs all tasks that are due: bytes are sent, events are reported. Results are
 * 0 or -errno; functions of verbs itself return 0 or an errno value.
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

/* --- life ----------------------------------------------------------------------------------- */

/* Reports an event to the connection's id. Called with the connection's lock. */
typedef void conn_event_fn(void *owner, enum stream_event event, int status);

/* event and owner may both be NULL: then events are dropped. */
int conn_new(enum stream_role role, bool same_host, conn_event_fn *event, void *owner,
	     struct conn **out);
void conn_get(struct conn *c);
void conn_put(struct conn *c);
/* The connection was inherited through fork(): then only conn_put() may be called. Called without
 * the lock. */
bool conn_is_removed(const struct conn *c);
/* Returns the connection made after `before` (NULL: the first connection), or NULL. The caller's
 * reference moves from `before` to the result. */
struct conn *conns_next(struct conn *before);
/* The id is destroyed, and gives back its reference. Events are dropped from now on. The connection
 * ends in good order by itself, and rejects an unanswered request. */
void conn_release(struct conn *c);

/* --- an id's calls -------------------------------------------------------------------------- */

struct conn_owner { /* name of a connection's owner, equal in all its processes: conn_owner_of() */
	bool given;
	uint8_t hash[EXT_ID_LEN];
};
/* Make the owner of that name. An empty name means no owner. */
void conn_owner_of(struct conn_owner *owner, const void *name, size_t len);

struct conn_settings {
	uint64_t connect_ns, liveness_ns; /* stream_set_limits() */
	bool announces_flushes;           /* stream_set_user_flushes() */
	const struct conn_owner *owner;   /* an initiator's owner */
};
/* Returns -EINVAL if the connection has already started. */
int conn_configure(struct conn *c, const struct conn_settings *settings);

/* Dial. from: the own address; LINK_NONE: any. *bound: a link to use, or NULL; on success the
 * connection owns it. Later failures are reported by an event. */
int conn_connect(struct conn *c, const struct link_addr *from, const struct link_addr *to,
		 struct link **bound, const struct stream_params *params);
int conn_cancel(struct conn *c); /* as stream_cancel() */
/* params NULL: use the depths that the peer requested, and no private data. */
int conn_accept(struct conn *c, const struct stream_params *params);
int conn_reject(struct conn *c, const void *pdata, uint8_t len);
/* *reports: the end will be reported by an event after this call. False also if another thread
 * holds the lock for long: that thread then disconnects. */
int conn_disconnect(struct conn *c, bool *reports);
/*
 * End the connection by a reset, without an event. If it is ending in good order already, and
 * Writes may be on their way, it first gets the time of a disconnect.
 */
void conn_abort(struct conn *c);

/* For use in an event, so with the lock: the peer's parameters (stream_remote()). */
const struct stream_params *conn_remote(const struct conn *c);
/* End the connection by a reset, without an event. If it is already ending in good order, and
 * Writes may be on their way, it first gets the time limit of a disconnect. */
int conn_local(const struct conn *c, struct link_addr *local);
/* Likewise: both addresses of an inbound connection. */
void conn_ends(const struct conn *c, struct link_addr *local, struct link_addr *peer);
/* Likewise: set the receiver of all further events. */
void conn_report_to(struct conn *c, conn_event_fn *event, void *owner);

/* --- its queue pair ------------------------------------------------------------------------- */

/* Fill in the functions that the connection provides to its QP: all functions of the owner except
 * async(). */
void conn_serve_qp(struct conn *c, struct qp_config *cfg);
/* Called in async(), with the lock, after the QP refused an access. If the peer is to blame, count
 * a violation of the peer's address (admission.h). */
void conn_on_access_error(struct conn *c);
struct ibv_qp *conn_qp(const struct conn *c); /* the QP; called in async(), with the lock */

struct conn_attachment {
	struct qp *qp;
	const struct ibv_qp_init_attr *granted;
	struct stall_count *stall; /* of the QP's protection domain */
	/* Counters of the send CQ and the receive CQ: each is the number of the CQ's connections
	 * with deferred requests. NULL: the other counter serves both. */
	atomic_uint *waiting[2];
};
/* The connection drives the QP until conn_detach_qp(). */
void conn_attach_qp(struct conn *c, const struct conn_attachment *with);
/* Send deferred requests, so that the CQs no longer count them. Then the CQs stop driving the
 * connection. */
void conn_leave_cqs(struct conn *c);
/* Return the QP to the caller. Posted requests are still sent, and a write-back may end, within the
 * time limit of a disconnect. Afterwards no thread uses the QP. */
struct qp *conn_detach_qp(struct conn *c);

/* Modify and query of verbs; both return 0 or an errno value. The state may be IBV_QPS_ERR, or the
 * present state. */
int conn_modify_qp(struct conn *c, enum ibv_qp_state state);
int conn_query_qp(struct conn *c, struct ibv_qp_attr *attr, struct ibv_qp_init_attr *init);
/* A move of a plain queue pair by its user, between two states other than ERR and RESET. EINVAL:
 * the queue pair is no longer in `from`. */
struct conn_qp_move {
	enum ibv_qp_state from, to;
	bool notify_drained; /* for a move to SQD: as qp_move() */
};
int conn_move_qp(struct conn *c, const struct conn_qp_move *move);
/* Choose the peer's requests that are executed: as qp_permit(). */
int conn_permit_qp(struct conn *c, unsigned access);
/* Copy the first `size` bytes of the counters. */
int conn_counters(struct conn *c, void *counters, size_t size);
/* VEXT_CAP_*; 0 before the connection is established. Called without the lock. */
uint32_t conn_caps(const struct conn *c);

/* Release a region that is about to end. forget: see qp_detach_mr(). Returns false if the lock was
 * not free within wait_ms. */
bool conn_detach_mr(struct conn *c, struct mr *mr, bool forget, unsigned wait_ms);

/* --- the data path -------------------------------------------------------------------------- */

/* As qp_post_send(), qp_post_recv() and qp_post_list(). Return ENODEV if conn_is_removed(). */
int conn_post_send(struct conn *c, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int conn_post_recv(struct conn *c, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int conn_post_list(struct conn *c, const struct vext_wr *wrs, int n, int *posted);
/* What a posted Bind waited for has ended. */
void conn_look_at_sends(struct conn *c);

/*
 * A poll found its CQ empty: process arrived bytes. now: the time, if polls follow each other so
 * quickly that no other thread need check for bytes; else 0. Completions go to the taker. Returns
 * false if the connection is left to another thread: that thread holds the lock, or this thread
 * must not wait for a file system.
 */
bool conn_drive(struct conn *c, uint64_t now, struct cq_taker *taker);
/* Called without the lock: may the polling thread skip this connection, because it will soon wait
 * by conn_wait_begin()? */
bool conn_is_left_to_waits(const struct conn *c);
void conn_own_arm(struct conn *c); /* a CQ of the connection is armed */
/* Called now and then by threads that poll (POLICY_POLLS) or wait (POLICY_WAITS). */
void conn_leases_renew(uint64_t now, enum policy_use use);
/*
 * This thread is about to wait for the link itself. Returns a descriptor for poll(2), and then
 * conn_wait_end() must follow; or -1: the engine continues to watch the link. look: the descriptor
 * is readable.
 */
int conn_wait_begin(struct conn *c, uint64_t now);
void conn_wait_end(struct conn *c, bool look);

/* Send deferred requests now. If another thread holds the lock, that thread sends them. */
void conn_ring_soon(struct conn *c);
/* As conn_ring_soon(), for all connections. Waits at most `ms` for the lock of each. */
void doorbells_ring(unsigned ms);
/*
 * Called before the process ends: wait for a short time until the links have taken all posted
 * bytes, and end the links in good order. Otherwise the end of the process resets them. here: this
 * thread sends as well. If not `here`, the call allocates no memory, because it may run in a signal
 * handler.
 */
void conns_send_posted(bool here);

#endif
