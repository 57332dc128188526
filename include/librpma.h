/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * librpma.h -- one-sided access to another machine's memory, and flushes that make it durable.
 *
 * The order of things: a device context -> rpma_peer -> memory regions; then either
 * rpma_ep_listen() -> rpma_ep_next_conn_req() or rpma_conn_req_new(); then
 * rpma_conn_req_connect() -> rpma_conn, on which reads, writes, flushes and messages are
 * posted. Their outcome arrives in the connection's completion queue.
 *
 * What holds for every call unless it says otherwise:
 * - The result is 0 or one of the negative RPMA_E_* values. On failure no output is written, but
 *   rpma_conn_cfg_new() and rpma_srq_cfg_new() give NULL when there is no memory.
 * - A NULL where an object or an output is required gives RPMA_E_INVAL.
 * - Functions named _delete, _dereg and _shutdown take the address of the caller's pointer. It is
 *   NULL afterwards and the object gone, also when a step failed (the first failure is returned).
 *   A pointer that is already NULL is no error. Only rpma_cq_delete() refuses what is in use.
 * - Objects must be released in the reverse order of their making: a peer outlives what was made
 *   from it, a memory region outlives the operations that use it.
 * - Calls on different objects may run in parallel. Data-path calls, completion queues and config
 *   objects may be shared between threads; making, connecting and deleting one object may not.
 *
 * There is a manual page for each function, and librpma(7) for the whole. 84 functions are those of
 * librpma 1.3; the pages of the others, which came with version 1.4, say so.
 */
#ifndef LIBRPMA_H
#define LIBRPMA_H 1

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <infiniband/verbs.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Versions and features. RPMA_HAS_X is the version with which X came: #ifdef asks for it when a
 * program is compiled, rpma_version() >= RPMA_HAS_X when it runs, perhaps with another library.
 * Version 1.3 has neither these nor rpma_version(). The 84 functions of 1.3 are always there.
 */
#define RPMA_VERSION_NUMBER(major, minor, patch) ((major)*1000000 + (minor)*1000 + (patch))
#define RPMA_VERSION_MAJOR                       1
#define RPMA_VERSION_MINOR                       4
#define RPMA_VERSION_PATCH                       0
#define RPMA_VERSION                             RPMA_VERSION_NUMBER(RPMA_VERSION_MAJOR, RPMA_VERSION_MINOR, RPMA_VERSION_PATCH)

#define RPMA_HAS_ATOMICS      1004000 /* rpma_atomic_compare_swap(), rpma_atomic_fetch_add() */
#define RPMA_HAS_BATCH        1004000 /* rpma_batch_X(), rpma_send_gather() */
#define RPMA_HAS_CONN_OPEN    1004000 /* rpma_conn_open() */
#define RPMA_HAS_COUNTERS     1004000 /* rpma_conn_get_counters() */
#define RPMA_HAS_CQ           1004000 /* rpma_cq_new(): one queue for several connections */
#define RPMA_HAS_DURABILITY   1004000 /* rpma_query_durability(), rpma_utils_get_durability() */
#define RPMA_HAS_ERR_LAST     1004000 /* rpma_err_last() */
#define RPMA_HAS_FLUSH_ALL    1004000 /* rpma_flush_all() */
#define RPMA_HAS_MR_REG_FILE  1004000 /* rpma_mr_reg_file() */
#define RPMA_HAS_PROVIDERS    1004000 /* rpma_provider_list_X(), ..._get_ibv_context_from() */
#define RPMA_HAS_REASONS      1004000 /* rpma_wc_explain(), rpma_wc_get_reason() */
#define RPMA_HAS_REJECTION    1004000 /* rpma_conn_get_rejection(), rpma_conn_req_reject() */
#define RPMA_HAS_REMOTE_CAPS  1004000 /* rpma_conn_get_remote_caps() */
#define RPMA_HAS_STRICT_FLUSH 1004000 /* rpma_flush() refuses volatile memory */
#define RPMA_HAS_TIMEOUTS     1004000 /* rpma_X_timeout(), rpma_conn_cancel() and limits in cfg */
#define RPMA_HAS_VERIFY       1004000 /* rpma_verify(), rpma_digest_X() */

/* RPMA_VERSION of the library that the program runs with. */
unsigned int rpma_version(void);

/*
 * Structures. A structure that may get members in a later version begins with `size`, which the
 * caller sets to sizeof. The library reads or writes no more than `size` bytes, and writes zeros to
 * members that it does not have. The other structures never change: rpma_conn_private_data,
 * rpma_segment and rpma_counter (programs have arrays of them) and rpma_digest (programs keep, send
 * and compare its values).
 */

/* Results */

#define RPMA_E_UNKNOWN         (-100000) /* no reason was reported */
#define RPMA_E_NOSUPP          (-100001) /* this end or the other end does not support the call */
#define RPMA_E_PROVIDER        (-100002) /* the RDMA provider failed: rpma_err_last() */
#define RPMA_E_NOMEM           (-100003) /* out of memory */
#define RPMA_E_INVAL           (-100004) /* an argument is wrong */
#define RPMA_E_NO_COMPLETION   (-100005) /* the completion queue is empty */
#define RPMA_E_NO_EVENT        (-100006) /* no event is pending */
#define RPMA_E_AGAIN           (-100007) /* try again */
#define RPMA_E_SHARED_CHANNEL  (-100008) /* this queue's channel is shared: rpma_conn_wait() */
#define RPMA_E_NOT_SHARED_CHNL (-100009) /* there is no shared channel: rpma_cq_wait() */

/* A static text for a result; "Unknown error" for other values. */
const char *rpma_err_2str(int ret);

/*
 * The reason of the calling thread's last failed call: what failed, with which value, and advice.
 * One line without a newline, never NULL, "" before the first failure. Each thread has its own
 * text: it stays until the thread's next failed call, and must not be used by other threads or
 * after the thread's end. If a call only looks, RPMA_E_NO_EVENT and RPMA_E_NO_COMPLETION do not
 * change the text; if a wait ended at its time limit, they set it.
 */
const char *rpma_err_last(void);

/* Devices */

enum rpma_util_ibv_context_type {
	RPMA_UTIL_IBV_CONTEXT_LOCAL, /* this machine owns addr */
	RPMA_UTIL_IBV_CONTEXT_REMOTE /* addr is reached through the device */
};

