/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lane.h -- one lane, which is a connection of librpma to the initiator. Where the initiator cannot
 * flush by itself (the general method), requests to persist arrive as messages; a worker answers
 * them.
 */
#ifndef RPMEMD_LANE_H
#define RPMEMD_LANE_H

#include <librpma.h>
#include <pthread.h>
#include <stdbool.h>

#include "rpmem/wire/lane.h"
#include "rpmemd/persist.h"

struct lane;

/* A receive and the answer to what it receives. */
struct lane_slot {
	struct lane *lane;
	unsigned index;
};

struct lane {
	unsigned number;
	/* Held while the lane is being opened: a worker may get the first request before the thread
	 * that accepts has the connection. */
	pthread_mutex_t lock;
	struct rpma_conn *conn;
	struct persist *persist;
	/* The general method: receives, then answers. */
	struct rpma_mr_local *mr;
	uint8_t *memory;
	struct lane_slot slots[WIRE_PERSIST_DEPTH];
};

/* Sizes of the queues of a lane; of the completion
 * queue, which may be shared, for so many lanes. */
struct rpma_conn_cfg *lane_cfg_new(bool is_general);
uint32_t lane_cq_size(unsigned lanes);

/* Accept the request with this private data; *req is consumed in any case. persist NULL: the
 * initiator flushes. Librpma's results. A lane is to be closed also after a failure, when no worker
 * is at work any more. */
int lane_open(struct lane *lane, struct rpma_peer *peer, struct rpma_conn_req **req,
	      const struct rpma_conn_private_data *reply, struct persist *persist);
/* Give its worker a completion, and disconnect. */
void lane_end(struct lane *lane);
void lane_close(struct lane *lane);

/* Of the general method: a completion whose wr_id is a slot. Called by one worker. */
void lane_on_completion(const struct ibv_wc *wc);

#endif
