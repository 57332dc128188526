/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conn.h -- a connection, as the objects of verbs see it: an id owns one, a queue pair is driven by
 * it, and a completion queue drives those behind it. What it consists of is conn_impl.h's.
 *
 * Every function takes the connection's lock for as long as it needs it, unless its comment says
 * otherwise, and does at once what the call makes due: bytes leave, events are reported. Results
 * are 0 or -errno; those that are verbs' own are 0 or an errno value.
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

/* Reports to the id that the connection belongs to. Called with the connection's lock. */
typedef void conn_event_fn(void *owner, enum stream_event event, int status);

/* event and owner may both be NULL: then nothing is reported. */
int conn_new(enum stream_role role, bool same_host, conn_event_fn *event, void *owner,
	     struct conn **out);
void conn_get(struct conn *c);
void conn_put(struct conn *c);
/*
 * The connection was inherited through fork(): conn_put() is the only other call that it permits.
 * No lock.
 */
bool conn_is_removed(const struct conn *c);
/* The connection that was made after `before` (NULL: the first), or NULL. The caller's reference
 * passes from the one to the other. */
struct conn *conns_next(struct conn *before);
/*
 * The id is destroyed, and gives its reference back. No event is reported any more. The connection
 * ends in good order by itself, and rejects a request that has no answer.
 */
void conn_release(struct conn *c);

/* --- an id's calls -------------------------------------------------------------------------- */

struct conn_owner { /* name of a connection's owner, the same in another process: conn_owner_of() */
	bool given;
	uint8_t hash[EXT_ID_LEN];
};
/* The owner of that name. An empty name is no owner. */
void conn_owner_of(struct conn_owner *owner, const void *name, size_t len);

struct conn_settings {
	uint64_t connect_ns, liveness_ns; /* stream_set_limits() */
	bool announces_flushes;           /* stream_set_user_flushes() */
	const struct conn_owner *owner;   /* of an initiator's */
};
/* -EINVAL: it is too late, as the connection is under way. */
int conn_configure(struct conn *c, const struct conn_settings *settings);

/*
 * Dial. from: the own address; LINK_NONE: any. *bound: the link to use, which is the connection's
 * if the result is 0; or NULL. From then on a failure is reported by an event.
 */
int conn_connect(struct conn *c, const struct link_addr *from, const struct link_addr *to,
		 struct link **bound, const struct stream_params *params);
int conn_cancel(struct conn *c); /* as stream_cancel() */
/* params: NULL: depths as the peer asked for, no private data. */
int conn_accept(struct conn *c, const struct stream_params *params);
int conn_reject(struct conn *c, const void *pdata, uint8_t len);
/*
 * *reports: its end is reported by an event that was not reported before this call. False as well
 * if another thread holds the lock for long: that thread then disconnects.
 */
int conn_disconnect(struct conn *c, bool *reports);
/*
 * End the connection by a reset, without an event. If it is ending in good order already, and
 * Writes may be on their way, it first gets the time of a disconnect.
 */
void conn_abort(struct conn *c);

/* For use in an event, so with the lock: what the peer sent (stream_remote()), */
const struct stream_params *conn_remote(const struct conn *c);
/* the address of its link at this end (0, or -errno: it is unknown), */
int conn_local(const struct conn *c, struct link_addr *local);
/* both ends of an inbound connection, */
void conn_ends(const struct conn *c, struct link_addr *local, struct link_addr *peer);
/* and the receiver of all further events. */
void conn_report_to(struct conn *c, conn_event_fn *event, void *owner);

/* --- its queue pair ------------------------------------------------------------------------- */

/*
 * Fill in the calls that the connection serves for its QP: all calls of the owner except async().
 */
void conn_serve_qp(struct conn *c, struct qp_config *cfg);
/* In async(), with the lock: its QP refused an access. If the peer is to blame, that counts against
 * the peer's address (admission.h). */
void conn_on_access_error(struct conn *c);
struct ibv_qp *conn_qp(const struct conn *c); /* in async() likewise: the QP */

