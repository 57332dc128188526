/* SPDX-License-Identifier: BSD-3-Clause */
/* ops.c -- the public functions that post a single operation. */
#include <inttypes.h>

#include "rpma/err.h"
#include "rpma/mr.h"
#include "rpma/op.h"

static __attribute__((noinline)) int ops_post_failed(const struct rpma_conn *conn,
						     const struct vext_wr *wr, int err)
{
	if (wr->op == VEXT_OP_VERBS)
		return PROVIDER_FAILED(err, "ibv_post_send(opcode=%d)%s", (int)wr->wr.opcode,
				       conn_phase(conn));
	return PROVIDER_FAILED(err, "post_list(op=%d, length=%" PRIu64 ")%s", (int)wr->op, wr->len,
			       conn_phase(conn));
}

/* Adapt one operation and post it. Returns 0, RPMA_E_NOSUPP or RPMA_E_PROVIDER. */
static inline int conn_post(struct rpma_conn *conn, struct op op)
{
	int ret = op_settle(op, conn);
	int posted, err;

	if (ret)
		return ret;
	if (op.wr->op == VEXT_OP_VERBS)
		err = provider_post_send(conn->id->qp, &op.wr->wr);
	else
		err = conn->prov->post_list(conn->id->qp, op.wr, 1, &posted);
	return __builtin_expect(err == 0, 1) ? 0 : ops_post_failed(conn, op.wr, err);
}

/* Memory for one operation, on the caller's stack. The macro OP() refers to it. */
struct op_storage {
	struct vext_wr wr;
	struct ibv_sge segs[RPMA_SEND_SEGMENTS_MAX];
	struct rpma_mr_remote region;
};
#define OP(storage) ((struct op){&(storage).wr, (storage).segs, &(storage).region})

static inline int ops_post_if(int ret, struct rpma_conn *conn, struct op_storage *storage)
{
	return ret ? ret : conn_post(conn, OP(*storage));
}

int rpma_read(struct rpma_conn *conn, struct rpma_mr_local *dst, size_t dst_offset,
	      const struct rpma_mr_remote *src, size_t src_offset, size_t len, int flags,
	      const void *op_context)
{
	struct op_storage storage;

	if (!conn)
		return INVALID();
	return ops_post_if(op_rdma(OP(storage), IBV_WR_RDMA_READ, 0, dst, dst_offset, src,
				   src_offset, len, flags, op_context),
			   conn, &storage);
}

int rpma_write(struct rpma_conn *conn, struct rpma_mr_remote *dst, size_t dst_offset,
	       const struct rpma_mr_local *src, size_t src_offset, size_t len, int flags,
	       const void *op_context)
{
	struct op_storage storage;

	if (!conn)
		return INVALID();
	return ops_post_if(op_rdma(OP(storage), IBV_WR_RDMA_WRITE, 0, src, src_offset, dst,
				   dst_offset, len, flags, op_context),
			   conn, &storage);
}

int rpma_write_with_imm(struct rpma_conn *conn, struct rpma_mr_remote *dst, size_t dst_offset,
			const struct rpma_mr_local *src, size_t src_offset, size_t len, int flags,
			uint32_t imm, const void *op_context)
{
	struct op_storage storage;

	if (!conn)
		return INVALID();
	return ops_post_if(op_rdma(OP(storage), IBV_WR_RDMA_WRITE_WITH_IMM, imm, src, src_offset,
				   dst, dst_offset, len, flags, op_context),
			   conn, &storage);
}

int rpma_atomic_write(struct rpma_conn *conn, struct rpma_mr_remote *dst, size_t dst_offset,
		      const char src[8], int flags, const void *op_context)
{
	struct op_storage storage;

	if (!conn)
		return INVALID();
	return ops_post_if(op_atomic_write(OP(storage), dst, dst_offset, src, flags, op_context),
			   conn, &storage);
}

int rpma_atomic_compare_swap(struct rpma_conn *conn, struct rpma_mr_local *result,
			     size_t result_offset, struct rpma_mr_remote *dst, size_t dst_offset,
			     uint64_t compare, uint64_t swap, int flags, const void *op_context)
{
	struct op_storage storage;

	if (!conn)
		return INVALID();
	return ops_post_if(op_atomic(OP(storage), IBV_WR_ATOMIC_CMP_AND_SWP, result, result_offset,
				     dst, dst_offset, compare, swap, flags, op_context),
			   conn, &storage);
}

