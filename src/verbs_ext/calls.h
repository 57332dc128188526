/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * calls.h -- the calls of verbs and rdma_cm that the provider table of librpma and the interposer
 * share. Tables, stubs, decorators, declarations and look-ups are generated from this list. The
 * provider table and the interposer each add calls that only one of them needs.
 *
 * X(return type, name, parameters, arguments, failure, act)
 *
 *   name      without the prefix: ibv_, rdma_ or softrnic_
 *   failure   how the call reports it:
 *             NUL: NULL and errno    NEG: -1 and errno    ERR: an errno value
 *             VOID: it cannot fail
 *   act       CALL, or RELEASE: the call releases or acknowledges an object, which must happen
 *             even if a decorator reports a failure
 */
#ifndef VERBS_EXT_CALLS_H
#define VERBS_EXT_CALLS_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

/* clang-format off */
/* Calls of rdma_cm on event channels and their ids. */
#define VEXT_EVENT_CALLS(X)                                                                        \
	X(struct rdma_event_channel *, create_event_channel, (void), (), NUL, CALL)                \
	X(void, destroy_event_channel, (struct rdma_event_channel *ch), (ch), VOID, RELEASE)       \
	X(int, get_cm_event, (struct rdma_event_channel *ch, struct rdma_cm_event **ev),           \
	  (ch, ev), NEG, CALL)                                                                     \
	X(int, ack_cm_event, (struct rdma_cm_event *ev), (ev), NEG, RELEASE)                       \
	X(int, create_id,                                                                          \
	  (struct rdma_event_channel *ch, struct rdma_cm_id **id, void *context,                   \
	   enum rdma_port_space ps),                                                               \
	  (ch, id, context, ps), NEG, CALL)                                                        \
	X(int, destroy_id, (struct rdma_cm_id *id), (id), NEG, RELEASE)                            \
	X(int, migrate_id, (struct rdma_cm_id *id, struct rdma_event_channel *ch), (id, ch),       \
	  NEG, CALL)

/* Calls of rdma_cm for addresses, listening, and the end of a connection. */
#define VEXT_ID_CALLS(X)                                                                           \
	X(int, bind_addr, (struct rdma_cm_id *id, struct sockaddr *addr), (id, addr), NEG, CALL)   \
	X(int, resolve_addr,                                                                       \
	  (struct rdma_cm_id *id, struct sockaddr *src, struct sockaddr *dst, int timeout_ms),     \
	  (id, src, dst, timeout_ms), NEG, CALL)                                                   \
	X(int, resolve_route, (struct rdma_cm_id *id, int timeout_ms), (id, timeout_ms), NEG,      \
	  CALL)                                                                                    \
	X(int, listen, (struct rdma_cm_id *id, int backlog), (id, backlog), NEG, CALL)             \
	X(int, reject, (struct rdma_cm_id *id, const void *pdata, uint8_t len), (id, pdata, len),  \
	  NEG, RELEASE)                                                                            \
	X(int, disconnect, (struct rdma_cm_id *id), (id), NEG, RELEASE)                            \
	X(void, destroy_qp, (struct rdma_cm_id *id), (id), VOID, RELEASE)

/* Calls of rdma_cm for the beginning of a connection. */
#define VEXT_CONNECT_CALLS(X)                                                                      \
	X(int, create_qp_ex, (struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr),            \
	  (id, attr), NEG, CALL)                                                                   \
	X(int, connect, (struct rdma_cm_id *id, struct rdma_conn_param *param), (id, param), NEG,  \
	  CALL)                                                                                    \
	X(int, accept, (struct rdma_cm_id *id, struct rdma_conn_param *param), (id, param), NEG,   \
	  CALL)

#define VEXT_CM_CALLS(X)                                                                           \
	VEXT_EVENT_CALLS(X)                                                                        \
	VEXT_ID_CALLS(X)                                                                           \
	VEXT_CONNECT_CALLS(X)

/*
 * Calls of verbs on a device, and on objects made from a device. The first argument is the object
 * of the call.
 */
#define VEXT_VERBS_CALLS(X)                                                                        \
	X(struct ibv_pd *, alloc_pd, (struct ibv_context *ctx), (ctx), NUL, CALL)                  \
	X(int, dealloc_pd, (struct ibv_pd *pd), (pd), ERR, RELEASE)                                \
	X(struct ibv_mr *, reg_mr, (struct ibv_pd *pd, void *addr, size_t len, int access),        \
	  (pd, addr, len, access), NUL, CALL)                                                      \
	X(int, dereg_mr, (struct ibv_mr *mr), (mr), ERR, RELEASE)                                  \
	X(struct ibv_comp_channel *, create_comp_channel, (struct ibv_context *ctx), (ctx), NUL,   \
	  CALL)                                                                                    \
	X(int, destroy_comp_channel, (struct ibv_comp_channel *ch), (ch), ERR, RELEASE)            \
	X(struct ibv_cq *, create_cq,                                                              \
	  (struct ibv_context *ctx, int cqe, void *cq_context, struct ibv_comp_channel *ch,        \
	   int comp_vector),                                                                       \
	  (ctx, cqe, cq_context, ch, comp_vector), NUL, CALL)                                      \
	X(int, destroy_cq, (struct ibv_cq *cq), (cq), ERR, RELEASE)                                \
	X(int, get_cq_event,                                                                       \
	  (struct ibv_comp_channel *ch, struct ibv_cq **cq, void **cq_context),                    \
	  (ch, cq, cq_context), NEG, CALL)                                                         \
	X(void, ack_cq_events, (struct ibv_cq *cq, unsigned int nevents), (cq, nevents), VOID,     \
	  RELEASE)                                                                                 \
	X(struct ibv_srq *, create_srq, (struct ibv_pd *pd, struct ibv_srq_init_attr *attr),       \
	  (pd, attr), NUL, CALL)                                                                   \
	X(int, destroy_srq, (struct ibv_srq *srq), (srq), ERR, RELEASE)                            \
	X(int, get_async_event, (struct ibv_context *ctx, struct ibv_async_event *ev), (ctx, ev),  \
	  NEG, CALL)                                                                               \
	X(void, ack_async_event, (struct ibv_async_event *ev), (ev), VOID, RELEASE)
/* clang-format on */

#endif
