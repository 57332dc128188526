/* SPDX-License-Identifier: BSD-3-Clause */
/* queues.h -- the CQs and the QP. A connection request makes them, and its connection takes them
 * over. */
#ifndef RPMA_QUEUES_H
#define RPMA_QUEUES_H

#include "rpma/conn_cfg.h"
#include "rpma/cq.h"
#include "rpma/peer.h"

struct queues {
	struct ibv_comp_channel *shared_channel; /* NULL: each CQ has a separate channel */
	/* queue of this connection only, or a common queue of several connections */
	struct rpma_cq *cq;
	/* NULL: receives complete in `cq`, or in the queue of the SRQ */
	struct rpma_cq *rcq;
	uint32_t sq_size, max_send_sge; /* sizes with which the QP was created */
};

/*
 * Make the queues for an id that already has its device. If this fails, nothing is left allocated.
 */
int queues_init(struct queues *q, const struct rpma_peer *peer, struct rdma_cm_id *id,
		const struct rpma_conn_cfg *cfg);
/* Destroy the queues. A zeroed struct is permitted. Returns the first failure. */
int queues_fini(struct queues *q, const struct provider *prov, struct rdma_cm_id *id);

#endif