/*
 * The device that owns (LOCAL) or reaches (REMOTE) an address: an RDMA device if there is one, else
 * the software RNIC. The environment variable RPMA_PROVIDER (auto, verbs, softrnic) overrides this
 * choice. The context stays open, and the caller does not close it. RPMA_E_PROVIDER: no such
 * device. Not thread-safe by contract.
 */
int rpma_utils_get_ibv_context(const char *addr, enum rpma_util_ibv_context_type type,
			       struct ibv_context **ibv_ctx_ptr);

/*
 * As above, but only from this provider ("verbs" or "softrnic"), whatever the environment says.
 * RPMA_E_INVAL also for an unknown name (rpma_err_last() lists the known names). RPMA_E_PROVIDER:
 * the provider cannot serve addr; rpma_err_last() gives the reason.
 */
int rpma_utils_get_ibv_context_from(const char *provider, const char *addr,
				    enum rpma_util_ibv_context_type type,
				    struct ibv_context **ibv_ctx_ptr);

/* The devices that exist, and why each can be used or not: one row for each device, or for a
 * provider without a device. */

struct rpma_provider_list;

struct rpma_provider_info {
	size_t size; /* sizeof(struct rpma_provider_info) */
	const char *provider;
	const char *device; /* NULL: the provider has no device */
	bool usable;
	const char *why; /* the reason in one line, for usable and unusable rows */
};

/*
 * Make the list for an address, or in general (addr NULL; type must be valid all the same).
 * RPMA_E_NOMEM. The call can take a while: it opens and closes devices, and may look up a name. Not
 * thread-safe by contract.
 */
int rpma_provider_list_new(const char *addr, enum rpma_util_ibv_context_type type,
			   struct rpma_provider_list **list_ptr);
int rpma_provider_list_delete(struct rpma_provider_list **list_ptr);
/*
 * Rows count from 0. RPMA_E_INVAL: the list has no such row, or info->size is not set. The texts
 * live as long as the list.
 */
int rpma_provider_list_get(const struct rpma_provider_list *list, size_t index,
			   struct rpma_provider_info *info);

/* 1 when the device registers file mappings on demand for reads and writes over RC, else 0. */
int rpma_utils_ibv_context_is_odp_capable(struct ibv_context *ibv_ctx, int *is_odp_capable);

/* Peer configuration: what one end declares to the other */

struct rpma_peer_cfg;

int rpma_peer_cfg_new(struct rpma_peer_cfg **pcfg_ptr);
int rpma_peer_cfg_delete(struct rpma_peer_cfg **pcfg_ptr);

/* Does a write that became visible at this end also reach its persistent memory? Default: false. */
int rpma_peer_cfg_set_direct_write_to_pmem(struct rpma_peer_cfg *pcfg, bool supported);
int rpma_peer_cfg_get_direct_write_to_pmem(const struct rpma_peer_cfg *pcfg, bool *supported);

/*
 * Write the descriptor, which the program sends to the other end. desc has room for the size that
 * the second function returns.
 */
int rpma_peer_cfg_get_descriptor(const struct rpma_peer_cfg *pcfg, void *desc);
int rpma_peer_cfg_get_descriptor_size(const struct rpma_peer_cfg *pcfg, size_t *desc_size);
int rpma_peer_cfg_from_descriptor(const void *desc, size_t desc_size,
				  struct rpma_peer_cfg **pcfg_ptr);

/* Peer: a protection domain on a device; regions and connections belong to it */

struct rpma_peer;

/* RPMA_E_NOMEM, RPMA_E_PROVIDER, RPMA_E_UNKNOWN. Thread-safe. */
int rpma_peer_new(struct ibv_context *ibv_ctx, struct rpma_peer **peer_ptr);
int rpma_peer_delete(struct rpma_peer **peer_ptr);

/* Memory regions */

struct rpma_mr_local;  /* memory of this process, registered */
struct rpma_mr_remote; /* a region of the other end, made from the region's descriptor */

#define RPMA_MR_USAGE_READ_SRC              (1 << 0)
#define RPMA_MR_USAGE_READ_DST              (1 << 1)
#define RPMA_MR_USAGE_WRITE_SRC             (1 << 2)
#define RPMA_MR_USAGE_WRITE_DST             (1 << 3)
#define RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY (1 << 4)
#define RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT (1 << 5)
#define RPMA_MR_USAGE_SEND                  (1 << 6)
#define RPMA_MR_USAGE_RECV                  (1 << 7)

/*
 * Register size bytes at ptr for the uses in `usage` (an OR of RPMA_MR_USAGE_*, not 0). The memory
 * stays the caller's, and must stay mapped until rpma_mr_dereg(). After rpma_mr_dereg() no peer
 * reaches the memory. RPMA_E_NOMEM, RPMA_E_PROVIDER. Neither function is thread-safe by contract.
 */
int rpma_mr_reg(struct rpma_peer *peer, void *ptr, size_t size, int usage,
		struct rpma_mr_local **mr_ptr);
int rpma_mr_dereg(struct rpma_mr_local **mr_ptr);

/*
 * Open, map and register a file, so that bytes that peers flush are on its medium and survive under
 * its name. The call reserves the blocks, and drops cached pages that an earlier process could not
 * write back. size 0: the whole file; otherwise a shorter file grows, and a missing file is made.
 * rpma_mr_get_ptr() and _get_size() return the mapping, which rpma_mr_dereg() undoes.
 * RPMA_E_PROVIDER also: the file cannot be used, and rpma_err_last() gives the reason.
 */
int rpma_mr_reg_file(struct rpma_peer *peer, const char *path, size_t size, int usage,
		     struct rpma_mr_local **mr_ptr);

int rpma_mr_get_ptr(const struct rpma_mr_local *mr, void **ptr);
int rpma_mr_get_size(const struct rpma_mr_local *mr, size_t *size);

/*
 * The descriptor lets the other end address this region. The descriptor is a capability: do not
 * give it to a peer that must not use the region. desc has room for the size that the second
 * function returns.
 */
int rpma_mr_get_descriptor(const struct rpma_mr_local *mr, void *desc);
int rpma_mr_get_descriptor_size(const struct rpma_mr_local *mr, size_t *desc_size);

