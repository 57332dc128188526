/* SPDX-License-Identifier: BSD-3-Clause */
/* peer.h -- a peer: a protection domain, and the provider of all objects made in this domain. */
#ifndef RPMA_PEER_H
#define RPMA_PEER_H

#include <pthread.h>

#include "rpma/utils.h"

struct flush_sink;

struct rpma_peer {
	const struct provider *prov;
	struct ibv_pd *pd;
	struct abilities can;
	pthread_mutex_t lock;          /* guards flush_sink */
	struct flush_sink *flush_sink; /* NULL: no connection has existed yet */
};

#endif
