/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * op.h -- an operation: its arguments checked and described, to be posted now or in a batch.
 *
 * Each op_X fills one request and its segments. 0, or what the public call returns: RPMA_E_INVAL
 * before anything else is looked at, RPMA_E_NOSUPP when the other end cannot do it.
 */
#ifndef RPMA_OP_H
#define RPMA_OP_H

#include "rpma/conn.h"

/* Where it is to be described; segs has room for RPMA_SEND_SEGMENTS_MAX. */
struct op {
	struct softrnic_wr *wr;
	struct ibv_sge *segs;
};

int op_rdma(struct op op, enum ibv_wr_opcode opcode, uint32_t imm,
	    const struct rpma_mr_local *local, size_t local_offset,
	    const struct rpma_mr_remote *remote, size_t remote_offset, size_t len, int flags,
	    const void *op_context);
int op_atomic_write(struct op op, struct rpma_conn *conn, const struct rpma_mr_remote *dst,
		    size_t offset, const char src[8], int flags, const void *op_context);
int op_message(struct op op, enum ibv_wr_opcode opcode, uint32_t imm,
	       const struct rpma_mr_local *src, size_t offset, size_t len, int flags,
	       const void *op_context);
int op_gather(struct op op, struct rpma_conn *conn, const struct rpma_segment *segments,
	      uint32_t count, int flags, const void *op_context);
int op_flush(struct op op, struct rpma_conn *conn, const struct rpma_mr_remote *dst, size_t offset,
	     size_t len, enum rpma_flush_type type, int flags, const void *op_context);
int op_flush_all(struct op op, struct rpma_conn *conn, enum rpma_flush_type type, int flags,
		 const void *op_context);
int op_verify(struct op op, struct rpma_conn *conn, const struct rpma_mr_remote *dst, size_t offset,
	      size_t len, enum rpma_digest_alg alg, struct rpma_digest *digest, int flags,
	      const void *op_context);
int op_query(struct op op, struct rpma_conn *conn, const struct rpma_mr_remote *dst, size_t offset,
	     size_t len, enum rpma_durability *durability, int flags, const void *op_context);

/* What all operations have in common; the rest is zeroed. */
void op_begin(struct op op, enum softrnic_op kind, int flags, const void *op_context);
/* Name the target of an operation beyond verbs. */
void op_target(struct op op, const struct rpma_mr_remote *dst, size_t offset, size_t len);
/* An inline request carries its bytes itself; said again whenever the request was moved. */
void op_point(struct op op);

/* Can the other end do what this RPMA_CAP_* says? Known from ESTABLISHED on. */
bool conn_has_cap(const struct rpma_conn *conn, uint32_t cap);
/* Log that it cannot: RPMA_E_NOSUPP. */
int peer_cannot(const char *what);
/* Post one. 0 or RPMA_E_PROVIDER. */
int conn_post(struct rpma_conn *conn, struct op op);

#endif