/*
 * A hint about length bytes at an offset of the region; advice and flags as for ibv_advise_mr(3).
 * RPMA_E_NOSUPP: the device takes no such hint. RPMA_E_INVAL also for a bad range. Thread-safe.
 */
int rpma_mr_advise(struct rpma_mr_local *mr, size_t offset, size_t len, int advice, uint32_t flags);

/* The function ignores bytes behind the descriptor. RPMA_E_INVAL: the descriptor is too short, or
 * names no usage. */
int rpma_mr_remote_from_descriptor(const void *desc, size_t desc_size,
				   struct rpma_mr_remote **mr_ptr);
int rpma_mr_remote_delete(struct rpma_mr_remote **mr_ptr);
int rpma_mr_remote_get_size(const struct rpma_mr_remote *mr, size_t *size);
/* The RPMA_MR_USAGE_FLUSH_TYPE_* bits with which the other end registered the region. */
int rpma_mr_remote_get_flush_type(const struct rpma_mr_remote *mr, int *flush_type);

/* Shared receive queue: receives that several connections share */

struct rpma_srq_cfg;
struct rpma_srq;
struct rpma_cq;

/* Defaults: 20 receives, and a private completion queue of 20 entries (size 0: no private
 * queue). */
int rpma_srq_cfg_new(struct rpma_srq_cfg **cfg_ptr);
int rpma_srq_cfg_delete(struct rpma_srq_cfg **cfg_ptr);
int rpma_srq_cfg_set_rq_size(struct rpma_srq_cfg *cfg, uint32_t rq_size);
int rpma_srq_cfg_get_rq_size(const struct rpma_srq_cfg *cfg, uint32_t *rq_size);
int rpma_srq_cfg_set_rcq_size(struct rpma_srq_cfg *cfg, uint32_t rcq_size);
int rpma_srq_cfg_get_rcq_size(const struct rpma_srq_cfg *cfg, uint32_t *rcq_size);

/* cfg NULL: the defaults. RPMA_E_NOMEM, RPMA_E_PROVIDER. Neither function is thread-safe by
 * contract. */
int rpma_srq_new(struct rpma_peer *peer, struct rpma_srq_cfg *cfg, struct rpma_srq **srq_ptr);
int rpma_srq_delete(struct rpma_srq **srq_ptr);

/* Post a receive; see rpma_recv(). */
int rpma_srq_recv(struct rpma_srq *srq, struct rpma_mr_local *dst, size_t offset, size_t len,
		  const void *op_context);
/* The private completion queue of the SRQ, or NULL if there is none. The queue belongs to the
 * SRQ. */
int rpma_srq_get_rcq(const struct rpma_srq *srq, struct rpma_cq **rcq_ptr);

/* Connection configuration; thread-safe on a shared object */

struct rpma_conn_cfg;

#define RPMA_DEFAULT_TIMEOUT_MS 1000

int rpma_conn_cfg_new(struct rpma_conn_cfg **cfg_ptr);
int rpma_conn_cfg_delete(struct rpma_conn_cfg **cfg_ptr);

/* Limit for each of the two steps, resolving the address and the route; negative: RPMA_E_INVAL. */
int rpma_conn_cfg_set_timeout(struct rpma_conn_cfg *cfg, int timeout_ms);
int rpma_conn_cfg_get_timeout(const struct rpma_conn_cfg *cfg, int *timeout_ms);

/* Number of entries of the main completion queue (10), and of the queue for receives alone (0: no
 * such queue). */
int rpma_conn_cfg_set_cq_size(struct rpma_conn_cfg *cfg, uint32_t cq_size);
int rpma_conn_cfg_get_cq_size(const struct rpma_conn_cfg *cfg, uint32_t *cq_size);
int rpma_conn_cfg_set_rcq_size(struct rpma_conn_cfg *cfg, uint32_t rcq_size);
int rpma_conn_cfg_get_rcq_size(const struct rpma_conn_cfg *cfg, uint32_t *rcq_size);

/* Number of outstanding work requests in the send queue (10) and in the receive queue (10). */
int rpma_conn_cfg_set_sq_size(struct rpma_conn_cfg *cfg, uint32_t sq_size);
int rpma_conn_cfg_get_sq_size(const struct rpma_conn_cfg *cfg, uint32_t *sq_size);
int rpma_conn_cfg_set_rq_size(struct rpma_conn_cfg *cfg, uint32_t rq_size);
int rpma_conn_cfg_get_rq_size(const struct rpma_conn_cfg *cfg, uint32_t *rq_size);

/* Use one channel for both completion queues; rpma_conn_wait() waits for the channel. Default:
 * false. */
int rpma_conn_cfg_set_compl_channel(struct rpma_conn_cfg *cfg, bool shared);
int rpma_conn_cfg_get_compl_channel(const struct rpma_conn_cfg *cfg, bool *shared);

/* Receive from this SRQ, which must outlive the connection. The setting cannot be undone. */
int rpma_conn_cfg_set_srq(struct rpma_conn_cfg *cfg, struct rpma_srq *srq);
int rpma_conn_cfg_get_srq(const struct rpma_conn_cfg *cfg, struct rpma_srq **srq_ptr);

/*
 * Complete the connections' operations in this queue of rpma_cq_new(), instead of a queue for each
 * connection (cq_size is then unused). The queue must be of the same device, and outlive the
 * connections and their requests. NULL (default): no common queue. Not together with a shared
 * channel.
 */
int rpma_conn_cfg_set_cq(struct rpma_conn_cfg *cfg, struct rpma_cq *cq);
int rpma_conn_cfg_get_cq(const struct rpma_conn_cfg *cfg, struct rpma_cq **cq_ptr);

/*
 * Limit for the whole of rpma_conn_req_connect(), at the connecting end. At the limit
 * RPMA_CONN_UNREACHABLE follows. 0 (default): the device's limit; the software RNIC's is 10 s.
 */
int rpma_conn_cfg_set_connect_timeout(struct rpma_conn_cfg *cfg, int timeout_ms);
int rpma_conn_cfg_get_connect_timeout(const struct rpma_conn_cfg *cfg, int *timeout_ms);

