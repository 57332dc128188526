/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * embryo.c -- handshakes: accepted sockets become embryos, which have a time limit and a cap; an
 * embryo whose MPA request is complete becomes an id and a CONNECT_REQUEST.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "softrnic/io/listener_impl.h"

#define EMBRYOS_MAX 1024 /* handshakes under way; above it the oldest, slowest one is dropped */

struct embryo {
	struct list link;
	struct listener *listener;
	struct conn *conn;
};

/* With the connection's lock, from its event or before conn_settle(), which ends it. */
static void embryo_kill(struct conn *c)
{
	c->owner = NULL;
	c->abandoned = true;
}

/* With the connection's and the listener's lock. The embryo's reference becomes the id's. */
static void embryo_becomes_id(struct embryo *e)
{
	struct listener *l = e->listener;
	struct conn *c = e->conn;
	struct cmid *child = id_new_passive(l->id, c);

	if (child && listener_add_request(l, child)) {
		child->pub.route.addr.src_storage = c->src;
		child->pub.route.addr.dst_storage = c->dst;
		c->event = id_on_stream_event;
		c->owner = child;
		if (!id_post_request(l->id, child, stream_remote(c->stream)))
			return;
		listener_request_done(child);
	}
	LOG_WARNING_LIMITED("connection request dropped: %s",
			    child ? "the backlog is full; accept or reject faster, or "
				    "listen with a larger backlog"
				  : "out of memory");
	embryo_kill(c);
	if (child) {
		child->conn = NULL;
		id_drop(child);
	}
	conn_put(c);
}

static void embryo_event(void *owner, enum stream_event event, int status)
{
	struct embryo *e = owner;
	struct listener *l = e->listener;

	pthread_mutex_lock(&l->lock);
	if (l->closed) { /* listener_close() is about to visit and free it */
		pthread_mutex_unlock(&l->lock);
		return;
	}
	list_del(&e->link);
	l->n_embryos--;
	if (event == STREAM_EV_CONNECT_REQUEST) {
		embryo_becomes_id(e);
	} else {
		LOG_INFO("handshake ended before a request was complete: status %d", status);
		embryo_kill(e->conn);
		conn_put(e->conn);
	}
	pthread_mutex_unlock(&l->lock);
	free(e);
}

/* Make room by ending the handshake that has taken longest. */
static void embryo_evict(struct listener *l)
{
	struct conn *oldest = NULL;
	struct list *first;

	pthread_mutex_lock(&l->lock);
	first = l->n_embryos >= EMBRYOS_MAX && !l->closed ? list_first(&l->embryos) : NULL;
	if (first) {
		oldest = container_of(first, struct embryo, link)->conn;
		conn_get(oldest);
	}
	pthread_mutex_unlock(&l->lock);
	if (oldest) {
		LOG_WARNING_LIMITED("more than %d handshakes under way: the oldest is dropped",
				    EMBRYOS_MAX);
		conn_want(oldest, CONN_EVICT);
		conn_put(oldest);
	}
}

/* False: the listener is being closed, and ends its embryos itself. */
static bool embryo_take_back(struct embryo *e)
{
	struct listener *l = e->listener;
	bool closed;

	pthread_mutex_lock(&l->lock);
	closed = l->closed;
	if (!closed) {
		list_del(&e->link);
		l->n_embryos--;
	}
	pthread_mutex_unlock(&l->lock);
	return !closed;
}

/* 0: it is the listener's, or its end is; else the caller keeps all of it. */
static int embryo_start(struct embryo *e, int fd)
{
	struct listener *l = e->listener;
	struct conn *c = e->conn;
	bool closed;
	int ret;

	conn_get(c); /* another thread may take its first bytes, and end it, before we have left */
	conn_enter(c);
	pthread_mutex_lock(&l->lock);
	closed = l->closed;
	if (!closed) {
		list_add_tail(&l->embryos, &e->link);
		l->n_embryos++;
	}
	pthread_mutex_unlock(&l->lock);
	ret = closed ? -ESHUTDOWN : conn_adopt(c, fd);
	if (ret && !closed && !embryo_take_back(e)) {
		close(fd); /* the rest is done by listener_close(), which has found it */
		ret = 0;
	}
	conn_leave(c);
	conn_put(c);
	return ret;
}

void embryo_begin(struct listener *l, int fd)
{
	struct sockaddr_storage local = {0}, peer = {0};
	socklen_t llen = sizeof(local), plen = sizeof(peer);
	struct embryo *e;
	bool same;

	embryo_evict(l);
	e = calloc(1, sizeof(*e));
	getsockname(fd, (struct sockaddr *)&local, &llen);
	getpeername(fd, (struct sockaddr *)&peer, &plen);
	same = sockaddr_same_host((struct sockaddr *)&local, (struct sockaddr *)&peer);
	if (!e || conn_new(STREAM_RESPONDER, same, embryo_event, e, &e->conn)) {
		LOG_ERROR_LIMITED("inbound connection dropped: out of memory");
		free(e);
		close(fd);
		return;
	}
	e->listener = l;
	list_init(&e->link);
	e->conn->src = local;
	e->conn->dst = peer;
	if (embryo_start(e, fd)) {
		close(fd);
		conn_put(e->conn);
		free(e);
	}
}

/* With the lock although the listener is marked as closed: a newcomer may just look whose place it
 * could take. */
static struct embryo *embryo_pop(struct listener *l)
{
	struct list *it;

	pthread_mutex_lock(&l->lock);
	it = list_pop(&l->embryos);
	if (it)
		l->n_embryos--;
	pthread_mutex_unlock(&l->lock);
	return it ? container_of(it, struct embryo, link) : NULL;
}

/* No handler of an embryo runs once its connection's lock was ours and its owner is gone. */
void embryos_end(struct listener *l)
{
	struct embryo *e;

	while ((e = embryo_pop(l))) {
		conn_enter(e->conn);
		embryo_kill(e->conn);
		conn_settle(e->conn);
		conn_leave(e->conn);
		conn_put(e->conn);
		free(e);
	}
}
