/* SPDX-License-Identifier: BSD-3-Clause */
/* verbs_ext.h -- work requests for operations that verbs do not have. */
#ifndef VERBS_EXT_VERBS_EXT_H
#define VERBS_EXT_VERBS_EXT_H

#include <infiniband/verbs.h>
#include <stdint.h>

#include "verbs_ext/values.h"

enum vext_op {
	VEXT_OP_VERBS,        /* the operation that `wr` describes */
	VEXT_OP_FLUSH,        /* flushes [remote_addr, +len) of rkey */
	VEXT_OP_FLUSH_ALL,    /* flushes all earlier writes of this connection, in any region */
	VEXT_OP_ATOMIC_WRITE, /* writes `bytes` by one store to an aligned address */
	/* a persistent flush, then a digest of the bytes that are read back */
	VEXT_OP_VERIFY,
	VEXT_OP_QUERY, /* asks for the durability class of the range */
};

/*
 * One work request. Every operation uses wr_id and send_flags of `wr`. Of the other members,
 * operations beyond verbs use only wr.rdma.remote_addr and wr.rdma.rkey. wr.next is ignored.
 */
struct vext_wr {
	enum vext_op op;
	struct ibv_send_wr wr;
	uint64_t len;              /* for FLUSH, VERIFY and QUERY */
	enum vext_flush_type type; /* for FLUSH, FLUSH_ALL and VERIFY; VERIFY cannot be VISIBLE */
	uint8_t bytes[8];          /* for ATOMIC_WRITE, in the order of memory */
	uint32_t alg;              /* for VERIFY */
	void *result;              /* VERIFY: struct vext_digest, QUERY: uint32_t; written before a
				    * successful completion, and never after the QP is destroyed */
};

#endif