/*
 * The connection is lost (RPMA_CONN_LOST) if no byte, not even a heartbeat, came from the peer for
 * this time. 0 (default): the device's limit; the software RNIC's is 15 s. -1: no limit.
 */
int rpma_conn_cfg_set_liveness(struct rpma_conn_cfg *cfg, int limit_ms);
int rpma_conn_cfg_get_liveness(const struct rpma_conn_cfg *cfg, int *limit_ms);

/*
 * The owner of the connections: a name of 1 to RPMA_CONN_OWNER_MAX bytes that the program keeps
 * when it is started again; len 0 (default): no owner. For the connecting end only. The target ends
 * each connection that another process has made for this owner before a connection with the owner
 * is established, and places nothing of the ended ones any more. Without an owner the same holds
 * for the connections that this process has given up.
 *
 * rpma_conn_cfg_get_owner() returns a pointer into the configuration. The pointer is valid until
 * the configuration changes.
 */
#define RPMA_CONN_OWNER_MAX 64
int rpma_conn_cfg_set_owner(struct rpma_conn_cfg *cfg, const void *name, size_t len);
int rpma_conn_cfg_get_owner(const struct rpma_conn_cfg *cfg, const void **name, size_t *len);

/* Connections: events and life */

struct rpma_conn;

struct rpma_conn_private_data {
	void *ptr;
	uint8_t len;
};

enum rpma_conn_event {
	RPMA_CONN_UNDEFINED = -1,
	RPMA_CONN_ESTABLISHED, /* operations may be posted */
	RPMA_CONN_CLOSED,      /* ended in good order */
	RPMA_CONN_LOST,        /* broken */
	RPMA_CONN_REJECTED,    /* rejected by the end that rpma_conn_get_rejection() returns */
	RPMA_CONN_UNREACHABLE  /* no answer within the time limit */
};

const char *rpma_utils_conn_event_2str(enum rpma_conn_event conn_event);

/* Which end rejected a connection. */
enum rpma_rejection {
	RPMA_REJECTION_NONE,        /* RPMA_CONN_REJECTED has not come */
	RPMA_REJECTION_UNKNOWN,     /* the device does not report the end */
	RPMA_REJECTION_NO_LISTENER, /* there is no listener */
	RPMA_REJECTION_REFUSED,     /* the application of the other end */
	RPMA_REJECTION_CLOSED       /* the listener closed the connection without an answer */
};
int rpma_conn_get_rejection(const struct rpma_conn *conn, enum rpma_rejection *rejection);

/* Readable while an event is pending; may be made non-blocking. The library owns the descriptor: do
 * not close it. */
int rpma_conn_get_event_fd(const struct rpma_conn *conn, int *fd);

/*
 * Return the next event. Waits for the event unless the fd is non-blocking; then RPMA_E_NO_EVENT.
 * RPMA_E_UNKNOWN: the event has no name here. RPMA_E_PROVIDER, RPMA_E_NOMEM. With REJECTED,
 * UNREACHABLE and LOST rpma_err_last() gives the reason.
 */
int rpma_conn_next_event(struct rpma_conn *conn, enum rpma_conn_event *event);
/*
 * The same with a time limit, whether or not the fd is non-blocking. -1: no limit. Signals neither
 * end nor shorten the wait. RPMA_E_NO_EVENT: no event came in time. Thread-safe: one of several
 * waiting threads gets the event, the other threads go on waiting.
 */
int rpma_conn_next_event_timeout(struct rpma_conn *conn, int timeout_ms,
				 enum rpma_conn_event *event);

/*
 * The bytes that the other end sent while connecting, or with a rejection; {NULL, 0} if there are
 * none. Available from the event on, valid until rpma_conn_delete(). Some fabrics pad the bytes
 * with zeros: do not rely on an exact length.
 */
int rpma_conn_get_private_data(const struct rpma_conn *conn, struct rpma_conn_private_data *pdata);

/*
 * Apply the other end's declaration about itself. The declaration decides how later rpma_flush()
 * calls are done.
 */
int rpma_conn_apply_remote_peer_cfg(struct rpma_conn *conn, const struct rpma_peer_cfg *pcfg);

int rpma_conn_get_qp_num(const struct rpma_conn *conn, uint32_t *qp_num);
/* The completion queues, which belong to the connection. The second queue is NULL if receives have
 * no queue of their own. */
int rpma_conn_get_cq(const struct rpma_conn *conn, struct rpma_cq **cq_ptr);
int rpma_conn_get_rcq(const struct rpma_conn *conn, struct rpma_cq **rcq_ptr);

/* the other end is a software RNIC that agreed to the extensions */
#define RPMA_CAP_SOFTRNIC (1 << 0)
/* rpma_flush() is one operation, which the target executes */
#define RPMA_CAP_FLUSH        (1 << 1)
#define RPMA_CAP_FLUSH_ALL    (1 << 2) /* rpma_flush_all() */
#define RPMA_CAP_ATOMIC_WRITE (1 << 3) /* rpma_atomic_write() is one operation */
#define RPMA_CAP_VERIFY       (1 << 4) /* rpma_verify() */
#define RPMA_CAP_QUERY        (1 << 5) /* rpma_query_durability() */
#define RPMA_CAP_IMM          (1 << 6) /* immediate data */
#define RPMA_CAP_ATOMICS      (1 << 7) /* rpma_atomic_compare_swap(), rpma_atomic_fetch_add() */

/* The capabilities of the other end, RPMA_CAP_*. RPMA_E_AGAIN: RPMA_CONN_ESTABLISHED has not come
 * yet. */
int rpma_conn_get_remote_caps(const struct rpma_conn *conn, uint32_t *caps);

struct rpma_counter {
	const char *name; /* static */
	uint64_t value;   /* counted since the connection was made */
};

/*
 * The connection's counters. *count: in, the room in counters; out, the number of counters that
 * exist. counters NULL: return only the number. RPMA_E_NOSUPP: the device counts nothing.
 */
int rpma_conn_get_counters(const struct rpma_conn *conn, struct rpma_counter *counters,
			   size_t *count);

/*
 * The other end's numeric address without the port. An IPv4 address that came through IPv6 is
 * written as IPv4. RPMA_ADDR_MAX bytes are enough; RPMA_E_INVAL: size is too small. RPMA_E_UNKNOWN:
 * the device does not report the address.
 */
