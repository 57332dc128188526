/* SPDX-License-Identifier: BSD-3-Clause */
/* conn_cfg.h -- settings for a new connection. */
#ifndef RPMA_CONN_CFG_H
#define RPMA_CONN_CFG_H

#include "rpma/cfg_access.h"

#define CONN_CFG_FIELDS(X)                                                                         \
	X(conn_cfg, int, timeout, value >= 0)                                                      \
	X(conn_cfg, uint32_t, cq_size, true)                                                       \
	X(conn_cfg, uint32_t, rcq_size, true)                                                      \
	X(conn_cfg, uint32_t, sq_size, true)                                                       \
	X(conn_cfg, uint32_t, rq_size, true)                                                       \
	X(conn_cfg, bool, compl_channel, true)                                                     \
	X(conn_cfg, struct rpma_srq *, srq, value != NULL)                                         \
	X(conn_cfg, struct rpma_cq *, cq, true)                                                    \
	X(conn_cfg, int, connect_timeout, value >= 0)                                              \
	X(conn_cfg, int, liveness, value >= -1)

struct conn_owner {
	size_t len; /* 0: there is no owner */
	uint8_t name[RPMA_CONN_OWNER_MAX];
};

struct rpma_conn_cfg {
	CONN_CFG_FIELDS(CFG_MEMBER)
	struct conn_owner owner; /* guarded by a lock, see conn_cfg_owner() */
};

void conn_cfg_owner(const struct rpma_conn_cfg *cfg, struct conn_owner *owner);

extern const struct rpma_conn_cfg conn_cfg_default;

#endif
