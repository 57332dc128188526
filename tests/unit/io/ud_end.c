/* SPDX-License-Identifier: BSD-3-Clause */
#include "ud_end.h"

#include <time.h>

#include "lib/unit.h"
#include "softrnic/softrnic.h"

static void ud_end_move(struct ud_end *e, enum ibv_qp_state to, int mask)
{
	struct ibv_qp_attr attr = {.qp_state = to, .port_num = 1, .qkey = UD_END_QKEY};

	assert_int_equal(softrnic_modify_qp(e->qp, &attr, IBV_QP_STATE | mask), 0);
}

void ud_end_make_qp(struct ud_end *e)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = e->cq,
		.recv_cq = e->cq,
		.cap = {.max_send_wr = e->depth,
			.max_recv_wr = e->depth,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.qp_type = IBV_QPT_UD,
		.sq_sig_all = 1,
	};

	e->qp = softrnic_create_plain_qp(e->pd, &attr);
	assert_non_null(e->qp);
	ud_end_move(e, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
	ud_end_move(e, IBV_QPS_RTR, 0);
	ud_end_move(e, IBV_QPS_RTS, IBV_QP_SQ_PSN);
}

void ud_end_open(struct ud_end *e, uint8_t *buf, uint32_t depth)
{
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};
	struct ibv_context *ctx = softrnic_context();

	*e = (struct ud_end){.buf = buf, .depth = depth};
	e->channel = softrnic_create_comp_channel(ctx);
	e->pd = softrnic_alloc_pd(ctx);
	e->cq = softrnic_create_cq(ctx, 4 * (int)depth, NULL, e->channel, 0);
	assert_true(e->channel && e->pd && e->cq);
	e->mr = softrnic_reg_mr(e->pd, buf, (size_t)depth * UD_END_SLOT, IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(e->mr);
	assert_int_equal(softrnic_query_gid(ctx, 1, 0, &attr.grh.dgid), 0);
	e->ah = softrnic_create_ah(e->pd, &attr);
	assert_non_null(e->ah);
	ud_end_make_qp(e);
}

void ud_end_close(struct ud_end *e)
{
	if (e->qp)
		assert_int_equal(softrnic_destroy_plain_qp(e->qp), 0);
	assert_int_equal(softrnic_destroy_ah(e->ah), 0);
	assert_int_equal(softrnic_dereg_mr(e->mr), 0);
	assert_int_equal(softrnic_destroy_cq(e->cq), 0);
	assert_int_equal(softrnic_dealloc_pd(e->pd), 0);
	assert_int_equal(softrnic_destroy_comp_channel(e->channel), 0);
}

void ud_end_recv(struct ud_end *e, unsigned slot)
{
	struct ibv_sge sge = {.addr = (uintptr_t)e->buf + slot * UD_END_SLOT,
			      .length = UD_END_SLOT,
			      .lkey = e->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1}, *bad;

	assert_int_equal(ibv_post_recv(e->qp, &wr, &bad), 0);
}

struct ibv_wc ud_end_wait(struct ud_end *e)
{
	const struct timespec pause = {.tv_nsec = 100000};
	struct ibv_wc wc = {0};
	int n = 0;

	for (int i = 0; i < 100000 && !n; i++) {
		n = ibv_poll_cq(e->cq, 1, &wc);
		if (!n)
			nanosleep(&pause, NULL);
	}
	assert_int_equal(n, 1);
	return wc;
}