#define RPMA_ADDR_MAX 64
int rpma_conn_get_remote_addr(const struct rpma_conn *conn, char *addr, size_t size);

/*
 * Give up connecting: RPMA_CONN_UNREACHABLE follows. The call has no effect if the outcome came
 * before. Thread-safe, also while another thread waits for the event. RPMA_E_NOSUPP: the device
 * cannot give up; rpma_conn_delete() can.
 */
int rpma_conn_cancel(struct rpma_conn *conn);

/* Begin to close; RPMA_CONN_CLOSED follows as an event. Operations that were posted before are
 * still sent. */
int rpma_conn_disconnect(struct rpma_conn *conn);
/* Release everything. Without an earlier disconnect the other end sees the connection break. */
int rpma_conn_delete(struct rpma_conn **conn_ptr);

/* The fd of the shared completion channel, and a wait for the channel. RPMA_E_NOT_SHARED_CHNL: the
 * connection has no shared channel. */
int rpma_conn_get_compl_fd(const struct rpma_conn *conn, int *fd);
/*
 * Wait for a completion in either queue, and return the queue: *cq, and *is_rcq unless is_rcq is
 * NULL. Collect the completion with rpma_cq_get_wc(). flags is reserved. RPMA_E_NO_COMPLETION: the
 * wait ended without a completion. RPMA_E_UNKNOWN: the event's queue is not this connection's.
 * RPMA_E_PROVIDER: the next wait could not be prepared; *cq is NULL.
 */
int rpma_conn_wait(struct rpma_conn *conn, int flags, struct rpma_cq **cq, bool *is_rcq);
/* The same with a time limit; see rpma_cq_wait_timeout(). */
int rpma_conn_wait_timeout(struct rpma_conn *conn, int timeout_ms, struct rpma_cq **cq,
			   bool *is_rcq);

/* Connection requests: outgoing, or incoming at an endpoint */

struct rpma_conn_req;

/*
 * Resolve addr:port and make the queues; cfg NULL: the defaults. The call sends nothing to the
 * other end's application. RPMA_E_NOMEM, RPMA_E_PROVIDER; RPMA_E_INVAL also for a shared channel
 * together with an SRQ that has a private completion queue.
 */
int rpma_conn_req_new(struct rpma_peer *peer, const char *addr, const char *port,
		      const struct rpma_conn_cfg *cfg, struct rpma_conn_req **req_ptr);
/* Deleting an incoming request rejects the request. */
int rpma_conn_req_delete(struct rpma_conn_req **req_ptr);

/*
 * Connect, or accept, with up to 255 bytes of private data (pdata NULL: none). The call consumes
 * the request: *req_ptr is NULL afterwards, whatever the result. The outcome is an event of the new
 * connection.
 */
int rpma_conn_req_connect(struct rpma_conn_req **req_ptr,
			  const struct rpma_conn_private_data *pdata, struct rpma_conn **conn_ptr);

/* Parameters of rpma_conn_open(). The caller must set size; each other member may be zero, which
 * selects its default. */
struct rpma_conn_open_attr {
	size_t size; /* sizeof(struct rpma_conn_open_attr); later versions may add members */
	const char *addr, *port;
	const struct rpma_conn_cfg *cfg;            /* the same as for rpma_conn_req_new() */
	const struct rpma_conn_private_data *pdata; /* the same as for rpma_conn_req_connect() */
	/* Limit for all attempts together; 0: 10 s, -1: no limit. */
	int timeout_ms;
	/*
	 * While there is no listener or no answer, repeat the attempt from the beginning for this
	 * time, within timeout_ms. 0: do not repeat, -1: repeat until timeout_ms.
	 */
	int retry_ms;
	/* Called with arg before each attempt, e.g. to post receives. A result other than 0 ends
	 * rpma_conn_open(), which returns this result. */
	int (*prepare)(struct rpma_conn_req *req, void *arg);
	void *arg;
};

/*
 * Connect and wait for the outcome. 0: *conn_ptr is a connection and *event is
 * RPMA_CONN_ESTABLISHED or RPMA_CONN_REJECTED. With REJECTED, the application at the other end has
 * refused, and its private data may contain the reason. RPMA_E_AGAIN: there is no listener.
 * RPMA_E_NO_EVENT: there was no answer in time, or there is no route to that host. RPMA_E_NOSUPP
 * also: the listener does not speak the device's protocol. Other errors as for rpma_conn_req_new()
 * and _connect(). To connect again, delete the connection and call this with the same attr.
 * Thread-safe except for the SRQ of cfg.
 */
int rpma_conn_open(struct rpma_peer *peer, const struct rpma_conn_open_attr *attr,
		   enum rpma_conn_event *event, struct rpma_conn **conn_ptr);

/* Post a receive before the connection exists, so that the first message finds a receive. */
int rpma_conn_req_recv(struct rpma_conn_req *req, struct rpma_mr_local *dst, size_t offset,
		       size_t len, const void *op_context);

/* The private data of the requesting end; {NULL, 0} if there are none. Valid as long as the
 * request. */
int rpma_conn_req_get_private_data(const struct rpma_conn_req *req,
				   struct rpma_conn_private_data *pdata);

/*
 * Reject the request, with up to 255 bytes that the other end gets with RPMA_CONN_REJECTED (pdata
 * NULL: none). The call consumes the request, whatever the result. RPMA_E_INVAL also for an
 * outgoing request, which is deleted, and for empty pdata; then the other end gets a rejection
 * without data.
 */
int rpma_conn_req_reject(struct rpma_conn_req **req_ptr,
			 const struct rpma_conn_private_data *pdata);

/* The address of the other end, in the form of rpma_conn_get_remote_addr(). */
int rpma_conn_req_get_remote_addr(const struct rpma_conn_req *req, char *addr, size_t size);

/* Endpoint: listens at an address */

struct rpma_ep;

/* Listen. Port "0" is any free port, which rpma_ep_get_port() returns. */
int rpma_ep_listen(struct rpma_peer *peer, const char *addr, const char *port,
		   struct rpma_ep **ep_ptr);
int rpma_ep_get_port(const struct rpma_ep *ep, uint16_t *port);
/* Stop listening. Connections that the endpoint has accepted stay. */
int rpma_ep_shutdown(struct rpma_ep **ep_ptr);
/* Readable while a request is pending; may be made non-blocking. The library owns the
 * descriptor. */
