/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * context.h -- contexts of the device: one for each ibv_open_device(), and one for all ids. Each
 * context has its own asynchronous events, those of the objects made on it: a program may use
 * several libraries on one device.
 *
 * A context is reference-counted, and each object on it holds a reference: rdma-core lets programs
 * close a context first, and the events of the remaining queue pairs still need a queue.
 */
#ifndef VERBS_CONTEXT_H
#define VERBS_CONTEXT_H

#include <infiniband/verbs.h>

/* Make a context of the device. Returns 0 or -errno. */
int context_new(struct ibv_device *device, struct ibv_context **out);
void context_get(struct ibv_context *context);
void context_put(struct ibv_context *context);

/* Queue an event for the readers of this context. `element` outlives the event, or its owner
 * cancels the event. */
void context_async(struct ibv_context *context, enum ibv_event_type type, void *element);
void context_async_cancel(struct ibv_context *context, void *element);

#endif
