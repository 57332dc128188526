/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * async.h -- the asynchronous events of a context, from the object that raises one to the program's
 * acknowledgement.
 *
 * An event refers to its object. So, as in rdma-core, an object is destroyed only after the program
 * has acknowledged each of its events that it has fetched (ibv_get_async_event(3)).
 */
#ifndef VERBS_ASYNC_H
#define VERBS_ASYNC_H

#include <infiniband/verbs.h>

#include "softrnic/verbs/evq.h"

struct async_events {
	struct evq queue;
	/* The queue's mutex guards the following members. */
	unsigned generation; /* of the process that uses the members below (engine_generation()) */
	unsigned queued;
	struct list fetched; /* an entry for each object with fetched, unacknowledged events */
	struct list stopped; /* async_stop entries: objects that are being destroyed */
	pthread_cond_t acknowledged;
};

/* An object whose events are stopped. */
struct async_stop {
	struct list link;
	void *element;
	unsigned generation; /* of the process that stopped the events */
};

/* Returns 0 or -errno. */
int async_init(struct async_events *a);
void async_fini(struct async_events *a);

/* Queue an event of `element`, a queue pair, completion queue or shared receive queue. */
void async_raise(struct async_events *a, enum ibv_event_type type, void *element);
/*
 * Discard the object's events that the program has not fetched, and wait until it has acknowledged
 * the others. Call this when the object can raise no more events, and before any part of it is torn
 * down, because the program may use the object until it acknowledges. A forked child does not wait
 * for events that its parent has fetched. The caller has disabled the thread's cancellation, so that
 * the destruction is not left half done.
 */
void async_finish(struct async_events *a, void *element);
/* Like async_finish() for an object that can still raise events: they are discarded from now on,
 * until async_forget(). */
void async_stop(struct async_events *a, struct async_stop *stop, void *element);
/* Call this when the object can raise no more events, and before its memory is freed. */
void async_forget(struct async_events *a, struct async_stop *stop);

/* Wait for the next event. Returns 0, or -1 and sets errno. */
int async_fetch(struct async_events *a, struct ibv_async_event *event);
void async_acknowledge(struct async_events *a, const struct ibv_async_event *event);

#endif
