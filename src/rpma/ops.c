/* SPDX-License-Identifier: BSD-3-Clause */
/* ops.c -- reads, writes and messages: work requests, checked once and posted. */
#include <arpa/inet.h>

#include "rpma/conn.h"
#include "rpma/err.h"
#include "rpma/mr.h"

int conn_post(struct rpma_conn *conn, struct ibv_send_wr *wr, int flags, const void *op_context)
{
	int err;

	wr->wr_id = (uint64_t)(uintptr_t)op_context;
	wr->send_flags |= send_flags(flags);
	err = provider_post_send(conn->id->qp, wr);
	return err ? PROVIDER_FAILED(err, "ibv_post_send(opcode=%d)", (int)wr->opcode) : 0;
}

int conn_post_own(struct rpma_conn *conn, struct softrnic_wr *wr, int flags,
		  const void *op_context)
{
	int posted = 0;
	int err;

	wr->wr.wr_id = (uint64_t)(uintptr_t)op_context;
	wr->wr.send_flags |= send_flags(flags);
	err = conn->prov->post_list(conn->id->qp, wr, 1, &posted);
	return err ? PROVIDER_FAILED(err, "post_list(op=%d)", (int)wr->op) : 0;
}

/* One side of a one-sided operation names its memory, or, for no bytes, neither does. */
static int post_rdma(struct rpma_conn *conn, enum ibv_wr_opcode opcode, uint32_t imm,
		     const struct rpma_mr_local *local, size_t local_offset,
		     const struct rpma_mr_remote *remote, size_t remote_offset, size_t len,
		     int flags, const void *op_context)
{
	struct ibv_send_wr wr = {.opcode = opcode, .imm_data = htonl(imm)};
	struct ibv_sge sge;

	if (!conn || !flags || !local != !remote ||
	    (!local && (local_offset || remote_offset || len)))
		return RPMA_E_INVAL;
	if (local) {
		sge = mr_sge(local, local_offset, len);
		wr.sg_list = &sge;
		wr.num_sge = 1;
		wr.wr.rdma.remote_addr = remote->raddr + remote_offset;
		wr.wr.rdma.rkey = remote->rkey;
	}
	return conn_post(conn, &wr, flags, op_context);
}

int rpma_read(struct rpma_conn *conn, struct rpma_mr_local *dst, size_t dst_offset,
	      const struct rpma_mr_remote *src, size_t src_offset, size_t len, int flags,
	      const void *op_context)
{
	return post_rdma(conn, IBV_WR_RDMA_READ, 0, dst, dst_offset, src, src_offset, len, flags,
			 op_context);
}

int rpma_write(struct rpma_conn *conn, struct rpma_mr_remote *dst, size_t dst_offset,
	       const struct rpma_mr_local *src, size_t src_offset, size_t len, int flags,
	       const void *op_context)
{
	return post_rdma(conn, IBV_WR_RDMA_WRITE, 0, src, src_offset, dst, dst_offset, len, flags,
			 op_context);
}

int rpma_write_with_imm(struct rpma_conn *conn, struct rpma_mr_remote *dst, size_t dst_offset,
			const struct rpma_mr_local *src, size_t src_offset, size_t len, int flags,
			uint32_t imm, const void *op_context)
{
	return post_rdma(conn, IBV_WR_RDMA_WRITE_WITH_IMM, imm, src, src_offset, dst, dst_offset,
			 len, flags, op_context);
}

static int post_native_atomic(struct rpma_conn *conn, const struct rpma_mr_remote *dst,
			      size_t offset, const char src[8], int flags, const void *op_context)
{
	struct softrnic_wr wr = {.op = SOFTRNIC_OP_ATOMIC_WRITE};

	wr.wr.wr.rdma.remote_addr = dst->raddr + offset;
	wr.wr.wr.rdma.rkey = dst->rkey;
	memcpy(wr.bytes, src, sizeof(wr.bytes));
	return conn_post_own(conn, &wr, flags, op_context);
}

int rpma_atomic_write(struct rpma_conn *conn, struct rpma_mr_remote *dst, size_t dst_offset,
		      const char src[8], int flags, const void *op_context)
{
	struct ibv_sge sge = {.addr = (uint64_t)(uintptr_t)src,
			      .length = RPMA_ATOMIC_WRITE_ALIGNMENT};
	/* Inline: src may change at once. Fenced: behind a flush that is a read. */
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE,
				 .send_flags = IBV_SEND_INLINE | IBV_SEND_FENCE,
				 .sg_list = &sge,
				 .num_sge = 1};

	if (!conn || !dst || !src || !flags || dst_offset % RPMA_ATOMIC_WRITE_ALIGNMENT)
		return RPMA_E_INVAL;
	if (conn_has(conn, SOFTRNIC_CAP_ATOMIC_WRITE))
		return post_native_atomic(conn, dst, dst_offset, src, flags, op_context);
	wr.wr.rdma.remote_addr = dst->raddr + dst_offset;
	wr.wr.rdma.rkey = dst->rkey;
	return conn_post(conn, &wr, flags, op_context);
}

static int post_message(struct rpma_conn *conn, enum ibv_wr_opcode opcode, uint32_t imm,
			const struct rpma_mr_local *src, size_t offset, size_t len, int flags,
			const void *op_context)
{
	struct ibv_send_wr wr = {.opcode = opcode, .imm_data = htonl(imm)};
	struct ibv_sge sge;

	if (!conn || !flags || (!src && (offset || len)))
		return RPMA_E_INVAL;
	if (src) {
		sge = mr_sge(src, offset, len);
		wr.sg_list = &sge;
		wr.num_sge = 1;
	}
	return conn_post(conn, &wr, flags, op_context);
}

int rpma_send(struct rpma_conn *conn, const struct rpma_mr_local *src, size_t offset, size_t len,
	      int flags, const void *op_context)
{
	return post_message(conn, IBV_WR_SEND, 0, src, offset, len, flags, op_context);
}

int rpma_send_with_imm(struct rpma_conn *conn, const struct rpma_mr_local *src, size_t offset,
		       size_t len, int flags, uint32_t imm, const void *op_context)
{
	return post_message(conn, IBV_WR_SEND_WITH_IMM, imm, src, offset, len, flags, op_context);
}

int rpma_recv(struct rpma_conn *conn, struct rpma_mr_local *dst, size_t offset, size_t len,
	      const void *op_context)
{
	struct ibv_recv_wr wr;
	struct ibv_sge sge;
	int err;

	if (!conn || (!dst && (offset || len)))
		return RPMA_E_INVAL;
	mr_recv_wr(&wr, &sge, dst, offset, len, op_context);
	err = provider_post_recv(conn->id->qp, &wr);
	return err ? PROVIDER_FAILED(err, "ibv_post_recv(length=%zu)", len) : 0;
}
