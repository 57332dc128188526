/* SPDX-License-Identifier: BSD-3-Clause */
/* rig.c -- a queue pair with its own device, region and completion queue. */
#include <stdlib.h>

#include "link.h"

#define RIG_MSG 16

struct rig {
	struct ibv_context context;
	struct ibv_pd pd;
	struct mr_table *mrs;
	struct mr *mr;
	struct cq cq;
	struct qp *qp;
	uint8_t memory[4096];
};

static void rig_ignore_cq(struct cq *cq)
{
}

static void rig_new(struct rig **out)
{
	struct rig *rig = calloc(1, sizeof(*rig));
	struct qp_config cfg;

	assert_non_null(rig);
	rig->pd.context = &rig->context;
	assert_int_equal(mr_table_new(&rig->mrs), 0);
	assert_int_equal(
		mr_new(rig->mrs, &rig->pd, rig->memory, sizeof(rig->memory),
		       (uint64_t)(uintptr_t)rig->memory,
		       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
		       NULL, &rig->mr),
		0);
	rig->cq.notify = rig->cq.overrun = rig_ignore_cq;
	assert_int_equal(cq_init(&rig->cq, 64), 0);
	cfg = (struct qp_config){
		.mrs = rig->mrs,
		.pd = &rig->pd,
		.send_cq = &rig->cq,
		.recv_cq = &rig->cq,
		.qp_num = 1,
		.cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1},
		.sq_sig_all = true,
	};
	assert_int_equal(qp_new(&cfg, &rig->qp), 0);
	*out = rig;
}

void rig_delete(struct rig *rig)
{
	if (!rig)
		return;
	qp_delete(rig->qp);
	mr_kill(rig->mr);
	mr_wait_idle(rig->mr);
	mr_delete(rig->mr);
	cq_fini(&rig->cq);
	mr_table_delete(rig->mrs);
	free(rig);
}

void side_add_qp(struct side *side)
{
	rig_new(&side->rig);
	stream_attach_qp(side->s, side->rig->qp);
}

struct qp *rig_qp(struct rig *rig)
{
	return rig->qp;
}

struct mr *rig_mr(struct rig *rig)
{
	return rig->mr;
}

void side_detach_qp(struct side *side)
{
	assert_ptr_equal(stream_detach_qp(side->s, &side->u), side->rig->qp);
}

static struct ibv_sge rig_sge(struct rig *rig)
{
	return (struct ibv_sge){
		.addr = (uint64_t)(uintptr_t)rig->memory,
		.length = RIG_MSG,
		.lkey = rig->mr->ibv.lkey,
	};
}

int side_post_send(struct side *side, uint64_t wr_id)
{
	struct ibv_sge sge = rig_sge(side->rig);
	struct ibv_send_wr wr = {.wr_id = wr_id,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND},
			   *bad;

	return stream_post_send(side->s, &wr, &bad, &side->u);
}

int side_post_read(struct side *side, uint64_t wr_id)
{
	struct ibv_sge sge = rig_sge(side->rig), of = rig_sge(side->peer->rig);
	struct ibv_send_wr wr = {.wr_id = wr_id,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_RDMA_READ,
				 .wr.rdma = {.remote_addr = of.addr,
					     .rkey = side->peer->rig->mr->ibv.rkey}},
			   *bad;

	return stream_post_send(side->s, &wr, &bad, &side->u);
}

int side_post_recv(struct side *side, uint64_t wr_id)
{
	struct ibv_sge sge = rig_sge(side->rig);
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;
	int err = stream_post_recv(side->s, &wr, &bad, &side->u);

	if (side->u.todo & STREAM_DO_RESUME)
		stream_resume(side->s, &side->u);
	return err;
}

int64_t rig_poll(struct rig *rig, enum ibv_wc_status *status)
{
	struct ibv_wc wc;

	if (cq_poll(&rig->cq, 1, &wc) != 1)
		return -1;
	*status = wc.status;
	return (int64_t)wc.wr_id;
}
