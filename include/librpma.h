/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * librpma.h -- one-sided access to another machine's memory, and flushes that make it durable.
 *
 * The usual order of calls: a device context -> rpma_peer -> memory regions; then either
 * rpma_ep_listen() -> rpma_ep_next_conn_req() or rpma_conn_req_new(); then rpma_conn_req_connect()
 * -> rpma_conn, on which reads, writes, flushes and messages are posted. The result of each
 * operation arrives in the connection's completion queue.
 *
 * These rules hold for every call, except where its comment states otherwise:
 * - The result is 0 or one of the negative RPMA_E_* values. On failure no output is written, except
 *   that rpma_conn_cfg_new() and rpma_srq_cfg_new() return a NULL object if memory is missing.
 * - A NULL where an object or an output is required gives RPMA_E_INVAL.
 * - Functions named _delete, _dereg and _shutdown take the address of the caller's pointer.
 *   Afterwards the pointer is NULL and the object is gone, even if a step failed (the first failure
 *   is returned). A pointer that is already NULL is no error. Only rpma_cq_delete() refuses an
 *   object that is in use.
 * - Release objects in the reverse order of their creation: a peer must outlive the objects made
 *   from it, a memory region must outlive the operations that use it.
 * - Calls on different objects may run in parallel. Data-path calls, completion queues and config
 *   objects may be shared between threads. Only one thread at a time may make, connect or delete an
 *   object.
 *
 * There is a manual page for each function; librpma(7) describes the whole library. 84 functions
 * are those of librpma 1.3. The other functions came with version 1.4, and their pages state this.
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
 * Versions and features. RPMA_HAS_X is the version in which X came. A program tests for X when it
 * is compiled by #ifdef RPMA_HAS_X, and when it runs, perhaps with another library, by
 * rpma_version() >= RPMA_HAS_X. Version 1.3 has neither these macros nor rpma_version(). The 84
 * functions of 1.3 are in every version.
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

/* Returns the RPMA_VERSION of the library that the program runs with. */
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
#define RPMA_E_SHARED_CHANNEL  (-100008) /* this queue's channel is shared; use rpma_conn_wait() */
#define RPMA_E_NOT_SHARED_CHNL (-100009) /* there is no shared channel; use rpma_cq_wait() */

/* Returns a static text for a result; "Unknown error" for other values. */
const char *rpma_err_2str(int ret);

/*
 * Returns the reason of the calling thread's last failed call: what failed, with which value, and
 * advice. The text is one line without a newline, never NULL, and "" before the first failure.
 * Each thread has its own text, which stays until the thread's next failed call. Other threads
 * must not use the text, and it is gone after the thread's end. RPMA_E_NO_EVENT and
 * RPMA_E_NO_COMPLETION of a call that does not wait leave the text unchanged; after a wait that
 * ended at its time limit they set the text.
 */
const char *rpma_err_last(void);

/* Devices */

enum rpma_util_ibv_context_type {
	RPMA_UTIL_IBV_CONTEXT_LOCAL, /* this machine owns addr */
	RPMA_UTIL_IBV_CONTEXT_REMOTE /* another machine owns addr, and the device reaches it */
};

/*
 * Get the device that owns (LOCAL) or reaches (REMOTE) an address: an RDMA device if there is one,
 * else the software RNIC. The environment variable RPMA_PROVIDER (auto, verbs, softrnic) overrides
 * this choice. The context stays open, and the caller does not close it. RPMA_E_PROVIDER: there is
 * no such device. Not guaranteed to be thread-safe.
 */
int rpma_utils_get_ibv_context(const char *addr, enum rpma_util_ibv_context_type type,
			       struct ibv_context **ibv_ctx_ptr);

/*
 * Like rpma_utils_get_ibv_context(), but only from this provider ("verbs" or "softrnic"),
 * regardless of the environment. RPMA_E_INVAL also for an unknown name (rpma_err_last() lists the
 * known names). RPMA_E_PROVIDER: the provider cannot serve addr; rpma_err_last() gives the reason.
 */
int rpma_utils_get_ibv_context_from(const char *provider, const char *addr,
				    enum rpma_util_ibv_context_type type,
				    struct ibv_context **ibv_ctx_ptr);

/* A list of the devices that exist, with the reason why each can or cannot be used. A device has
 * one row, and so has a provider without a device. */

struct rpma_provider_list;

struct rpma_provider_info {
	size_t size; /* sizeof(struct rpma_provider_info) */
	const char *provider;
	const char *device; /* NULL: the provider has no device */
	bool usable;
	const char *why; /* one line: the reason why the device can or cannot be used */
};

/*
 * Make the list for an address, or in general (addr NULL; type must be valid all the same).
 * RPMA_E_NOMEM. The call can take long: it opens and closes devices, and may resolve a name. Not
 * guaranteed to be thread-safe.
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

/* Sets *is_odp_capable to 1 if the device registers file mappings on demand for reads and writes
 * over RC, else to 0. */
int rpma_utils_ibv_context_is_odp_capable(struct ibv_context *ibv_ctx, int *is_odp_capable);

/* Peer configuration: what one end declares to the other */

struct rpma_peer_cfg;

int rpma_peer_cfg_new(struct rpma_peer_cfg **pcfg_ptr);
int rpma_peer_cfg_delete(struct rpma_peer_cfg **pcfg_ptr);

/* The declaration whether a write that is visible at this end has also reached its persistent
 * memory. Default: false. */
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

