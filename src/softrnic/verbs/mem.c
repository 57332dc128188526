/* SPDX-License-Identifier: BSD-3-Clause */
/* mem.c -- registers, changes and deregisters memory regions. */
#include <errno.h>
#include <stdint.h>

#include "base/log.h"
#include "base/safecopy.h"
#include "softrnic/io/conn.h"
#include "softrnic/io/engine.h"
#include "softrnic/verbs/device.h"
#include "softrnic/persist/persist.h"
#include "softrnic/rnic/rnic.h"
#include "softrnic/softrnic.h"

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

/*
 * Is this the registration of all memory for on-demand paging (ibv_reg_mr(3))? The program may
 * change its mappings at any time, so the memory is not examined now, and copies report missing
 * memory. The files behind the memory are unknown, so a peer must not address it: the peer's
 * flushes could not be executed.
 */
static bool mem_is_implicit(const void *addr, size_t len, int access)
{
	return access & IBV_ACCESS_ON_DEMAND && !addr && len == SIZE_MAX;
}

/* Find the file or device that backs the memory. Returns 0 or -errno. */
static int mem_survey(void *addr, size_t len, int access, struct mr_backing *backing)
{
	struct persist_region *region;
	int ret = safecopy_setup();

	*backing = (struct mr_backing){0};
	if (!ret && mem_is_implicit(addr, len, access))
		return access & RNIC_REACHED ? -EOPNOTSUPP : 0;
	if (!ret)
		ret = persist_region_new(addr, len, &region);
	if (!ret)
		*backing = mem_backing_of(region, addr, len);
	return ret;
}

/* Add `by` (1 or -1) to the number of the domain's users, and to the number of its regions that can
 * stall if this region can stall. Must be called with 1 before a peer can reach the region. */
static void mem_count(struct vpd *pd, const struct mr_backing *backing, int by)
{
	atomic_fetch_add(&pd->users, (unsigned)by);
	if (!backing->can_stall)
		return;
	atomic_fetch_add(&pd->stall->regions, (unsigned)by);
	if (by > 0)
		engine_expect_stalls();
}

struct ibv_mr *softrnic_reg_mr(struct ibv_pd *pd, void *addr, size_t len, int access)
{
	bool zero_based = access & IBV_ACCESS_ZERO_BASED;

	return softrnic_reg_mr_iova2(pd, addr, len, zero_based ? 0 : (uintptr_t)addr,
				     (unsigned)access);
}

/* rdma-core's wrapper protects pinned pages in fork(); this device pins none. */
struct ibv_mr *softrnic_reg_mr_iova2(struct ibv_pd *ibv, void *addr, size_t len, uint64_t iova,
				     unsigned int access)
{
	struct vpd *pd = vpd_of(ibv);
	struct mr_backing backing;
	struct mr *mr = NULL;
	int ret = mem_survey(addr, len, (int)access, &backing);

	if (ret) {
		errno = -ret;
		return NULL;
	}
	mem_count(pd, &backing, 1);
	ret = mr_new(device_mrs(), &pd->ibv, addr, len, iova, (int)access, &backing, &mr);
	if (!ret)
		return &mr->ibv;
	mem_count(pd, &backing, -1);
	persist_region_put(backing.persist);
	errno = -ret;
	return NULL;
}

/* End a region. If this returns 0, no thread accesses the memory any more: see "Deregistration" in
 * doc/architecture/persist.md. Returns -EBUSY if windows are bound to the region. */
static int mem_end(struct mr *mr)
{
	int ret;

	doorbells_ring(0); /* send deferred Writes from this region */
	ret = mr_try_kill(mr);
	if (ret)
		return ret;
	conns_detach_mr(mr);
	mem_count(vpd_of(mr->ibv.pd), &mr->backing, -1);
	return 0;
}

int softrnic_dereg_mr(struct ibv_mr *ibv)
{
	struct mr *handle = container_of(ibv, struct mr, ibv), *mr = handle->now;
	int ret = mem_end(mr);

	if (ret)
		return -ret;
	mr_delete(mr);
	if (mr != handle)
		mr_delete(handle);
	return 0;
}

/* --- registering again ---------------------------------------------------------------------- */

#define MEM_REREG_FLAGS                                                                            \
	(IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS)

static int mem_rereg_check(int flags, const struct ibv_pd *pd, const void *addr, size_t len)
{
	if (!flags || flags & ~MEM_REREG_FLAGS)
		return -EINVAL;
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION && (!addr || !len))
		return -EINVAL;
	return flags & IBV_REREG_MR_CHANGE_PD && !pd ? -EINVAL : 0;
}

/*
 * Make a new description of the region with the changes that `flags` select. Returns 0 or -errno.
 */
static int mem_make_next(const struct mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t len,
			 int access, struct mr **next)
{
	struct mr_backing backing = mr->backing;
	uint64_t iova = mr->iova;
	int ret = 0;

	pd = flags & IBV_REREG_MR_CHANGE_PD ? &vpd_of(pd)->ibv : mr->ibv.pd;
	if (!(flags & IBV_REREG_MR_CHANGE_ACCESS))
		access = mr->access;
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		iova = access & IBV_ACCESS_ZERO_BASED ? 0 : (uintptr_t)addr;
		ret = mem_survey(addr, len, access, &backing);
	} else {
		addr = mr->start;
		len = mr->ibv.length;
		if (mem_is_implicit(addr, len, access) && access & RNIC_REACHED)
			ret = -EOPNOTSUPP;
		persist_region_get(backing.persist);
	}
	if (!ret)
		ret = mr_make(device_mrs(), pd, addr, len, iova, access, &backing, next);
	if (ret)
		persist_region_put(backing.persist);
	return ret;
}

/* All steps that may fail come before the region is killed. So after a failure the region is
 * unchanged. */
int softrnic_rereg_mr(struct ibv_mr *ibv, int flags, struct ibv_pd *pd, void *addr, size_t len,
		      int access)
{
	struct mr *handle = container_of(ibv, struct mr, ibv), *next;
	int ret = mem_rereg_check(flags, pd, addr, len);

	if (!ret)
		ret = mem_make_next(handle->now, flags, pd, addr, len, access, &next);
	if (ret) {
		errno = -ret;
		return IBV_REREG_MR_ERR_INPUT;
	}
	mem_count(vpd_of(next->ibv.pd), &next->backing, 1);
	ret = mem_end(handle->now);
	if (ret) {
		/* undo mem_count() and mem_make_next() */
		mem_count(vpd_of(next->ibv.pd), &next->backing, -1);
		persist_region_put(next->backing.persist);
		mr_discard(next);
		errno = -ret;
		return IBV_REREG_MR_ERR_INPUT;
	}
	mr_succeed(handle, next);
	return 0;
}

/*
 * Prefetching has no effect, because no memory is pinned. The arguments are checked nevertheless.
 */
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

		if (mr_hold(device_mrs(), &vpd_of(pd)->ibv, sges[i].lkey, sges[i].addr,
			    sges[i].length, 0, &mr, &ptr))
			return EFAULT;
		mr_release(mr);
	}
	return 0;
}
