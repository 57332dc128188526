/* SPDX-License-Identifier: BSD-3-Clause */
/* mr.h -- memory regions, ours and the other end's, and how work requests name them. */
#ifndef RPMA_MR_H
#define RPMA_MR_H

#include "librpma.h"
#include "provider/provider.h"

/* The descriptor on the wire: address, length, rkey in little endian, then the usage. */
enum { MR_DESC_SIZE = 8 + 8 + 4 + 1 };

#define MR_USAGE_ALL   0xff
#define MR_USAGE_FLUSH (RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY | RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT)

struct rpma_mr_local {
	const struct provider *prov;
	struct ibv_mr *ibv;
	int usage;
};

struct rpma_mr_remote {
	uint64_t raddr;
	uint64_t size;
	uint32_t rkey;
	int usage;
};

/* A segment of a region; verbs has 32 bits for the length, and the interface always cut it so. */
struct ibv_sge mr_sge(const struct rpma_mr_local *mr, size_t offset, size_t len);

/*
 * Prepare a receive; dst NULL: of no bytes. wr points to sge, both are the caller's.
 */
void mr_recv_wr(struct ibv_recv_wr *wr, struct ibv_sge *sge, const struct rpma_mr_local *dst,
		size_t offset, size_t len, const void *op_context);

#endif
