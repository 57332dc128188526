/* SPDX-License-Identifier: BSD-3-Clause */
/* id_listen.c -- ids that listen, and inbound requests that the user has not answered yet. */
#include <errno.h>

#include "base/log.h"
#include "softrnic/io/listener.h"
#include "softrnic/softrnic.h"
#include "softrnic/verbs/id.h"

#define BACKLOG_DEFAULT 1024 /* number of requests that may wait for accept or reject */

/*
 * Leaf lock. It guards the lists of requests, and the fields that show whether an id is in a list.
 */
static pthread_mutex_t requests_lock = PTHREAD_MUTEX_INITIALIZER;

/* Add a request to the listener's list. Returns false if the backlog is full. */
static bool id_request_add(struct cmid *listener, struct cmid *child)
{
	struct id_requests *r = &listener->requests;
	bool room;

	pthread_mutex_lock(&requests_lock);
	room = r->n < r->max;
	if (room) {
		r->n++;
		list_add_tail(&r->list, &child->request);
		child->parent = listener;
	}
	pthread_mutex_unlock(&requests_lock);
	return room;
}

void id_request_done(struct cmid *child)
{
	pthread_mutex_lock(&requests_lock);
	if (child->parent) {
		list_del(&child->request);
		child->parent->requests.n--;
	}
	child->parent = NULL;
	pthread_mutex_unlock(&requests_lock);
}

static bool id_request_report(struct cmid *listener, struct cmid *child, struct conn *c)
{
	struct stream_params remote = *conn_remote(c);
	struct link_addr local, peer;

	if (!id_request_add(listener, child))
		return false;
	conn_ends(c, &local, &peer);
	id_set_addr(&child->pub.route.addr.src_storage, &local);
	id_set_addr(&child->pub.route.addr.dst_storage, &peer);
	conn_report_to(c, id_on_stream_event, child);
	(void)id_external_take(child, &remote);
	return !id_post_request(listener, child, &remote);
}

/* A request is complete (listener_request_fn): make an id for the connection, and queue a
 * CONNECT_REQUEST event. */
static bool id_on_request(void *owner, struct conn *c)
{
	struct cmid *listener = owner, *child = id_new_passive(listener, c);

	if (child && id_request_report(listener, child, c))
		return true;
	LOG_WARNING_LIMITED("connection request dropped: %s",
			    child ? "the backlog is full; accept or reject faster, or "
				    "listen with a larger backlog"
				  : "out of memory");
	if (child) {
		child->conn = NULL;
		id_drop(child);
	}
	return false;
}

int softrnic_listen(struct rdma_cm_id *pub, int backlog)
{
	struct cmid *id = cmid_of(pub);
	int ret;

	if (id_is_removed(id))
		return id_errno(ENODEV);
	if (!id->bound || id->listener || id->conn)
		return id_errno(EINVAL);
	id->requests.max = backlog > 0 ? (unsigned)backlog : BACKLOG_DEFAULT;
	ret = listener_open(id->bound, id_on_request, id, &id->listener);
	if (!ret)
		id->bound = NULL;
	return id_errno(-ret);
}

/* Stop listening. In a forked child do nothing to the listener, because a thread of the parent may
 * hold the listener's lock for ever. */
void id_stop_listening(struct cmid *id)
{
	struct list *it;

	if (id->listener && !id_is_removed(id))
		listener_close(id->listener);
	id->listener = NULL;
	/* Requests that were already reported stay: the user may still answer them. */
	pthread_mutex_lock(&requests_lock);
	while ((it = list_pop(&id->requests.list)))
		container_of(it, struct cmid, request)->parent = NULL;
	pthread_mutex_unlock(&requests_lock);
}

void id_requests_atfork_prepare(void)
{
	pthread_mutex_lock(&requests_lock);
}

void id_requests_atfork_release(void)
{
	pthread_mutex_unlock(&requests_lock);
}
