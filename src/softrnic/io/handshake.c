/* SPDX-License-Identifier: BSD-3-Clause */
/* handshake.c -- keeps accepted links whose MPA request is not complete yet. Their number and their
 * time are limited. */
#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "softrnic/io/conn_impl.h"
#include "softrnic/io/listener_impl.h"

/* limit of handshakes in progress; when one more begins, the oldest one is ended */
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
	if (l->closed) { /* listener_close() will find this handshake and free it */
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

/* End the oldest handshake if the limit is reached. */
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

/* Remove the handshake from the listener's list. Returns false if the listener is closing; the
 * listener itself ends its handshakes then. */
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

/* Begin the handshake. Returns 0 if the listener owns the handshake, or if the handshake has
 * already ended. Otherwise the caller keeps both arguments. */
static int handshake_start(struct handshake *h, struct link *link)
{
	struct listener *l = h->listener;
	struct conn *c = h->conn;
	bool closed;
	int ret;

	/* keep a reference: before conn_adopt() returns, another thread may process bytes and end
	 * the handshake */
	conn_get(c);
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
		link->ops->close(link); /* listener_close() has found the handshake and ends it */
		ret = 0;
	}
	conn_leave(c);
	conn_put(c);
	return ret;
}

/* Make a handshake with the addresses of the link's ends. Returns NULL if out of memory. */
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

/* Remove a handshake from the list. The lock is needed although the listener is marked as closed,
 * because a new handshake may be searching the list for one to end. */
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

/* End all handshakes. After this thread has held a connection's lock and removed its owner, no
 * event of this handshake is handled any more. */
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
