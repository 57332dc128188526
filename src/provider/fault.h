/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fault.h -- makes the calls of a provider fail on purpose. For tests only.
 *
 * RPMA_PROVIDER=fault puts a decorator around the provider that would have been chosen (or that
 * RPMA_FAULT_INNER names). It changes nothing until a fault is armed. A call has the name of the
 * member of struct provider. The calls of the data path are named post_send, post_recv,
 * post_srq_recv, poll_cq and req_notify_cq. A program that cannot include this header arms a fault
 * by the environment variable RPMA_FAULT="call:nth:errno", which is read when the decorator is
 * first used.
 *
 * A call that releases an object does so before it reports the failure, so that nothing leaks.
 */
#ifndef PROVIDER_FAULT_H
#define PROVIDER_FAULT_H

#include "provider/provider.h"

/* Make the decorator around `inner`. A process has only one decorator; it uses the `inner` of the
 * last call. */
const struct provider *provider_fault_around(const struct provider *inner);

/* Make the ops of a context able to fail as well. provider_of_context() calls this function. */
void fault_decorate_context(struct ibv_context *ctx);

/* Make a call with this name fail with `err`: the nth one from now on (1 is the next). The name "*"
 * stands for any call. */
void fault_arm(const char *call, unsigned int nth, int err);
/* Delay every completion by `delay_ms` before poll_cq returns it. */
void fault_delay_completions(unsigned int delay_ms);
/* Inject no more faults, and restore the original ops of all contexts. */
void fault_disarm(void);

/*
 * fault_seen() returns the number of calls with the armed name since the last fault_arm().
 * fault_fired() returns true if one of them failed on purpose.
 */
unsigned int fault_seen(void);
bool fault_fired(void);

#endif
