/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wait.h -- waits for completions with a time limit, which rdma-core does not offer: first poll(2),
 * then the get call.
 *
 * If another thread gets the event between the two calls, or a signal interrupts poll(), the next
 * poll uses the rest of the time. The wait can exceed its limit only if another thread blocks in
 * rdma-core itself.
 */
#ifndef PROVIDER_WAIT_H
#define PROVIDER_WAIT_H

#include "provider/provider.h"

int verbs_wait_cq_event(struct ibv_comp_channel *ch, int timeout_ms, struct ibv_cq **cq,
			void **cq_context);

#endif
