/* SPDX-License-Identifier: BSD-3-Clause */
/* utils.h -- queries the capabilities of a device. */
#ifndef RPMA_UTILS_H
#define RPMA_UTILS_H

#include "librpma.h"
#include "provider/provider.h"

enum { UTILS_WHY_LEN = 256 };

static inline bool utils_is_context_type(enum rpma_util_ibv_context_type type)
{
	return type == RPMA_UTIL_IBV_CONTEXT_LOCAL || type == RPMA_UTIL_IBV_CONTEXT_REMOTE;
}

static inline enum provider_role utils_role(enum rpma_util_ibv_context_type type)
{
	return type == RPMA_UTIL_IBV_CONTEXT_LOCAL ? PROVIDER_PASSIVE : PROVIDER_ACTIVE;
}

struct abilities {
	bool odp;     /* the device can page in memory for reads and writes over RC */
	bool atomics; /* peers may compare and swap, and fetch and add */
	bool flush;   /* the device can flush written bytes at the request of a peer */
	/* greatest number of segments in a message: the device's limit or librpma's limit,
	 * whichever is less */
	uint32_t send_sge;
};

/* Query the capabilities of a device. Returns 0 or RPMA_E_PROVIDER. */
int utils_query(const struct provider *prov, struct ibv_context *ctx, struct abilities *can);

#endif