/* Make and delete a peer. RPMA_E_NOMEM, RPMA_E_PROVIDER, RPMA_E_UNKNOWN. Thread-safe. */
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
 * Register size bytes at ptr for the uses in `usage` (an OR of RPMA_MR_USAGE_*, not 0). Each flush
 * usage also lets the other end read the memory. The caller keeps the memory, which must stay
 * mapped until rpma_mr_dereg(). After rpma_mr_dereg() no peer can access the memory. RPMA_E_NOMEM,
 * RPMA_E_PROVIDER. Neither function is guaranteed to be thread-safe.
 */
int rpma_mr_reg(struct rpma_peer *peer, void *ptr, size_t size, int usage,
		struct rpma_mr_local **mr_ptr);
int rpma_mr_dereg(struct rpma_mr_local **mr_ptr);

/*
 * Open, map and register a file, so that bytes that peers flush are on its medium and survive
 * under its name. The call reserves the blocks, and drops cached pages that an earlier process
 * could not write back. size 0: the whole file. Otherwise a shorter file grows, and a missing file
 * is created. rpma_mr_get_ptr() and rpma_mr_get_size() return the mapping, which rpma_mr_dereg()
 * removes. RPMA_E_PROVIDER also if the file cannot be used; rpma_err_last() gives the reason.
 */
int rpma_mr_reg_file(struct rpma_peer *peer, const char *path, size_t size, int usage,
		     struct rpma_mr_local **mr_ptr);

int rpma_mr_get_ptr(const struct rpma_mr_local *mr, void **ptr);
int rpma_mr_get_size(const struct rpma_mr_local *mr, size_t *size);

/*
 * Get the descriptor, by which the other end addresses this region. The descriptor is a
 * capability: do not give it to a peer that must not use the region. desc has room for the size
 * that the second function returns.
 */
int rpma_mr_get_descriptor(const struct rpma_mr_local *mr, void *desc);
int rpma_mr_get_descriptor_size(const struct rpma_mr_local *mr, size_t *desc_size);

/*
 * Give the device a hint about len bytes at an offset of the region; advice and flags are those of
 * ibv_advise_mr(3). RPMA_E_NOSUPP: the device does not support such a hint. RPMA_E_INVAL also for
 * a wrong range. Thread-safe.
 */
int rpma_mr_advise(struct rpma_mr_local *mr, size_t offset, size_t len, int advice, uint32_t flags);

/* Make a remote region from a descriptor. Bytes behind the descriptor are ignored. RPMA_E_INVAL:
 * the descriptor is too short, or has no usage. */
int rpma_mr_remote_from_descriptor(const void *desc, size_t desc_size,
				   struct rpma_mr_remote **mr_ptr);
int rpma_mr_remote_delete(struct rpma_mr_remote **mr_ptr);
int rpma_mr_remote_get_size(const struct rpma_mr_remote *mr, size_t *size);
/* Get the RPMA_MR_USAGE_FLUSH_TYPE_* bits with which the other end registered the region. */
int rpma_mr_remote_get_flush_type(const struct rpma_mr_remote *mr, int *flush_type);

/* Shared receive queue: receives that several connections share */

struct rpma_srq_cfg;
struct rpma_srq;
struct rpma_cq;

/* Make and delete a configuration. Defaults: 20 receives, and a private completion queue of 20
 * entries (size 0: no private queue). */
int rpma_srq_cfg_new(struct rpma_srq_cfg **cfg_ptr);
int rpma_srq_cfg_delete(struct rpma_srq_cfg **cfg_ptr);
int rpma_srq_cfg_set_rq_size(struct rpma_srq_cfg *cfg, uint32_t rq_size);
int rpma_srq_cfg_get_rq_size(const struct rpma_srq_cfg *cfg, uint32_t *rq_size);
int rpma_srq_cfg_set_rcq_size(struct rpma_srq_cfg *cfg, uint32_t rcq_size);
int rpma_srq_cfg_get_rcq_size(const struct rpma_srq_cfg *cfg, uint32_t *rcq_size);

/* Make and delete a shared receive queue. cfg NULL: the defaults. RPMA_E_NOMEM, RPMA_E_PROVIDER.
 * Neither function is guaranteed to be thread-safe. */
int rpma_srq_new(struct rpma_peer *peer, struct rpma_srq_cfg *cfg, struct rpma_srq **srq_ptr);
int rpma_srq_delete(struct rpma_srq **srq_ptr);

/* Post a receive, as rpma_recv() does for a connection. */
int rpma_srq_recv(struct rpma_srq *srq, struct rpma_mr_local *dst, size_t offset, size_t len,
		  const void *op_context);
/* Get the private completion queue of the SRQ, or NULL if there is none. The queue belongs to the
 * SRQ. */
int rpma_srq_get_rcq(const struct rpma_srq *srq, struct rpma_cq **rcq_ptr);

/* Connection configuration; thread-safe on a shared object */

struct rpma_conn_cfg;

#define RPMA_DEFAULT_TIMEOUT_MS 1000

int rpma_conn_cfg_new(struct rpma_conn_cfg **cfg_ptr);
int rpma_conn_cfg_delete(struct rpma_conn_cfg **cfg_ptr);

/* Time limit for each of two steps: resolving the address, and resolving the route. A negative
 * limit gives RPMA_E_INVAL. */
int rpma_conn_cfg_set_timeout(struct rpma_conn_cfg *cfg, int timeout_ms);
int rpma_conn_cfg_get_timeout(const struct rpma_conn_cfg *cfg, int *timeout_ms);

