/* SPDX-License-Identifier: BSD-3-Clause */
/* context.c -- contexts of the device, and their asynchronous events. */
#include "softrnic/verbs/context.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "softrnic/io/config.h"
#include "softrnic/softrnic.h"
#include "softrnic/verbs/device.h"
#include "softrnic/verbs/evq.h"

/* Number of undelivered events that are kept. A program may never read its events, so after this
 * number new events replace the oldest ones. */
#define ASYNC_KEPT 256

struct vcontext {
	atomic_uint refs;
	struct evq events;
	atomic_int queued;
	struct verbs_context vctx; /* must be last, because it has no fixed size */
};

struct async_event {
	struct evq_node node;
	struct ibv_async_event ev;
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
	int ret = c ? evq_init(&c->events) : -ENOMEM;

	if (ret) {
		free(c);
		return ret;
	}
	atomic_init(&c->refs, 1);
	context_fill(&c->vctx, device, c->events.fd);
	*out = &c->vctx.context;
	return 0;
}

void context_get(struct ibv_context *context)
{
	atomic_fetch_add(&context_of(context)->refs, 1);
}

/* --- events --------------------------------------------------------------------------------- */

static struct async_event *async_of(struct evq_node *n)
{
	return container_of(n, struct async_event, node);
}

static bool async_match_any(struct evq_node *n, void *arg)
{
	return true;
}

static bool async_match_element(struct evq_node *n, void *arg)
{
	return async_of(n)->ev.element.qp == arg;
}

static bool async_drop(struct vcontext *c, bool (*match)(struct evq_node *, void *), void *arg)
{
	struct evq_node *n = evq_steal(&c->events, match, arg);

	if (!n)
		return false;
	atomic_fetch_sub(&c->queued, 1);
	free(async_of(n));
	return true;
}

void context_put(struct ibv_context *context)
{
	struct vcontext *c = context_of(context);

	if (atomic_fetch_sub(&c->refs, 1) != 1)
		return;
	while (async_drop(c, async_match_any, NULL))
		;
	evq_fini(&c->events);
	pthread_mutex_destroy(&context->mutex);
	free(c);
}

void context_async(struct ibv_context *context, enum ibv_event_type type, void *element)
{
	struct vcontext *c = context_of(context);
	struct async_event *e = calloc(1, sizeof(*e));

	if (!e) {
		LOG_ERROR_LIMITED("out of memory: asynchronous event %d is lost", type);
		return;
	}
	if (atomic_fetch_add(&c->queued, 1) >= ASYNC_KEPT)
		async_drop(c, async_match_any, NULL);
	evq_node_init(&e->node);
	e->ev.event_type = type;
	e->ev.element.qp = element;
	evq_push(&c->events, &e->node);
}

void context_async_cancel(struct ibv_context *context, void *element)
{
	while (async_drop(context_of(context), async_match_element, element))
		;
}

/* The waiting thread holds a reference to the context, because another thread may close the context
 * meanwhile. */
int softrnic_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	struct vcontext *c = context_of(context);
	struct evq_node *n;
	int ret;

	context_get(context);
	ret = evq_pop(&c->events, CLOCK_NEVER, true, &n, NULL);
	if (!ret) {
		atomic_fetch_sub(&c->queued, 1);
		*event = async_of(n)->ev;
		free(async_of(n));
	}
	context_put(context);
	return ret;
}

/*
 * Acknowledgements need not be counted, because destroying an object drops its undelivered events.
 */
void softrnic_ack_async_event(struct ibv_async_event *event)
{
	LOG_DEBUG("asynchronous event %d acknowledged", event->event_type);
}
