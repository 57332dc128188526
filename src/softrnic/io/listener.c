/* SPDX-License-Identifier: BSD-3-Clause */
/* listener.c -- a listening socket: accepting, holding back, beginning handshakes. */
#include "softrnic/io/listener_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

#define RETRY_NS    (100 * NSEC_PER_MS)
#define ACCEPTS_MAX 64 /* in one turn, then the connections get theirs */

static void listener_admit_at(struct listener *l, uint64_t at)
{
	l->admit_at = at;
	engine_set_timer(&l->admit, at);
}

/* Serve those that the rate limit admits now, and come back for the others. */
static void listener_admit(struct listener *l)
{
	uint64_t next;
	int fd;

	while ((fd = admission_next(&l->admission, clock_now_ns(), &next)) >= 0)
		handshake_begin(l, fd);
	listener_admit_at(l, next);
}

/* A connection that is held costs little: the others that are held are not looked at. */
static void listener_take(struct listener *l, int fd)
{
	struct sockaddr_storage peer = {0};
	socklen_t len = sizeof(peer);
	uint64_t until;

	getpeername(fd, (struct sockaddr *)&peer, &len);
	if (!admission_hold(&l->admission, fd, &peer, clock_now_ns(), &until))
		handshake_begin(l, fd);
	else if (until < l->admit_at)
		listener_admit_at(l, until);
}

/* Edge-triggered: take everything, in turns. Without a free descriptor, try again soon. */
static void listener_accept(struct listener *l)
{
	for (int n = 0; n < ACCEPTS_MAX; n++) {
		int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd >= 0) {
			listener_take(l, fd);
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

static void listener_free(struct eng_source *src)
{
	struct listener *l = container_of(src, struct listener, source);

	/* The progress thread may have set them while the listener was being closed. */
	engine_set_timer(&l->retry, CLOCK_NEVER);
	engine_set_timer(&l->admit, CLOCK_NEVER);
	admission_fini(&l->admission);
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
	admission_fini(&l->admission);
}

static struct listener *listener_new(int fd, listener_request_fn *request, void *owner)
{
	struct listener *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	list_init(&l->source.all);
	l->source.alone = true;
	l->source.ready = listener_ready;
	l->source.free = listener_free;
	l->source.forked = listener_forked;
	l->retry.at = CLOCK_NEVER;
	l->retry.fire = listener_retry;
	l->retry.source = l->admit.source = &l->source;
	l->admit.at = l->admit_at = CLOCK_NEVER;
	l->admit.fire = listener_admit_due;
	admission_init(&l->admission);
	pthread_mutex_init(&l->lock, NULL);
	l->fd = fd;
	l->request = request;
	l->owner = owner;
	list_init(&l->handshakes);
	return l;
}

/* *out comes first: a request may come as soon as the engine knows the socket. */
int listener_open(int fd, listener_request_fn *request, void *owner, struct listener **out)
{
	struct listener *l = listener_new(fd, request, owner);
	int ret;

	if (!l)
		return -ENOMEM;
	*out = l;
	ret = listen(fd, SOMAXCONN) ? -errno : engine_add(&l->source, fd, false);
	if (!ret)
		return 0;
	*out = NULL;
	l->fd = -1;
	listener_free(&l->source);
	return ret;
}

/* The port is free at once; the descriptor's number only when no thread uses it. */
void listener_close(struct listener *l)
{
	pthread_mutex_lock(&l->lock);
	l->closed = true;
	pthread_mutex_unlock(&l->lock);
	engine_set_timer(&l->retry, CLOCK_NEVER);
	engine_set_timer(&l->admit, CLOCK_NEVER);
	engine_remove(&l->source, l->fd);
	shutdown(l->fd, SHUT_RDWR);
	handshakes_end(l);
	engine_free_later(&l->source);
}
