/* SPDX-License-Identifier: BSD-3-Clause */
/* cq.h -- a completion queue, and the channel that announces its completions. */
#ifndef RPMA_CQ_H
#define RPMA_CQ_H

#include <stdatomic.h>

#include "librpma.h"
#include "provider/provider.h"

struct rpma_cq {
	const struct provider *prov;
	struct ibv_cq *ibv;
	struct ibv_comp_channel *channel;
	/* another object owns the channel, so do not destroy the channel or wait on it here */
	bool channel_is_shared;
	bool is_common; /* made by rpma_cq_new(); several connections use the queue */
	/* number of connections and requests that use the queue, if it is common */
	atomic_uint users;
};

/*
 * Make a queue, which is armed on return. If `shared` is NULL, the queue gets a separate channel.
 */
int cq_new(const struct provider *prov, struct ibv_context *ctx, uint32_t size,
	   struct ibv_comp_channel *shared, struct rpma_cq **cq_ptr);
int cq_delete(struct rpma_cq **cq_ptr);

/*
 * Wait for an event of the channel, which the caller must acknowledge. Returns RPMA_E_NO_COMPLETION
 * if no event came in time.
 */
int cq_wait_channel(const struct provider *prov, struct ibv_comp_channel *channel, int timeout_ms,
		    struct ibv_cq **announced);

/* Arm the queue: its channel announces the next completion. Returns 0 or RPMA_E_PROVIDER. */
int cq_arm(struct rpma_cq *cq);

#endif
