/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * op.h -- an operation: its arguments checked and described, to be posted now or in a batch.
 *
 * Each op_X fills one request and its segments, as a peer that can do everything would get it: what
 * the other end can do is known from ESTABLISHED on, and a description may be older. op_settle()
 * makes of it what the other end can do, when it is posted. 0, or what the public call returns:
 * RPMA_E_INVAL before anything else is looked at, RPMA_E_NOSUPP when it cannot be done.
 */
#ifndef RPMA_OP_H
#define RPMA_OP_H

#include "rpma/conn.h"

/* Where it is to be described; segs has room for RPMA_SEND_SEGMENTS_MAX. */
struct op {
	struct vext_wr *wr;
	struct ibv_sge *segs;
	struct rpma_mr_remote *region; /* a copy, of flushes: a read in their place stays inside */
};

int op_rdma(struct op op, enum ibv_wr_opcode opcode, uint32_t imm,
	    const struct rpma_mr_local *local, size_t local_offset,
	    const struct rpma_mr_remote *remote, size_t remote_offset, size_t len, int flags,
	    const void *op_context);
int op_atomic_write(struct op op, const struct rpma_mr_remote *dst, size_t offset,
		    const char src[8], int flags, const void *op_context);
/* opcode: IBV_WR_ATOMIC_CMP_AND_SWP, then `operand` is compared, or IBV_WR_ATOMIC_FETCH_AND_ADD. */
int op_atomic(struct op op, enum ibv_wr_opcode opcode, const struct rpma_mr_local *result,
	      size_t result_offset, const struct rpma_mr_remote *dst, size_t offset,
	      uint64_t operand, uint64_t swap, int flags, const void *op_context);
int op_message(struct op op, enum ibv_wr_opcode opcode, uint32_t imm,
	       const struct rpma_mr_local *src, size_t offset, size_t len, int flags,
	       const void *op_context);
int op_gather(struct op op, struct rpma_conn *conn, const struct rpma_segment *segments,
	      uint32_t count, int flags, const void *op_context);
/* strict: the calls of version 1.4, unless the environment decides otherwise. */
int op_flush(struct op op, const struct rpma_mr_remote *dst, size_t offset, size_t len,
	     enum rpma_flush_type type, bool strict, int flags, const void *op_context);
int op_flush_all(struct op op, enum rpma_flush_type type, int flags, const void *op_context);
int op_verify(struct op op, const struct rpma_mr_remote *dst, size_t offset, size_t len,
	      enum rpma_digest_alg alg, struct rpma_digest *digest, int flags,
	      const void *op_context);
int op_query(struct op op, const struct rpma_mr_remote *dst, size_t offset, size_t len,
	     enum rpma_durability *durability, int flags, const void *op_context);

/* What all operations have in common; the rest is zeroed. */
void op_begin(struct op op, enum vext_op kind, int flags, const void *op_context);
/* Name the target of an operation beyond verbs. */
void op_target(struct op op, const struct rpma_mr_remote *dst, size_t offset, size_t len);

/* Could the other end do it? RPMA_E_NOSUPP if it is known that it cannot. */
int op_check(struct op op, const struct rpma_conn *conn);
/*
 * Make of what was described what the other end can do, and let it point to its segments and inline
 * bytes; it must not be moved any more. 0 or RPMA_E_NOSUPP. Before ESTABLISHED it stays as it was
 * described: so the provider refuses it, and a flush never becomes a read towards a peer that
 * counts on flushes.
 */
int op_settle(struct op op, const struct rpma_conn *conn);
/* For the message of a failed post: the reason that users meet most. */
const char *conn_phase(const struct rpma_conn *conn);

#endif
