/* SPDX-License-Identifier: BSD-3-Clause */
/* async.c -- asynchronous events of the device. */
#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "softrnic/verbs/device.h"
#include "softrnic/softrnic.h"

/* A program need not read them: the oldest events make room for new ones. */
#define ASYNC_KEPT 256

struct async_event {
	struct evq_node node;
	struct ibv_async_event ev;
};

static struct evq queue;
static atomic_int queued;

int device_async_init(int *fd)
{
	int ret = evq_init(&queue);

	if (!ret)
		*fd = queue.fd;
	return ret;
}

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

static bool async_drop(bool (*match)(struct evq_node *, void *), void *arg)
{
	struct evq_node *n = evq_steal(&queue, match, arg);

	if (!n)
		return false;
	atomic_fetch_sub(&queued, 1);
	free(async_of(n));
	return true;
}

void device_async(enum ibv_event_type type, void *element)
{
	struct async_event *e = calloc(1, sizeof(*e));

	if (!e) {
		LOG_ERROR_LIMITED("out of memory: asynchronous event %d is lost", type);
		return;
	}
	if (atomic_fetch_add(&queued, 1) >= ASYNC_KEPT)
		async_drop(async_match_any, NULL);
	evq_node_init(&e->node);
	e->ev.event_type = type;
	e->ev.element.qp = element;
	evq_push(&queue, &e->node);
}

void device_async_cancel(void *element)
{
	while (async_drop(async_match_element, element))
		;
}

int softrnic_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	struct evq_node *n;

	if (evq_pop(&queue, &n, NULL))
		return -1;
	atomic_fetch_sub(&queued, 1);
	*event = async_of(n)->ev;
	free(async_of(n));
	return 0;
}

/* Elements are not counted: destroying one drops its undelivered events instead of waiting. */
void softrnic_ack_async_event(struct ibv_async_event *event)
{
	LOG_DEBUG("asynchronous event %d acknowledged", event->event_type);
}
