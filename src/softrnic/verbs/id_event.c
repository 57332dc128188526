/* SPDX-License-Identifier: BSD-3-Clause */
/* id_event.c -- event channels, and the events of ids on them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/poll.h"
#include "softrnic/verbs/id.h"
#include "softrnic/softrnic.h"

struct rdma_event_channel *softrnic_create_event_channel(void)
{
	struct chan *ch;
	int ret;

	if (!softrnic_context())
		return NULL;
	ch = calloc(1, sizeof(*ch));
	if (!ch)
		return NULL;
	ret = evq_init(&ch->q);
	if (ret) {
		free(ch);
		errno = -ret;
		return NULL;
	}
	ch->pub.fd = ch->q.fd;
	return &ch->pub;
}

static bool id_match_all(struct evq_node *n, void *arg)
{
	return true;
}

static bool id_match_own(struct evq_node *n, void *id)
{
	struct cmev *e = container_of(n, struct cmev, node);

	return e->counted == id;
}

/* Free an event that was not delivered. If it is a request, free the request's id, too, because the
 * user has not seen it. */
static void id_event_discard(struct evq_node *n)
{
	struct cmev *e = container_of(n, struct cmev, node);

	if (e->pub.event == RDMA_CM_EVENT_CONNECT_REQUEST)
		id_drop(cmid_of(e->pub.id));
	free(e);
}

void softrnic_destroy_event_channel(struct rdma_event_channel *pub)
{
	struct chan *ch = chan_of(pub);
	struct evq_node *n;

	while ((n = evq_steal(&ch->q, id_match_all, NULL)))
		id_event_discard(n);
	evq_fini(&ch->q);
	free(ch);
}

int id_reserve_events(struct cmid *id)
{
	for (int i = 0; i < ID_EVENTS; i++) {
		if (!id->spare[i])
			id->spare[i] = malloc(sizeof(*id->spare[i]));
		if (!id->spare[i])
			return -ENOMEM;
	}
	return 0;
}

void id_free_reserve(struct cmid *id)
{
	for (int i = 0; i < ID_EVENTS; i++)
		free(id->spare[i]);
}

/* Take an event from the reserve. The connection calls this with its lock held, so events come one
 * at a time. */
static struct cmev *id_event_from_reserve(struct cmid *id)
{
	for (int i = 0; i < ID_EVENTS; i++) {
		struct cmev *e = id->spare[i];

		id->spare[i] = NULL;
		if (e)
			return e;
	}
	return NULL;
}

/* The structures for connections and for datagrams begin with the same members. */
static void id_event_fill_datagram(struct cmev *e, const struct cmid *id)
{
	struct rdma_ud_param *ud = &e->pub.param.ud;

	ud->qp_num = id->external.peer.qpn;
	ud->qkey = RDMA_UDP_QKEY;
	/* the id's own address has a row in the table of GIDs */
	(void)id_external_path(id, &ud->ah_attr);
}

static struct cmev *id_event_fill(struct cmev *e, struct cmid *id, enum rdma_cm_event_type type,
				  int status, const struct stream_params *params)
{
	memset(e, 0, sizeof(*e));
	evq_node_init(&e->node);
	e->counted = id;
	e->pub.id = &id->pub;
	e->pub.event = type;
	e->pub.status = status;
	if (params) {
		memcpy(e->pdata, params->pdata, params->pdata_len);
		e->pub.param.conn.private_data = params->pdata_len ? e->pdata : NULL;
		e->pub.param.conn.private_data_len = params->pdata_len;
	}
	if (params && id_is_datagram(id) && id->external.has_peer) {
		id_event_fill_datagram(e, id);
	} else if (params) {
		e->pub.param.conn.responder_resources = (uint8_t)params->ird;
		e->pub.param.conn.initiator_depth = (uint8_t)params->ord;
		e->pub.param.conn.qp_num = id->external.has_peer ? id->external.peer.qpn : 0;
	}
	return e;
}

static void id_event_push(struct cmid *id, struct cmev *e)
{
	pthread_mutex_lock(&id->lock);
	evq_push(&chan_of(id->pub.channel)->q, &e->node);
	pthread_mutex_unlock(&id->lock);
}

void id_post(struct cmid *id, enum rdma_cm_event_type type, int status,
	     const struct stream_params *params)
{
	struct cmev *e = id_event_from_reserve(id);

	LOG_DEBUG("id %p: %s, status %d", (void *)id, softrnic_event_str(type), status);
	if (!e)
		e = malloc(sizeof(*e));
	if (e)
		id_event_push(id, id_event_fill(e, id, type, status, params));
	else
		LOG_ERROR_LIMITED("out of memory: event %s of id %p is lost",
				  softrnic_event_str(type), (void *)id);
}

