/* SPDX-License-Identifier: BSD-3-Clause */
/* flush_1_3.h -- a persistent flush of 64 bytes as programs of librpma 1.3 call it. */
#ifndef CONTRACT14_FLUSH_1_3_H
#define CONTRACT14_FLUSH_1_3_H

#include <librpma.h>

int flush_1_3(struct rpma_conn *conn, struct rpma_mr_remote *dst, const void *op_context);

#endif