/* Number of entries of the main completion queue (default: 10), and of the separate queue for
 * receives (default: 0, no such queue). */
int rpma_conn_cfg_set_cq_size(struct rpma_conn_cfg *cfg, uint32_t cq_size);
int rpma_conn_cfg_get_cq_size(const struct rpma_conn_cfg *cfg, uint32_t *cq_size);
int rpma_conn_cfg_set_rcq_size(struct rpma_conn_cfg *cfg, uint32_t rcq_size);
int rpma_conn_cfg_get_rcq_size(const struct rpma_conn_cfg *cfg, uint32_t *rcq_size);

/* Largest number of outstanding work requests in the send queue (default: 10) and in the receive
 * queue (default: 10). */
int rpma_conn_cfg_set_sq_size(struct rpma_conn_cfg *cfg, uint32_t sq_size);
int rpma_conn_cfg_get_sq_size(const struct rpma_conn_cfg *cfg, uint32_t *sq_size);
int rpma_conn_cfg_set_rq_size(struct rpma_conn_cfg *cfg, uint32_t rq_size);
int rpma_conn_cfg_get_rq_size(const struct rpma_conn_cfg *cfg, uint32_t *rq_size);

/* Use one channel for both completion queues; rpma_conn_wait() waits on this channel. Default:
 * false. */
int rpma_conn_cfg_set_compl_channel(struct rpma_conn_cfg *cfg, bool shared);
int rpma_conn_cfg_get_compl_channel(const struct rpma_conn_cfg *cfg, bool *shared);

/* Receive from this SRQ, which must outlive the connection. The setting cannot be undone. */
int rpma_conn_cfg_set_srq(struct rpma_conn_cfg *cfg, struct rpma_srq *srq);
int rpma_conn_cfg_get_srq(const struct rpma_conn_cfg *cfg, struct rpma_srq **srq_ptr);

/*
 * Use this queue of rpma_cq_new() for completions, instead of a separate queue for each connection
 * (cq_size is then unused). The queue must belong to the same device, and outlive the connections
 * and their requests. NULL (default): no common queue. Not together with a shared channel.
 */
int rpma_conn_cfg_set_cq(struct rpma_conn_cfg *cfg, struct rpma_cq *cq);
int rpma_conn_cfg_get_cq(const struct rpma_conn_cfg *cfg, struct rpma_cq **cq_ptr);

/*
 * Time limit for the whole of rpma_conn_req_connect(), at the connecting end. At the limit the
 * event RPMA_CONN_UNREACHABLE follows. 0 (default): the device's limit; the software RNIC's is 10
 * s.
 */
int rpma_conn_cfg_set_connect_timeout(struct rpma_conn_cfg *cfg, int timeout_ms);
int rpma_conn_cfg_get_connect_timeout(const struct rpma_conn_cfg *cfg, int *timeout_ms);

/*
 * The connection is lost (RPMA_CONN_LOST) if no byte, not even a heartbeat, came from the peer for
 * this time; the loss is detected at most half of this time later. 0 (default): the device's limit;
 * the software RNIC's is 15 s. -1: no limit. RDMA devices and peers without heartbeats have no such
 * limit.
 */
int rpma_conn_cfg_set_liveness(struct rpma_conn_cfg *cfg, int limit_ms);
int rpma_conn_cfg_get_liveness(const struct rpma_conn_cfg *cfg, int *limit_ms);

/*
 * The owner of the connections: a name of 1 to RPMA_CONN_OWNER_MAX bytes that the program keeps
 * when it is started again; len 0 (default): no owner. Only for the connecting end. Before a
 * connection with an owner is established, the target ends each connection that another process
 * has made for this owner, and places no more bytes of the ended connections. With and without an
 * owner, the same holds for connections that this process has given up.
 *
 * rpma_conn_cfg_get_owner() returns a pointer into the configuration. The pointer is valid until
 * the owner is set again or the configuration is deleted.
 */
#define RPMA_CONN_OWNER_MAX 64
int rpma_conn_cfg_set_owner(struct rpma_conn_cfg *cfg, const void *name, size_t len);
int rpma_conn_cfg_get_owner(const struct rpma_conn_cfg *cfg, const void **name, size_t *len);

/* Connections */

struct rpma_conn;

struct rpma_conn_private_data {
	void *ptr;
	uint8_t len;
};

enum rpma_conn_event {
	RPMA_CONN_UNDEFINED = -1,
	RPMA_CONN_ESTABLISHED, /* operations may be posted */
	RPMA_CONN_CLOSED,      /* ended by a disconnect */
	RPMA_CONN_LOST,        /* the connection broke */
	RPMA_CONN_REJECTED,    /* rejected; rpma_conn_get_rejection() returns the cause */
	RPMA_CONN_UNREACHABLE  /* no answer came within the time limit */
};

const char *rpma_utils_conn_event_2str(enum rpma_conn_event conn_event);

/* The cause of a rejection. */
enum rpma_rejection {
	RPMA_REJECTION_NONE,        /* the event RPMA_CONN_REJECTED was not returned yet */
	RPMA_REJECTION_UNKNOWN,     /* the device does not report the cause */
	RPMA_REJECTION_NO_LISTENER, /* there is no listener */
	RPMA_REJECTION_REFUSED,     /* the other end's application rejected */
	RPMA_REJECTION_CLOSED       /* the listener closed the connection without an answer */
};
int rpma_conn_get_rejection(const struct rpma_conn *conn, enum rpma_rejection *rejection);

