/* SPDX-License-Identifier: BSD-3-Clause */
/* peer_cfg.h -- the properties that one end declares to the other end. */
#ifndef RPMA_PEER_CFG_H
#define RPMA_PEER_CFG_H

#include "rpma/cfg_access.h"

#define PEER_CFG_FIELDS(X) X(peer_cfg, bool, direct_write_to_pmem, true)

struct rpma_peer_cfg {
	PEER_CFG_FIELDS(CFG_MEMBER)
};

#endif
