/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * listener.c -- accepted sockets become embryos, which have a time limit and a cap;
 * an embryo whose MPA request is complete becomes an id and a CONNECT_REQUEST.
 *
 * A listener's lock is inner to the connections' locks.
 */
#include "softrnic/engine/listener.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "softrnic/engine/door.h"

#define EMBRYOS_MAX     1024 /* handshakes under way; above it the oldest, slowest one is dropped */
#define BACKLOG_DEFAULT 1024 /* requests that wait for accept or reject */
#define RETRY_NS        (100 * NSEC_PER_MS)
#define ACCEPTS_MAX     64 /* in one turn, then the connections get theirs */

struct listener {
	struct eng_source source;
	struct eng_timer retry; /* descriptors ran out, or the turn was over */
	struct eng_timer admit; /* somebody's time at the door is over */
	struct door door;
	uint64_t admit_at; /* what it was set to */
	pthread_mutex_t lock;
	int fd;
	bool closed;
	struct cmid *id;
	struct list embryos;
	unsigned n_embryos;
	unsigned backlog, n_pending;
	struct list pending; /* children; guarded by pending_lock, as child->parent is */
};

struct embryo {
	struct list link;
	struct listener *listener;
	struct conn *conn;
};

static pthread_mutex_t pending_lock = PTHREAD_MUTEX_INITIALIZER;

/* With the connection's lock. The connection ends at its next pump; a request is rejected. */
static void embryo_kill(struct conn *c)
{
	c->owner = NULL;
	c->doomed = true;
}

static bool pending_add(struct listener *l, struct cmid *child)
{
	bool room;

	pthread_mutex_lock(&pending_lock);
	room = l->n_pending < l->backlog;
	if (room) {
		l->n_pending++;
		list_add_tail(&l->pending, &child->pending);
		child->parent = l->id;
		child->request_pending = true;
	}
	pthread_mutex_unlock(&pending_lock);
	return room;
}

void listener_request_done(struct cmid *child)
{
	pthread_mutex_lock(&pending_lock);
	if (child->request_pending && child->parent) {
		list_del(&child->pending);
		child->parent->listener->n_pending--;
	}
	child->request_pending = false;
	child->parent = NULL;
	pthread_mutex_unlock(&pending_lock);
}