/* Get a descriptor that is readable while an event is pending. The descriptor may be made
 * non-blocking. The library owns the descriptor: do not close it. */
int rpma_conn_get_event_fd(const struct rpma_conn *conn, int *fd);

/*
 * Return the next event. The call waits for the event unless the descriptor is non-blocking; then
 * it returns RPMA_E_NO_EVENT. RPMA_E_UNKNOWN: enum rpma_conn_event has no value for the event.
 * RPMA_E_PROVIDER, RPMA_E_NOMEM. With REJECTED, UNREACHABLE and LOST rpma_err_last() gives the
 * reason.
 */
int rpma_conn_next_event(struct rpma_conn *conn, enum rpma_conn_event *event);
/*
 * Like rpma_conn_next_event(), with a time limit, even if the descriptor is non-blocking. -1: no
 * limit. Signals neither end nor shorten the wait. RPMA_E_NO_EVENT: no event came in time.
 * Thread-safe: one of several waiting threads gets the event, the other threads go on waiting.
 */
int rpma_conn_next_event_timeout(struct rpma_conn *conn, int timeout_ms,
				 enum rpma_conn_event *event);

/*
 * Get the bytes that the other end sent while connecting, or with a rejection; {NULL, 0} if there
 * are none. At the connecting end they are available from the event on, at the accepting end from
 * the beginning; they are valid until rpma_conn_delete(). Some fabrics pad the bytes with zeros: do
 * not rely on an exact length.
 */
int rpma_conn_get_private_data(const struct rpma_conn *conn, struct rpma_conn_private_data *pdata);

/*
 * Apply the other end's declaration about itself. Without native flush, later persistent flushes
 * are permitted if and only if it declares direct write to persistent memory.
 */
int rpma_conn_apply_remote_peer_cfg(struct rpma_conn *conn, const struct rpma_peer_cfg *pcfg);

int rpma_conn_get_qp_num(const struct rpma_conn *conn, uint32_t *qp_num);
/* Get the completion queues, which belong to the connection, except the queue that
 * rpma_conn_cfg_set_cq() set. *rcq_ptr is NULL if receives have no separate queue. */
int rpma_conn_get_cq(const struct rpma_conn *conn, struct rpma_cq **cq_ptr);
int rpma_conn_get_rcq(const struct rpma_conn *conn, struct rpma_cq **rcq_ptr);

/* the other end is a software RNIC that has agreed to the extensions */
#define RPMA_CAP_SOFTRNIC (1 << 0)
/* the target executes rpma_flush() as one operation */
#define RPMA_CAP_FLUSH     (1 << 1)
#define RPMA_CAP_FLUSH_ALL (1 << 2) /* the other end supports rpma_flush_all() */
/* the target executes rpma_atomic_write() as one operation */
#define RPMA_CAP_ATOMIC_WRITE (1 << 3)
#define RPMA_CAP_VERIFY       (1 << 4) /* the other end supports rpma_verify() */
#define RPMA_CAP_QUERY        (1 << 5) /* the other end supports rpma_query_durability() */
#define RPMA_CAP_IMM          (1 << 6) /* the other end supports immediate data */
#define RPMA_CAP_ATOMICS      (1 << 7) /* the other end supports atomic operations */

/* Get the capabilities of the other end, RPMA_CAP_*. RPMA_E_AGAIN: RPMA_CONN_ESTABLISHED has not
 * come yet. */
int rpma_conn_get_remote_caps(const struct rpma_conn *conn, uint32_t *caps);

struct rpma_counter {
	const char *name; /* a static text */
	uint64_t value;   /* total since the connection was made */
};

/*
 * Get the connection's counters. *count: on entry, the length of the array; on return, the number
 * of counters that exist. counters NULL: return only the number. RPMA_E_NOSUPP: the device has no
 * counters.
 */
int rpma_conn_get_counters(const struct rpma_conn *conn, struct rpma_counter *counters,
			   size_t *count);

/*
 * Get the other end's numeric address without the port. An IPv4 address that came through IPv6 is
 * written as IPv4. RPMA_ADDR_MAX bytes are enough. RPMA_E_INVAL: size is too small.
 * RPMA_E_UNKNOWN: the device does not report the address.
 */
#define RPMA_ADDR_MAX 64
int rpma_conn_get_remote_addr(const struct rpma_conn *conn, char *addr, size_t size);

/*
 * Give up connecting: the event RPMA_CONN_UNREACHABLE follows. The call has no effect if the
 * result came before. Thread-safe, also while another thread waits for the event. With an RDMA
 * device the kernel continues to connect until rpma_conn_delete(). RPMA_E_PROVIDER.
 */
int rpma_conn_cancel(struct rpma_conn *conn);

/* Begin to close; the event RPMA_CONN_CLOSED follows. With iWARP, operations that were posted
 * before are still sent; with InfiniBand, unfinished operations fail. */
int rpma_conn_disconnect(struct rpma_conn *conn);
/* Release the connection and its queues. Without an earlier disconnect the other end gets
 * RPMA_CONN_CLOSED, and operations that were not acknowledged may or may not be executed. */
int rpma_conn_delete(struct rpma_conn **conn_ptr);

/* Get the descriptor of the shared completion channel. RPMA_E_NOT_SHARED_CHNL: the connection has
 * no shared channel. */
