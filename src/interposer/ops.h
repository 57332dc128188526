/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ops.h -- the two implementations behind the interposer: the software RNIC, and rdma-core with its
 * devices.
 *
 * Each implementation is a table of type struct ops. Each member has the signature, the return
 * convention and the meaning of rdma-core's call with the same name. An id or another object
 * belongs to one implementation as long as it exists.
 */
#ifndef INTERPOSER_OPS_H
#define INTERPOSER_OPS_H

#include <rdma/rdma_verbs.h>
#include <stdbool.h>

#include "verbs_ext/calls.h"

/* verbs.h defines macros with these names; without the macros the names are functions. */
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

/*
 * The result of a failed call; the column `failure` in calls.h selects one of these macros.
 * softrnic refuses a call like a device without the feature.
 */
#define REFUSE_NUL(err) (errno = (err), NULL)
#define REFUSE_NEG(err) (errno = (err), -1)
#define REFUSE_ERR(err) (err)

/* Rows in the form of calls.h, for calls that only these tables have. */
/* clang-format off */
#define OPS_CM_CALLS(X)                                                                            \
	X(int, init_qp_attr, (struct rdma_cm_id *id, struct ibv_qp_attr *attr, int *mask),         \
	  (id, attr, mask), NEG, CALL)                                                             \
	X(int, reject_ece, (struct rdma_cm_id *id, const void *pdata, uint8_t len),                \
	  (id, pdata, len), NEG, RELEASE)                                                          \
	X(int, set_option, (struct rdma_cm_id *id, int level, int name, void *val, size_t len),    \
	  (id, level, name, val, len), NEG, CALL)                                                  \
	X(int, notify, (struct rdma_cm_id *id, enum ibv_event_type event), (id, event), NEG, CALL) \
	X(int, establish, (struct rdma_cm_id *id), (id), NEG, CALL)                                \
	X(int, join_multicast, (struct rdma_cm_id *id, struct sockaddr *addr, void *context),      \
	  (id, addr, context), NEG, CALL)                                                          \
	X(int, join_multicast_ex,                                                                  \
	  (struct rdma_cm_id *id, struct rdma_cm_join_mc_attr_ex *attr, void *context),            \
	  (id, attr, context), NEG, CALL)                                                          \
	X(int, leave_multicast, (struct rdma_cm_id *id, struct sockaddr *addr), (id, addr), NEG,   \
	  CALL)

/* Calls that softrnic refuses with EOPNOTSUPP. */
#define OPS_CM_LACKED_CALLS(X)                                                                     \
	X(int, set_local_ece, (struct rdma_cm_id *id, struct ibv_ece *ece), (id, ece), NEG, CALL)  \
	X(int, get_remote_ece, (struct rdma_cm_id *id, struct ibv_ece *ece), (id, ece), NEG, CALL)

#define OPS_VERBS_CALLS(X)                                                                         \
	X(int, close_device, (struct ibv_context *ctx), (ctx), ERR, RELEASE)                       \
	X(int, query_device, (struct ibv_context *ctx, struct ibv_device_attr *attr), (ctx, attr), \
	  ERR, CALL)                                                                               \
	X(int, query_port,                                                                         \
	  (struct ibv_context *ctx, uint8_t port, struct _compat_ibv_port_attr *attr),             \
	  (ctx, port, attr), ERR, CALL)                                                            \
	X(int, query_gid, (struct ibv_context *ctx, uint8_t port, int index, union ibv_gid *gid),  \
	  (ctx, port, index, gid), NEG, CALL)                                                      \
	X(int, query_pkey, (struct ibv_context *ctx, uint8_t port, int index, __be16 *pkey),       \
	  (ctx, port, index, pkey), NEG, CALL)                                                     \
	X(int, get_pkey_index, (struct ibv_context *ctx, uint8_t port, __be16 pkey),               \
	  (ctx, port, pkey), NEG, CALL)                                                            \
	X(struct ibv_mr *, reg_mr_iova,                                                            \
	  (struct ibv_pd *pd, void *addr, size_t len, uint64_t iova, int access),                  \
	  (pd, addr, len, iova, access), NUL, CALL)                                                \
	X(struct ibv_mr *, reg_mr_iova2,                                                           \
	  (struct ibv_pd *pd, void *addr, size_t len, uint64_t iova, unsigned int access),         \
	  (pd, addr, len, iova, access), NUL, CALL)                                                \
	X(int, rereg_mr,                                                                           \
	  (struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t len, int access),   \
	  (mr, flags, pd, addr, len, access), ERR, CALL)                                           \
	X(struct ibv_ah *, create_ah, (struct ibv_pd *pd, struct ibv_ah_attr *attr), (pd, attr),   \
	  NUL, CALL)                                                                               \
	X(int, destroy_ah, (struct ibv_ah *ah), (ah), ERR, RELEASE)                                \
	X(int, init_ah_from_wc,                                                                    \
	  (struct ibv_context *ctx, uint8_t port, struct ibv_wc *wc, struct ibv_grh *grh,          \
	   struct ibv_ah_attr *attr),                                                              \
	  (ctx, port, wc, grh, attr), NEG, CALL)                                                   \
	X(struct ibv_ah *, create_ah_from_wc,                                                      \
	  (struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh, uint8_t port),               \
	  (pd, wc, grh, port), NUL, CALL)                                                          \
	X(int, resize_cq, (struct ibv_cq *cq, int cqe), (cq, cqe), ERR, CALL)                      \
	X(void, unimport_mr, (struct ibv_mr *mr), (mr), VOID, RELEASE)                             \
	X(void, unimport_pd, (struct ibv_pd *pd), (pd), VOID, RELEASE)                             \
	X(void, unimport_dm, (struct ibv_dm *dm), (dm), VOID, RELEASE)                             \
	X(int, modify_srq, (struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask),             \
	  (srq, attr, mask), ERR, CALL)                                                            \
	X(int, query_srq, (struct ibv_srq *srq, struct ibv_srq_attr *attr), (srq, attr), ERR,      \
	  CALL)                                                                                    \
	X(struct ibv_qp_ex *, qp_to_qp_ex, (struct ibv_qp *qp), (qp), NUL, CALL)                   \
	X(int, modify_qp, (struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask),                 \
	  (qp, attr, mask), ERR, CALL)                                                             \
	X(int, query_qp,                                                                           \
	  (struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init),  \
	  (qp, attr, mask, init), ERR, CALL)                                                       \
	X(int, query_qp_data_in_order, (struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags), \
	  (qp, op, flags), ERR, CALL)

