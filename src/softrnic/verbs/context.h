/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * context.h -- contexts of the device: one for each ibv_open_device(), and the one of ids. Each has
 * asynchronous events of its own, those of what was made on it, as programs expect that use several
 * libraries on one device.
 *
 * A context is counted, by what is made on it as well: rdma-core lets programs close a context
 * first, and events of a queue pair that is still there must have a place to go to.
 */
#ifndef VERBS_CONTEXT_H
#define VERBS_CONTEXT_H

#include <infiniband/verbs.h>

/* 0 or -errno. */
int context_new(struct ibv_device *device, struct ibv_context **out);
void context_get(struct ibv_context *context);
void context_put(struct ibv_context *context);

/* Queue an event for the readers of this context; `element` outlives it, or it is cancelled. */
void context_async(struct ibv_context *context, enum ibv_event_type type, void *element);
void context_async_cancel(struct ibv_context *context, void *element);

#endif
