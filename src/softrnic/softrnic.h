/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * softrnic.h -- the interface of the software RNIC, which runs in this process. Its calls are those
 * of verbs and rdma_cm.
 *
 * Each softrnic_X has the signature, the return convention and the meaning of ibv_X or rdma_X of
 * rdma-core. The objects that these calls return are real objects of verbs and rdma_cm: their
 * data-path calls (post_send, post_recv, post_srq_recv, poll_cq, req_notify_cq) work through
 * ibv_context.ops. All functions are thread-safe, except where rdma_cm's functions are not.
 */
#ifndef SOFTRNIC_H
#define SOFTRNIC_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "verbs_ext/calls.h"
#include "verbs_ext/verbs_ext.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The device. A process has one device, and every address belongs to it. */
#define SOFTRNIC_VENDOR_ID 0x50524d41u /* vendor id in the attributes of softrnic's devices */
/* the context for ids; on failure NULL, with errno set */
struct ibv_context *softrnic_context(void);
/*
 * Further contexts; each has its own asynchronous events. softrnic_close_device() succeeds even if
 * objects made on the context still exist; the context is then freed when the last of them is
 * destroyed. It does nothing to the context of ids.
 */
struct ibv_context *softrnic_open_device(void);
int softrnic_close_device(struct ibv_context *context);
bool softrnic_owns_context(const struct ibv_context *context);
/* one line of text: what the device is, and that it needs no hardware */
const char *softrnic_why(void);

/*
 * Pass the device's log messages, down to `level`, to `sink` (NULL: no sink). The lines that
 * SOFTRNIC_LOG requests for standard error do not change. A process has one sink, which any thread
 * may exchange at any time. Threads of the caller and of the device call the sink, also while they
 * hold locks. So it must be thread-safe, must stay loaded and must not call this library. A
 * disabled level costs one branch.
 */
void softrnic_log_set(log_sink *sink, enum log_level level);

/* The calls that are in the tables of the provider and the interposer. */
#define SOFTRNIC_DECLARE(ret, name, params, ...) ret softrnic_##name params;
VEXT_CM_CALLS(SOFTRNIC_DECLARE)
VEXT_VERBS_CALLS(SOFTRNIC_DECLARE)
#undef SOFTRNIC_DECLARE

/* Calls of rdma_cm that are not in these tables. */
const char *softrnic_event_str(enum rdma_cm_event_type event);
/* RDMA_OPTION_ID_AFONLY has an effect if it is set before the id is bound. ibv_query_qp() and
 * rdma_init_qp_attr() return the timeout of RDMA_OPTION_ID_ACK_TIMEOUT; TCP has timeouts of its own.
 * The other options are accepted and have no effect. */
int softrnic_set_option(struct rdma_cm_id *id, int level, int name, void *val, size_t len);

/*
 * For an id whose program made the queue pair by itself. The attributes of RTR and RTS are known
 * after CONNECT_REQUEST or CONNECT_RESPONSE. Both return 0, or -1 with errno.
 */
int softrnic_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *attr, int *mask);
int softrnic_establish(struct rdma_cm_id *id);

int softrnic_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints,
			 struct rdma_addrinfo **res);
void softrnic_freeaddrinfo(struct rdma_addrinfo *res);

/*
 * To be called before connect or accept. connect_ms limits the whole connecting; liveness_ms is the
 * silence after which the peer counts as lost. 0 means the default (SOFTRNIC_CONNECT_MS,
 * SOFTRNIC_LIVENESS_MS), and liveness_ms -1 means no limit. Returns 0 or an errno value.
 */
int softrnic_set_limits(struct rdma_cm_id *id, int connect_ms, int liveness_ms);
/*
 * To be called before connect or accept. It announces that the user of this connection asks for
 * persistence only by VEXT_OP_FLUSH, _FLUSH_ALL and _VERIFY, so the peer need not write back before
 * it answers a Read. Without this call the peer assumes that the user flushes by a Read after its
 * Writes, as programs do that use only verbs. Returns 0 or an errno value.
 */
