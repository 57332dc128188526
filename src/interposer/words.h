/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * words.h -- what the interposer speaks to: a software RNIC, or rdma-core and its devices.
 *
 * Two tables of the same shape, each member with the signature, the return convention and the
 * meaning of rdma-core's call of that name. An id or an object belongs to one of them for life.
 */
#ifndef INTERPOSER_WORDS_H
#define INTERPOSER_WORDS_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdbool.h>

/* verbs.h has macros of these names; here they are functions. */
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

/* Why a family is refused: softrnic has no such thing, and says what a device without it says. */
#define REFUSE_NUL(err) (errno = (err), NULL)
#define REFUSE_NEG(err) (errno = (err), -1)

/* X(return type, name, parameters): of ids and channels. */
/* clang-format off */
#define WORDS_CM(X)                                                                                \
	X(struct rdma_event_channel *, create_event_channel, (void))                               \
	X(void, destroy_event_channel, (struct rdma_event_channel *ch))                            \
	X(int, get_cm_event, (struct rdma_event_channel *ch, struct rdma_cm_event **ev))           \
	X(int, ack_cm_event, (struct rdma_cm_event *ev))                                           \
	X(int, create_id, (struct rdma_event_channel *ch, struct rdma_cm_id **id, void *context,   \
			   enum rdma_port_space ps))                                               \
	X(int, destroy_id, (struct rdma_cm_id *id))                                                \
	X(int, migrate_id, (struct rdma_cm_id *id, struct rdma_event_channel *ch))                 \
	X(int, bind_addr, (struct rdma_cm_id *id, struct sockaddr *addr))                          \
	X(int, resolve_addr, (struct rdma_cm_id *id, struct sockaddr *src, struct sockaddr *dst,   \
			      int timeout_ms))                                                     \
	X(int, resolve_route, (struct rdma_cm_id *id, int timeout_ms))                             \
	X(int, listen, (struct rdma_cm_id *id, int backlog))                                       \
	X(int, connect, (struct rdma_cm_id *id, struct rdma_conn_param *param))                    \
	X(int, accept, (struct rdma_cm_id *id, struct rdma_conn_param *param))                     \
	X(int, reject, (struct rdma_cm_id *id, const void *pdata, uint8_t len))                    \
	X(int, reject_ece, (struct rdma_cm_id *id, const void *pdata, uint8_t len))                \
	X(int, disconnect, (struct rdma_cm_id *id))                                                \
	X(int, create_qp_ex, (struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr))            \
	X(void, destroy_qp, (struct rdma_cm_id *id))                                               \
	X(int, set_option, (struct rdma_cm_id *id, int level, int name, void *val, size_t len))    \
	X(int, notify, (struct rdma_cm_id *id, enum ibv_event_type event))                         \
	X(int, establish, (struct rdma_cm_id *id))                                                 \
	X(int, init_qp_attr, (struct rdma_cm_id *id, struct ibv_qp_attr *attr, int *mask))         \
	X(int, join_multicast, (struct rdma_cm_id *id, struct sockaddr *addr, void *context))      \
	X(int, join_multicast_ex, (struct rdma_cm_id *id, struct rdma_cm_join_mc_attr_ex *attr,    \
				   void *context))                                                 \
	X(int, leave_multicast, (struct rdma_cm_id *id, struct sockaddr *addr))                    \
	X(int, set_local_ece, (struct rdma_cm_id *id, struct ibv_ece *ece))                        \
	X(int, get_remote_ece, (struct rdma_cm_id *id, struct ibv_ece *ece))

