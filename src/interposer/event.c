/* SPDX-License-Identifier: BSD-3-Clause */
/* event.c -- the events of faces. */
#include <errno.h>
#include <stdlib.h>

#include "interposer/chan.h"
#include "interposer/face.h"
#include "softrnic/softrnic.h"

/* In a synchronous id's life each request has a channel of its own, as rdma_get_request(3) wants.
 */
static struct face *request_face(struct face *listener, struct face_chan *ch,
				 struct rdma_cm_id *inner)
{
	struct face *f = face_new_passive(listener, ch, inner);

	if (f && listener->own_chan && rdma_migrate_id(&f->pub, NULL)) {
		face_free(f);
		return NULL;
	}
	return f;
}

/* What of an id changes behind its face without a call: its device and its addresses. */
static bool event_changes_id(enum rdma_cm_event_type type)
{
	return type == RDMA_CM_EVENT_ADDR_RESOLVED || type == RDMA_CM_EVENT_ROUTE_RESOLVED ||
	       type == RDMA_CM_EVENT_CONNECT_RESPONSE || type == RDMA_CM_EVENT_ESTABLISHED;
}

/*
 * The listener may have been moved here with requests that were made for another channel, and its
 * mover may not have told it yet.
 */
static int event_dress(struct face_event *e, struct face_chan *ch)
{
	struct rdma_cm_event *ev = e->inner;
	struct face *f;

	e->pub = *ev;
	if (ev->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		struct face *listener = ev->listen_id->context;

		f = request_face(listener, ch, ev->id);
		e->pub.listen_id = &listener->pub;
	} else {
		f = ev->id->context;
	}
	if (!f)
		return -1;
	e->pub.id = &f->pub;
	if (event_changes_id(ev->event))
		face_sync(f);
	if (ev->event == RDMA_CM_EVENT_DISCONNECTED)
		atomic_store(&f->ended, true);
	return 0;
}

/* For want of memory here: as if the request had never come. */
static void request_refuse(const struct words *w, struct rdma_cm_event *ev)
{
	struct rdma_cm_id *id = ev->event == RDMA_CM_EVENT_CONNECT_REQUEST ? ev->id : NULL;

	w->cm.ack_cm_event(ev);
	if (id)
		w->cm.destroy_id(id);
}

int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
	struct face_event *e = calloc(1, sizeof(*e));
	int ret;

	if (!e)
		return -1;
	pthread_cleanup_push(free, e); /* programs cancel the thread that waits here */
	ret = face_chan_next(face_chan_of(channel), &e->words, &e->inner);
	pthread_cleanup_pop(ret);
	if (ret)
		return -1;
	if (event_dress(e, face_chan_of(channel))) {
		request_refuse(e->words, e->inner);
		free(e);
		return REFUSE_NEG(ENOMEM);
	}
	*event = &e->pub;
	return 0;
}

int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	struct face_event *e = (struct face_event *)event;
	int ret;

	if (!event)
		return REFUSE_NEG(EINVAL);
	ret = e->words->cm.ack_cm_event(e->inner);
	free(e);
	return ret;
}

void face_ack_event(struct rdma_cm_id *id)
{
	if (id->event)
		rdma_ack_cm_event(id->event);
	id->event = NULL;
}

int rdma_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel)
{
	struct face *f = face_of(id);
	WORDS_SCOPE w = f->words;
	struct rdma_event_channel *to = channel ? channel : rdma_create_event_channel();
	struct face_chan *ch = to ? face_chan_of(to) : NULL;

	if (!ch)
		return -1;
	if (f->own_chan)
		face_ack_event(id);
	if (w->cm.migrate_id(f->inner, w->hard ? ch->hard : ch->soft)) {
		if (!channel)
			rdma_destroy_event_channel(to);
		return -1;
	}
	if (f->own_chan)
		rdma_destroy_event_channel(&f->own_chan->pub);
	f->own_chan = channel ? NULL : ch;
	id->channel = to;
	return 0;
}

int face_complete(struct face *f, int ret)
{
	struct rdma_cm_id *id = &f->pub;
	int status;

	if (ret || !f->own_chan)
		return ret;
	face_ack_event(id);
	if (rdma_get_cm_event(id->channel, &id->event))
		return -1;
	status = id->event->status;
	if (!status)
		return 0;
	if (id->event->event == RDMA_CM_EVENT_REJECTED)
		return REFUSE_NEG(ECONNREFUSED);
	return REFUSE_NEG(status < 0 ? -status : status);
}
