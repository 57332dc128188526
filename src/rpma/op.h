/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * op.h -- checks the arguments of an operation, and describes it as a request that is posted
 * immediately or in a batch.
 *
 * Each function op_X() fills in one request and its segments for a peer with all capabilities. The
 * real capabilities are known only from ESTABLISHED on, and an operation may be described earlier.
 * When the request is posted, op_settle() adapts it to the peer's capabilities. Each op_X() returns
 * 0 or a result for the public call: RPMA_E_INVAL, which is checked first, or RPMA_E_NOSUPP.
 */
#ifndef RPMA_OP_H
#define RPMA_OP_H

#include <arpa/inet.h>
#include <string.h>

#include "rpma/conn.h"
#include "rpma/err.h"
#include "rpma/mr.h"

/* The memory for the description of an operation. `segs` has memory for RPMA_SEND_SEGMENTS_MAX
 * segments. */
struct op {
	struct vext_wr *wr;
	struct ibv_sge *segs;
	/*
	 * A copy of a flush's region: a read that replaces the flush must stay inside the region.
	 */
	struct rpma_mr_remote *region;
};

int op_atomic_write(struct op op, const struct rpma_mr_remote *dst, size_t offset,
		    const char src[8], int flags, const void *op_context);
/* opcode is IBV_WR_ATOMIC_CMP_AND_SWP, which compares with `operand`, or
 * IBV_WR_ATOMIC_FETCH_AND_ADD. */
int op_atomic(struct op op, enum ibv_wr_opcode opcode, const struct rpma_mr_local *result,
	      size_t result_offset, const struct rpma_mr_remote *dst, size_t offset,
	      uint64_t operand, uint64_t swap, int flags, const void *op_context);
int op_message(struct op op, enum ibv_wr_opcode opcode, uint32_t imm,
	       const struct rpma_mr_local *src, size_t offset, size_t len, int flags,
	       const void *op_context);
int op_gather(struct op op, struct rpma_conn *conn, const struct rpma_segment *segments,
	      uint32_t count, int flags, const void *op_context);
int op_flush_all(struct op op, enum rpma_flush_type type, int flags, const void *op_context);
int op_verify(struct op op, const struct rpma_mr_remote *dst, size_t offset, size_t len,
	      enum rpma_digest_alg alg, struct rpma_digest *digest, int flags,
	      const void *op_context);
int op_query(struct op op, const struct rpma_mr_remote *dst, size_t offset, size_t len,
	     enum rpma_durability *durability, int flags, const void *op_context);

/*
 * Set the members that all operations use. The other members stay undefined, because zeroing them
 * would double the time that a write takes.
 */
static inline void op_begin_lean(struct op op, enum vext_op kind, int flags, const void *op_context)
{
	struct ibv_send_wr *wr = &op.wr->wr;

	op.wr->op = kind;
	wr->wr_id = (uint64_t)(uintptr_t)op_context;
	wr->next = NULL;
	wr->sg_list = NULL;
	wr->num_sge = 0;
	wr->send_flags = send_flags(flags);
}

/* Does the same as op_begin_lean(), and sets the other members to zero. */
static inline void op_begin(struct op op, enum vext_op kind, int flags, const void *op_context)
{
	memset(op.wr, 0, sizeof(*op.wr));
	op_begin_lean(op, kind, flags, op_context);
}

/* Set the target of an operation that verbs does not have. */
static inline void op_target(struct op op, const struct rpma_mr_remote *dst, size_t offset,
			     size_t len)
{
	op.wr->wr.wr.rdma.remote_addr = dst->raddr + offset;
	op.wr->wr.wr.rdma.rkey = dst->rkey;
	op.wr->len = len;
}

static inline int op_set_segment(struct op op, const struct rpma_mr_local *mr, size_t offset,
				 size_t len)
{
	op.wr->wr.num_sge = 1;
	return mr_sge(&op.segs[0], mr, offset, len);
}

/*
 * This function is inline, because each read and write calls it. The regions of a one-sided
 * operation are either both given, or both NULL for an operation without bytes.
 */