int softrnic_announce_flushes(struct rdma_cm_id *id);
/*
 * To be called before connect: the connection belongs to the owner with this name. When the
 * connection is established, the target has closed every connection that another process made for
 * the same owner, and places no more bytes of these connections. In any case the target closes
 * connections that this process itself has given up. len 0 means that there is no owner. Returns 0
 * or an errno value.
 */
int softrnic_set_owner(struct rdma_cm_id *id, const void *name, size_t len);
/*
 * Give up a connect or accept that has begun. May be called from any thread. An UNREACHABLE event
 * with status -ECANCELED follows, unless the outcome was known before. Returns 0, also if the
 * outcome was known, or an errno value.
 */
int softrnic_cancel_connect(struct rdma_cm_id *id);
/*
 * Give up the connection, before its queue pair and its id are destroyed. If softrnic_disconnect()
 * was not called before, the connection is reset, and no more posted bytes are sent. If
 * softrnic_disconnect() was called, and Writes may be on their way, this call waits for the end, at
 * most for the time limit of a disconnect. Without softrnic_abandon(), destroying the queue pair
 * and the id ends the connection in good order, as users of verbs expect.
 */
void softrnic_abandon(struct rdma_cm_id *id);
/*
 * Do the same as rdma_get_cm_event() and ibv_get_cq_event(), but wait at most timeout_ms (-1: for
 * ever), whether or not O_NONBLOCK is set, and even if signals arrive. After the limit errno is
 * ETIMEDOUT.
 */
int softrnic_wait_cm_event(struct rdma_event_channel *channel, int timeout_ms,
			   struct rdma_cm_event **event);
int softrnic_wait_cq_event(struct ibv_comp_channel *channel, int timeout_ms, struct ibv_cq **cq,
			   void **cq_context);

/* Calls of verbs that are not in these tables. */
int softrnic_query_device(struct ibv_context *context, struct ibv_device_attr *attr);
int softrnic_query_device_ex(struct ibv_context *context,
			     const struct ibv_query_device_ex_input *in,
			     struct ibv_device_attr_ex *attr);
int softrnic_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr);
/*
 * The port's table of GIDs. Rows are filled in order, and a filled row never changes. The first
 * four rows contain the primary address. For an empty row softrnic_query_gid() returns a GID of
 * zeros, and softrnic_query_gid_ex() returns ENODATA. softrnic_query_gid_table() returns the number
 * of filled rows, or -EINVAL if it is greater than `max`.
 */
#define SOFTRNIC_GIDS_MAX 16
int softrnic_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid);
int softrnic_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index,
			  struct ibv_gid_entry *entry, uint32_t flags);
ssize_t softrnic_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
				 size_t max, uint32_t flags);
int softrnic_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey);
int softrnic_get_pkey_index(struct ibv_context *context, uint8_t port, __be16 pkey);
struct ibv_mr *softrnic_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t len, uint64_t iova,
				     unsigned int access);
int softrnic_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		       struct ibv_sge *sges, uint32_t num_sge);
/* On failure returns IBV_REREG_MR_ERR_INPUT and sets errno; the region is unchanged. */
int softrnic_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t len,
		      int access);
/* Memory windows of type 1 and type 2 (2B). While a window is bound to a region,
 * softrnic_dereg_mr() of the region fails with EBUSY. */
struct ibv_mw *softrnic_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int softrnic_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);
int softrnic_dealloc_mw(struct ibv_mw *mw);
/* A parent domain refers to a protection domain. softrnic_dealloc_pd() also deallocates a parent
 * domain. */
struct ibv_pd *softrnic_alloc_parent_domain(struct ibv_context *context,
					    struct ibv_parent_domain_init_attr *attr);
struct ibv_td *softrnic_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr);
int softrnic_dealloc_td(struct ibv_td *td);
/*
 * On an iWARP device the next four calls fail with EOPNOTSUPP, because it has no address handles.
 */
