/* SPDX-License-Identifier: BSD-3-Clause */
/* conn_cfg.c -- the connection's configuration. */
#include "rpma/conn_cfg.h"

const struct rpma_conn_cfg conn_cfg_default = {
	.timeout = RPMA_DEFAULT_TIMEOUT_MS,
	.cq_size = 10,
	.rcq_size = 0,
	.sq_size = 10,
	.rq_size = 10,
	.compl_channel = false,
	.srq = NULL,
	.cq = NULL,
	.connect_timeout = 0,
	.liveness = 0,
};

CONN_CFG_FIELDS(CFG_SETTER_AND_GETTER)
CFG_DELETE(conn_cfg)

int rpma_conn_cfg_new(struct rpma_conn_cfg **cfg_ptr)
{
	if (!cfg_ptr)
		return INVALID();
	*cfg_ptr = malloc(sizeof(**cfg_ptr));
	if (!*cfg_ptr)
		return NOMEM();
	**cfg_ptr = conn_cfg_default;
	return 0;
}
