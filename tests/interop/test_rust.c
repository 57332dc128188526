/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_rust.c -- the calls of rust-ibverbs and of its tests, which cannot be built here.
 *
 * The test is written from a list of these calls, and shares no code with them. It always uses
 * extended completion queues and queue pairs, the GID at index 1, and queue pairs that are
 * connected to themselves.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "ends.h"

enum { PATIENCE_S = 30, GID_INDEX = 1, SIZE = 4096, ENTRIES = 16 };

struct itself {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq_ex *cq;
	struct ibv_qp *qp;
	struct ibv_qp_ex *qpx;
	union ibv_gid gid;
	char *data; /* the first half is sent, and the second half is received into */
	struct ibv_mr *mr;
};

static struct ibv_context *open_device(void)
{
	struct ibv_context *ctx = end_open_device();

	assert_int_equal(ctx->device->transport_type, IBV_TRANSPORT_IB);
	return ctx;
}

static struct ibv_cq_ex *cq_new(struct ibv_context *ctx)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = ENTRIES,
		.wc_flags = IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_IMM | IBV_WC_EX_WITH_QP_NUM |
			    IBV_WC_EX_WITH_SRC_QP | IBV_WC_EX_WITH_SLID | IBV_WC_EX_WITH_SL |
			    IBV_WC_EX_WITH_DLID_PATH_BITS};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(ctx, &attr);

	assert_non_null(cq);
	return cq;
}

static struct ibv_qp *qp_new(struct itself *e, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = ibv_cq_ex_to_cq(e->cq),
		.recv_cq = ibv_cq_ex_to_cq(e->cq),
		.cap = {.max_send_wr = ENTRIES,
			.max_recv_wr = ENTRIES,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = 64},
		.qp_type = type,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = e->pd,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
				  IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM};

	if (type == IBV_QPT_RC)
		attr.send_ops_flags |= IBV_QP_EX_WITH_RDMA_READ |
				       IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
				       IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
	return ibv_create_qp_ex(e->ctx, &attr);
}

static int qp_to_init(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
				   .port_num = 1,
				   .qp_access_flags =
					   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
					   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC};

	return ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

static int qp_to_rtr(struct ibv_qp *qp, uint32_t number, const union ibv_gid *gid)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = number,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 16,
		.ah_attr = {.is_global = 1,
			    .grh = {.dgid = *gid, .sgid_index = GID_INDEX, .hop_limit = 0xff},
			    .port_num = 1}};

	return ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				     IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				     IBV_QP_MIN_RNR_TIMER);
}

static int qp_to_rts(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS,
				   .timeout = 4,
				   .retry_cnt = 6,
				   .rnr_retry = 6,
				   .max_rd_atomic = 1};

	return ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				     IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

static int setup(void **state)
{
	static struct itself e;

	e = (struct itself){.ctx = open_device(), .data = calloc(2, SIZE)};
	e.pd = ibv_alloc_pd(e.ctx);
	assert_non_null(e.pd);
	e.cq = cq_new(e.ctx);
	e.qp = qp_new(&e, IBV_QPT_RC);
	assert_non_null(e.qp);
	e.qpx = ibv_qp_to_qp_ex(e.qp);
	assert_non_null(e.qpx);
	assert_int_equal(ibv_query_gid(e.ctx, 1, GID_INDEX, &e.gid), 0);
	e.mr = ibv_reg_mr(e.pd, e.data, 2 * SIZE,
			  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				  IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	assert_non_null(e.mr);
	*state = &e;
	return 0;
}

static int teardown(void **state)
{
	struct itself *e = *state;

	assert_int_equal(ibv_destroy_qp(e->qp), 0);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(e->cq)), 0);
	assert_int_equal(ibv_dereg_mr(e->mr), 0);
	assert_int_equal(ibv_dealloc_pd(e->pd), 0);
	assert_int_equal(ibv_close_device(e->ctx), 0);
	free(e->data);
	return 0;
}

static int setup_connected(void **state)
{
	struct itself *e;

	setup(state);
	e = *state;
	assert_int_equal(qp_to_init(e->qp), 0);
	assert_int_equal(qp_to_rtr(e->qp, e->qp->qp_num, &e->gid), 0);
	assert_int_equal(qp_to_rts(e->qp), 0);
	return 0;
}