int rpma_ep_get_fd(const struct rpma_ep *ep, int *fd);
/*
 * The next incoming request, with queues as cfg configures (NULL: the defaults). Waits unless the
 * fd is non-blocking; then RPMA_E_NO_EVENT. RPMA_E_INVAL also for an event that is no request.
 */
int rpma_ep_next_conn_req(struct rpma_ep *ep, const struct rpma_conn_cfg *cfg,
			  struct rpma_conn_req **req_ptr);
/* The same with a time limit; see rpma_conn_next_event_timeout(). */
int rpma_ep_next_conn_req_timeout(struct rpma_ep *ep, const struct rpma_conn_cfg *cfg,
				  int timeout_ms, struct rpma_conn_req **req_ptr);

/*
 * Operations. A call queues the operation in order and returns at once. Memory that the operation
 * uses must not change until the completion. flags selects whether a success gives a completion
 * too; a failure always gives one. The completion's wr_id is op_context. Thread-safe.
 * RPMA_E_PROVIDER: the operation was not queued, for instance because the queue is full. Never have
 * more operations posted and not collected than the completion queue has entries: not every device
 * refuses an operation too many. Only a flush and a query may be of 4 GiB or more; other operations
 * return RPMA_E_INVAL then.
 */

#define RPMA_F_COMPLETION_ON_ERROR (1 << 0)
#define RPMA_F_COMPLETION_ALWAYS   (1 << 1 | RPMA_F_COMPLETION_ON_ERROR)

/* With both regions NULL, and offsets and len 0, the operation moves no bytes. */
int rpma_read(struct rpma_conn *conn, struct rpma_mr_local *dst, size_t dst_offset,
	      const struct rpma_mr_remote *src, size_t src_offset, size_t len, int flags,
	      const void *op_context);
int rpma_write(struct rpma_conn *conn, struct rpma_mr_remote *dst, size_t dst_offset,
	       const struct rpma_mr_local *src, size_t src_offset, size_t len, int flags,
	       const void *op_context);
/*
 * A write that also consumes a receive at the other end. The completion of this receive carries imm
 * in network byte order.
 */
int rpma_write_with_imm(struct rpma_conn *conn, struct rpma_mr_remote *dst, size_t dst_offset,
			const struct rpma_mr_local *src, size_t src_offset, size_t len, int flags,
			uint32_t imm, const void *op_context);

#define RPMA_ATOMIC_WRITE_ALIGNMENT 8

/* Write eight bytes. The call copies them from src; the other end sees all of them or none.
 * dst_offset % 8 == 0. */
int rpma_atomic_write(struct rpma_conn *conn, struct rpma_mr_remote *dst, size_t dst_offset,
		      const char src[8], int flags, const void *op_context);

#define RPMA_ATOMIC_ALIGNMENT 8

/*
 * Treat eight aligned bytes of a remote region as a number in the byte order of both machines:
 * replace the number by swap if it equals compare, or add to it. result, registered as
 * RPMA_MR_USAGE_READ_DST, gets the former number at its offset. The remote region must be
 * registered both as RPMA_MR_USAGE_READ_SRC and as RPMA_MR_USAGE_WRITE_DST. These operations are
 * atomic towards each other on all connections of the target's device, not towards writes; with the
 * software RNIC also towards the atomic instructions of the target's own program. RPMA_E_NOSUPP
 * without RPMA_CAP_ATOMICS.
 */
int rpma_atomic_compare_swap(struct rpma_conn *conn, struct rpma_mr_local *result,
			     size_t result_offset, struct rpma_mr_remote *dst, size_t dst_offset,
			     uint64_t compare, uint64_t swap, int flags, const void *op_context);
int rpma_atomic_fetch_add(struct rpma_conn *conn, struct rpma_mr_local *result,
			  size_t result_offset, struct rpma_mr_remote *dst, size_t dst_offset,
			  uint64_t add, int flags, const void *op_context);

enum rpma_flush_type {
	/* on the medium: the bytes survive a crash of the other machine */
	RPMA_FLUSH_TYPE_PERSISTENT,
	RPMA_FLUSH_TYPE_VISIBILITY /* visible to every reader at the other end */
};

/*
 * Persistent flushes of volatile memory. Memory cannot be made durable unless it is a file on a
 * file system with a medium. In programs that are built with this header, a persistent flush of
 * other memory fails (RPMA_REASON_VOLATILE). In programs built with the header of librpma 1.3, it
 * succeeds when the bytes are visible, as in librpma 1.3: rpma_flush() has a symbol of its own for
 * each header. The environment variable RPMA_STRICT_PERSIST (0 or 1) decides for both. A program
 * that defines RPMA_COMPAT_1_3 before it includes this header gets the function of 1.3.
 */
#ifdef RPMA_COMPAT_1_3
#define RPMA_FLUSH_SYMBOL
#else
#define RPMA_FLUSH_SYMBOL __asm__("rpma_flush_strict")
#endif

/*
 * Completes when earlier writes into the range have reached the state that `type` names. len 0: the
 * whole region.
 * RPMA_E_NOSUPP: the region was not registered for this type. Also: the flush is persistent, but
 * the peer does not flush natively, and rpma_conn_apply_remote_peer_cfg() has not declared that its
 * writes go directly to persistent memory.
 */
int rpma_flush(struct rpma_conn *conn, struct rpma_mr_remote *dst, size_t dst_offset, size_t len,
	       enum rpma_flush_type type, int flags, const void *op_context) RPMA_FLUSH_SYMBOL;

/* Send a message. With src NULL, and offset and len 0, the message is empty. */
int rpma_send(struct rpma_conn *conn, const struct rpma_mr_local *src, size_t offset, size_t len,
	      int flags, const void *op_context);
int rpma_send_with_imm(struct rpma_conn *conn, const struct rpma_mr_local *src, size_t offset,
		       size_t len, int flags, uint32_t imm, const void *op_context);
/* Post room for one message. With dst NULL, and offset and len 0, only for an empty message. A
 * receive always gives a completion. */
int rpma_recv(struct rpma_conn *conn, struct rpma_mr_local *dst, size_t offset, size_t len,
	      const void *op_context);

