/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fault.h -- make a provider fail on purpose. For tests only.
 *
 * RPMA_PROVIDER=fault puts a decorator around the provider that would have been chosen (or that
 * RPMA_FAULT_INNER names). It changes nothing until a fault is armed. Calls are named as the
 * members of struct provider, and post_send, post_recv, post_srq_recv, poll_cq, req_notify_cq for
 * the data path of its contexts. A program that cannot include this header arms through the
 * environment: RPMA_FAULT="call:nth:errno", read when the decorator is first used.
 *
 * A call that releases an object does so before it reports the failure, so that nothing leaks.
 */
#ifndef PROVIDER_FAULT_H
#define PROVIDER_FAULT_H

#include "provider/provider.h"

/* Make the decorator around `inner`. A process has one decorator; the last `inner` is valid. */
const struct provider *provider_fault_around(const struct provider *inner);

/* Make the ops of a context able to fail, too. provider_of_context() calls this. */
void fault_decorate_context(struct ibv_context *ctx);

/* Make the nth further call (1: the next) of that name fail with err; "*": of any name. */
void fault_arm(const char *call, unsigned int nth, int err);
/* Delay every completion by `delay_ms` before poll_cq returns it. */
void fault_delay_completions(unsigned int delay_ms);
/* Inject no more faults, and restore the contexts' ops. */
void fault_disarm(void);

/*
 * The number of calls of that name since the last fault_arm(), and whether one of them failed on
 * purpose.
 */
unsigned int fault_seen(void);
bool fault_fired(void);

#endif
