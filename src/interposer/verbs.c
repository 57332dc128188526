/* SPDX-License-Identifier: BSD-3-Clause */
/* verbs.c -- libibverbs' calls on objects. Each call goes to the implementation that made the
 * object. */

#include "interposer/ops.h"
#include "softrnic/softrnic.h"

/* Returns the context of the event's object. It is NULL for device and port events, which need no
 * acknowledgement. */
static const struct ibv_context *verbs_event_context(const struct ibv_async_event *ev)
{
	switch (ev->event_type) {
	case IBV_EVENT_CQ_ERR:
		return ev->element.cq->context;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return ev->element.qp->context;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		return ev->element.srq->context;
	case IBV_EVENT_WQ_FATAL:
		return ev->element.wq->context;
	default:
		return NULL;
	}
}

/* Define a function that returns the context of an object of this type. */
#define CONTEXT_OF(type)                                                                           \
	static const struct ibv_context *verbs_##type##_context(const struct ibv_##type *object)   \
	{                                                                                          \
		return object->context;                                                            \
	}
#define OBJECT_TYPES(X) X(pd) X(mr) X(dm) X(comp_channel) X(cq) X(srq) X(qp) X(ah)
OBJECT_TYPES(CONTEXT_OF)

static const struct ibv_context *verbs_own_context(const struct ibv_context *ctx)
{
	return ctx;
}

#define CONTEXT_CASE(type) struct ibv_##type * : verbs_##type##_context,
#define CONTEXT(object)                                                                            \
	_Generic((object), OBJECT_TYPES(CONTEXT_CASE) struct ibv_async_event *                     \
		 : verbs_event_context, struct ibv_context *                                       \
		 : verbs_own_context)(object)
#define FIRST(object, ...) object

#define DISPATCH(ret, name, params, args, ...)                                                     \
	ret ibv_##name params                                                                      \
	{                                                                                          \
		OPS_SCOPE ops = ops_of(CONTEXT(FIRST args));                                       \
                                                                                                   \
		return ops->verbs.name args;                                                       \
	}
VEXT_VERBS_CALLS(DISPATCH)
OPS_VERBS_CALLS(DISPATCH)
OPS_VERBS_LACKED_CALLS(DISPATCH)

/* Fork protection is for pinned pages. softrnic pins no pages, so only rdma-core is initialised. */
int ibv_fork_init(void)
{
	__typeof__(ibv_fork_init) *found = (__typeof__(found))rdma_core_symbol("ibv_fork_init");

	return found ? found() : 0;
}

enum ibv_fork_status ibv_is_fork_initialized(void)
{
	__typeof__(ibv_is_fork_initialized) *found =
		(__typeof__(found))rdma_core_symbol("ibv_is_fork_initialized");

	return found ? found() : IBV_FORK_UNNEEDED;
}
