/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * qp_ex.c -- work requests that are built by calls: ibv_wr_start(), a builder and a setter for each
 * request, ibv_wr_complete(). The calls collect a list of requests, which is posted as a whole
 * (qp_builder.h).
 */
#include "softrnic/verbs/qp_ex.h"

#include <errno.h>
#include <string.h>

#include "base/list.h"
#include "softrnic/rnic/qp.h"
#include "softrnic/verbs/qp_builder.h"
#include "softrnic/softrnic.h"

#define QPX_OPS                                                                                    \
	((uint64_t)(IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |               \
		    IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |                           \
		    IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_RDMA_READ |                      \
		    IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |      \
		    IBV_QP_EX_WITH_ATOMIC_WRITE | IBV_QP_EX_WITH_BIND_MW |                         \
		    IBV_QP_EX_WITH_LOCAL_INV))
#define QPX_UD_OPS ((uint64_t)(IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM))

/* --- builders ----------------------------------------------------------------------------- */

static struct qp_builder *qpx_builder(struct ibv_qp_ex *ex)
{
	return container_of(ex, struct qp_face, ex)->builder;
}

static struct vext_wr *qpx_next(struct ibv_qp_ex *ex, uint64_t op, enum ibv_wr_opcode opcode)
{
	struct vext_wr *w = qp_builder_next(qpx_builder(ex), op, ex->wr_id, ex->wr_flags);

	if (w)
		w->wr.opcode = opcode;
	return w;
}

static struct vext_wr *qpx_rdma(struct ibv_qp_ex *ex, uint64_t op, enum ibv_wr_opcode opcode,
				uint32_t rkey, uint64_t addr)
{
	struct vext_wr *w = qpx_next(ex, op, opcode);

	if (w) {
		w->wr.wr.rdma.rkey = rkey;
		w->wr.wr.rdma.remote_addr = addr;
	}
	return w;
}

static void qpx_atomic(struct ibv_qp_ex *ex, uint64_t op, enum ibv_wr_opcode opcode, uint32_t rkey,
		       uint64_t addr, uint64_t compare_add, uint64_t swap)
{
	struct vext_wr *w = qpx_next(ex, op, opcode);

	if (!w)
		return;
	w->wr.wr.atomic.rkey = rkey;
	w->wr.wr.atomic.remote_addr = addr;
	w->wr.wr.atomic.compare_add = compare_add;
	w->wr.wr.atomic.swap = swap;
}

static void qpx_atomic_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, uint64_t compare,
			       uint64_t swap)
{
	qpx_atomic(ex, IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, addr,
		   compare, swap);
}

static void qpx_atomic_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, uint64_t add)
{
	qpx_atomic(ex, IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, addr,
		   add, 0);
}

static void qpx_atomic_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, const void *bytes)
{
	struct vext_wr *w =
		qpx_rdma(ex, IBV_QP_EX_WITH_ATOMIC_WRITE, IBV_WR_ATOMIC_WRITE, rkey, addr);

	if (!w)
		return;
	w->op = VEXT_OP_ATOMIC_WRITE;
	memcpy(w->bytes, bytes, sizeof(w->bytes));
}

static void qpx_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr)
{
	(void)qpx_rdma(ex, IBV_QP_EX_WITH_RDMA_READ, IBV_WR_RDMA_READ, rkey, addr);
}

static void qpx_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr)
{
	(void)qpx_rdma(ex, IBV_QP_EX_WITH_RDMA_WRITE, IBV_WR_RDMA_WRITE, rkey, addr);
}

static void qpx_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, __be32 imm)
{
	struct vext_wr *w = qpx_rdma(ex, IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM,
				     IBV_WR_RDMA_WRITE_WITH_IMM, rkey, addr);

	if (w)
		w->wr.imm_data = imm;
}

static void qpx_send(struct ibv_qp_ex *ex)
{
	(void)qpx_next(ex, IBV_QP_EX_WITH_SEND, IBV_WR_SEND);
}

static void qpx_send_imm(struct ibv_qp_ex *ex, __be32 imm)
{
	struct vext_wr *w = qpx_next(ex, IBV_QP_EX_WITH_SEND_WITH_IMM, IBV_WR_SEND_WITH_IMM);

	if (w)
		w->wr.imm_data = imm;
}

static void qpx_send_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	struct vext_wr *w = qpx_next(ex, IBV_QP_EX_WITH_SEND_WITH_INV, IBV_WR_SEND_WITH_INV);

	if (w)
		w->wr.invalidate_rkey = rkey;
}

static void qpx_bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey,
			const struct ibv_mw_bind_info *info)
{
	struct vext_wr *w = qpx_next(ex, IBV_QP_EX_WITH_BIND_MW, IBV_WR_BIND_MW);

	if (!w)
		return;
	w->wr.bind_mw.mw = mw;
	w->wr.bind_mw.rkey = rkey;
	w->wr.bind_mw.bind_info = *info;
}

static void qpx_local_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	struct vext_wr *w = qpx_next(ex, IBV_QP_EX_WITH_LOCAL_INV, IBV_WR_LOCAL_INV);

	if (w)
		w->wr.invalidate_rkey = rkey;
}

/* TSO is an operation that no queue pair of this device supports: record an error. */
static void qpx_send_tso(struct ibv_qp_ex *ex, void *hdr, uint16_t hdr_len, uint16_t mss)
{
	qp_builder_fail(qpx_builder(ex), EINVAL);
}