struct conn_attachment {
	struct qp *qp;
	const struct ibv_qp_init_attr *granted;
	struct stall_count *stall; /* of its protection domain */
	/*
	 * Of the send CQ and the receive CQ. Each counts the connections of the CQ that have
	 * something waiting to be sent. NULL: the other one counts for both.
	 */
	atomic_uint *waiting[2];
};
/* The connection drives the QP until it is detached. */
void conn_attach_qp(struct conn *c, const struct conn_attachment *with);
/*
 * Send what waits to be sent, so that the CQs do not count it any more. Then the CQs stop driving
 * the connection,
 */
void conn_leave_cqs(struct conn *c);
/* and its QP is the caller's again. Posted work still leaves, and a write-back may end, within the
 * time of a disconnect. Afterwards no thread uses the QP. */
struct qp *conn_detach_qp(struct conn *c);

/*
 * The calls modify and query of verbs, which return 0 or an errno value. Modify leads to
 * IBV_QPS_ERR, or to the present state.
 */
int conn_modify_qp(struct conn *c, enum ibv_qp_state state);
int conn_query_qp(struct conn *c, struct ibv_qp_attr *attr, struct ibv_qp_init_attr *init);
/*
 * A plain queue pair: its user moves it from one state to another, neither of which is ERR or
 * RESET. EINVAL: it is not in `from` any more.
 */
struct conn_qp_move {
	enum ibv_qp_state from, to;
	bool notify_drained; /* to SQD: as qp_move() */
};
int conn_move_qp(struct conn *c, const struct conn_qp_move *move);
/* Which requests of the peer are executed: as qp_permit(). */
int conn_permit_qp(struct conn *c, unsigned access);
/* the first `size` bytes of the counters; */
int conn_counters(struct conn *c, void *counters, size_t size);
/* and VEXT_CAP_*, 0 until it is established. Without the lock. */
uint32_t conn_caps(const struct conn *c);

/*
 * A region goes away. forget: see qp_detach_mr(). Returns false if the lock was not free for
 * wait_ms.
 */
bool conn_detach_mr(struct conn *c, struct mr *mr, bool forget, unsigned wait_ms);

/* --- the data path -------------------------------------------------------------------------- */

/* As qp_post_send(), qp_post_recv() and qp_post_list(). ENODEV: conn_is_removed(). */
int conn_post_send(struct conn *c, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int conn_post_recv(struct conn *c, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int conn_post_list(struct conn *c, const struct vext_wr *wrs, int n, int *posted);

/*
 * A CQ was polled and is empty: take what has come. now: the time, if polls follow each other so
 * quickly that no other thread need look for bytes; else 0. Completions go to the taker. Returns
 * false if the connection is left to another thread, which has its lock, or may wait for a file
 * system where this thread may not.
 */
bool conn_drive(struct conn *c, uint64_t now, struct cq_taker *taker);
/*
 * Without the lock: returns whether the polling thread need not look, because it soon waits by
 * conn_wait_begin().
 */
bool conn_is_left_to_waits(const struct conn *c);
void conn_own_arm(struct conn *c); /* a CQ of the connection is armed */
/* Called now and then by threads that poll (POLICY_POLLS) or wait (POLICY_WAITS). */
void conn_leases_renew(uint64_t now, enum policy_use use);
/*
 * A thread is about to wait for the link by itself. Returns a descriptor for poll(2), and
 * conn_wait_end() follows; or -1: the engine goes on looking. look: the descriptor is readable.
 */
int conn_wait_begin(struct conn *c, uint64_t now);
void conn_wait_end(struct conn *c, bool look);

/* Send now what waits to be sent. If another thread has the lock, that thread sends it. */
void conn_ring_soon(struct conn *c);
/* The same for all connections. It waits at most so long for the lock of each. */
void doorbells_ring(unsigned ms);
/*
 * Called before the process ends: wait, for a moment at most, until links have taken what was
 * posted, and end them in good order. Otherwise the end of the process is a reset. here: this
 * thread sends as well. If not `here`, it allocates no memory, as it may run in a signal handler.
 */
void conns_send_posted(bool here);

#endif
