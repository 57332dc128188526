/* SPDX-License-Identifier: BSD-3-Clause */
/* channel.h -- the event channels that programs see. */
#ifndef INTERPOSER_CHANNEL_H
#define INTERPOSER_CHANNEL_H

#include <stdatomic.h>

#include "interposer/ops.h"

struct shim_channel {
	/* pub.fd is the descriptor of softrnic's channel, or an epoll descriptor that watches both
	 * channels */
	struct rdma_event_channel pub;
	struct rdma_event_channel *softrnic, *rdma_core;
	/* for channel.c: CHANNEL_DESTROYED, and the number of threads in shim_channel_next() */
	atomic_uint state;
	atomic_bool released;
	bool blocking; /* was the descriptor blocking when the channel was destroyed? */
};

static inline struct shim_channel *shim_channel_of(struct rdma_event_channel *channel)
{
	return (struct shim_channel *)channel;
}

/* Returns NULL and sets errno on failure. */
struct shim_channel *shim_channel_new(void);
void shim_channel_delete(struct shim_channel *ch);
/*
 * Get the next event, and the table of the implementation that it came from. Returns 0, or -1 with
 * errno. If the channel was destroyed, the call does not return. The thread can be cancelled here.
 */
int shim_channel_next(struct shim_channel *ch, const struct ops **ops, struct rdma_cm_event **ev);

#endif