int id_post_request(struct cmid *listener, struct cmid *child, const struct stream_params *params)
{
	struct cmev *e = malloc(sizeof(*e));

	if (!e)
		return -ENOMEM;
	id_event_fill(e, listener, RDMA_CM_EVENT_CONNECT_REQUEST, 0, params);
	e->pub.id = &child->pub;
	if (id_is_datagram(child) && child->external.has_peer)
		id_event_fill_datagram(e, child);
	else
		e->pub.param.conn.qp_num = child->external.has_peer ? child->external.peer.qpn : 0;
	e->pub.listen_id = &listener->pub;
	id_event_push(listener, e);
	return 0;
}

static void id_event_taken(struct evq_node *n)
{
	atomic_fetch_add(&container_of(n, struct cmev, node)->counted->delivered, 1);
}

/*
 * Wait for an event; see evq_pop(). A request was queued for the channel that its listener had when
 * the request arrived. Since then the listener may have moved to this channel, and the former
 * channel may be gone. The user gets the request's id only now, so the id's channel is set here.
 */
static int id_event_wait(struct rdma_event_channel *channel, uint64_t deadline, bool interruptible,
			 struct rdma_cm_event **event)
{
	struct evq_node *n;

	if (evq_pop(&chan_of(channel)->q, deadline, interruptible, &n, id_event_taken))
		return -1;
	*event = &container_of(n, struct cmev, node)->pub;
	if ((*event)->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		(*event)->id->channel = channel;
	return 0;
}

int softrnic_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
	return id_event_wait(channel, CLOCK_NEVER, true, event);
}

int softrnic_wait_cm_event(struct rdma_event_channel *channel, int timeout_ms,
			   struct rdma_cm_event **event)
{
	return id_event_wait(channel, poll_deadline(timeout_ms), false, event);
}

int softrnic_ack_cm_event(struct rdma_cm_event *event)
{
	struct cmev *e;
	struct cmid *id;

	if (!event)
		return id_errno(EINVAL);
	e = container_of(event, struct cmev, pub);
	id = e->counted;
	pthread_mutex_lock(&id->lock);
	id->acked++;
	pthread_cond_broadcast(&id->acked_cv);
	pthread_mutex_unlock(&id->lock);
	free(e);
	return 0;
}

void id_quiesce(struct cmid *id)
{
	struct evq_node *n;

	if (id->pub.event) {
		softrnic_ack_cm_event(id->pub.event);
		id->pub.event = NULL;
	}
	while ((n = evq_steal(&chan_of(id->pub.channel)->q, id_match_own, id)))
		id_event_discard(n);
	if (id_is_removed(id))
		return;
	pthread_mutex_lock(&id->lock);
	while (id->delivered != id->acked)
		pthread_cond_wait(&id->acked_cv, &id->lock);
	pthread_mutex_unlock(&id->lock);
}

/*
 * Move the id's events to the new channel (rdma_cm(7)). The program must not be using any of them
 * on the old channel.
 */
int softrnic_migrate_id(struct rdma_cm_id *pub, struct rdma_event_channel *channel)
{
	struct cmid *id = cmid_of(pub);
	struct chan *to = channel ? chan_of(channel) : NULL, *drop;

	if (id_is_removed(id))
		return id_errno(ENODEV);
	if (!to) {
		struct rdma_event_channel *own = softrnic_create_event_channel();

		if (!own)
			return -1;
		to = chan_of(own);
	}
	if (id->sync && pub->event) {
		softrnic_ack_cm_event(pub->event);
		pub->event = NULL;
	}
	pthread_mutex_lock(&id->lock);
	evq_move(&chan_of(pub->channel)->q, &to->q, id_match_own, id);
	pub->channel = &to->pub;
	while (id->delivered != id->acked)
		pthread_cond_wait(&id->acked_cv, &id->lock);
	pthread_mutex_unlock(&id->lock);
	drop = id->own_chan;
	id->sync = !channel;
	id->own_chan = channel ? NULL : to;
	if (drop)
		softrnic_destroy_event_channel(&drop->pub);
	return 0;
}

int id_result(struct cmid *id, enum rdma_cm_event_type type, int err)
{
	struct cmev *e;

	if (id->sync)
		return id_errno(err);
	e = malloc(sizeof(*e));
	if (!e)
		return id_errno(ENOMEM);
	id_event_push(id, id_event_fill(e, id, type, -err, NULL));
	return 0;
}

int id_wait(struct cmid *id)
{
	struct rdma_cm_event *ev;

	if (id->pub.event) {
		softrnic_ack_cm_event(id->pub.event);
		id->pub.event = NULL;
	}
	if (softrnic_get_cm_event(id->pub.channel, &ev))
		return -1;
	id->pub.event = ev;
	if (ev->event == RDMA_CM_EVENT_REJECTED)
		return id_errno(ECONNREFUSED);
	return id_errno(ev->status < 0 ? -ev->status : ev->status);
}

const char *softrnic_event_str(enum rdma_cm_event_type event)
{
	return rdma_event_str(event);
}