/* X(return type, name, parameters, arguments, context): of devices and what is made of them. */
#define WORDS_VERBS(X)                                                                             \
	X(int, close_device, (struct ibv_context *ctx), (ctx), ctx)                                \
	X(int, query_device, (struct ibv_context *ctx, struct ibv_device_attr *attr), (ctx, attr), \
	  ctx)                                                                                     \
	X(int, query_port, (struct ibv_context *ctx, uint8_t port,                                 \
			    struct _compat_ibv_port_attr *attr), (ctx, port, attr), ctx)           \
	X(int, query_gid, (struct ibv_context *ctx, uint8_t port, int index, union ibv_gid *gid),  \
	  (ctx, port, index, gid), ctx)                                                            \
	X(int, query_pkey, (struct ibv_context *ctx, uint8_t port, int index, __be16 *pkey),       \
	  (ctx, port, index, pkey), ctx)                                                           \
	X(int, get_pkey_index, (struct ibv_context *ctx, uint8_t port, __be16 pkey),               \
	  (ctx, port, pkey), ctx)                                                                  \
	X(struct ibv_pd *, alloc_pd, (struct ibv_context *ctx), (ctx), ctx)                        \
	X(int, dealloc_pd, (struct ibv_pd *pd), (pd), pd->context)                                 \
	X(struct ibv_mr *, reg_mr, (struct ibv_pd *pd, void *addr, size_t len, int access),        \
	  (pd, addr, len, access), pd->context)                                                    \
	X(struct ibv_mr *, reg_mr_iova, (struct ibv_pd *pd, void *addr, size_t len, uint64_t iova, \
					 int access), (pd, addr, len, iova, access), pd->context)  \
	X(struct ibv_mr *, reg_mr_iova2, (struct ibv_pd *pd, void *addr, size_t len,               \
					  uint64_t iova, unsigned int access),                     \
	  (pd, addr, len, iova, access), pd->context)                                              \
	X(struct ibv_mr *, reg_dmabuf_mr, (struct ibv_pd *pd, uint64_t offset, size_t len,         \
					   uint64_t iova, int fd, int access),                     \
	  (pd, offset, len, iova, fd, access), pd->context)                                        \
	X(int, rereg_mr, (struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t len, \
			  int access), (mr, flags, pd, addr, len, access), mr->context)            \
	X(int, dereg_mr, (struct ibv_mr *mr), (mr), mr->context)                                   \
	X(struct ibv_mr *, import_mr, (struct ibv_pd *pd, uint32_t handle), (pd, handle),          \
	  pd->context)                                                                             \
	X(void, unimport_mr, (struct ibv_mr *mr), (mr), mr->context)                               \
	X(struct ibv_pd *, import_pd, (struct ibv_context *ctx, uint32_t handle), (ctx, handle),   \
	  ctx)                                                                                     \
	X(void, unimport_pd, (struct ibv_pd *pd), (pd), pd->context)                               \
	X(struct ibv_dm *, import_dm, (struct ibv_context *ctx, uint32_t handle), (ctx, handle),   \
	  ctx)                                                                                     \
	X(void, unimport_dm, (struct ibv_dm *dm), (dm), dm->context)                               \
	X(struct ibv_comp_channel *, create_comp_channel, (struct ibv_context *ctx), (ctx), ctx)   \
	X(int, destroy_comp_channel, (struct ibv_comp_channel *ch), (ch), ch->context)             \
	X(struct ibv_cq *, create_cq, (struct ibv_context *ctx, int cqe, void *cq_context,         \
				       struct ibv_comp_channel *ch, int vector),                   \
	  (ctx, cqe, cq_context, ch, vector), ctx)                                                 \
	X(int, resize_cq, (struct ibv_cq *cq, int cqe), (cq, cqe), cq->context)                    \
	X(int, destroy_cq, (struct ibv_cq *cq), (cq), cq->context)                                 \
	X(int, get_cq_event, (struct ibv_comp_channel *ch, struct ibv_cq **cq, void **context),    \
	  (ch, cq, context), ch->context)                                                          \
	X(void, ack_cq_events, (struct ibv_cq *cq, unsigned int n), (cq, n), cq->context)          \
	X(struct ibv_srq *, create_srq, (struct ibv_pd *pd, struct ibv_srq_init_attr *attr),       \
	  (pd, attr), pd->context)                                                                 \
	X(int, modify_srq, (struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask),             \
	  (srq, attr, mask), srq->context)                                                         \
	X(int, query_srq, (struct ibv_srq *srq, struct ibv_srq_attr *attr), (srq, attr),           \
	  srq->context)                                                                            \
	X(int, destroy_srq, (struct ibv_srq *srq), (srq), srq->context)                            \
	X(struct ibv_qp *, create_qp, (struct ibv_pd *pd, struct ibv_qp_init_attr *attr),          \
	  (pd, attr), pd->context)                                                                 \
	X(struct ibv_qp_ex *, qp_to_qp_ex, (struct ibv_qp *qp), (qp), qp->context)                 \
	X(int, modify_qp, (struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask),                 \
	  (qp, attr, mask), qp->context)                                                           \
	X(int, query_qp, (struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,                   \
			  struct ibv_qp_init_attr *init), (qp, attr, mask, init), qp->context)     \
	X(int, query_qp_data_in_order, (struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags), \
	  (qp, op, flags), qp->context)                                                            \
	X(int, destroy_qp, (struct ibv_qp *qp), (qp), qp_context(qp))                                 \
	X(int, query_ece, (struct ibv_qp *qp, struct ibv_ece *ece), (qp, ece), qp->context)        \
	X(int, set_ece, (struct ibv_qp *qp, struct ibv_ece *ece), (qp, ece), qp->context)          \
	X(int, attach_mcast, (struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid),          \
	  (qp, gid, lid), qp->context)                                                             \
	X(int, detach_mcast, (struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid),          \
	  (qp, gid, lid), qp->context)                                                             \
	X(struct ibv_ah *, create_ah, (struct ibv_pd *pd, struct ibv_ah_attr *attr), (pd, attr),   \
	  pd->context)                                                                             \
	X(int, destroy_ah, (struct ibv_ah *ah), (ah), ah->context)                                 \
	X(int, init_ah_from_wc, (struct ibv_context *ctx, uint8_t port, struct ibv_wc *wc,         \
				 struct ibv_grh *grh, struct ibv_ah_attr *attr),                   \
	  (ctx, port, wc, grh, attr), ctx)                                                         \
	X(struct ibv_ah *, create_ah_from_wc, (struct ibv_pd *pd, struct ibv_wc *wc,               \
					       struct ibv_grh *grh, uint8_t port),                 \
	  (pd, wc, grh, port), pd->context)                                                        \
	X(int, resolve_eth_l2_from_gid, (struct ibv_context *ctx, struct ibv_ah_attr *attr,        \
					 uint8_t mac[6], uint16_t *vid), (ctx, attr, mac, vid),    \
	  ctx)                                                                                     \
	X(int, get_async_event, (struct ibv_context *ctx, struct ibv_async_event *ev), (ctx, ev),  \
	  ctx)                                                                                     \
	X(void, ack_async_event, (struct ibv_async_event *ev), (ev), event_context(ev))
/* clang-format on */

struct words {
	bool hard;
#define MEMBER(ret, name, params, ...) ret(*name) params;
	struct {
		WORDS_CM(MEMBER)
	} cm;
	struct {
		WORDS_VERBS(MEMBER)
	} verbs;
#undef MEMBER
};

extern const struct words soft_words;
/* rdma-core with its devices; NULL where there is none. */
const struct words *hard_words(void);
/* A call of rdma-core that is in no table, or NULL. */
void *hard_symbol(const char *name);
/* Who made a context, and all that is made of it. */
const struct words *words_of(const struct ibv_context *ctx);

/*
 * rdma-core's devices live in a name space of their own (hard.c), which has its own errno: when
 * the table goes out of scope, what a call left there is brought here.
 */
void words_errno(const struct words **w);
#define WORDS_SCOPE __attribute__((cleanup(words_errno))) const struct words *

#endif