/* Calls that softrnic refuses with EOPNOTSUPP. */
#define OPS_VERBS_LACKED_CALLS(X)                                                                  \
	X(struct ibv_mr *, reg_dmabuf_mr,                                                          \
	  (struct ibv_pd *pd, uint64_t offset, size_t len, uint64_t iova, int fd, int access),     \
	  (pd, offset, len, iova, fd, access), NUL, CALL)                                          \
	X(struct ibv_mr *, import_mr, (struct ibv_pd *pd, uint32_t handle), (pd, handle), NUL,     \
	  CALL)                                                                                    \
	X(struct ibv_pd *, import_pd, (struct ibv_context *ctx, uint32_t handle), (ctx, handle),   \
	  NUL, CALL)                                                                               \
	X(struct ibv_dm *, import_dm, (struct ibv_context *ctx, uint32_t handle), (ctx, handle),   \
	  NUL, CALL)                                                                               \
	X(int, query_ece, (struct ibv_qp *qp, struct ibv_ece *ece), (qp, ece), ERR, CALL)          \
	X(int, set_ece, (struct ibv_qp *qp, struct ibv_ece *ece), (qp, ece), ERR, CALL)            \
	X(int, attach_mcast, (struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid),          \
	  (qp, gid, lid), ERR, CALL)                                                               \
	X(int, detach_mcast, (struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid),          \
	  (qp, gid, lid), ERR, CALL)                                                               \
	X(int, resolve_eth_l2_from_gid,                                                            \
	  (struct ibv_context *ctx, struct ibv_ah_attr *attr, uint8_t mac[6], uint16_t *vid),      \
	  (ctx, attr, mac, vid), ERR, CALL)

/* Members for which the software RNIC has no functions: see plain_qp.c. */
#define OPS_QP_CALLS(X)                                                                            \
	X(struct ibv_qp *, create_qp, (struct ibv_pd *pd, struct ibv_qp_init_attr *attr),          \
	  (pd, attr), NUL, CALL)                                                                   \
	X(int, destroy_qp, (struct ibv_qp *qp), (qp), ERR, RELEASE)
/* clang-format on */

struct ops {
	bool is_rdma_core;
#define OPS_MEMBER(ret, name, params, ...) ret(*name) params;
	struct {
		VEXT_CM_CALLS(OPS_MEMBER)
		OPS_CM_CALLS(OPS_MEMBER)
		OPS_CM_LACKED_CALLS(OPS_MEMBER)
	} cm;
	struct {
		VEXT_VERBS_CALLS(OPS_MEMBER)
		OPS_VERBS_CALLS(OPS_MEMBER)
		OPS_VERBS_LACKED_CALLS(OPS_MEMBER)
		OPS_QP_CALLS(OPS_MEMBER)
	} verbs;
#undef OPS_MEMBER
};

extern const struct ops softrnic_ops;
/* Returns rdma-core's table if rdma-core has devices; else NULL. */
const struct ops *rdma_core_ops(void);
/* Returns a function of rdma-core that is in no table, or NULL. */
void *rdma_core_symbol(const char *name);
/* Returns the table of the implementation that made the context. Every object that was made from
 * the context belongs to the same implementation. */
const struct ops *ops_of(const struct ibv_context *ctx);

/*
 * rdma-core and its devices are in a separate link name space (rdma_core.c), which has its own
 * errno. When a variable of this type goes out of scope, that errno is copied to the program's
 * errno.
 */
void ops_copy_errno(const struct ops **ops);
#define OPS_SCOPE __attribute__((cleanup(ops_copy_errno))) const struct ops *

#endif
