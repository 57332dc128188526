/* SPDX-License-Identifier: BSD-3-Clause */
/* mem.c -- protection domains and memory regions. */
#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/safecopy.h"
#include "softrnic/io/conn.h"
#include "softrnic/io/engine.h"
#include "softrnic/verbs/device.h"
#include "softrnic/persist/persist.h"
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
	pd->stall = stall;
	pd->ibv.context = context;
	return &pd->ibv;
}

int softrnic_dealloc_pd(struct ibv_pd *ibv)
{
	struct vpd *pd = container_of(ibv, struct vpd, ibv);

	if (atomic_load(&pd->users))
		return EBUSY;
	stall_count_put(pd->stall);
	free(pd);
	return 0;
}

static void mem_put_region(void *region)
{
	persist_region_put(region);
}

static void mem_expect_store(const void *region, const void *addr, size_t len)
{
	persist_region_expect_store(region, addr, len);
}

static struct mr_backing mem_backing_of(struct persist_region *region, void *addr, size_t len)
{
	return (struct mr_backing){
		.persist = region,
		.durable = !persist_region_is_volatile(region),
		.lasting = persist_region_is_detachable(region, addr, len),
		.can_stall = persist_region_can_stall(region),
		.expect_store = mem_expect_store,
		.drop = mem_put_region,
	};
}

static struct ibv_mr *mem_reg_mr(struct vpd *pd, void *addr, size_t len, uint64_t iova, int access)
{
	struct persist_region *region = NULL;
	struct mr_backing backing;
	struct mr *mr = NULL;
	int ret = safecopy_setup();

	if (!ret)
		ret = persist_region_new(addr, len, &region);
	if (!ret) {
		/* Counted before a peer can reach the region. */
		if (persist_region_can_stall(region)) {
			atomic_fetch_add(&pd->stall->regions, 1);
			engine_expect_stalls();
		}
		backing = mem_backing_of(region, addr, len);
		ret = mr_new(device_mrs(), &pd->ibv, addr, len, iova, access, &backing, &mr);
	}
	if (ret) {
		if (region)
			atomic_fetch_sub(&pd->stall->regions, persist_region_can_stall(region));
		persist_region_put(region);
		errno = -ret;
		return NULL;
	}
	atomic_fetch_add(&pd->users, 1);
	return &mr->ibv;
}

struct ibv_mr *softrnic_reg_mr(struct ibv_pd *pd, void *addr, size_t len, int access)
{
	bool zero_based = access & IBV_ACCESS_ZERO_BASED;

	return softrnic_reg_mr_iova2(pd, addr, len, zero_based ? 0 : (uintptr_t)addr,
				     (unsigned)access);
}

struct ibv_mr *softrnic_reg_mr_iova2(struct ibv_pd *ibv, void *addr, size_t len, uint64_t iova,
				     unsigned int access)
{
	struct vpd *pd = container_of(ibv, struct vpd, ibv);

	/* rdma-core's fork protection applies to pinned pages; ours are not pinned. */
	return mem_reg_mr(pd, addr, len, iova, (int)access);
}

/* When this returns no thread accesses the memory: "Deregistration" in doc/architecture/softrnic.md. */
int softrnic_dereg_mr(struct ibv_mr *ibv)
{
	struct mr *mr = container_of(ibv, struct mr, ibv);
	struct vpd *pd = container_of(ibv->pd, struct vpd, ibv);

	doorbells_ring(0); /* Writes out of it that wait to be sent */
	mr_kill(mr);
	conns_detach_mr(mr);
	atomic_fetch_sub(&pd->stall->regions, persist_region_can_stall(mr->backing.persist));
	mr_delete(mr);
	atomic_fetch_sub(&pd->users, 1);
	return 0;
}

/* Nothing needs prefetching, because nothing is pinned; the arguments are checked all the same. */
int softrnic_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		       struct ibv_sge *sges, uint32_t num_sge)
{
	if (advice > IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		return EOPNOTSUPP;
	if (flags & ~(uint32_t)IBV_ADVISE_MR_FLAG_FLUSH)
		return EINVAL;
	for (uint32_t i = 0; i < num_sge; i++) {
		struct mr *mr;
		void *ptr;

		if (mr_hold(device_mrs(), pd, sges[i].lkey, sges[i].addr, sges[i].length, 0, &mr,
			    &ptr))
			return EFAULT;
		mr_release(mr);
	}
	return 0;
}
