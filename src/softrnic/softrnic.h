/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * softrnic.h -- a software RNIC in this process, in the words of verbs and rdma_cm.
 *
 * Each softrnic_X has the signature, the return convention and the meaning of ibv_X or
 * rdma_X of rdma-core. The objects handed out are genuine: their data-path calls
 * (post_send, post_recv, post_srq_recv, poll_cq, req_notify_cq) work through
 * ibv_context.ops. All functions are thread-safe unless rdma_cm's are not.
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

/* The device. There is one per process, and it owns every address. */
#define SOFTRNIC_VENDOR_ID 0x50524d41u      /* identifies softrnic's devices */
struct ibv_context *softrnic_context(void); /* the context of ids; NULL and errno */
/*
 * Contexts of their own: each has its asynchronous events. softrnic_close_device() succeeds while
 * something made on the context is there, and then frees it when that is destroyed; it leaves alone
 * the context of ids.
 */
struct ibv_context *softrnic_open_device(void);
int softrnic_close_device(struct ibv_context *context);
bool softrnic_owns_context(const struct ibv_context *context);
const char *softrnic_why(void); /* one line: what it is and that it needs no hardware */

/*
 * Pass what the device logs, down to `level`, to `sink` (NULL: no sink), besides what SOFTRNIC_LOG
 * writes to standard error. There is one sink in a process, which any thread may exchange at any
 * time. It is called by threads of the caller and of the device, also while these hold locks: it
 * must be thread-safe, must stay loaded and must call nothing of this library. A disabled level
 * costs one branch.
 */
void softrnic_log_set(log_sink *sink, enum log_level level);

/* The calls that every user has in a table. */
#define SOFTRNIC_DECLARE(ret, name, params, ...) ret softrnic_##name params;
VEXT_CM_CALLS(SOFTRNIC_DECLARE)
VEXT_VERBS_CALLS(SOFTRNIC_DECLARE)
#undef SOFTRNIC_DECLARE

/* rdma_cm: the others. */
const char *softrnic_event_str(enum rdma_cm_event_type event);
/* RDMA_OPTION_ID_AFONLY has an effect, before the id is bound; the others are only accepted. */
int softrnic_set_option(struct rdma_cm_id *id, int level, int name, void *val, size_t len);

int softrnic_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints,
			 struct rdma_addrinfo **res);
void softrnic_freeaddrinfo(struct rdma_addrinfo *res);

/*
 * Before connect or accept: the time limit of all of the connecting, and the time after which a
 * peer is lost from which nothing came. 0: SOFTRNIC_CONNECT_MS, SOFTRNIC_LIVENESS_MS; liveness_ms
 * -1: never. 0 or an errno value.
 */
int softrnic_set_limits(struct rdma_cm_id *id, int connect_ms, int liveness_ms);
/*
 * Before connect or accept: the user of this connection asks for persistence by VEXT_OP_FLUSH and
 * its kin only, so the peer need not write back before it answers a Read. Without it the peer
 * assumes that the user flushes by reading behind its Writes, as programs do that know only verbs.
 * 0 or an errno value.
 */
int softrnic_announce_flushes(struct rdma_cm_id *id);
/*
 * Before connect: the connection belongs to the owner of this name. When it is established, the
 * target has ended every connection that another process has made for the same owner, and nothing
 * of these is placed any more. Of one process, the target always ends those that it has given up.
 * No bytes: no owner. 0 or an errno value.
 */
int softrnic_set_owner(struct rdma_cm_id *id, const void *name, size_t len);
/*
 * From any thread: give up what connect or accept began. UNREACHABLE with -ECANCELED follows unless
 * the outcome was there before. 0, also when there is nothing to give up any more, or an errno
 * value.
 */
int softrnic_cancel_connect(struct rdma_cm_id *id);
/*
 * The connection is given up, before its queue pair and its id are destroyed. Unless
 * softrnic_disconnect() has begun its end, it is a reset: nothing more of what was posted leaves.
 * If it has, and Writes may be on their way, the end is awaited, within the time limit of a
 * disconnect. Without it their destruction is an orderly end, as users of verbs rely on.
 */
void softrnic_abandon(struct rdma_cm_id *id);
/* As the calls without a limit (-1: for ever), whatever O_NONBLOCK and signals say; ETIMEDOUT. */
int softrnic_wait_cm_event(struct rdma_event_channel *channel, int timeout_ms,
			   struct rdma_cm_event **event);
int softrnic_wait_cq_event(struct ibv_comp_channel *channel, int timeout_ms, struct ibv_cq **cq,
			   void **cq_context);

/* verbs: the others. */
int softrnic_query_device(struct ibv_context *context, struct ibv_device_attr *attr);
int softrnic_query_device_ex(struct ibv_context *context,
			     const struct ibv_query_device_ex_input *in,
			     struct ibv_device_attr_ex *attr);
