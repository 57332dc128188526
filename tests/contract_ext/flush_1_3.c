/* SPDX-License-Identifier: BSD-3-Clause */
/* flush_1_3.c -- call rpma_flush() as a program of librpma 1.3 does, through the symbol of that
 * version. */
#define RPMA_COMPAT_1_3
#include "flush_1_3.h"

int flush_1_3(struct rpma_conn *conn, struct rpma_mr_remote *dst, const void *op_context)
{
	return rpma_flush(conn, dst, 0, 64, RPMA_FLUSH_TYPE_PERSISTENT, RPMA_F_COMPLETION_ALWAYS,
			  op_context);
}