/* With the connection's and the listener's lock. The embryo's reference becomes the id's. */
static void embryo_becomes_id(struct embryo *e)
{
	struct listener *l = e->listener;
	struct conn *c = e->conn;
	struct cmid *child = id_new_passive(l->id, c);

	if (child && pending_add(l, child)) {
		child->pub.route.addr.src_storage = c->src;
		child->pub.route.addr.dst_storage = c->dst;
		c->event = id_on_stream_event;
		c->owner = child;
		if (!id_post_request(l->id, child, cm_stream_remote(c->stream)))
			return;
		listener_request_done(child);
	}
	LOG_WARNING("connection request dropped: %s",
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

static void embryo_event(void *owner, enum cm_stream_event event, int status)
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
	if (event == CM_EV_CONNECT_REQUEST) {
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
	first = l->n_embryos >= EMBRYOS_MAX ? list_first(&l->embryos) : NULL;
	if (first) {
		oldest = container_of(first, struct embryo, link)->conn;
		conn_get(oldest);
	}
	pthread_mutex_unlock(&l->lock);
	if (oldest) {
		LOG_WARNING("more than %d handshakes under way: the oldest is dropped",
			    EMBRYOS_MAX);
		conn_want(oldest, CONN_DOOM);
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
	return ret;
}

static void listener_take(struct listener *l, int fd)
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
	if (!e || conn_new(CM_RESPONDER, same, embryo_event, e, &e->conn)) {
		LOG_ERROR("inbound connection dropped: out of memory");
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

static void listener_admit_at(struct listener *l, uint64_t at)
{
	l->admit_at = at;
	engine_set_timer(&l->admit, at);
}

/* Take those whose time at the door is over, and come back for the others. */
static void listener_admit(struct listener *l)
{
	uint64_t next;
	int fd;

	while ((fd = door_next(&l->door, clock_now_ns(), &next)) >= 0)
		listener_take(l, fd);
	listener_admit_at(l, next);
}

/* Who is held back costs little: the others at the door are not asked. */
static void listener_greet(struct listener *l, int fd)
{
	struct sockaddr_storage peer = {0};
	socklen_t len = sizeof(peer);
	uint64_t until;

	getpeername(fd, (struct sockaddr *)&peer, &len);
	if (!door_hold(&l->door, fd, &peer, clock_now_ns(), &until))
		listener_take(l, fd);
	else if (until < l->admit_at)
		listener_admit_at(l, until);
}

/* Edge-triggered: take everything, in turns. Without a free descriptor, try again soon. */
static void listener_accept(struct listener *l)
{
	for (int n = 0; n < ACCEPTS_MAX; n++) {
		int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd >= 0) {
			listener_greet(l, fd);
			continue;
		}
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
			LOG_ERROR(
				"accept: %m; connections wait until a descriptor is free (see ulimit -n)");
			engine_set_timer(&l->retry, clock_now_ns() + RETRY_NS);
			return;
		}
		if (errno != ECONNABORTED && errno != EINTR && errno != EPROTO)
			return;
	}
	engine_set_timer(&l->retry, clock_now_ns());
}

static void listener_ready(struct eng_source *src, uint32_t ev)
{
	listener_accept(container_of(src, struct listener, source));
}

static bool listener_is_closed(struct listener *l)
{
	bool closed;

	pthread_mutex_lock(&l->lock);
	closed = l->closed;
	pthread_mutex_unlock(&l->lock);
	return closed;
}

static void listener_retry(struct eng_timer *timer)
{
	struct listener *l = container_of(timer, struct listener, retry);

	if (!listener_is_closed(l))
		listener_accept(l);
}

static void listener_admit_due(struct eng_timer *timer)
{
	struct listener *l = container_of(timer, struct listener, admit);

	if (!listener_is_closed(l))
		listener_admit(l);
}

static void listener_bury(struct eng_source *src)
{
	struct listener *l = container_of(src, struct listener, source);

	/* The progress thread may have set them while the listener was being closed. */
	engine_set_timer(&l->retry, CLOCK_NEVER);
	engine_set_timer(&l->admit, CLOCK_NEVER);
	door_fini(&l->door);
	if (l->fd >= 0)
		close(l->fd);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

static void listener_forked(struct eng_source *src)
{
	struct listener *l = container_of(src, struct listener, source);

	close(l->fd);
	l->fd = -1;
	door_fini(&l->door);
}

static struct listener *listener_new(struct cmid *id, int backlog)
{
	struct listener *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	list_init(&l->source.all);
	l->source.ready = listener_ready;
	l->source.bury = listener_bury;
	l->source.forked = listener_forked;
	l->retry.at = CLOCK_NEVER;
	l->retry.fire = listener_retry;
	l->admit.at = l->admit_at = CLOCK_NEVER;
	l->admit.fire = listener_admit_due;
	door_init(&l->door);
	pthread_mutex_init(&l->lock, NULL);
	l->fd = id->fd;
	l->id = id;
	list_init(&l->embryos);
	list_init(&l->pending);
	l->backlog = backlog > 0 ? (unsigned)backlog : BACKLOG_DEFAULT;
	return l;
}

int listener_open(struct cmid *id, int backlog)
{
	struct listener *l = listener_new(id, backlog);
	int ret;

	if (!l)
		return -ENOMEM;
	if (listen(l->fd, SOMAXCONN)) {
		ret = -errno;
		goto fail;
	}
	id->listener = l;
	ret = engine_add(&l->source, l->fd, false);
	if (ret)
		goto fail;
	id->fd = -1;
	return 0;
fail:
	id->listener = NULL;
	l->fd = -1;
	listener_bury(&l->source);
	return ret;
}

/* No handler of an embryo runs once its connection's lock was ours and its owner is gone. */
static void embryos_end(struct listener *l)
{
	struct list *it;

	while ((it = list_pop(&l->embryos))) {
		struct embryo *e = container_of(it, struct embryo, link);

		conn_enter(e->conn);
		embryo_kill(e->conn);
		conn_pump(e->conn);
		conn_leave(e->conn);
		conn_put(e->conn);
		free(e);
	}
}

static void listener_orphan_children(struct listener *l)
{
	struct list *it;

	pthread_mutex_lock(&pending_lock);
	while ((it = list_pop(&l->pending)))
		container_of(it, struct cmid, pending)->parent = NULL;
	pthread_mutex_unlock(&pending_lock);
}

void listener_close(struct cmid *id)
{
	struct listener *l = id->listener;

	if (!l)
		return;
	if (id_is_removed(id)) { /* its own lock may be held by a thread that is not here */
		listener_orphan_children(l);
		id->listener = NULL;
		return;
	}
	pthread_mutex_lock(&l->lock);
	l->closed = true;
	pthread_mutex_unlock(&l->lock);
	engine_set_timer(&l->retry, CLOCK_NEVER);
	engine_set_timer(&l->admit, CLOCK_NEVER);
	engine_remove(&l->source, l->fd);
	shutdown(l->fd,
		 SHUT_RDWR); /* the port is free now; the number only when no thread uses it */
	embryos_end(l);
	listener_orphan_children(l);
	id->listener = NULL;
	engine_bury(&l->source);
}

void listener_atfork_prepare(void)
{
	pthread_mutex_lock(&pending_lock);
}

void listener_atfork_release(void)
{
	pthread_mutex_unlock(&pending_lock);
}
