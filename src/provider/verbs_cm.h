/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs_cm.h -- adds to rdma-core's connection manager a deadline for a connect, a call that gives
 * up a connect, and waits with a time limit.
 *
 * The kernel's event channel reports only the kernel's own events. So an event channel of this
 * provider is an epoll set of the kernel's channel and, if needed, a timer. Its descriptor is
 * readable when either of the two has an event, and the earlier event is returned. After a connect
 * was given up, the kernel's id exists until the program destroys it. Later events of the kernel
 * for this id are acknowledged and dropped.
 *
 * The provider itself uses the member `context` of an id, so callers must pass NULL to create_id.
 */
#ifndef PROVIDER_VERBS_CM_H
#define PROVIDER_VERBS_CM_H

#include "provider/provider.h"

struct rdma_event_channel *verbs_create_event_channel(void);
void verbs_destroy_event_channel(struct rdma_event_channel *ch);
int verbs_get_cm_event(struct rdma_event_channel *ch, struct rdma_cm_event **ev);
int verbs_wait_cm_event(struct rdma_event_channel *ch, int timeout_ms, struct rdma_cm_event **ev);
int verbs_ack_cm_event(struct rdma_cm_event *ev);
int verbs_create_id(struct rdma_event_channel *ch, struct rdma_cm_id **id, void *context,
		    enum rdma_port_space ps);
int verbs_destroy_id(struct rdma_cm_id *id);
int verbs_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *ch);
int verbs_set_limits(struct rdma_cm_id *id, int connect_ms, int liveness_ms);
int verbs_set_owner(struct rdma_cm_id *id, const void *name, size_t len);
int verbs_connect(struct rdma_cm_id *id, struct rdma_conn_param *param);
int verbs_cancel_connect(struct rdma_cm_id *id);
void verbs_abandon(struct rdma_cm_id *id);

#endif
