/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs_cm.h -- rdma-core's connection manager, and what it lacks: a deadline for a connect, a way
 * to give one up, and waits with a limit.
 *
 * The kernel's event channel tells only what the kernel decides. So an event channel of this
 * provider is an epoll set around it, in which a timer may stand beside it: the channel's
 * descriptor is readable when there is an event of either, and a call that takes one gets the one
 * that is first. An id that was given up stays what it is for the kernel until it is destroyed;
 * what the kernel says about it afterwards is acknowledged and dropped.
 *
 * An id's `context` is the provider's: callers give NULL to create_id.
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
int verbs_connect(struct rdma_cm_id *id, struct rdma_conn_param *param);
int verbs_cancel_connect(struct rdma_cm_id *id);

#endif