int rpma_conn_get_compl_fd(const struct rpma_conn *conn, int *fd);
/*
 * Wait for a completion in either queue, and return the queue: *cq, and *is_rcq unless is_rcq is
 * NULL. Get the completion by rpma_cq_get_wc(). flags is reserved. RPMA_E_NO_COMPLETION: the wait
 * ended without a completion. RPMA_E_UNKNOWN: the event's queue is not this connection's.
 * RPMA_E_PROVIDER: the next wait could not be prepared, and *cq is NULL.
 */
int rpma_conn_wait(struct rpma_conn *conn, int flags, struct rpma_cq **cq, bool *is_rcq);
/* Like rpma_conn_wait(), with a time limit; see rpma_cq_wait_timeout(). */
int rpma_conn_wait_timeout(struct rpma_conn *conn, int timeout_ms, struct rpma_cq **cq,
			   bool *is_rcq);

/* Connection requests: outgoing, or incoming at an endpoint */

struct rpma_conn_req;

/*
 * Make an outgoing request: resolves addr:port and makes the queues. cfg NULL: the defaults. The
 * call sends nothing to the other end's application. RPMA_E_NOMEM, RPMA_E_PROVIDER; RPMA_E_INVAL
 * also for a shared channel together with an SRQ that has a private completion queue, or with a
 * common completion queue. RPMA_E_NOSUPP: the device cannot do what a liveness limit or an owner in
 * cfg requires.
 */
int rpma_conn_req_new(struct rpma_peer *peer, const char *addr, const char *port,
		      const struct rpma_conn_cfg *cfg, struct rpma_conn_req **req_ptr);
/* Delete a request. An incoming request is rejected by its deletion. */
int rpma_conn_req_delete(struct rpma_conn_req **req_ptr);

/*
 * Connect an outgoing request, or accept an incoming one, with up to 255 bytes of private data
 * (pdata NULL: none). The call consumes the request: *req_ptr is NULL afterwards, whatever the
 * result. An event of the new connection reports the result.
 */
int rpma_conn_req_connect(struct rpma_conn_req **req_ptr,
			  const struct rpma_conn_private_data *pdata, struct rpma_conn **conn_ptr);

/* Parameters of rpma_conn_open(). The caller must set size; each other member may be zero, which
 * selects its default. */
struct rpma_conn_open_attr {
	size_t size; /* sizeof(struct rpma_conn_open_attr); later versions may add members */
	const char *addr, *port;
	const struct rpma_conn_cfg *cfg;            /* as for rpma_conn_req_new() */
	const struct rpma_conn_private_data *pdata; /* as for rpma_conn_req_connect() */
	/* Time limit for all attempts together; 0: 10 s, -1: no limit. */
	int timeout_ms;
	/*
	 * Time for which to repeat the attempt, within timeout_ms, while there is no listener or
	 * no answer, or the connection is lost before it is established. 0: do not repeat, -1:
	 * repeat until timeout_ms.
	 */
	int retry_ms;
	/* Called with arg before each attempt, e.g. to post receives. A result other than 0 ends
	 * rpma_conn_open(), which returns this result. */
	int (*prepare)(struct rpma_conn_req *req, void *arg);
	void *arg;
};

/*
 * Connect and wait for the result. 0: *conn_ptr is a connection and *event is
 * RPMA_CONN_ESTABLISHED or RPMA_CONN_REJECTED. With REJECTED, the application at the other end has
 * refused, and its private data may contain the reason. RPMA_E_AGAIN: there is no listener, or the
 * connection was lost before it was established. RPMA_E_NO_EVENT: no answer came in time, or there
 * is no route to that host. RPMA_E_NOSUPP also if the listener does not use the device's protocol.
 * Other errors are those of rpma_conn_req_new() and rpma_conn_req_connect(). To connect again,
 * delete the connection and call this with the same attr. Thread-safe except for the SRQ of cfg.
 */
int rpma_conn_open(struct rpma_peer *peer, const struct rpma_conn_open_attr *attr,
		   enum rpma_conn_event *event, struct rpma_conn **conn_ptr);

/* Post a receive before the connection exists, so that the first message finds a receive. */
int rpma_conn_req_recv(struct rpma_conn_req *req, struct rpma_mr_local *dst, size_t offset,
		       size_t len, const void *op_context);

/* Get the private data of the requesting end; {NULL, 0} if there are none. Valid as long as the
 * request exists. */
int rpma_conn_req_get_private_data(const struct rpma_conn_req *req,
				   struct rpma_conn_private_data *pdata);

/*
 * Reject the request, with up to 255 bytes that the other end gets with RPMA_CONN_REJECTED (pdata
 * NULL: none). The call consumes the request, whatever the result. RPMA_E_INVAL also for an
 * outgoing request, which is deleted, and for empty pdata; then the request is rejected without
 * data.
 */
int rpma_conn_req_reject(struct rpma_conn_req **req_ptr,
			 const struct rpma_conn_private_data *pdata);

/* Get the address of the other end, in the form of rpma_conn_get_remote_addr(). */
int rpma_conn_req_get_remote_addr(const struct rpma_conn_req *req, char *addr, size_t size);

/* Endpoint: listens at an address */

struct rpma_ep;

/* Listen. Port "0" is any free port, which rpma_ep_get_port() returns. */
int rpma_ep_listen(struct rpma_peer *peer, const char *addr, const char *port,
		   struct rpma_ep **ep_ptr);
int rpma_ep_get_port(const struct rpma_ep *ep, uint16_t *port);
/* Stop listening. Connections that the endpoint has accepted stay. */
int rpma_ep_shutdown(struct rpma_ep **ep_ptr);
/* Get a descriptor that is readable while a request is pending. The descriptor may be made
 * non-blocking. The library owns the descriptor. */
