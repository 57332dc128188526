/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * header.c -- a library's header needs no other header before it, in any dialect, and can be
 * included twice.
 */
#include HEADER
#include HEADER

#ifdef RPMA_LOG_USE_DEFAULT_FUNCTION
int main(void)
{
	struct rpma_conn_private_data pdata = {NULL, 0};
	rpma_log_function *function = RPMA_LOG_USE_DEFAULT_FUNCTION;

	return pdata.len || function;
}
#endif
