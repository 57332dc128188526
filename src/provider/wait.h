/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wait.h -- a wait for completions with a limit, which rdma-core has not: poll, then take.
 *
 * An event that another thread takes in between, a signal and whatever else wakes poll() without
 * need only lead to the next poll, with what is left of the time. Only beside a thread that blocks
 * in rdma-core itself can one be held there beyond its limit.
 */
#ifndef PROVIDER_WAIT_H
#define PROVIDER_WAIT_H

#include "provider/provider.h"

int verbs_wait_cq_event(struct ibv_comp_channel *ch, int timeout_ms, struct ibv_cq **cq,
			void **cq_context);

#endif
