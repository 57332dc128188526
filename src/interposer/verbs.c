/* SPDX-License-Identifier: BSD-3-Clause */
/* verbs.c -- libibverbs' calls on objects: each goes to the implementation that made the object. */
#include <errno.h>
#include <string.h>

#include "interposer/ops.h"
#include "softrnic/softrnic.h"

/* The object of an event. Device and port events need no acknowledgement. */
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

/* The implementation that made the object, by its type. */
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

int _ibv_query_gid_ex(struct ibv_context *ctx, uint32_t port, uint32_t index,
		      struct ibv_gid_entry *entry, uint32_t flags, size_t size)
{
	OPS_SCOPE ops = ops_of(ctx);
	struct ibv_gid_entry full = {.gid_index = index, .port_num = port};
	__typeof__(_ibv_query_gid_ex) *found;

	if (ops->is_rdma_core) {
		found = (__typeof__(found))rdma_core_symbol("_ibv_query_gid_ex");
		return found ? found(ctx, port, index, entry, flags, size) : EOPNOTSUPP;
	}
	if (flags || port != 1)
		return EINVAL;
	if (ops->verbs.query_gid(ctx, 1, (int)index, &full.gid))
		return ENODATA;
	memcpy(entry, &full, size < sizeof(full) ? size : sizeof(full));
	return 0;
}

ssize_t _ibv_query_gid_table(struct ibv_context *ctx, struct ibv_gid_entry *entries, size_t max,
			     uint32_t flags, size_t size)
{
	OPS_SCOPE ops = ops_of(ctx);
	__typeof__(_ibv_query_gid_table) *found;
	int err;

	if (ops->is_rdma_core) {
		found = (__typeof__(found))rdma_core_symbol("_ibv_query_gid_table");
		return found ? found(ctx, entries, max, flags, size) : -EOPNOTSUPP;
	}
	if (max < 1)
		return -EINVAL;
	err = _ibv_query_gid_ex(ctx, 1, 0, entries, flags, size);
	return err ? -err : 1;
}

/*
 * An interface between libibverbs and its own programs: the kind of a GID, as the kernel's file
 * shows it.
 */
enum ibv_gid_type_sysfs { GID_TYPE_IB_OR_ROCE_V1 };
int ibv_query_gid_type(struct ibv_context *ctx, uint8_t port, unsigned int index,
		       enum ibv_gid_type_sysfs *type);
int ibv_query_gid_type(struct ibv_context *ctx, uint8_t port, unsigned int index,
		       enum ibv_gid_type_sysfs *type)
{
	OPS_SCOPE ops = ops_of(ctx);
	__typeof__(ibv_query_gid_type) *found;

	if (ops->is_rdma_core) {
		found = (__typeof__(found))rdma_core_symbol("ibv_query_gid_type");
		return found ? found(ctx, port, index, type) : REFUSE_NEG(EOPNOTSUPP);
	}
	*type = GID_TYPE_IB_OR_ROCE_V1;
	return port == 1 && index == 0 ? 0 : REFUSE_NEG(EINVAL);
}