#define RPMA_SEND_SEGMENTS_MAX 4

struct rpma_segment {
	const struct rpma_mr_local *mr;
	size_t offset;
	size_t len;
};

/* Send one message that consists of 1 to RPMA_SEND_SEGMENTS_MAX segments. The array is free again
 * after the call. RPMA_E_NOSUPP: the device does not gather so many segments. */
int rpma_send_gather(struct rpma_conn *conn, const struct rpma_segment *segments, uint32_t count,
		     int flags, const void *op_context);

/*
 * Flush everything that this connection placed before, in all regions. Fails if a region with
 * unflushed bytes was deregistered. RPMA_E_NOSUPP without RPMA_CAP_FLUSH_ALL.
 */
int rpma_flush_all(struct rpma_conn *conn, enum rpma_flush_type type, int flags,
		   const void *op_context);

/* Opcodes of completions. The enum ibv_wc_opcode of older releases of rdma-core does not name
 * them. */
#define RPMA_WC_FLUSH        8
#define RPMA_WC_ATOMIC_WRITE 9
#define RPMA_WC_VERIFY       0x50
#define RPMA_WC_QUERY        0x51

/* Durability of memory under a persistent flush. A range has the weakest class of its parts. */
enum rpma_durability {
	RPMA_DURABILITY_UNKNOWN,
	RPMA_DURABILITY_VOLATILE, /* no flush can persist the memory */
	RPMA_DURABILITY_FILE,     /* a file on a file system, persisted by msync */
	RPMA_DURABILITY_DAX       /* persistent memory, by writing back the processor's caches */
};

/* "volatile", "file" or "dax"; "unknown" for other values. */
const char *rpma_utils_durability_2str(enum rpma_durability durability);

/*
 * Find the weakest class in a range of this process's memory, registered or not. why gets the
 * reason (path, file system, kind of mapping), cut to why_size; NULL: not wanted. RPMA_E_INVAL also
 * if a part of the range is not mapped. RPMA_E_NOMEM; RPMA_E_UNKNOWN: /proc cannot be read.
 * Thread-safe.
 */
int rpma_utils_get_durability(const void *ptr, size_t len, enum rpma_durability *durability,
			      char *why, size_t why_size);

/* *durability is written before the completion (RPMA_WC_QUERY). RPMA_E_NOSUPP without
 * RPMA_CAP_QUERY. */
int rpma_query_durability(struct rpma_conn *conn, const struct rpma_mr_remote *dst,
			  size_t dst_offset, size_t len, enum rpma_durability *durability,
			  int flags, const void *op_context);

#define RPMA_DIGEST_SMALL 4096

enum rpma_digest_alg {
	RPMA_DIGEST_AUTO, /* CRC32C for up to RPMA_DIGEST_SMALL bytes, else BLAKE2B */
	RPMA_DIGEST_CRC32C,
	RPMA_DIGEST_BLAKE2B /* gives 32 bytes */
};

/* The source of the bytes of a digest. */
enum rpma_digest_source {
	RPMA_DIGEST_FROM_MEMORY, /* memory that is not backed by a medium */
	RPMA_DIGEST_FROM_CACHE,  /* the page cache: the file system permits no direct read */
	RPMA_DIGEST_FROM_MEDIUM, /* the medium, by a direct read */
	RPMA_DIGEST_FROM_DAX     /* persistent memory, by loads */
};

struct rpma_digest {
	enum rpma_digest_alg alg; /* the algorithm that was used, never AUTO */
	enum rpma_digest_source source;
	enum rpma_durability durability;
	uint32_t len;      /* length of the digested range */
	uint8_t bytes[32]; /* CRC32C: 4, big-endian, and zeros */
};

/*
 * Flush the range to persistence, and return the digest of the bytes that the target then reads
 * back. *digest is written before the completion (RPMA_WC_VERIFY) and must live until then. len: 1
 * to 4 GiB - 1. RPMA_E_NOSUPP without RPMA_CAP_VERIFY, or if the region was not registered for
 * persistent flushes.
 */
int rpma_verify(struct rpma_conn *conn, const struct rpma_mr_remote *dst, size_t dst_offset,
		size_t len, enum rpma_digest_alg alg, struct rpma_digest *digest, int flags,
		const void *op_context);

/* Compute the same digest of this process's memory. Needs no device. */
int rpma_digest_compute(enum rpma_digest_alg alg, const void *ptr, size_t len,
			struct rpma_digest *digest);
/*
 * True if algorithm, length of the range and bytes are equal; the source is not compared. False if
 * either is NULL.
 */
bool rpma_digest_equal(const struct rpma_digest *a, const struct rpma_digest *b);

/*
 * Batches: operations that are collected, then posted together, if possible with one system call.
 * Each rpma_batch_X has the arguments and checks of rpma_X; RPMA_E_AGAIN: the batch is full. The
 * capabilities of the other end matter only when the batch is posted, so it may be filled earlier.
 * Only rpma_batch_new() allocates memory. Not for use by several threads at a time.
 */

struct rpma_batch;

/* Make a batch with room for `size` operations, at most the size of the connection's send queue. */
int rpma_batch_new(struct rpma_conn *conn, uint32_t size, struct rpma_batch **batch_ptr);
/* Delete the batch before its connection. Operations that were collected and not posted are
 * dropped. */
int rpma_batch_delete(struct rpma_batch **batch_ptr);

int rpma_batch_write(struct rpma_batch *batch, struct rpma_mr_remote *dst, size_t dst_offset,
		     const struct rpma_mr_local *src, size_t src_offset, size_t len, int flags,
		     const void *op_context);
/* An atomic write after a flush in the batch takes effect only after the flush succeeded. */
int rpma_batch_atomic_write(struct rpma_batch *batch, struct rpma_mr_remote *dst, size_t dst_offset,
			    const char src[8], int flags, const void *op_context);
int rpma_batch_atomic_compare_swap(struct rpma_batch *batch, struct rpma_mr_local *result,
				   size_t result_offset, struct rpma_mr_remote *dst,
				   size_t dst_offset, uint64_t compare, uint64_t swap, int flags,
				   const void *op_context);
int rpma_batch_atomic_fetch_add(struct rpma_batch *batch, struct rpma_mr_local *result,
				size_t result_offset, struct rpma_mr_remote *dst, size_t dst_offset,
				uint64_t add, int flags, const void *op_context);
