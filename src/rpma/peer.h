/* SPDX-License-Identifier: BSD-3-Clause */
/* peer.h -- a protection domain, and the provider of everything made in it. */
#ifndef RPMA_PEER_H
#define RPMA_PEER_H

#include "rpma/utils.h"

struct rpma_peer {
	const struct provider *prov;
	struct ibv_pd *pd;
	struct abilities can;
};

#endif
