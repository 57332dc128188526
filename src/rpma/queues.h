/* SPDX-License-Identifier: BSD-3-Clause */
/* queues.h -- the CQs and the QP, which a connection request makes and its connection takes
 * over. */
#ifndef RPMA_QUEUES_H
#define RPMA_QUEUES_H

#include "rpma/conn_cfg.h"
#include "rpma/cq.h"
#include "rpma/peer.h"

struct queues {
	struct ibv_comp_channel *shared_channel; /* NULL: each CQ has its own channel */
	/* the connection's own queue, or a queue of several connections */
	struct rpma_cq *cq;
	struct rpma_cq *rcq;            /* NULL: receives complete in cq, or in the SRQ's queue */
	uint32_t sq_size, max_send_sge; /* the sizes that the QP was created with */
};

/* Make the queues for an id that already has its device. On failure nothing is left. */
int queues_init(struct queues *q, const struct rpma_peer *peer, struct rdma_cm_id *id,
		const struct rpma_conn_cfg *cfg);
/* Zeroed queues are permitted. Returns the first failure. */
int queues_fini(struct queues *q, const struct provider *prov, struct rdma_cm_id *id);

#endif
