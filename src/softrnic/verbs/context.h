/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * context.h -- contexts of the device: one for each ibv_open_device(), and one for all ids. A
 * program may use several libraries on one device, so each context gets only the asynchronous
 * events of the objects that were made on it.
 *
 * A context is reference-counted, and each object on it holds a reference. rdma-core permits
 * programs to close a context before its objects are destroyed, and events of the remaining queue
 * pairs still need a queue.
 */
#ifndef VERBS_CONTEXT_H
#define VERBS_CONTEXT_H

#include <infiniband/verbs.h>

#include "softrnic/verbs/async.h"

/* Make a context of the device. Returns 0 or -errno. */
int context_new(struct ibv_device *device, struct ibv_context **out);
void context_get(struct ibv_context *context);
void context_put(struct ibv_context *context);

struct async_events *context_events(struct ibv_context *context);

#endif
