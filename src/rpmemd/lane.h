/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lane.h -- one lane: a connection of librpma to the initiator. With the general method the
 * initiator cannot flush by itself, so it sends its requests to persist as messages, and a worker
 * answers them.
 */
#ifndef RPMEMD_LANE_H
#define RPMEMD_LANE_H

#include <librpma.h>
#include <pthread.h>
#include <stdbool.h>

#include "rpmem/wire/lane.h"
#include "rpmemd/persist.h"

struct lane;

/* A receive, and the answer to the received request. */
struct lane_slot {
	struct lane *lane;
	unsigned index;
};

struct lane {
	unsigned number;
	/*
	 * Held while the lane is opened, because a worker may get the first request before the
	 * accepting thread has stored the connection.
	 */
	pthread_mutex_t lock;
	struct rpma_conn *conn;
	struct persist *persist;
	/* Memory for the messages of the general method: the receives, then the answers. */
	struct rpma_mr_local *mr;
	uint8_t *memory;
	struct lane_slot slots[WIRE_PERSIST_DEPTH];
};

/*
 * lane_cfg_new() returns settings with the sizes of a lane's queues. Several lanes may share a
 * completion queue; lane_cq_size() returns its size for all of them.
 */
struct rpma_conn_cfg *lane_cfg_new(bool is_general);
uint32_t lane_cq_size(unsigned lanes);

/*
 * Accept the connection request with this private data; *req is consumed in any case. persist
 * NULL: the initiator flushes by itself. Returns librpma's result. The caller must close the lane
 * even after a failure, after all workers have stopped using the lane.
 */
int lane_open(struct lane *lane, struct rpma_peer *peer, struct rpma_conn_req **req,
	      const struct rpma_conn_private_data *reply, struct persist *persist);
/* Disconnect. With the general method, first post an empty Write, whose completion wakes the lane's
 * worker. */
void lane_end(struct lane *lane);
void lane_close(struct lane *lane);

/* With the general method: handle a completion, whose wr_id is a slot. Only the lane's worker
 * calls this. */
void lane_on_completion(const struct ibv_wc *wc);

#endif