int rpma_atomic_fetch_add(struct rpma_conn *conn, struct rpma_mr_local *result,
			  size_t result_offset, struct rpma_mr_remote *dst, size_t dst_offset,
			  uint64_t add, int flags, const void *op_context)
{
	struct op_storage storage;

	if (!conn)
		return INVALID();
	return ops_post_if(op_atomic(OP(storage), IBV_WR_ATOMIC_FETCH_AND_ADD, result,
				     result_offset, dst, dst_offset, add, 0, flags, op_context),
			   conn, &storage);
}

static int ops_post_flush(struct rpma_conn *conn, const struct rpma_mr_remote *dst,
			  size_t dst_offset, size_t len, enum rpma_flush_type type, bool strict,
			  int flags, const void *op_context)
{
	struct op_storage storage;

	return ops_post_if(
		op_flush(OP(storage), dst, dst_offset, len, type, strict, flags, op_context), conn,
		&storage);
}

/* The symbol rpma_flush_strict. The header gives this function to programs that are built for
 * version 1.4. */
int rpma_flush(struct rpma_conn *conn, struct rpma_mr_remote *dst, size_t dst_offset, size_t len,
	       enum rpma_flush_type type, int flags, const void *op_context)
{
	if (!conn)
		return INVALID();
	return ops_post_flush(conn, dst, dst_offset, len, type, true, flags, op_context);
}

/* The symbol rpma_flush, which programs that were built with librpma 1.3 use. */
int flush_of_1_3(struct rpma_conn *conn, struct rpma_mr_remote *dst, size_t dst_offset, size_t len,
		 enum rpma_flush_type type, int flags,
		 const void *op_context) __asm__("rpma_flush");
int flush_of_1_3(struct rpma_conn *conn, struct rpma_mr_remote *dst, size_t dst_offset, size_t len,
		 enum rpma_flush_type type, int flags, const void *op_context)
{
	if (!conn)
		return err_invalid("rpma_flush", "there is no connection");
	return ops_post_flush(conn, dst, dst_offset, len, type, false, flags, op_context);
}

int rpma_flush_all(struct rpma_conn *conn, enum rpma_flush_type type, int flags,
		   const void *op_context)
{
	struct op_storage storage;

	if (!conn)
		return INVALID();
	return ops_post_if(op_flush_all(OP(storage), type, flags, op_context), conn, &storage);
}

int rpma_verify(struct rpma_conn *conn, const struct rpma_mr_remote *dst, size_t dst_offset,
		size_t len, enum rpma_digest_alg alg, struct rpma_digest *digest, int flags,
		const void *op_context)
{
	struct op_storage storage;

	if (!conn)
		return INVALID();
	return ops_post_if(
		op_verify(OP(storage), dst, dst_offset, len, alg, digest, flags, op_context), conn,
		&storage);
}

int rpma_query_durability(struct rpma_conn *conn, const struct rpma_mr_remote *dst,
			  size_t dst_offset, size_t len, enum rpma_durability *durability,
			  int flags, const void *op_context)
{
	struct op_storage storage;

	if (!conn)
		return INVALID();
	return ops_post_if(
		op_query(OP(storage), dst, dst_offset, len, durability, flags, op_context), conn,
		&storage);
}

int rpma_send(struct rpma_conn *conn, const struct rpma_mr_local *src, size_t offset, size_t len,
	      int flags, const void *op_context)
{
	struct op_storage storage;

	if (!conn)
		return INVALID();
	return ops_post_if(
		op_message(OP(storage), IBV_WR_SEND, 0, src, offset, len, flags, op_context), conn,
		&storage);
}

int rpma_send_with_imm(struct rpma_conn *conn, const struct rpma_mr_local *src, size_t offset,
		       size_t len, int flags, uint32_t imm, const void *op_context)
{
	struct op_storage storage;

	if (!conn)
		return INVALID();
	return ops_post_if(op_message(OP(storage), IBV_WR_SEND_WITH_IMM, imm, src, offset, len,
				      flags, op_context),
			   conn, &storage);
}

int rpma_send_gather(struct rpma_conn *conn, const struct rpma_segment *segments, uint32_t count,
		     int flags, const void *op_context)
{
	struct op_storage storage;

	return ops_post_if(op_gather(OP(storage), conn, segments, count, flags, op_context), conn,
			   &storage);
}

int rpma_recv(struct rpma_conn *conn, struct rpma_mr_local *dst, size_t offset, size_t len,
	      const void *op_context)
{
	struct ibv_recv_wr wr;
	struct ibv_sge sge;
	int ret, err;

	if (!conn || (!dst && (offset || len)))
		return INVALID();
	ret = mr_recv_wr(&wr, &sge, dst, offset, len, op_context);
	if (ret)
		return ret;
	err = provider_post_recv(conn->id->qp, &wr);
	return err ? PROVIDER_FAILED(err, "ibv_post_recv(length=%zu)", len) : 0;
}