/* Members of a completion that the tests read during a poll. */
struct completion {
	uint64_t wr_id;
	enum ibv_wc_status status;
	enum ibv_wc_opcode opcode;
	uint32_t byte_len, qp_num, imm;
};

static struct completion poll_one(struct itself *e)
{
	struct ibv_poll_cq_attr attr = {0};
	time_t end = time(NULL) + PATIENCE_S;
	struct completion c;
	int ret;

	while ((ret = ibv_start_poll(e->cq, &attr)) == ENOENT)
		assert_true(time(NULL) < end);
	assert_int_equal(ret, 0);
	c = (struct completion){.wr_id = e->cq->wr_id, .status = e->cq->status};
	if (c.status == IBV_WC_SUCCESS) {
		c.opcode = ibv_wc_read_opcode(e->cq);
		c.byte_len = ibv_wc_read_byte_len(e->cq);
		c.imm = be32toh(ibv_wc_read_imm_data(e->cq));
	}
	c.qp_num = ibv_wc_read_qp_num(e->cq);
	assert_int_equal(ibv_wc_read_slid(e->cq), 0);
	ibv_end_poll(e->cq);
	assert_int_equal(c.status, IBV_WC_SUCCESS);
	assert_int_equal(c.qp_num, e->qp->qp_num);
	return c;
}

static void expect(struct itself *e, uint64_t wr_id, enum ibv_wc_opcode opcode)
{
	struct completion c = poll_one(e);

	assert_int_equal(c.wr_id, wr_id);
	assert_int_equal(c.opcode, opcode);
}

static void fill(struct itself *e, int seed)
{
	memset(e->data, seed, SIZE);
	memset(e->data + SIZE, 0, SIZE);
}

static uintptr_t half(const struct itself *e, int which)
{
	return (uintptr_t)e->data + (unsigned)which * SIZE;
}

/* --- the queue pair ------------------------------------------------------------------------- */

static void a_queue_pair_returns_to_no_earlier_state(void **state)
{
	struct itself *e = *state;

	assert_int_equal(qp_to_init(e->qp), EINVAL);
}

/* No interface has this address, and its family differs from the family of the GID at index 1. */
static void an_address_without_a_route_is_refused(void **state)
{
	struct itself *e = *state;
	union ibv_gid nowhere = {.raw = {0xfe, 0x80, [12] = 0xde, 0xad, 0xbe, 0xef}};
	int ret;

	assert_int_equal(qp_to_init(e->qp), 0);
	ret = qp_to_rtr(e->qp, e->qp->qp_num, &nowhere);
	assert_true(ret == ENETUNREACH || ret == ETIMEDOUT);
}

/* --- work requests -------------------------------------------------------------------------- */

static void a_message_arrives_with_immediate_data(void **state)
{
	struct itself *e = *state;
	struct ibv_sge sge = {.addr = half(e, 1), .length = SIZE, .lkey = e->mr->lkey};
	struct ibv_recv_wr *bad, recv = {.wr_id = 1, .sg_list = &sge, .num_sge = 1};
	bool received = false;

	fill(e, 1);
	assert_int_equal(ibv_post_recv(e->qp, &recv, &bad), 0);
	ibv_wr_start(e->qpx);
	e->qpx->wr_id = 2;
	e->qpx->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send_imm(e->qpx, htobe32(77));
	ibv_wr_set_sge(e->qpx, e->mr->lkey, half(e, 0), SIZE);
	assert_int_equal(ibv_wr_complete(e->qpx), 0);
	for (int i = 0; i < 2; i++) { /* the two completions arrive in any order */
		struct completion c = poll_one(e);

		if (c.wr_id == 2)
			continue;
		assert_int_equal(c.opcode, IBV_WC_RECV);
		assert_int_equal(c.byte_len, SIZE);
		assert_int_equal(c.imm, 77);
		received = true;
	}
	assert_true(received);
	assert_memory_equal(e->data, e->data + SIZE, SIZE);
}

