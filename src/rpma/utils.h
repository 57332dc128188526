/* SPDX-License-Identifier: BSD-3-Clause */
/* utils.h -- questions to a device. */
#ifndef RPMA_UTILS_H
#define RPMA_UTILS_H

#include "provider/provider.h"

/* Can the device page in what RC reads and writes touch? 0 or RPMA_E_PROVIDER. */
int utils_query_odp(const struct provider *prov, struct ibv_context *ctx, bool *capable);

#endif
