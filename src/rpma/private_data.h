/* SPDX-License-Identifier: BSD-3-Clause */
/* private_data.h -- copies the private data of a connection event. */
#ifndef RPMA_PRIVATE_DATA_H
#define RPMA_PRIVATE_DATA_H

#include "provider/provider.h"
#include "librpma.h"

/*
 * Copy the event's private data. If it has none, *to becomes {NULL, 0}. Returns 0 or RPMA_E_NOMEM.
 */
int private_data_copy(struct rpma_conn_private_data *to, const struct rdma_cm_event *from);
void private_data_fini(struct rpma_conn_private_data *pdata);

#endif