static inline int op_rdma(struct op op, enum ibv_wr_opcode opcode, uint32_t imm,
			  const struct rpma_mr_local *local, size_t local_offset,
			  const struct rpma_mr_remote *remote, size_t remote_offset, size_t len,
			  int flags, const void *op_context)
{
	struct ibv_send_wr *wr = &op.wr->wr;
	int ret;

	if (!flags || !local != !remote || (!local && (local_offset || remote_offset || len)))
		return err_set(RPMA_E_INVAL, "a read or write has flags 0, only one region, or "
					     "bytes but no regions");
	op_begin_lean(op, VEXT_OP_VERBS, flags, op_context);
	wr->opcode = opcode;
	wr->imm_data = htonl(imm);
	wr->wr.rdma.remote_addr = 0;
	wr->wr.rdma.rkey = 0;
	if (!local)
		return 0;
	wr->wr.rdma.remote_addr = remote->raddr + remote_offset;
	wr->wr.rdma.rkey = remote->rkey;
	ret = op_set_segment(op, local, local_offset, len);
	return ret ? ret : mr_check_range(remote_offset, len);
}

/* The rare cases of a flush. op_refuse_flush() returns the reason of a refusal;
 * op_flush_whole_region() handles a flush of a whole region. */
int op_refuse_flush(const struct rpma_mr_remote *dst, enum rpma_flush_type type, int flags);
void op_flush_whole_region(const struct rpma_mr_remote *dst, size_t *offset, size_t *len);

static inline int op_flush_usage(enum rpma_flush_type type)
{
	return type == RPMA_FLUSH_TYPE_PERSISTENT   ? RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT
	       : type == RPMA_FLUSH_TYPE_VISIBILITY ? RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY
						    : 0;
}

/*
 * This function is inline, because each flush calls it. `strict` is true for calls of version 1.4,
 * unless the environment overrides it.
 */
static inline int op_flush(struct op op, const struct rpma_mr_remote *dst, size_t offset,
			   size_t len, enum rpma_flush_type type, bool strict, int flags,
			   const void *op_context)
{
	int usage = op_flush_usage(type);

	if (!dst || !flags || !usage)
		return op_refuse_flush(dst, type, flags);
	if (mr_check_range(offset, len))
		return RPMA_E_INVAL;
	if (!(dst->usage & usage))
		return op_refuse_flush(dst, type, flags);
	if (!len)
		op_flush_whole_region(dst, &offset, &len);
	op_begin_lean(op, VEXT_OP_FLUSH, flags, op_context);
	op_target(op, dst, offset, len);
	op.wr->type = type == RPMA_FLUSH_TYPE_PERSISTENT ? flush_persistent_type(strict)
							 : VEXT_FLUSH_VISIBLE;
	*op.region = *dst;
	return 0;
}

/* Returns RPMA_E_NOSUPP if it is known that the other end does not support the operation. */
int op_check(struct op op, const struct rpma_conn *conn);
/*
 * Adapt the described operation to the other end's capabilities, and set its pointers to its
 * segments and inline bytes. The operation must not be moved after that. Returns 0 or
 * RPMA_E_NOSUPP. Before ESTABLISHED the operation stays as it was described, and the provider
 * refuses to post it. So a flush to a peer that supports flushes never becomes a read.
 */
static inline int op_settle(struct op op, const struct rpma_conn *conn);
/* Handles the cases in which the capabilities matter. */
int op_settle_by_caps(struct op op, const struct rpma_conn *conn);
static inline bool op_is_atomic(const struct vext_wr *wr)
{
	return wr->op == VEXT_OP_VERBS && (wr->wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
					   wr->wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD);
}
static inline int op_settle(struct op op, const struct rpma_conn *conn)
{
	int ret;

	/* The usual case: the other end supports flushes, so the flush is posted as a flush. */
	if (op.wr->op == VEXT_OP_FLUSH && conn->prov->qp_caps(conn->id->qp) & RPMA_CAP_FLUSH)
		return 0;
	if (op.wr->op != VEXT_OP_VERBS || op_is_atomic(op.wr)) {
		ret = op_settle_by_caps(op, conn);
		if (ret)
			return ret;
	}
	if (op.wr->wr.num_sge)
		op.wr->wr.sg_list = op.segs;
	if (op.wr->wr.send_flags & IBV_SEND_INLINE)
		op.segs[0].addr = (uint64_t)(uintptr_t)op.wr->bytes;
	return 0;
}
/* Returns the text for the state of the connection, which is the most common reason why a post
 * fails. */
const char *conn_phase(const struct rpma_conn *conn);

#endif
