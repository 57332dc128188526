/* SPDX-License-Identifier: BSD-3-Clause */
/* context.c -- contexts of the device, and their asynchronous events. */
#include "softrnic/verbs/context.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "softrnic/io/config.h"
#include "softrnic/softrnic.h"
#include "softrnic/verbs/device.h"

struct vcontext {
	atomic_uint refs;
	struct async_events events;
	struct verbs_context vctx; /* must be last, because it has no fixed size */
};

static struct vcontext *context_of(struct ibv_context *context)
{
	return container_of(context, struct vcontext, vctx.context);
}

/* --- creation and destruction ---------------------------------------------------------------- */

/* The device supports on-demand paging, because it pins no memory and each copy reports missing
 * memory. Only programs that use libibverbs see this capability. librpma registers any mapping
 * without it, and reports no on-demand paging. */
static void device_fill_odp(struct ibv_device_attr_ex *attr)
{
	attr->odp_caps.general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
	attr->odp_caps.per_transport_caps.rc_odp_caps =
		IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_WRITE |
		IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC | IBV_ODP_SUPPORT_SRQ_RECV;
	if (config_get()->roce)
		attr->odp_caps.per_transport_caps.ud_odp_caps =
			IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_SRQ_RECV;
}

static int vctx_query_device_ex(struct ibv_context *context,
				const struct ibv_query_device_ex_input *in,
				struct ibv_device_attr_ex *attr, size_t size)
{
	struct ibv_device_attr_ex full;
	int ret = softrnic_query_device_ex(context, in, &full);

	if (ret)
		return ret;
	device_fill_odp(&full);
	memcpy(attr, &full, size < sizeof(full) ? size : sizeof(full));
	return 0;
}

static int vctx_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr,
			   size_t size)
{
	struct ibv_port_attr full;
	int ret = softrnic_query_port(context, port, &full);

	if (!ret)
		memcpy(attr, &full, size < sizeof(full) ? size : sizeof(full));
	return ret;
}

static void context_fill(struct verbs_context *vctx, struct ibv_device *device, int async_fd)
{
	struct ibv_context *ctx = &vctx->context;

	vctx->query_port = vctx_query_port;
	vctx->query_device_ex = vctx_query_device_ex;
	vctx_fill(vctx);
	vctx->sz = sizeof(*vctx);
	ctx->device = device;
	ctx->ops.poll_cq = verbs_poll_cq;
	ctx->ops.req_notify_cq = verbs_req_notify_cq;
	ctx->ops.post_send = verbs_post_send;
	ctx->ops.post_recv = verbs_post_recv;
	ctx->ops.post_srq_recv = verbs_post_srq_recv;
	ctx->ops.alloc_mw = softrnic_alloc_mw;
	ctx->ops.bind_mw = softrnic_bind_mw;
	ctx->ops.dealloc_mw = softrnic_dealloc_mw;
	/* programs duplicate this descriptor before they try to import the device, which fails */
	ctx->cmd_fd = async_fd;
	ctx->async_fd = async_fd;
	ctx->num_comp_vectors = 1;
	/* this value marks the context as a verbs_context */
	ctx->abi_compat = (void *)(uintptr_t)UINTPTR_MAX;
	pthread_mutex_init(&ctx->mutex, NULL);
}

int context_new(struct ibv_device *device, struct ibv_context **out)
{
	struct vcontext *c = calloc(1, sizeof(*c));
	int ret = c ? async_init(&c->events) : -ENOMEM;

	if (ret) {
		free(c);
		return ret;
	}
	atomic_init(&c->refs, 1);
	context_fill(&c->vctx, device, c->events.queue.fd);
	*out = &c->vctx.context;
	return 0;
}

void context_get(struct ibv_context *context)
{
	atomic_fetch_add(&context_of(context)->refs, 1);
}

void context_put(struct ibv_context *context)
{
	struct vcontext *c = context_of(context);

	if (atomic_fetch_sub(&c->refs, 1) != 1)
		return;
	async_fini(&c->events);
	pthread_mutex_destroy(&context->mutex);
	free(c);
}

/* --- asynchronous events ----------------------------------------------------------------------- */

struct async_events *context_events(struct ibv_context *context)
{
	return &context_of(context)->events;
}

/* Cleanup handler, called if the thread is cancelled while it waits. */
static void context_cancelled(void *context)
{
	context_put(context);
}

/* The waiting thread holds a reference to the context, because another thread may close the context
 * meanwhile. */
int softrnic_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	int ret;

	context_get(context);
	pthread_cleanup_push(context_cancelled, context);
	ret = async_fetch(context_events(context), event);
	pthread_cleanup_pop(0);
	context_put(context);
	return ret;
}

/* Returns the context of the event's object, which exists until the program has acknowledged the
 * event. Returns NULL for an event that this device does not raise, such as one of a port. */
static struct ibv_context *context_of_event(const struct ibv_async_event *event)
{
	switch (event->event_type) {
	case IBV_EVENT_CQ_ERR:
		return event->element.cq->context;
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		return event->element.srq->context;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return event->element.qp->context;
	default:
		return NULL;
	}
}

void softrnic_ack_async_event(struct ibv_async_event *event)
{
	struct ibv_context *context = context_of_event(event);

	if (context)
		async_acknowledge(context_events(context), event);
}
