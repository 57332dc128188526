/* SPDX-License-Identifier: BSD-3-Clause */
/* mr.c -- registers memory of this process. */
#include "rpma/mr.h"

#include <endian.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "rpma/err.h"
#include "rpma/peer.h"

static int mr_access_of_usage(const struct rpma_peer *peer, int usage)
{
	int access = 0;

	/*
	 * A peer that cannot flush natively reads instead, so a region for flushes must also be
	 * readable.
	 */
	if (usage & (RPMA_MR_USAGE_READ_SRC | MR_USAGE_FLUSH))
		access |= IBV_ACCESS_REMOTE_READ;
	if (usage & (RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_WRITE_DST |
		     RPMA_MR_USAGE_RECV))
		access |= IBV_ACCESS_LOCAL_WRITE;
	if (usage & RPMA_MR_USAGE_WRITE_DST)
		access |= IBV_ACCESS_REMOTE_WRITE;
	if (usage & RPMA_MR_USAGE_READ_DST)
		access |= peer->prov->read_sink_access(peer->pd->context);
	if (peer->can.atomics && (usage & MR_USAGE_ATOMIC) == MR_USAGE_ATOMIC)
		access |= IBV_ACCESS_REMOTE_ATOMIC;
	if (peer->can.flush && usage & RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY)
		access |= VEXT_ACCESS_FLUSH_GLOBAL;
	if (peer->can.flush && usage & RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT)
		access |= VEXT_ACCESS_FLUSH_PERSISTENT;
	return access;
}

/* Register memory for on-demand paging. Some devices cannot pin mappings of a file on DAX, but can
 * page them on demand. */
static struct ibv_mr *mr_reg_paged(const struct rpma_peer *peer, void *ptr, size_t size, int access)
{
	struct ibv_mr *ibv = peer->prov->reg_mr(peer->pd, ptr, size, access);

	if (!ibv && errno == EOPNOTSUPP && peer->can.odp)
		ibv = peer->prov->reg_mr(peer->pd, ptr, size, access | IBV_ACCESS_ON_DEMAND);
	return ibv;
}

/*
 * Register memory. A device with persistent flushes refuses the right to such flushes for memory
 * that is not persistent (rxe: EINVAL). Such memory is registered without the right. Peers may
 * still read and write it, and a persistent flush fails when a peer requests it.
 */
static struct ibv_mr *mr_reg(const struct rpma_peer *peer, void *ptr, size_t size, int access)
{
	struct ibv_mr *ibv = mr_reg_paged(peer, ptr, size, access);

	if (ibv || errno != EINVAL || !(access & VEXT_ACCESS_FLUSH_PERSISTENT))
		return ibv;
	access &= ~VEXT_ACCESS_FLUSH_PERSISTENT;
	ibv = mr_reg_paged(peer, ptr, size, access);
	if (ibv)
		LOG_NOTICE("the device cannot make this memory persistent (addr=%p, length=%zu): "
			   "it will refuse a native flush to persistence",
			   ptr, size);
	return ibv;
}

int rpma_mr_reg(struct rpma_peer *peer, void *ptr, size_t size, int usage,
		struct rpma_mr_local **mr_ptr)
{
	struct rpma_mr_local *mr;

	if (!peer || !ptr || !size || !usage || usage & ~MR_USAGE_ALL || !mr_ptr)
		return INVALID();
	mr = malloc(sizeof(*mr));
	if (!mr)
		return NOMEM();
	mr->prov = peer->prov;
	mr->usage = usage;
	mr->mapping = NULL;
	mr->ibv = mr_reg(peer, ptr, size, mr_access_of_usage(peer, usage));
	if (!mr->ibv) {
		int err = errno;

		free(mr);
		return PROVIDER_FAILED(err, "ibv_reg_mr(addr=%p, length=%zu, usage=0x%x)", ptr,
				       size, (unsigned int)usage);
	}
	*mr_ptr = mr;
	return 0;
}

int rpma_mr_dereg(struct rpma_mr_local **mr_ptr)
{
	struct rpma_mr_local *mr;
	int err;

	if (!mr_ptr)
		return INVALID();
	mr = *mr_ptr;
	if (!mr)
		return 0;
	err = mr->prov->dereg_mr(mr->ibv);
	if (mr->mapping)
		munmap(mr->mapping, mr->mapping_size);
	free(mr);
	*mr_ptr = NULL;
	return err ? PROVIDER_FAILED(err, "%s", "ibv_dereg_mr()") : 0;
}

int rpma_mr_get_descriptor(const struct rpma_mr_local *mr, void *desc)
{
	uint64_t addr, size;
	uint32_t rkey;
	uint8_t *out = desc;

	if (!mr || !desc)
		return INVALID();
	addr = htole64((uint64_t)(uintptr_t)mr->ibv->addr);
	size = htole64((uint64_t)mr->ibv->length);
	rkey = htole32(mr->ibv->rkey);
	memcpy(out, &addr, sizeof(addr));
	memcpy(out + 8, &size, sizeof(size));
	memcpy(out + 16, &rkey, sizeof(rkey));
	out[20] = (uint8_t)mr->usage;
	return 0;
}

int rpma_mr_get_descriptor_size(const struct rpma_mr_local *mr, size_t *desc_size)
{
	if (!mr || !desc_size)
		return INVALID();
	*desc_size = MR_DESC_SIZE;
	return 0;
}

int rpma_mr_get_ptr(const struct rpma_mr_local *mr, void **ptr)
{
	if (!mr || !ptr)
		return INVALID();
	*ptr = mr->ibv->addr;
	return 0;
}

int rpma_mr_get_size(const struct rpma_mr_local *mr, size_t *size)
{
	if (!mr || !size)
		return INVALID();
	*size = mr->ibv->length;
	return 0;
}

int rpma_mr_advise(struct rpma_mr_local *mr, size_t offset, size_t len, int advice, uint32_t flags)
{
	struct ibv_sge sge;
	int ret, err;

	if (!mr)
		return INVALID();
	ret = mr_sge(&sge, mr, offset, len);
	if (ret)
		return ret;
	err = mr->prov->advise_mr(mr->ibv->pd, (enum ibv_advise_mr_advice)advice, flags, &sge, 1);
	if (!err)
		return 0;
	PROVIDER_FAILED(err, "ibv_advise_mr(addr=0x%" PRIx64 ", length=%u, advice=%d, flags=0x%x)",
			sge.addr, sge.length, advice, flags);
	if (err == EOPNOTSUPP || err == ENOTSUP)
		return RPMA_E_NOSUPP;
	return err == EFAULT || err == EINVAL ? RPMA_E_INVAL : RPMA_E_PROVIDER;
}

int mr_refuse_len(uint64_t len)
{
	LOG_ERROR("a length of %" PRIu64 " bytes is more than the %" PRIu32
		  " that one operation can have: split the transfer",
		  len, UINT32_MAX);
	return RPMA_E_INVAL;
}

int mr_refuse_range(size_t offset, size_t len)
{
	LOG_ERROR("a range of %zu bytes at the offset %zu ends beyond the last address", len,
		  offset);
	return RPMA_E_INVAL;
}

int mr_recv_wr(struct ibv_recv_wr *wr, struct ibv_sge *sge, const struct rpma_mr_local *dst,
	       size_t offset, size_t len, const void *op_context)
{
	*wr = (struct ibv_recv_wr){.wr_id = (uint64_t)(uintptr_t)op_context};
	if (!dst)
		return 0;
	wr->sg_list = sge;
	wr->num_sge = 1;
	return mr_sge(sge, dst, offset, len);
}
