/* SPDX-License-Identifier: BSD-3-Clause */
/* mr.h -- local and remote memory regions, and how work requests refer to them. */
#ifndef RPMA_MR_H
#define RPMA_MR_H

#include "librpma.h"
#include "provider/provider.h"

/* A region's descriptor in the form that is sent: address, length and rkey in little endian, then
 * the usage. */
enum { MR_DESC_SIZE = 8 + 8 + 4 + 1 };

#define MR_USAGE_ALL 0xff
/* An atomic operation needs the right to read the word and the right to write it. */
#define MR_USAGE_ATOMIC (RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_WRITE_DST)
#define MR_USAGE_FLUSH  (RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY | RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT)

struct rpma_mr_local {
	const struct provider *prov;
	struct ibv_mr *ibv;
	int usage;
	/* mapping made by rpma_mr_reg_file(); NULL: the memory belongs to the caller */
	void *mapping;
	size_t mapping_size;
};

struct rpma_mr_remote {
	uint64_t raddr;
	uint64_t size;
	uint32_t rkey;
	int usage;
};

/*
 * Ranges that are impossible in any region are refused with RPMA_E_INVAL, and logged.
 * mr_check_len() checks that the length has 32 bits, as verbs requires. mr_check_range() checks
 * that the range does not end past the last address.
 */
#define MR_MUST_CHECK __attribute__((warn_unused_result))
MR_MUST_CHECK int mr_refuse_len(uint64_t len);
MR_MUST_CHECK int mr_refuse_range(size_t offset, size_t len);
MR_MUST_CHECK static inline int mr_check_len(uint64_t len)
{
	return __builtin_expect(len <= UINT32_MAX, 1) ? 0 : mr_refuse_len(len);
}
MR_MUST_CHECK static inline int mr_check_range(size_t offset, size_t len)
{
	return __builtin_expect(len <= SIZE_MAX - offset, 1) ? 0 : mr_refuse_range(offset, len);
}

/* Describe a segment of a region. Returns 0, or RPMA_E_INVAL for an impossible range. */
MR_MUST_CHECK static inline int mr_sge(struct ibv_sge *sge, const struct rpma_mr_local *mr,
				       size_t offset, size_t len)
{
	int ret = mr_check_len(len);

	if (!ret)
		ret = mr_check_range(offset, len);
	if (ret)
		return ret;
	sge->addr = (uint64_t)(uintptr_t)mr->ibv->addr + offset;
	sge->length = (uint32_t)len;
	sge->lkey = mr->ibv->lkey;
	return 0;
}

/*
 * Prepare a receive. With dst NULL, the receive gets no bytes. `wr` points to `sge`; the caller
 * owns both. Returns 0, or RPMA_E_INVAL for an impossible range.
 */
MR_MUST_CHECK int mr_recv_wr(struct ibv_recv_wr *wr, struct ibv_sge *sge,
			     const struct rpma_mr_local *dst, size_t offset, size_t len,
			     const void *op_context);

#endif
