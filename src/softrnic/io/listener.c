/* SPDX-License-Identifier: BSD-3-Clause */
/* listener.c -- a listening link: accepts connections, holds back some of them, and begins
 * handshakes. */
#include "softrnic/io/listener_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"

#define RETRY_NS (100 * NSEC_PER_MS)
/* greatest number of accepts in one turn; after them the engine serves connections */
#define ACCEPTS_MAX 64

static void listener_admit_at(struct listener *l, uint64_t at)
{
	l->admit_at = at;
	engine_set_timer(&l->admit, at);
}

/* Take one connection: hold it, or begin its handshake. Holding it takes constant time, because the
 * other held connections are not searched. */
static void listener_take(struct listener *l, struct link *link)
{
	struct link_addr peer = {.family = LINK_NONE};
	uint64_t until;

	link->ops->remote(link, &peer);
	if (!admission_hold(&l->admission, link, &peer, clock_now_ns(), &until))
		handshake_begin(l, link);
	else if (until < l->admit_at)
		listener_admit_at(l, until);
}

/* Accept all connections, in turns, because readiness is reported only once. If no descriptor is
 * free, try again soon. */
static void listener_accept(struct listener *l)
{
	for (int n = 0; n < ACCEPTS_MAX; n++) {
		struct link *link;
		int ret = l->link->ops->connecting->accept(l->link, &link);

		if (!ret) {
			listener_take(l, link);
			continue;
		}
		if (ret == -EMFILE || ret == -ENFILE || ret == -ENOMEM || ret == -ENOBUFS) {
			LOG_ERROR_LIMITED("accept: %s; connections wait until a descriptor is free "
					  "(see ulimit -n)",
					  strerror(-ret));
			engine_set_timer(&l->retry, clock_now_ns() + RETRY_NS);
			return;
		}
		if (ret != -ECONNABORTED)
			return;
	}
	engine_set_timer(&l->retry, clock_now_ns());
}

static void listener_ready(struct eng_source *src, unsigned ready)
{
	struct listener *l = container_of(src, struct listener, source);

	if (l->link->ops->ready(l->link, ready))
		listener_accept(l);
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

/* Serve the connections that the rate limit admits now. Set the timer for the others. */
static void listener_admit_due(struct eng_timer *timer)
{
	struct listener *l = container_of(timer, struct listener, admit);
	struct link *link;
	uint64_t next;

	if (listener_is_closed(l))
		return;
	while ((link = admission_next(&l->admission, clock_now_ns(), &next)))
		handshake_begin(l, link);
	listener_admit_at(l, next);
}

static void listener_free(struct eng_source *src)
{
	struct listener *l = container_of(src, struct listener, source);

	/* The progress thread may have set these timers while the listener was being closed. */
	engine_set_timer(&l->retry, CLOCK_NEVER);
	engine_set_timer(&l->admit, CLOCK_NEVER);
	admission_fini(&l->admission);
	if (l->link)
		l->link->ops->close(l->link);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

static void listener_forked(struct eng_source *src)
{
	struct listener *l = container_of(src, struct listener, source);

	l->link->ops->forked(l->link);
	l->link = NULL;
	admission_forked(&l->admission);
}

static struct listener *listener_new(struct link *link, listener_request_fn *request, void *owner)
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
	l->link = link;
	l->request = request;
	l->owner = owner;
	list_init(&l->handshakes);
	return l;
}

/* Set *out first, because a request may arrive as soon as the link is watched. */
static int listener_begin(struct link *link, struct listener *l, struct listener **out)
{
	int ret;

	if (!l)
		return -ENOMEM;
	*out = l;
	ret = link->ops->connecting->listen(link);
	if (!ret)
		ret = link->ops->connecting->watch(link, &l->source, false);
	if (!ret)
		return 0;
	*out = NULL;
	l->link = NULL;
	listener_free(&l->source);
	return ret;
}

int listener_open(struct link *link, listener_request_fn *request, void *owner,
		  struct listener **out)
{
	return listener_begin(link, listener_new(link, request, owner), out);
}

int listener_open_meeting(struct link *link, listener_request_fn *request, void *owner,
			  struct listener **out)
{
	struct listener *l = listener_new(link, request, owner);

	if (l)
		l->meets = true;
	return listener_begin(link, l, out);
}

/* Close the listener. Its address is free immediately; the link is freed after its last use. */
void listener_close(struct listener *l)
{
	pthread_mutex_lock(&l->lock);
	l->closed = true;
	pthread_mutex_unlock(&l->lock);
	engine_set_timer(&l->retry, CLOCK_NEVER);
	engine_set_timer(&l->admit, CLOCK_NEVER);
	l->link->ops->connecting->stop_listening(l->link);
	handshakes_end(l);
	engine_free_later(&l->source);
}