struct ibv_ah *softrnic_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr);
int softrnic_destroy_ah(struct ibv_ah *ah);
int softrnic_init_ah_from_wc(struct ibv_context *context, uint8_t port, struct ibv_wc *wc,
			     struct ibv_grh *grh, struct ibv_ah_attr *attr);
struct ibv_ah *softrnic_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh,
					  uint8_t port);
int softrnic_resize_cq(struct ibv_cq *cq, int cqe);
int softrnic_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);
/*
 * A completion queue whose completions are read member by member. With
 * IBV_WC_EX_WITH_COMPLETION_TIMESTAMP each completion has the time at which it was queued
 * (CLOCK_MONOTONIC, in ns).
 */
struct ibv_cq_ex *softrnic_create_cq_ex(struct ibv_context *context,
					struct ibv_cq_init_attr_ex *attr);
/* Reads the clock that stamps completions. The whole time is in raw_clock.tv_nsec; tv_sec is 0. */
int softrnic_query_rt_values_ex(struct ibv_context *context, struct ibv_values_ex *values);
int softrnic_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask);
int softrnic_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr);
/*
 * Plain queue pairs are those without an id, made by ibv_create_qp() and ended by ibv_destroy_qp().
 * (The calls without `plain` in their names are rdma_cm's.)
 */
struct ibv_qp *softrnic_create_plain_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
struct ibv_qp *softrnic_create_plain_qp_ex(struct ibv_context *context,
					   struct ibv_qp_init_attr_ex *attr);
int softrnic_destroy_plain_qp(struct ibv_qp *qp);
bool softrnic_is_plain_qp(const struct ibv_qp *qp);
/* Returns the extended form of a queue pair if it was created for the calls ibv_wr_...(); else
 * NULL. The queue pair may be plain or an id's. */
struct ibv_qp_ex *softrnic_qp_to_qp_ex(struct ibv_qp *qp);
/*
 * A plain queue pair is moved by its user. An id's queue pair is moved by rdma_cm; its user can
 * only set IBV_QPS_ERR, which ends the connection immediately, or the state that the queue pair is
 * in already.
 */
int softrnic_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
int softrnic_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		      struct ibv_qp_init_attr *init_attr);

/* Calls beyond verbs of rdma-core 44. */
/*
 * Post a list of work requests. Either all are posted (*posted is n) or none (*posted is 0). The
 * list is posted under one lock, and sent by one system call if it is short enough. Returns 0 or an
 * errno value. The opcodes of the completions are VEXT_WC_*.
 */
int softrnic_post(struct ibv_qp *qp, const struct vext_wr *wrs, int n, int *posted);
/* Returns the operations that the peer supports, as VEXT_CAP_* flags, or 0 before the connection is
 * established. */
uint32_t softrnic_qp_caps(struct ibv_qp *qp);

/*
 * Find the durability of [addr, +len) of this process, registered or not. *cls is the weakest class
 * in the range (1 volatile, 2 file, 3 dax), and `why` gets one line that explains the class.
 * Returns 0 or an errno value.
 */
int softrnic_durability(const void *addr, size_t len, uint32_t *cls, char *why, size_t why_size);

/* Counters of a connection. *names is a static list of names; `values` gets at most `max` values.
 * Returns the number of counters. */
int softrnic_qp_counters(struct ibv_qp *qp, const char *const **names, uint64_t *values, int max);
/*
 * To be called when the process is about to terminate without exit(), or to become another program.
 * Waits at most a fifth of a second until the links have taken all posted bytes, and closes the
 * links in good order. Without this call the exit of the process resets its connections, and no
 * more bytes are sent. Threads of the device send; the calling thread only waits, so it may be in a
 * signal handler. In a child of vfork() the call does nothing, because the parent continues to use
 * the connections.
 */
void softrnic_send_posted(void);

#ifdef __cplusplus
}
#endif
#endif