int rpma_ep_get_fd(const struct rpma_ep *ep, int *fd);
/*
 * Return the next incoming request, with queues as cfg configures them (NULL: the defaults). The
 * call waits unless the descriptor is non-blocking; then it returns RPMA_E_NO_EVENT. RPMA_E_INVAL
 * also for an event that is not a request.
 */
int rpma_ep_next_conn_req(struct rpma_ep *ep, const struct rpma_conn_cfg *cfg,
			  struct rpma_conn_req **req_ptr);
/* Like rpma_ep_next_conn_req(), with a time limit; see rpma_conn_next_event_timeout(). */
int rpma_ep_next_conn_req_timeout(struct rpma_ep *ep, const struct rpma_conn_cfg *cfg,
				  int timeout_ms, struct rpma_conn_req **req_ptr);

/*
 * Operations. A call queues the operation in order and returns at once. Memory that the operation
 * uses must not change before the completion. flags selects whether a success gives a completion;
 * a failure always gives one. The completion's wr_id is op_context. Thread-safe. RPMA_E_PROVIDER:
 * the operation was not queued, for instance because the queue is full. The number of operations
 * that are posted, and whose completions were not taken, must not exceed the number of entries of
 * the completion queue: not every device refuses further operations. Only a flush and a query may
 * cover 4 GiB or more; other operations return RPMA_E_INVAL then.
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
 * Write, and also consume a receive at the other end. The completion of this receive carries imm
 * in network byte order.
 */
int rpma_write_with_imm(struct rpma_conn *conn, struct rpma_mr_remote *dst, size_t dst_offset,
			const struct rpma_mr_local *src, size_t src_offset, size_t len, int flags,
			uint32_t imm, const void *op_context);

#define RPMA_ATOMIC_WRITE_ALIGNMENT 8

/*
 * Write eight bytes, which the call copies from src, after earlier reads and flushes. dst_offset
 * must be a multiple of 8. A reader at the other end sees all bytes or none, also after a crash.
 * Without RPMA_CAP_ATOMIC_WRITE this depends on the device that places the bytes.
 */
int rpma_atomic_write(struct rpma_conn *conn, struct rpma_mr_remote *dst, size_t dst_offset,
		      const char src[8], int flags, const void *op_context);

#define RPMA_ATOMIC_ALIGNMENT 8

/*
 * Treat eight aligned bytes of a remote region as a number in the byte order of the target's
 * processor. Compare-and-swap replaces the number by swap if it equals compare; fetch-and-add adds
 * to it. result, registered as RPMA_MR_USAGE_READ_DST, gets the former number at its offset, in the
 * byte order of this processor. The remote region must be registered both as RPMA_MR_USAGE_READ_SRC
 * and as RPMA_MR_USAGE_WRITE_DST. These operations are atomic with each other on all connections of
 * the target's device, but not with plain writes. With the software RNIC they are also atomic with
 * rpma_atomic_write() and with the atomic instructions of programs at the target. RPMA_E_NOSUPP
 * without RPMA_CAP_ATOMICS.
 */
int rpma_atomic_compare_swap(struct rpma_conn *conn, struct rpma_mr_local *result,
			     size_t result_offset, struct rpma_mr_remote *dst, size_t dst_offset,
			     uint64_t compare, uint64_t swap, int flags, const void *op_context);
int rpma_atomic_fetch_add(struct rpma_conn *conn, struct rpma_mr_local *result,
			  size_t result_offset, struct rpma_mr_remote *dst, size_t dst_offset,
			  uint64_t add, int flags, const void *op_context);

enum rpma_flush_type {
	/* on the medium: the bytes survive a crash of the remote machine */
	RPMA_FLUSH_TYPE_PERSISTENT,
	RPMA_FLUSH_TYPE_VISIBILITY /* visible to every reader at the other end */
};

/*
 * Persistent flushes of volatile memory. Memory cannot be made durable unless it is a file on a
 * file system with a medium. In programs that are built with this header, a persistent flush of
 * other memory fails (RPMA_REASON_VOLATILE). In programs that are built with the header of librpma
 * 1.3, the flush succeeds when the bytes are visible, as in librpma 1.3: each header uses a
 * separate symbol for rpma_flush(). The environment variable RPMA_STRICT_PERSIST (0 or 1)
 * overrides both. A program that defines RPMA_COMPAT_1_3 before it includes this header gets the
 * function of 1.3.
 */
#ifdef RPMA_COMPAT_1_3
#define RPMA_FLUSH_SYMBOL
#else
#define RPMA_FLUSH_SYMBOL __asm__("rpma_flush_strict")
#endif

/*
 * Flush a range: the operation completes when earlier writes of this connection into the range have
 * reached the state that `type` names. len 0: the whole region. RPMA_E_NOSUPP: the region was not
 * registered for this type. RPMA_E_NOSUPP also for a persistent flush if the peer does not flush
 * natively, and rpma_conn_apply_remote_peer_cfg() has not declared that its writes go directly to
 * persistent memory.
 */
int rpma_flush(struct rpma_conn *conn, struct rpma_mr_remote *dst, size_t dst_offset, size_t len,
	       enum rpma_flush_type type, int flags, const void *op_context) RPMA_FLUSH_SYMBOL;

/* Send a message. With src NULL, and offset and len 0, the message is empty. */
int rpma_send(struct rpma_conn *conn, const struct rpma_mr_local *src, size_t offset, size_t len,
	      int flags, const void *op_context);
