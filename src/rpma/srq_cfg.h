/* SPDX-License-Identifier: BSD-3-Clause */
/* srq_cfg.h -- the sizes of a shared receive queue. */
#ifndef RPMA_SRQ_CFG_H
#define RPMA_SRQ_CFG_H

#include "rpma/cfg_access.h"

#define SRQ_CFG_FIELDS(X)                                                                          \
	X(srq_cfg, uint32_t, rq_size, true)                                                        \
	X(srq_cfg, uint32_t, rcq_size, true)

struct rpma_srq_cfg {
	SRQ_CFG_FIELDS(CFG_MEMBER)
};

extern const struct rpma_srq_cfg srq_cfg_default;

#endif
