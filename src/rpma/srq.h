/* SPDX-License-Identifier: BSD-3-Clause */
/* srq.h -- a receive queue that several connections share. */
#ifndef RPMA_SRQ_H
#define RPMA_SRQ_H

#include "rpma/cq.h"

struct rpma_srq {
	const struct provider *prov;
	struct ibv_srq *ibv;
	struct rpma_cq *rcq; /* NULL: the queues of the connections get the completions */
};

#endif