/* When a write completes, its data are in the target's memory. */
static void writes_and_reads_are_done_when_they_complete(void **state)
{
	struct itself *e = *state;

	for (int i = 1; i <= 100; i++) {
		fill(e, i);
		ibv_wr_start(e->qpx);
		e->qpx->wr_id = (uint64_t)i;
		e->qpx->wr_flags = IBV_SEND_SIGNALED;
		if (i % 2)
			ibv_wr_rdma_write(e->qpx, e->mr->rkey, half(e, 1));
		else
			ibv_wr_rdma_read(e->qpx, e->mr->rkey, half(e, 0));
		ibv_wr_set_sge(e->qpx, e->mr->lkey, half(e, i % 2 ? 0 : 1), SIZE);
		assert_int_equal(ibv_wr_complete(e->qpx), 0);
		expect(e, (uint64_t)i, i % 2 ? IBV_WC_RDMA_WRITE : IBV_WC_RDMA_READ);
		assert_memory_equal(e->data, e->data + SIZE, SIZE);
	}
}

static void inline_data_may_change_at_once(void **state)
{
	struct itself *e = *state;
	char text[] = "inline";

	fill(e, 0);
	ibv_wr_start(e->qpx);
	e->qpx->wr_id = 5;
	e->qpx->wr_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
	ibv_wr_rdma_write(e->qpx, e->mr->rkey, half(e, 1));
	ibv_wr_set_inline_data(e->qpx, text, sizeof(text));
	memset(text, 'x', sizeof(text));
	assert_int_equal(ibv_wr_complete(e->qpx), 0);
	expect(e, 5, IBV_WC_RDMA_WRITE);
	assert_string_equal(e->data + SIZE, "inline");
}

static void atomics_return_the_former_value(void **state)
{
	struct itself *e = *state;
	uint64_t *target = (uint64_t *)(e->data + SIZE), *former = (uint64_t *)e->data;

	fill(e, 0);
	*target = 41;
	ibv_wr_start(e->qpx);
	e->qpx->wr_id = 6;
	e->qpx->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_atomic_fetch_add(e->qpx, e->mr->rkey, half(e, 1), 1);
	ibv_wr_set_sge(e->qpx, e->mr->lkey, half(e, 0), sizeof(*former));
	assert_int_equal(ibv_wr_complete(e->qpx), 0);
	expect(e, 6, IBV_WC_FETCH_ADD);
	assert_int_equal(*former, 41);
	assert_int_equal(*target, 42);
	ibv_wr_start(e->qpx);
	e->qpx->wr_id = 7;
	e->qpx->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_atomic_cmp_swp(e->qpx, e->mr->rkey, half(e, 1), 42, 7);
	ibv_wr_set_sge(e->qpx, e->mr->lkey, half(e, 0), sizeof(*former));
	assert_int_equal(ibv_wr_complete(e->qpx), 0);
	expect(e, 7, IBV_WC_COMP_SWAP);
	assert_int_equal(*former, 42);
	assert_int_equal(*target, 7);
}

static void work_that_is_given_up_is_not_posted(void **state)
{
	struct itself *e = *state;
	struct ibv_poll_cq_attr attr = {0};

	fill(e, 9);
	ibv_wr_start(e->qpx);
	e->qpx->wr_id = 8;
	e->qpx->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write(e->qpx, e->mr->rkey, half(e, 1));
	ibv_wr_set_sge(e->qpx, e->mr->lkey, half(e, 0), SIZE);
	ibv_wr_abort(e->qpx);
	assert_int_equal(ibv_start_poll(e->cq, &attr), ENOENT);
	assert_int_equal(e->data[SIZE], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CONNECTED(test) cmocka_unit_test_setup_teardown(test, setup_connected, teardown)
		cmocka_unit_test_setup_teardown(an_address_without_a_route_is_refused, setup,
						teardown),
		CONNECTED(a_queue_pair_returns_to_no_earlier_state),
		CONNECTED(a_message_arrives_with_immediate_data),
		CONNECTED(writes_and_reads_are_done_when_they_complete),
		CONNECTED(inline_data_may_change_at_once),
		CONNECTED(atomics_return_the_former_value),
		CONNECTED(work_that_is_given_up_is_not_posted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
