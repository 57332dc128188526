/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lane.h -- a lane: one connection to the pool's memory at the target.
 *
 * A flush is a transfer of the range followed by a barrier, which completes when the range is
 * durable. The barrier is a flush of librpma or, with the general method, a message that the daemon
 * answers. Transfer and barrier are posted together. Only one thread at a time may use a lane.
 * Functions return 0 or an errno, and set the thread's text. Any failure is final for the lane,
 * except a failure of lane_connect().
 */
#ifndef RPMEM_LANE_H
#define RPMEM_LANE_H

#include <librpma.h>

#include "rpmem/wire/lane.h"

/* Data that all lanes of a pool share: their destination, and the memory that they transfer. */
struct lane_place {
	struct rpma_peer *peer;
	struct rpma_mr_local *local; /* registration of the local pool */
	uint64_t size;               /* size of the local pool */
	char addr[256];              /* numeric address of the data path */
	struct wire_key key;
	enum wire_method method;
	enum rpma_flush_type flush_type;
	unsigned queue; /* largest number of outstanding flushes of a lane */
	int timeout_ms;
	unsigned spin_us;
};

struct lane;

/* Connect lane `number` to the port that the daemon has opened for the lane. */
int lane_connect(const struct lane_place *place, uint32_t number, uint16_t port, int timeout_ms,
		 struct lane **lane);
/* Begin to disconnect; the caller deletes the lane afterwards. lane may be NULL. */
void lane_disconnect(struct lane *lane);
void lane_delete(struct lane *lane);
/* In a forked process: free the memory of the lane. The parent keeps its connection. */
void lane_forget(struct lane *lane);

/* Begin a flush. reuse: the caller may change the range after the return. */
int lane_flush(struct lane *lane, uint64_t offset, uint64_t length, bool reuse);
/* Wait for all flushes that were begun. */
int lane_drain(struct lane *lane);
int lane_read(struct lane *lane, void *buff, uint64_t offset, uint64_t length);

#endif
