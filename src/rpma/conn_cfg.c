/* SPDX-License-Identifier: BSD-3-Clause */
/* conn_cfg.c -- the configuration of a connection. */
#include "rpma/conn_cfg.h"

#include <pthread.h>
#include <string.h>

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

/* Held while a configuration is copied. */
static pthread_mutex_t conn_cfg_lock = PTHREAD_MUTEX_INITIALIZER;

void conn_cfg_owner(const struct rpma_conn_cfg *cfg, struct conn_owner *owner)
{
	pthread_mutex_lock(&conn_cfg_lock);
	*owner = cfg->owner;
	pthread_mutex_unlock(&conn_cfg_lock);
}

int rpma_conn_cfg_set_owner(struct rpma_conn_cfg *cfg, const void *name, size_t len)
{
	struct conn_owner owner = {.len = len};

	if (!cfg || len > RPMA_CONN_OWNER_MAX || (len > 0 && !name))
		return INVALID();
	if (len > 0)
		memcpy(owner.name, name, len);
	pthread_mutex_lock(&conn_cfg_lock);
	cfg->owner = owner;
	pthread_mutex_unlock(&conn_cfg_lock);
	return 0;
}

int rpma_conn_cfg_get_owner(const struct rpma_conn_cfg *cfg, const void **name, size_t *len)
{
	if (!cfg || !name || !len)
		return INVALID();
	*name = cfg->owner.len ? cfg->owner.name : NULL;
	*len = cfg->owner.len;
	return 0;
}

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
