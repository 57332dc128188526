/* SPDX-License-Identifier: BSD-3-Clause */
/* flush_1_3.c -- call the symbol of rpma_flush() that programs built with librpma 1.3 use. */
#define RPMA_COMPAT_1_3
#include "flush_1_3.h"

int flush_1_3(struct rpma_conn *conn, struct rpma_mr_remote *dst, const void *op_context)
{
	return rpma_flush(conn, dst, 0, 64, RPMA_FLUSH_TYPE_PERSISTENT, RPMA_F_COMPLETION_ALWAYS,
			  op_context);
}
