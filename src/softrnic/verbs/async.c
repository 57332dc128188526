/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/verbs/async.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "softrnic/io/engine.h"

/* Number of undelivered events that are kept. A program may never read its events, so after this
 * number new events replace the oldest ones. */
#define ASYNC_KEPT 256

struct async_event {
	struct evq_node node; /* links the event in the queue, and later in `fetched` */
	struct async_events *owner;
	struct ibv_async_event ev;
	/* In `fetched` one entry stands for all events of its object: */
	unsigned unacknowledged; /* number of events that were taken from the queue */
	unsigned delivered;      /* those of them that the program has got, and may acknowledge */
};

static struct async_event *async_of(struct evq_node *n)
{
	return container_of(n, struct async_event, node);
}

static void async_begin(struct async_events *a)
{
	a->generation = engine_generation();
	a->queued = 0;
	list_init(&a->fetched);
	list_init(&a->stopped);
	pthread_cond_init(&a->acknowledged, NULL);
}

int async_init(struct async_events *a)
{
	int ret = evq_init(&a->queue);

	if (!ret)
		async_begin(a);
	return ret;
}

/* Take the mutex. A forked child may use its parent's context, but begins without events: the
 * parent's threads, which would acknowledge the fetched ones, do not exist in the child. */
static void async_enter(struct async_events *a)
{
	pthread_mutex_lock(&a->queue.lock);
	if (a->generation != engine_generation())
		async_begin(a);
}

static void async_leave(struct async_events *a)
{
	pthread_mutex_unlock(&a->queue.lock);
}

/* --- raising an event -------------------------------------------------------------------------- */

static bool async_is_any(struct evq_node *n, void *arg)
{
	return true;
}

static bool async_is_stopped(const struct async_events *a, const void *element)
{
	struct list *it;

	list_for_each (it, &a->stopped)
		if (container_of(it, struct async_stop, link)->element == element)
			return true;
	return false;
}

/* Free the oldest undelivered event for which match() holds. The caller holds the mutex. */
static bool async_drop(struct async_events *a, bool (*match)(struct evq_node *, void *), void *arg)
{
	struct evq_node *n = evq_steal_locked(&a->queue, match, arg);

	if (!n)
		return false;
	a->queued--;
	free(async_of(n));
	return true;
}

static void async_queue(struct async_events *a, struct async_event *e)
{
	if (a->queued == ASYNC_KEPT)
		async_drop(a, async_is_any, NULL);
	evq_push_locked(&a->queue, &e->node);
	a->queued++;
}

void async_raise(struct async_events *a, enum ibv_event_type type, void *element)
{
	struct async_event *e = calloc(1, sizeof(*e));

	if (!e) {
		LOG_ERROR_LIMITED("out of memory: asynchronous event %d is lost", type);
		return;
	}
	evq_node_init(&e->node);
	e->owner = a;
	e->ev.event_type = type;
	e->ev.element.qp = element;
	async_enter(a);
	if (async_is_stopped(a, element))
		free(e);
	else
		async_queue(a, e);
	async_leave(a);
}

/* --- the program's side ------------------------------------------------------------------------ */

static struct async_event *async_find_fetched(const struct async_events *a, const void *element)
{
	struct list *it;

	list_for_each (it, &a->fetched) {
		struct async_event *e = container_of(it, struct async_event, node.link);

		if (e->ev.element.qp == element)
			return e;
	}
	return NULL;
}

/* Called under the queue's mutex, so that an event is always either queued or fetched. */
static void async_taken(struct evq_node *n)
{
	struct async_event *e = async_of(n);
	struct async_event *entry = async_find_fetched(e->owner, e->ev.element.qp);

	e->owner->queued--;
	if (!entry) {
		entry = e;
		list_add_tail(&e->owner->fetched, &n->link);
	}
	entry->unacknowledged++;
}

int async_fetch(struct async_events *a, struct ibv_async_event *event)
{
	struct async_event *e, *entry;
	struct evq_node *n;
	int ret = evq_pop(&a->queue, CLOCK_NEVER, true, &n, async_taken);

	if (ret)
		return ret;
	e = async_of(n);
	*event = e->ev;
	async_enter(a);
	entry = async_find_fetched(a, event->element.qp);
	entry->delivered++;
	async_leave(a);
	if (e != entry)
		free(e);
	return 0;
}

void async_acknowledge(struct async_events *a, const struct ibv_async_event *event)
{
	struct async_event *entry;

	async_enter(a);
	entry = async_find_fetched(a, event->element.qp);
	if (entry && entry->delivered > 0) {
		entry->delivered--;
		if (--entry->unacknowledged == 0) {
			list_del(&entry->node.link);
			free(entry);
			pthread_cond_broadcast(&a->acknowledged);
		}
	}
	async_leave(a);
}

/* --- the end of an object ---------------------------------------------------------------------- */

static bool async_is_of(struct evq_node *n, void *element)
{
	return async_of(n)->ev.element.qp == element;
}

/* The caller holds the mutex, and has disabled cancellation. */
static void async_drain(struct async_events *a, void *element)
{
	while (async_drop(a, async_is_of, element))
		;
	while (async_find_fetched(a, element))
		pthread_cond_wait(&a->acknowledged, &a->queue.lock);
}

void async_finish(struct async_events *a, void *element)
{
	async_enter(a);
	async_drain(a, element);
	async_leave(a);
}

void async_stop(struct async_events *a, struct async_stop *stop, void *element)
{
	async_enter(a);
	stop->element = element;
	stop->generation = a->generation;
	list_add_tail(&a->stopped, &stop->link);
	async_drain(a, element);
	async_leave(a);
}

void async_forget(struct async_events *a, struct async_stop *stop)
{
	async_enter(a);
	if (stop->generation == a->generation) /* else the entry is only in the parent's list */
		list_del(&stop->link);
	async_leave(a);
}

/* Every object is destroyed, so `fetched` is empty. */
void async_fini(struct async_events *a)
{
	async_enter(a);
	while (async_drop(a, async_is_any, NULL))
		;
	async_leave(a);
	pthread_cond_destroy(&a->acknowledged);
	evq_fini(&a->queue);
}
