/* SPDX-License-Identifier: BSD-3-Clause */
/* handshake.c -- accepted links without a complete MPA request. A time limit and a greatest number
 * apply to them. */
#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "softrnic/io/conn_impl.h"
#include "softrnic/io/listener_impl.h"

/* limit of handshakes in progress; above it the oldest, slowest one is dropped */
#define HANDSHAKES_MAX 1024

struct handshake {
	struct list link;
	struct listener *listener;
	struct conn *conn;
};

static void handshake_event(void *owner, enum stream_event event, int status)
{
	struct handshake *h = owner;
	struct listener *l = h->listener;
	bool taken = false;

	pthread_mutex_lock(&l->lock);
	if (l->closed) { /* listener_close() will visit and free it */
		pthread_mutex_unlock(&l->lock);
		return;
	}
	list_del(&h->link);
	l->n_handshakes--;
	if (event == STREAM_EV_CONNECT_REQUEST)
		taken = l->request(l->owner, h->conn);
	else
		LOG_INFO("handshake ended before a request was complete: status %d", status);
	if (!taken) {
		conn_abandon(h->conn);
		conn_put(h->conn);
	}
	pthread_mutex_unlock(&l->lock);
	free(h);
}

/* Make room by ending the oldest handshake. */
static void handshake_evict(struct listener *l)
{
	struct conn *oldest = NULL;
	struct list *first;

	pthread_mutex_lock(&l->lock);
	first = l->n_handshakes >= HANDSHAKES_MAX && !l->closed ? list_first(&l->handshakes) : NULL;
	if (first) {
		oldest = container_of(first, struct handshake, link)->conn;
		conn_get(oldest);
	}
	pthread_mutex_unlock(&l->lock);
	if (oldest) {
		LOG_WARNING_LIMITED("more than %d handshakes under way: the oldest is dropped",
				    HANDSHAKES_MAX);
		conn_want(oldest, CONN_EVICT);
		conn_put(oldest);
	}
}

/* Returns false if the listener is closing: then it ends its handshakes itself. */
static bool handshake_take_back(struct handshake *h)
{
	struct listener *l = h->listener;
	bool closed;

	pthread_mutex_lock(&l->lock);
	closed = l->closed;
	if (!closed) {
		list_del(&h->link);
		l->n_handshakes--;
	}
	pthread_mutex_unlock(&l->lock);
	return !closed;
}

/* Returns 0 if the listener owns the handshake, or it has ended; otherwise the caller keeps
 * everything. */
static int handshake_start(struct handshake *h, struct link *link)
{
	struct listener *l = h->listener;
	struct conn *c = h->conn;
	bool closed;
	int ret;

	conn_get(c); /* before this call returns, another thread may handle bytes and end it */
	conn_enter(c);
	pthread_mutex_lock(&l->lock);
	closed = l->closed;
	if (!closed) {
		list_add_tail(&l->handshakes, &h->link);
		l->n_handshakes++;
	}
	pthread_mutex_unlock(&l->lock);
	ret = closed ? -ESHUTDOWN : conn_adopt(c, link);
	if (ret && !closed && !handshake_take_back(h)) {
		link->ops->close(
			link); /* the rest is done by listener_close(), which has found it */
		ret = 0;
	}
	conn_leave(c);
	conn_put(c);
	return ret;
}

/* Make a handshake with the addresses of the link's ends; NULL: no memory. */
static struct handshake *handshake_new(struct listener *l, struct link *link)
{
	struct handshake *h = calloc(1, sizeof(*h));
	struct link_addr local = {.family = LINK_NONE}, peer = {.family = LINK_NONE};
	bool same;

	link->ops->local(link, &local);
	link->ops->remote(link, &peer);
	same = link->ops->connecting->same_host(&local, &peer);
	if (!h || conn_new(STREAM_RESPONDER, same, handshake_event, h, &h->conn)) {
		free(h);
		return NULL;
	}
	if (l->meets)
		stream_set_meets(h->conn->stream);
	h->listener = l;
	list_init(&h->link);
	h->conn->src = local;
	h->conn->dst = peer;
	return h;
}

void handshake_begin(struct listener *l, struct link *link)
{
	struct handshake *h;

	handshake_evict(l);
	h = handshake_new(l, link);
	if (!h) {
		LOG_ERROR_LIMITED("inbound connection dropped: out of memory");
		link->ops->close(link);
		return;
	}
	if (handshake_start(h, link)) {
		link->ops->close(link);
		conn_put(h->conn);
		free(h);
	}
}

/* Take the lock although the listener is marked as closed: a new handshake may be searching for one
 * to replace. */
static struct handshake *handshake_pop(struct listener *l)
{
	struct list *it;

	pthread_mutex_lock(&l->lock);
	it = list_pop(&l->handshakes);
	if (it)
		l->n_handshakes--;
	pthread_mutex_unlock(&l->lock);
	return it ? container_of(it, struct handshake, link) : NULL;
}

/* After this thread has held a connection's lock and removed its owner, no event of its handshake
 * is handled any more. */
void handshakes_end(struct listener *l)
{
	struct handshake *h;

	while ((h = handshake_pop(l))) {
		conn_enter(h->conn);
		conn_abandon(h->conn);
		conn_settle(h->conn);
		conn_leave(h->conn);
		conn_put(h->conn);
		free(h);
	}
}