int softrnic_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr);
/*
 * The port's GIDs. The rows are filled from the first on, and never change: the first four have the
 * primary address. softrnic_query_gid() returns zeros for an empty one, softrnic_query_gid_ex()
 * ENODATA. _table() returns how many are filled, or -EINVAL: there are more than `max`.
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
/* IBV_REREG_MR_ERR_INPUT and errno: the region is what it was. */
int softrnic_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t len,
		      int access);
/* Windows of type 1 and 2 (2B). While one is bound, softrnic_dereg_mr() fails with EBUSY. */
struct ibv_mw *softrnic_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int softrnic_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);
int softrnic_dealloc_mw(struct ibv_mw *mw);
/* Domains around a protection domain; softrnic_dealloc_pd() ends a parent domain, too. */
struct ibv_pd *softrnic_alloc_parent_domain(struct ibv_context *context,
					    struct ibv_parent_domain_init_attr *attr);
struct ibv_td *softrnic_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr);
int softrnic_dealloc_td(struct ibv_td *td);
/* An iWARP device has no address handles: EOPNOTSUPP. */
struct ibv_ah *softrnic_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr);
int softrnic_destroy_ah(struct ibv_ah *ah);
int softrnic_init_ah_from_wc(struct ibv_context *context, uint8_t port, struct ibv_wc *wc,
			     struct ibv_grh *grh, struct ibv_ah_attr *attr);
struct ibv_ah *softrnic_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh,
					  uint8_t port);
int softrnic_resize_cq(struct ibv_cq *cq, int cqe);
int softrnic_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);
/*
 * A queue whose completions are read member by member. IBV_WC_EX_WITH_COMPLETION_TIMESTAMP gives
 * each the time (CLOCK_MONOTONIC, in ns) at which it was queued.
 */
struct ibv_cq_ex *softrnic_create_cq_ex(struct ibv_context *context,
					struct ibv_cq_init_attr_ex *attr);
/* The clock of those times, in raw_clock.tv_nsec alone: tv_sec is 0. */
int softrnic_query_rt_values_ex(struct ibv_context *context, struct ibv_values_ex *values);
int softrnic_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask);
int softrnic_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr);
/*
 * Plain queue pairs: ibv_create_qp() and ibv_destroy_qp(), of queue pairs without an id. (The names
 * without `plain` are those of rdma_cm's calls.)
 */
struct ibv_qp *softrnic_create_plain_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
struct ibv_qp *softrnic_create_plain_qp_ex(struct ibv_context *context,
					   struct ibv_qp_init_attr_ex *attr);
int softrnic_destroy_plain_qp(struct ibv_qp *qp);
bool softrnic_is_plain_qp(const struct ibv_qp *qp);
/* The extended form of a plain queue pair or of an id's, if the queue pair was created for the
 * calls ibv_wr_...(); else NULL. */
struct ibv_qp_ex *softrnic_qp_to_qp_ex(struct ibv_qp *qp);
/*
 * The user moves a plain one. rdma_cm moves that of an id through its states; what is left to the
 * user is IBV_QPS_ERR, which ends the connection at once, and naming the state it is in.
 */
int softrnic_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
int softrnic_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		      struct ibv_qp_init_attr *init_attr);

/* Beyond verbs of rdma-core 44. */
/*
 * Post a list, all of it or nothing: *posted is n or 0. Under one lock, and sent by one system
 * call if it fits. 0 or an errno value. The completions' opcodes: VEXT_WC_*.
 */
int softrnic_post(struct ibv_qp *qp, const struct vext_wr *wrs, int n, int *posted);
/* VEXT_CAP_*: what the peer can be asked for. 0 before the connection is established. */
uint32_t softrnic_qp_caps(struct ibv_qp *qp);

/*
 * The durability of [addr, +len) of this process, registered or not: cls is the weakest class in it
 * (1 volatile, 2 file, 3 dax), `why` one line that explains it. 0 or an errno value.
 */
int softrnic_durability(const void *addr, size_t len, uint32_t *cls, char *why, size_t why_size);

/* Counters of a connection: *names (static), and at most `max` of the values; returns how many
 * there are. */
int softrnic_qp_counters(struct ibv_qp *qp, const char *const **names, uint64_t *values, int max);
/*
 * The process is about to end without exit(), or to become another program: wait, for a fifth of a
 * second at most, until the links have taken what was posted, and end them in good order; without
 * that the end of a process resets its connections, and nothing more of them leaves. Threads of the
 * device send; this one only waits, so it may be in the handler of a signal. In a child of vfork(),
 * whose parent goes on, it does nothing.
 */
void softrnic_send_posted(void);

#ifdef __cplusplus
}
#endif
#endif
