/* SPDX-License-Identifier: BSD-3-Clause */
/* private_data.c -- makes and frees copies of private data. */
#include "rpma/private_data.h"

#include <stdlib.h>
#include <string.h>

#include "rpma/err.h"

int private_data_copy(struct rpma_conn_private_data *to, const struct rdma_cm_event *from)
{
	const struct rdma_conn_param *param = &from->param.conn;

	*to = (struct rpma_conn_private_data){0};
	if (!param->private_data || !param->private_data_len)
		return 0;
	to->ptr = malloc(param->private_data_len);
	if (!to->ptr)
		return err_set(RPMA_E_NOMEM, "there is no memory for private data");
	to->len = param->private_data_len;
	memcpy(to->ptr, param->private_data, to->len);
	return 0;
}

void private_data_fini(struct rpma_conn_private_data *pdata)
{
	free(pdata->ptr);
	*pdata = (struct rpma_conn_private_data){0};
}
