/* SPDX-License-Identifier: BSD-3-Clause */
/* srq_cfg.c -- the configuration of an SRQ. */
#include "rpma/srq_cfg.h"

const struct rpma_srq_cfg srq_cfg_default = {.rq_size = 20, .rcq_size = 20};

SRQ_CFG_FIELDS(CFG_SETTER_AND_GETTER)
CFG_DELETE(srq_cfg)

int rpma_srq_cfg_new(struct rpma_srq_cfg **cfg_ptr)
{
	if (!cfg_ptr)
		return INVALID();
	*cfg_ptr = malloc(sizeof(**cfg_ptr));
	if (!*cfg_ptr)
		return NOMEM();
	**cfg_ptr = srq_cfg_default;
	return 0;
}
