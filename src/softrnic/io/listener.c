/* SPDX-License-Identifier: BSD-3-Clause */
/* listener.c -- a listening socket, who comes in, and the requests that wait for the user. */
#include "softrnic/io/listener_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

#define BACKLOG_DEFAULT 1024 /* requests that wait for accept or reject */
#define RETRY_NS        (100 * NSEC_PER_MS)
#define ACCEPTS_MAX     64 /* in one turn, then the connections get theirs */

static pthread_mutex_t pending_lock = PTHREAD_MUTEX_INITIALIZER;

bool listener_add_request(struct listener *l, struct cmid *child)
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
		embryo_begin(l, fd);
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
		embryo_begin(l, fd);
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
			LOG_ERROR_LIMITED(
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
	l->source.alone = true;
	l->source.ready = listener_ready;
	l->source.bury = listener_bury;
	l->source.forked = listener_forked;
	l->retry.at = CLOCK_NEVER;
	l->retry.fire = listener_retry;
	l->retry.source = l->admit.source = &l->source;
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