int rpma_batch_flush(struct rpma_batch *batch, struct rpma_mr_remote *dst, size_t dst_offset,
		     size_t len, enum rpma_flush_type type, int flags, const void *op_context);
int rpma_batch_flush_all(struct rpma_batch *batch, enum rpma_flush_type type, int flags,
			 const void *op_context);
int rpma_batch_send(struct rpma_batch *batch, const struct rpma_segment *segments, uint32_t count,
		    int flags, const void *op_context);

/*
 * Post the collected operations in order. Success: the batch is empty and may be filled again.
 * Failure: the batch holds the operations that were not posted (with the software RNIC all) and may
 * be posted again. RPMA_E_NOSUPP: the other end lacks an operation of the batch. RPMA_E_AGAIN: the
 * send queue has no room now; collect completions first.
 */
int rpma_batch_post(struct rpma_batch *batch);
int rpma_batch_get_count(const struct rpma_batch *batch, uint32_t *count);
int rpma_batch_clear(struct rpma_batch *batch);

/* Completion queues. Thread-safe except rpma_cq_new() and rpma_cq_delete() */

/*
 * A queue for several connections; see rpma_conn_cfg_set_cq(). wc.qp_num identifies the connection
 * of a completion (rpma_conn_get_qp_num()). size: room for all operations that may complete between
 * two polls; a queue that overflows breaks its connections. After the deletion of a connection its
 * uncollected completions may or may not be returned. RPMA_E_NOMEM, RPMA_E_PROVIDER.
 */
int rpma_cq_new(struct rpma_peer *peer, uint32_t size, struct rpma_cq **cq_ptr);
/*
 * RPMA_E_AGAIN: a connection or a request still uses the queue; nothing is deleted, *cq_ptr stays.
 * Queues that belong to a connection or an SRQ are refused with RPMA_E_INVAL.
 */
int rpma_cq_delete(struct rpma_cq **cq_ptr);

/* Readable while a completion may be waiting; may be made non-blocking. The library owns the
 * descriptor. */
int rpma_cq_get_fd(const struct rpma_cq *cq, int *fd);
/*
 * Wait for the announcement of completions. Then take all completions, because several may share
 * one announcement. RPMA_E_NO_COMPLETION: the wait ended without an announcement;
 * RPMA_E_SHARED_CHANNEL.
 */
int rpma_cq_wait(struct rpma_cq *cq);
/*
 * The same with a time limit, whether or not the fd is non-blocking. -1: no limit. Signals neither
 * end nor shorten the wait. RPMA_E_NO_COMPLETION: nothing was announced in time; a later completion
 * is announced to the next wait. RPMA_E_PROVIDER. An announcement wakes one of several waiting
 * threads, and the other threads go on waiting.
 */
int rpma_cq_wait_timeout(struct rpma_cq *cq, int timeout_ms);
/*
 * Take up to num_entries completions. num_entries_got may be NULL if num_entries is 1. In a failed
 * completion only wr_id, status, qp_num and vendor_err are valid. RPMA_E_NO_COMPLETION: the queue
 * is empty.
 */
int rpma_cq_get_wc(struct rpma_cq *cq, int num_entries, struct ibv_wc *wc, int *num_entries_got);

/* Why an operation failed; reported by completions of a software RNIC */

enum rpma_reason {
	RPMA_REASON_NONE, /* the operation did not fail, or the reason is unknown */
	/* the target could not write to the medium; code: the target's errno */
	RPMA_REASON_WRITE_BACK,
	RPMA_REASON_VOLATILE,      /* the flush is strict, and no flush can persist the range */
	RPMA_REASON_GONE,          /* the range is past the end of its file, or was deregistered */
	RPMA_REASON_TERMINATE_IN,  /* the peer's Terminate; code: 0xLTCC, layer, type, code */
	RPMA_REASON_TERMINATE_OUT, /* this end's Terminate; code as above */
	RPMA_REASON_LINK,          /* the connection broke; code: errno */
	RPMA_REASON_LOCAL,         /* a failure at this end; code: errno */
	RPMA_REASON_DEVICE         /* the device's own value of vendor_err */
};

/* code may be NULL. For operations that never ran, this is the reason of the failure that ended the
 * connection. */
enum rpma_reason rpma_wc_get_reason(const struct rpma_conn *conn, const struct ibv_wc *wc,
				    uint32_t *code);
/* One line, cut to size, without a newline: the failed operation, the value, and advice. */
int rpma_wc_explain(const struct rpma_conn *conn, const struct ibv_wc *wc, char *text, size_t size);

/* Log; thread-safe */

enum rpma_log_level {
	RPMA_LOG_DISABLED = -1,
	RPMA_LOG_LEVEL_FATAL,
	RPMA_LOG_LEVEL_ERROR,
	RPMA_LOG_LEVEL_WARNING,
	RPMA_LOG_LEVEL_NOTICE,
	RPMA_LOG_LEVEL_INFO,
	RPMA_LOG_LEVEL_DEBUG
};

enum rpma_log_threshold {
	RPMA_LOG_THRESHOLD, /* level up to which messages are logged; default: WARNING */
	/* level up to which the default function also writes to stderr; default: none */
	RPMA_LOG_THRESHOLD_AUX,
	RPMA_LOG_THRESHOLD_MAX
};

int rpma_log_set_threshold(enum rpma_log_threshold threshold, enum rpma_log_level level);
int rpma_log_get_threshold(enum rpma_log_threshold threshold, enum rpma_log_level *level);

/*
 * Receives each message that passes the threshold, including those of the software RNIC. Any thread
 * calls this function at any time, while connections wait for it, so the function must not call
 * this library.
 */
typedef void rpma_log_function(enum rpma_log_level level, const char *file_name, const int line_no,
			       const char *function_name, const char *message_format, ...);

#define RPMA_LOG_USE_DEFAULT_FUNCTION (NULL)

/* The default function writes to syslog, and to stderr from the AUX threshold on. */
int rpma_log_set_function(rpma_log_function *log_function);

/* Kept for source compatibility; no function accepts this flag. */
#define RPMA_W_WAIT_FOR_COMPLETION (1 << 0)

#ifdef __cplusplus
}
#endif

#endif