int rpma_send_with_imm(struct rpma_conn *conn, const struct rpma_mr_local *src, size_t offset,
		       size_t len, int flags, uint32_t imm, const void *op_context);
/* Post a receive for one message. With dst NULL, and offset and len 0, the receive accepts only an
 * empty message. A receive always gives a completion. */
int rpma_recv(struct rpma_conn *conn, struct rpma_mr_local *dst, size_t offset, size_t len,
	      const void *op_context);

#define RPMA_SEND_SEGMENTS_MAX 4

struct rpma_segment {
	const struct rpma_mr_local *mr;
	size_t offset;
	size_t len;
};

/* Send one message that consists of 1 to RPMA_SEND_SEGMENTS_MAX segments. The caller may reuse the
 * array after the call. RPMA_E_NOSUPP: the device does not gather so many segments. */
int rpma_send_gather(struct rpma_conn *conn, const struct rpma_segment *segments, uint32_t count,
		     int flags, const void *op_context);

/*
 * Flush everything that this connection has written before, in all regions. A persistent flush
 * fails (RPMA_REASON_GONE) if a region with unflushed bytes was deregistered, unless the target's
 * device has opened the file itself and can still write them back. RPMA_E_NOSUPP without
 * RPMA_CAP_FLUSH_ALL.
 */
int rpma_flush_all(struct rpma_conn *conn, enum rpma_flush_type type, int flags,
		   const void *op_context);

/* Opcodes of completions. Older releases of rdma-core lack these values in enum ibv_wc_opcode. */
#define RPMA_WC_FLUSH        8
#define RPMA_WC_ATOMIC_WRITE 9
#define RPMA_WC_VERIFY       0x50
#define RPMA_WC_QUERY        0x51

/* Durability of memory under a persistent flush. A range has the weakest class of its parts. */
enum rpma_durability {
	RPMA_DURABILITY_UNKNOWN,
	RPMA_DURABILITY_VOLATILE, /* no flush makes the bytes persistent */
	RPMA_DURABILITY_FILE,     /* a file: msync makes the bytes persistent */
	/* persistent memory: writing back the processor's caches is sufficient */
	RPMA_DURABILITY_DAX
};

/* Returns "volatile", "file" or "dax"; "unknown" for other values. */
const char *rpma_utils_durability_2str(enum rpma_durability durability);

/*
 * Find the weakest class in a range of this process's memory, registered or not. why gets the
 * reason (path, file system, kind of mapping), cut to why_size; NULL: no text. RPMA_E_INVAL also
 * if a part of the range is not mapped. RPMA_E_NOMEM. RPMA_E_UNKNOWN: /proc cannot be read.
 * Thread-safe.
 */
int rpma_utils_get_durability(const void *ptr, size_t len, enum rpma_durability *durability,
			      char *why, size_t why_size);

/* Ask the target for the durability of a range. *durability is written before the completion
 * (RPMA_WC_QUERY). RPMA_E_NOSUPP without RPMA_CAP_QUERY. */
int rpma_query_durability(struct rpma_conn *conn, const struct rpma_mr_remote *dst,
			  size_t dst_offset, size_t len, enum rpma_durability *durability,
			  int flags, const void *op_context);

#define RPMA_DIGEST_SMALL 4096

enum rpma_digest_alg {
	RPMA_DIGEST_AUTO, /* CRC32C for up to RPMA_DIGEST_SMALL bytes, else BLAKE2B */
	RPMA_DIGEST_CRC32C,
	RPMA_DIGEST_BLAKE2B /* 32 bytes */
};

/* The place from which the bytes of a digest were read. */
enum rpma_digest_source {
	RPMA_DIGEST_FROM_MEMORY, /* memory that is not backed by a medium */
	/* the page cache: the file system permits no direct read, or may answer it from the
	 * cache */
	RPMA_DIGEST_FROM_CACHE,
	RPMA_DIGEST_FROM_MEDIUM, /* the medium, by a direct read */
	RPMA_DIGEST_FROM_DAX     /* persistent memory, by loads */
};

struct rpma_digest {
	enum rpma_digest_alg alg; /* the algorithm that was used, never AUTO */
	enum rpma_digest_source source;
	enum rpma_durability durability;
	uint32_t len;      /* length of the digested range */
	uint8_t bytes[32]; /* CRC32C: four bytes, big-endian, then zeros */
};

/*
 * Flush the range to persistence, and return the digest of the bytes that the target then reads
 * back. *digest is written before the completion (RPMA_WC_VERIFY), and must exist until then. len:
 * 1 to 4 GiB - 1. RPMA_E_NOSUPP without RPMA_CAP_VERIFY, or if the region was not registered for
 * persistent flushes.
 */
int rpma_verify(struct rpma_conn *conn, const struct rpma_mr_remote *dst, size_t dst_offset,
		size_t len, enum rpma_digest_alg alg, struct rpma_digest *digest, int flags,
		const void *op_context);

/* Compute the digest that rpma_verify() returns, for this process's memory. Needs no device. */
int rpma_digest_compute(enum rpma_digest_alg alg, const void *ptr, size_t len,
			struct rpma_digest *digest);
/*
 * Returns true if algorithm, length of the range and bytes are equal; the source is not compared.
 * Returns false if a or b is NULL.
 */
bool rpma_digest_equal(const struct rpma_digest *a, const struct rpma_digest *b);

