/* SPDX-License-Identifier: BSD-3-Clause */
/* mr.h -- memory regions, local and remote, and how work requests refer to them. */
#ifndef RPMA_MR_H
#define RPMA_MR_H

#include "librpma.h"
#include "provider/provider.h"

/* The descriptor on the wire: address, length, rkey in little endian, then the usage. */
enum { MR_DESC_SIZE = 8 + 8 + 4 + 1 };

#define MR_USAGE_ALL 0xff
/* An atomic operation needs the rights to read and to write the word. */
#define MR_USAGE_ATOMIC (RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_WRITE_DST)
#define MR_USAGE_FLUSH  (RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY | RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT)

struct rpma_mr_local {
	const struct provider *prov;
	struct ibv_mr *ibv;
	int usage;
	void *mapping; /* the mapping of rpma_mr_reg_file(); NULL: the memory is the caller's */
	size_t mapping_size;
};

struct rpma_mr_remote {
	uint64_t raddr;
	uint64_t size;
	uint32_t rkey;
	int usage;
};

/*
 * An impossible range is refused, whatever the region: RPMA_E_INVAL, and a line in the log.
 * mr_check_len: verbs has 32 bits for a length. mr_check_range: the range must not end past the
 * last address.
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

/* Describe a segment of a region. RPMA_E_INVAL as above. */
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
 * Prepare a receive; dst NULL: a receive of no bytes. wr points to sge; the caller owns both.
 * RPMA_E_INVAL as above.
 */
MR_MUST_CHECK int mr_recv_wr(struct ibv_recv_wr *wr, struct ibv_sge *sge,
			     const struct rpma_mr_local *dst, size_t offset, size_t len,
			     const void *op_context);

#endif
