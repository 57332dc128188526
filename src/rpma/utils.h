/* SPDX-License-Identifier: BSD-3-Clause */
/* utils.h -- questions to a device. */
#ifndef RPMA_UTILS_H
#define RPMA_UTILS_H

#include "provider/provider.h"

struct abilities {
	bool odp;          /* it pages in what RC reads and writes touch */
	uint32_t send_sge; /* segments of a message, as far as they are ever used */
};

/* What the device can do. 0 or RPMA_E_PROVIDER. */
int utils_query(const struct provider *prov, struct ibv_context *ctx, struct abilities *can);

#endif