/*
 * Batches: operations that are collected, then posted together, if possible by one system call.
 * Each rpma_batch_X has the arguments and checks of rpma_X. RPMA_E_AGAIN: the batch is full. If the
 * other end's capabilities are not known yet, they are checked when the batch is posted, so a batch
 * may be filled before the connection is established. Only rpma_batch_new() allocates memory. Only
 * one thread at a time may use a batch.
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
/* An atomic write after a flush of the same batch takes effect only after the flush has
 * succeeded. */
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
 * Post the collected operations in order. On success the batch is empty and may be filled again.
 * On failure the batch holds the operations that were not posted, and may be posted again. The
 * software RNIC posts all operations or none. RPMA_E_NOSUPP: the other end does not support an
 * operation of the batch. RPMA_E_AGAIN: the send queue has too few free entries; take completions
 * first.
 */
int rpma_batch_post(struct rpma_batch *batch);
int rpma_batch_get_count(const struct rpma_batch *batch, uint32_t *count);
int rpma_batch_clear(struct rpma_batch *batch);

/* Completion queues. Thread-safe except rpma_cq_new() and rpma_cq_delete() */

/*
 * Make a queue for several connections; see rpma_conn_cfg_set_cq(). wc.qp_num identifies the
 * connection of a completion (rpma_conn_get_qp_num()). size: the largest number of operations that
 * may complete between two polls. A queue that overflows breaks its connections. After a
 * connection is deleted, completions of that connection may or may not be returned. RPMA_E_NOMEM,
 * RPMA_E_PROVIDER.
 */
int rpma_cq_new(struct rpma_peer *peer, uint32_t size, struct rpma_cq **cq_ptr);
/*
 * Delete a queue of rpma_cq_new(). RPMA_E_AGAIN: a connection or a request still uses the queue;
 * the queue is not deleted, and *cq_ptr stays. RPMA_E_INVAL: the queue belongs to a connection or
 * an SRQ.
 */
int rpma_cq_delete(struct rpma_cq **cq_ptr);

/* Get a descriptor that is readable while a completion may be waiting. The descriptor may be made
 * non-blocking. The library owns the descriptor. */
int rpma_cq_get_fd(const struct rpma_cq *cq, int *fd);
/*
 * Wait for a notification of completions. Then take all completions, because several may share one
 * notification, and those that are left in the queue may cause none. RPMA_E_NO_COMPLETION: the wait
 * ended without a notification; RPMA_E_SHARED_CHANNEL.
 */
int rpma_cq_wait(struct rpma_cq *cq);
/*
 * Like rpma_cq_wait(), with a time limit, even if the descriptor is non-blocking. -1: no limit.
 * Signals neither end nor shorten the wait. RPMA_E_NO_COMPLETION: there was no notification in
 * time; the next wait returns for a later completion. RPMA_E_PROVIDER. A notification wakes one of
 * several waiting threads, and the other threads continue to wait.
 */
int rpma_cq_wait_timeout(struct rpma_cq *cq, int timeout_ms);
/*
 * Take up to num_entries completions. num_entries_got may be NULL if num_entries is 1. In a failed
 * completion only wr_id, status, qp_num and vendor_err are valid. RPMA_E_NO_COMPLETION: the queue
 * is empty.
 */
int rpma_cq_get_wc(struct rpma_cq *cq, int num_entries, struct ibv_wc *wc, int *num_entries_got);

/* The reason why an operation failed, which completions of a software RNIC report */

enum rpma_reason {
	RPMA_REASON_NONE, /* the operation did not fail, or the reason is unknown */
	/* the target could not write to the medium; code: an errno of the target */
	RPMA_REASON_WRITE_BACK,
	RPMA_REASON_VOLATILE, /* the flush is strict, and no flush can persist the range */
	/* the range is unmapped or past the end of its file, or its region was deregistered with
	 * unflushed bytes */
	RPMA_REASON_GONE,
	/* the peer sent a Terminate; code: 0xLTCC with layer, type, code */
	RPMA_REASON_TERMINATE_IN,
	/* this end sent a Terminate; code: 0xLTCC with layer, type, code */
	RPMA_REASON_TERMINATE_OUT,
	RPMA_REASON_LINK,  /* the connection broke; code: errno */
	RPMA_REASON_LOCAL, /* a failure at this end; code: errno */
	RPMA_REASON_DEVICE /* the device's own value of vendor_err */
};

/* Get the reason of a failed completion. code may be NULL. An operation that was outstanding when
 * the connection ended has the reason of the failure that ended the connection. */
enum rpma_reason rpma_wc_get_reason(const struct rpma_conn *conn, const struct ibv_wc *wc,
				    uint32_t *code);
/* Explain a completion in one line, cut to size, without a newline: the failed operation, the
 * value, and advice. */
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
 * A log function receives each message that passes the threshold, including those of the software
 * RNIC. Any thread calls this function at any time, and connections wait meanwhile, so the
 * function must not call this library.
 */
typedef void rpma_log_function(enum rpma_log_level level, const char *file_name, const int line_no,
			       const char *function_name, const char *message_format, ...);

#define RPMA_LOG_USE_DEFAULT_FUNCTION (NULL)

/* Set the log function. The default function writes to syslog, and to stderr up to the level
 * RPMA_LOG_THRESHOLD_AUX. */
int rpma_log_set_function(rpma_log_function *log_function);

/* Kept so that old sources compile; no function accepts this flag. */
#define RPMA_W_WAIT_FOR_COMPLETION (1 << 0)

#ifdef __cplusplus
}
#endif

#endif