/* --- setters ------------------------------------------------------------------------------ */

static void qpx_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
	if (ex->qp_base.qp_type == IBV_QPT_UD)
		qp_builder_address(qpx_builder(ex), ah, qpn, qkey);
	else
		qp_builder_fail(qpx_builder(ex), EINVAL);
}

static void qpx_set_xrc_srqn(struct ibv_qp_ex *ex, uint32_t srqn)
{
	qp_builder_fail(qpx_builder(ex), EINVAL);
}

static void qpx_set_sge_list(struct ibv_qp_ex *ex, size_t n, const struct ibv_sge *list)
{
	qp_builder_entries(qpx_builder(ex), n, list);
}

static void qpx_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
	struct ibv_sge sge = {.addr = addr, .length = length, .lkey = lkey};

	qp_builder_entries(qpx_builder(ex), 1, &sge);
}

static void qpx_set_inline_data_list(struct ibv_qp_ex *ex, size_t n,
				     const struct ibv_data_buf *bufs)
{
	qp_builder_inline(qpx_builder(ex), n, bufs);
}

static void qpx_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
	struct ibv_data_buf buf = {.addr = addr, .length = length};

	qp_builder_inline(qpx_builder(ex), 1, &buf);
}

/* --- beginning and end -------------------------------------------------------------------- */

static void qpx_start(struct ibv_qp_ex *ex)
{
	pthread_mutex_lock(&qpx_builder(ex)->lock);
}

static int qpx_complete(struct ibv_qp_ex *ex)
{
	struct qp_builder *b = qpx_builder(ex);
	int err = qp_builder_post(b, &ex->qp_base);

	pthread_mutex_unlock(&b->lock);
	return err;
}

static void qpx_abort(struct ibv_qp_ex *ex)
{
	struct qp_builder *b = qpx_builder(ex);

	qp_builder_forget(b);
	pthread_mutex_unlock(&b->lock);
}

/* --- creation and end --------------------------------------------------------------------- */

static void qpx_fill(struct ibv_qp_ex *ex)
{
	ex->wr_atomic_cmp_swp = qpx_atomic_cmp_swp;
	ex->wr_atomic_fetch_add = qpx_atomic_fetch_add;
	ex->wr_atomic_write = qpx_atomic_write;
	ex->wr_bind_mw = qpx_bind_mw;
	ex->wr_local_inv = qpx_local_inv;
	ex->wr_rdma_read = qpx_rdma_read;
	ex->wr_rdma_write = qpx_rdma_write;
	ex->wr_rdma_write_imm = qpx_rdma_write_imm;
	ex->wr_send = qpx_send;
	ex->wr_send_imm = qpx_send_imm;
	ex->wr_send_inv = qpx_send_inv;
	ex->wr_send_tso = qpx_send_tso;
	ex->wr_set_ud_addr = qpx_set_ud_addr;
	ex->wr_set_xrc_srqn = qpx_set_xrc_srqn;
	ex->wr_set_inline_data = qpx_set_inline_data;
	ex->wr_set_inline_data_list = qpx_set_inline_data_list;
	ex->wr_set_sge = qpx_set_sge;
	ex->wr_set_sge_list = qpx_set_sge_list;
	ex->wr_start = qpx_start;
	ex->wr_complete = qpx_complete;
	ex->wr_abort = qpx_abort;
}

/* If create_flags is 0, the program requests no flag, so the bit in comp_mask alone is accepted. */
static bool qpx_is_unsupported(const struct ibv_qp_init_attr_ex *ex)
{
	uint32_t known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	uint64_t ops = ex->qp_type == IBV_QPT_UD ? QPX_UD_OPS : QPX_OPS;

	if (ex->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS && !ex->create_flags)
		known |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
	return ex->comp_mask & ~known ||
	       (ex->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS && ex->send_ops_flags & ~ops);
}

int qp_ex_attr(const struct ibv_qp_init_attr_ex *ex, struct ibv_qp_init_attr *attr, uint64_t *ops)
{
	if (qpx_is_unsupported(ex))
		return EOPNOTSUPP;
	*attr = (struct ibv_qp_init_attr){
		.qp_context = ex->qp_context,
		.send_cq = ex->send_cq,
		.recv_cq = ex->recv_cq,
		.srq = ex->srq,
		.cap = ex->cap,
		.qp_type = ex->qp_type,
		.sq_sig_all = ex->sq_sig_all,
	};
	*ops = ex->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS ? ex->send_ops_flags : 0;
	return 0;
}

int qp_ex_begin(struct ibv_qp *ibv, uint64_t ops, const struct ibv_qp_cap *cap)
{
	struct qp_face *face = qp_face(ibv);

	if (!ops)
		return 0;
	face->builder = qp_builder_new(ops, cap);
	if (!face->builder)
		return -ENOMEM;
	qpx_fill(&face->ex);
	return 0;
}

void qp_ex_end(struct ibv_qp *ibv)
{
	struct qp_face *face = qp_face(ibv);

	qp_builder_delete(face->builder);
	face->builder = NULL;
}

struct ibv_qp_ex *softrnic_qp_to_qp_ex(struct ibv_qp *ibv)
{
	struct qp_face *face = qp_face(ibv);

	return face->builder ? &face->ex : NULL;
}
