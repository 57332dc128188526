/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pd.c -- protection domains, thread domains and parent domains.
 *
 * A parent domain refers to a protection domain and adds hints: that threads use an object one at a
 * time, and which allocators to use for the memory of queues. This device accepts the hints and
 * ignores them.
 */
#include <errno.h>
#include <stdlib.h>

#include "softrnic/verbs/context.h"
#include "softrnic/verbs/device.h"
#include "softrnic/softrnic.h"

struct ibv_pd *softrnic_alloc_pd(struct ibv_context *context)
{
	struct vpd *pd = calloc(1, sizeof(*pd));
	struct stall_count *stall = stall_count_new();

	if (!pd || !stall) {
		stall_count_put(stall);
		free(pd);
		return NULL;
	}
	pd->base = pd;
	pd->stall = stall;
	pd->ibv.context = context;
	context_get(context);
	return &pd->ibv;
}

/* Deallocate a protection domain or a parent domain. */
int softrnic_dealloc_pd(struct ibv_pd *ibv)
{
	struct vpd *pd = container_of(ibv, struct vpd, ibv);

	if (atomic_load(&pd->users))
		return EBUSY;
	if (pd->base != pd)
		atomic_fetch_sub(&pd->base->users, 1);
	if (pd->td)
		atomic_fetch_sub(&pd->td->users, 1);
	stall_count_put(pd->stall);
	context_put(ibv->context);
	free(pd);
	return 0;
}

struct ibv_pd *softrnic_alloc_parent_domain(struct ibv_context *context,
					    struct ibv_parent_domain_init_attr *attr)
{
	uint32_t known =
		IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
	struct vpd *pd;

	if (!attr->pd || attr->comp_mask & ~known) {
		errno = EINVAL;
		return NULL;
	}
	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;
	pd->ibv.context = context;
	context_get(context);
	pd->base = vpd_of(attr->pd);
	pd->td = attr->td ? container_of(attr->td, struct vtd, ibv) : NULL;
	atomic_fetch_add(&pd->base->users, 1);
	if (pd->td)
		atomic_fetch_add(&pd->td->users, 1);
	return &pd->ibv;
}

struct ibv_td *softrnic_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr)
{
	struct vtd *td;

	if (attr->comp_mask) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	td = calloc(1, sizeof(*td));
	if (!td)
		return NULL;
	td->ibv.context = context;
	context_get(context);
	return &td->ibv;
}

int softrnic_dealloc_td(struct ibv_td *ibv)
{
	struct vtd *td = container_of(ibv, struct vtd, ibv);

	if (atomic_load(&td->users))
		return EBUSY;
	context_put(ibv->context);
	free(td);
	return 0;
}
