/* SPDX-License-Identifier: BSD-3-Clause */
/* event.c -- converts events for programs, and moves ids between channels. */
#include <errno.h>
#include <stdlib.h>

#include "interposer/shim_id.h"
#include "softrnic/softrnic.h"

/* Move the id to a channel. With channel NULL the id gets a separate channel, and becomes
 * synchronous. */
static int event_migrate_id(struct shim_id *s, struct shim_channel *channel)
{
	OPS_SCOPE ops = s->ops;
	struct shim_channel *to = channel ? channel : shim_channel_new();

	if (!to)
		return -1;
	if (s->own_channel)
		shim_id_ack_event(s);
	if (ops->cm.migrate_id(s->inner, ops->is_rdma_core ? to->rdma_core : to->softrnic)) {
		if (!channel)
			shim_channel_delete(to);
		return -1;
	}
	if (s->own_channel)
		shim_channel_delete(s->own_channel);
	s->own_channel = channel ? NULL : to;
	s->pub.channel = &to->pub;
	return 0;
}

/* Make the shim id of a request. If the listener is synchronous, each of its requests gets a
 * separate channel, as rdma_get_request(3) requires. */
static struct shim_id *event_request_id(struct shim_id *listener, struct shim_channel *ch,
					struct rdma_cm_id *inner)
{
	struct shim_id *s = shim_id_new_passive(listener, ch, inner);

	if (s && listener->own_channel && event_migrate_id(s, NULL)) {
		shim_id_free(s);
		return NULL;
	}
	return s;
}

/* May the device or addresses of the inner id have changed before this event, without a call of the
 * program for that id? If so, they are copied to the shim id. */
static bool event_changes_id(enum rdma_cm_event_type type)
{
	return type == RDMA_CM_EVENT_ADDR_RESOLVED || type == RDMA_CM_EVENT_ROUTE_RESOLVED ||
	       type == RDMA_CM_EVENT_CONNECT_RESPONSE || type == RDMA_CM_EVENT_ESTABLISHED;
}

/*
 * Replace the ids in the event by their shim ids. The listener may have been moved to this channel.
 * Its older requests may still refer to the former channel, because the thread that moves the
 * listener may not have moved these requests yet.
 */
static int event_translate(struct shim_event *e, struct shim_channel *ch)
{
	struct rdma_cm_event *ev = e->inner;
	struct shim_id *s;

	e->pub = *ev;
	if (ev->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		struct shim_id *listener = ev->listen_id->context;

		s = event_request_id(listener, ch, ev->id);
		e->pub.listen_id = &listener->pub;
	} else {
		s = ev->id->context;
	}
	if (!s)
		return -1;
	e->pub.id = &s->pub;
	if (event_changes_id(ev->event))
		shim_id_sync(s);
	if (ev->event == RDMA_CM_EVENT_DISCONNECTED)
		atomic_store(&s->ended, true);
	return 0;
}

int shim_event_get(struct shim_channel *ch, struct rdma_cm_event **event)
{
	struct shim_event *e = calloc(1, sizeof(*e));
	struct rdma_cm_id *request = NULL;
	int ret;

	if (!e)
		return -1;
	pthread_cleanup_push(free, e); /* programs may cancel the thread that waits here */
	ret = shim_channel_next(ch, &e->ops, &e->inner);
	pthread_cleanup_pop(ret);
	if (ret)
		return -1;
	if (event_translate(e, ch)) {
		/* There is no memory for the shim id of a request: drop the request. */
		if (e->inner->event == RDMA_CM_EVENT_CONNECT_REQUEST)
			request = e->inner->id;
		e->ops->cm.ack_cm_event(e->inner);
		if (request)
			e->ops->cm.destroy_id(request);
		free(e);
		return REFUSE_NEG(ENOMEM);
	}
	*event = &e->pub;
	return 0;
}

int shim_event_ack(struct rdma_cm_event *event)
{
	struct shim_event *e = (struct shim_event *)event;
	int ret = e->ops->cm.ack_cm_event(e->inner);

	free(e);
	return ret;
}

void shim_id_ack_event(struct shim_id *s)
{
	if (s->pub.event)
		shim_event_ack(s->pub.event);
	s->pub.event = NULL;
}

int shim_id_complete(struct shim_id *s, int ret)
{
	struct rdma_cm_id *id = &s->pub;
	int status;

	if (ret || !s->own_channel)
		return ret;
	shim_id_ack_event(s);
	if (shim_event_get(shim_channel_of(id->channel), &id->event))
		return -1;
	status = id->event->status;
	if (!status)
		return 0;
	if (id->event->event == RDMA_CM_EVENT_REJECTED)
		return REFUSE_NEG(ECONNREFUSED);
	return REFUSE_NEG(status < 0 ? -status : status);
}

int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
	return shim_event_get(shim_channel_of(channel), event);
}

int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	return event ? shim_event_ack(event) : REFUSE_NEG(EINVAL);
}

int rdma_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel)
{
	return event_migrate_id(shim_id_of(id), channel ? shim_channel_of(channel) : NULL);
}
