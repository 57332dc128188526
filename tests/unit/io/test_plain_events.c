/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs without rdma_cm: events for changes of their state, the state SQD, and their access
 * rights. */
#include "plain.h"

#include <errno.h>
#include <poll.h>

static struct plain dials, awaits;

static int open_pair(void **state)
{
	plain_pair_open(&dials, &awaits);
	return 0;
}

static bool has_event_within(int ms)
{
	struct pollfd pfd = {.fd = softrnic_context()->async_fd, .events = POLLIN};

	return poll(&pfd, 1, ms) == 1;
}

/* Take the next event, which must have this type and this queue pair. */
static void expect_event(enum ibv_event_type type, const struct ibv_qp *qp)
{
	struct ibv_async_event ev;

	assert_true(has_event_within(10000));
	assert_int_equal(softrnic_get_async_event(softrnic_context(), &ev), 0);
	assert_int_equal(ev.event_type, type);
	assert_ptr_equal(ev.element.qp, qp);
	softrnic_ack_async_event(&ev);
}

static int close_pair(void **state)
{
	plain_close(&dials);
	plain_close(&awaits);
	assert_false(has_event_within(0));
	return 0;
}

static void move(struct plain *p, enum ibv_qp_state to, int more)
{
	struct ibv_qp_attr attr = {.qp_state = to, .en_sqd_async_notify = 1};

	assert_int_equal(softrnic_modify_qp(p->qp, &attr, IBV_QP_STATE | more), 0);
}

static void permit(struct plain *p, unsigned access)
{
	struct ibv_qp_attr attr = {.qp_access_flags = access};

	assert_int_equal(softrnic_modify_qp(p->qp, &attr, IBV_QP_ACCESS_FLAGS), 0);
}

static bool drains(struct plain *p)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	assert_int_equal(softrnic_query_qp(p->qp, &attr, IBV_QP_STATE, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_SQD);
	return attr.sq_draining;
}

/* --- events ---------------------------------------------------------------------------------- */

static void the_first_message_is_reported_in_rtr(void **state)
{
	plain_init(&awaits);
	plain_recv(&awaits, 1);
	plain_recv(&awaits, 2);
	plain_rtr(&awaits, dials.qp->qp_num);
	plain_ready(&dials, awaits.qp->qp_num);
	plain_send(&dials, 3, "one");
	assert_int_equal(plain_wait(&awaits).status, IBV_WC_SUCCESS);
	expect_event(IBV_EVENT_COMM_EST, awaits.qp);
	plain_send(&dials, 4, "two");
	assert_int_equal(plain_wait(&awaits).status, IBV_WC_SUCCESS);
	assert_false(has_event_within(0));
}

static void in_rts_messages_are_not_reported(void **state)
{
	plain_ready(&awaits, dials.qp->qp_num);
	plain_ready(&dials, awaits.qp->qp_num);
	plain_talk(&dials, &awaits);
	assert_false(has_event_within(0));
}

/* UCX and Ceph wait for IBV_EVENT_QP_LAST_WQE_REACHED before they destroy the queue pair. */
static void the_last_receive_of_a_shared_queue_is_reported(void **state)
{
	struct ibv_srq_init_attr shared = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_srq *srq = softrnic_create_srq(dials.pd, &shared);
	struct ibv_qp_init_attr attr = {
		.send_cq = dials.cq, .recv_cq = dials.cq, .srq = srq, .qp_type = IBV_QPT_RC};
	struct ibv_qp *qp = softrnic_create_plain_qp(dials.pd, &attr);
	struct plain with = dials;

	assert_non_null(qp);
	with.qp = qp;
	for (int i = 0; i < 2; i++) {
		plain_init(&with);
		move(&with, IBV_QPS_ERR, 0);
		expect_event(IBV_EVENT_QP_LAST_WQE_REACHED, qp);
		move(&with, IBV_QPS_ERR, 0);
		assert_false(has_event_within(0));
		plain_reset(&with);
	}
	assert_int_equal(softrnic_destroy_plain_qp(qp), 0);
	assert_int_equal(softrnic_destroy_srq(srq), 0);
	plain_init(&dials);
	/* this queue pair has receives of its own, so no event comes */
	move(&dials, IBV_QPS_ERR, 0);
}

/* --- the state SQD (send queue drained) ------------------------------------------------------- */

static void in_sqd_posted_requests_wait(void **state)
{
	plain_ready(&awaits, dials.qp->qp_num);
	plain_ready(&dials, awaits.qp->qp_num);
	plain_talk(&dials, &awaits);
	move(&dials, IBV_QPS_SQD, IBV_QP_EN_SQD_ASYNC_NOTIFY);
	expect_event(IBV_EVENT_SQ_DRAINED, dials.qp);
	assert_false(drains(&dials));
	plain_recv(&awaits, 1);
	plain_send(&dials, 2, "later");
	plain_expect_none(&awaits, 50);
	plain_recv(&dials, 3); /* the other direction works on */
	plain_send(&awaits, 4, "meanwhile");
	assert_int_equal(plain_wait(&dials).wr_id, 3);
	assert_int_equal(plain_wait(&awaits).wr_id, 4);
	move(&dials, IBV_QPS_RTS, 0);
	assert_int_equal(plain_wait(&awaits).wr_id, 1);
	assert_string_equal(awaits.buf, "later");
	assert_int_equal(plain_wait(&dials).wr_id, 2);
}

/* A Send that has begun completes only after its receive is posted. */
static void what_was_begun_is_finished_first(void **state)
{
	plain_ready(&awaits, dials.qp->qp_num);
	plain_ready(&dials, awaits.qp->qp_num);
	plain_talk(&dials, &awaits);
	plain_send(&dials, 1, "begun");
	move(&dials, IBV_QPS_SQD, IBV_QP_EN_SQD_ASYNC_NOTIFY);
	assert_true(drains(&dials));
	assert_false(has_event_within(50));
	plain_recv(&awaits, 2);
	assert_int_equal(plain_wait(&awaits).wr_id, 2);
	assert_int_equal(plain_wait(&dials).wr_id, 1);
	expect_event(IBV_EVENT_SQ_DRAINED, dials.qp);
	assert_false(drains(&dials));
}

static void without_the_wish_no_event_comes(void **state)
{
	plain_ready(&awaits, dials.qp->qp_num);
	plain_ready(&dials, awaits.qp->qp_num);
	plain_talk(&dials, &awaits);
	move(&dials, IBV_QPS_SQD, 0);
	assert_false(has_event_within(20));
	/* the request is destroyed with the queue pair, without a wait */
	plain_send(&dials, 1, "never");
}

static void in_sqd_the_path_stays(void **state)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	plain_ready(&awaits, dials.qp->qp_num);
	plain_ready(&dials, awaits.qp->qp_num);
	move(&dials, IBV_QPS_SQD, 0);
	assert_int_equal(softrnic_query_qp(dials.qp, &attr, IBV_QP_AV, &init), 0);
	attr.ah_attr.grh.hop_limit++;
	assert_int_equal(softrnic_modify_qp(dials.qp, &attr, IBV_QP_AV), 0);
	attr.ah_attr.grh.dgid.raw[15]++;
	assert_int_equal(softrnic_modify_qp(dials.qp, &attr, IBV_QP_AV), EOPNOTSUPP);
	move(&dials, IBV_QPS_RTS, 0);
	plain_talk(&dials, &awaits);
}

/* --- access rights --------------------------------------------------------------------------- */

static int request(enum ibv_wr_opcode opcode)
{
	struct ibv_sge sge = {.addr = (uintptr_t)dials.buf, .length = 8, .lkey = dials.mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = opcode}, *bad;

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)awaits.buf;
		wr.wr.atomic.rkey = awaits.mr->rkey;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)awaits.buf;
		wr.wr.rdma.rkey = awaits.mr->rkey;
	}
	assert_int_equal(ibv_post_send(dials.qp, &wr, &bad), 0);
	return (int)plain_wait(&dials).status;
}

static const struct {
	enum ibv_wr_opcode opcode;
	unsigned right;
} requests[] = {
	{IBV_WR_RDMA_WRITE, IBV_ACCESS_REMOTE_WRITE},
	{IBV_WR_RDMA_READ, IBV_ACCESS_REMOTE_READ},
	{IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_ACCESS_REMOTE_ATOMIC},
};
#define ALL_RIGHTS (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

/* The region grants every right, so only the queue pair refuses. */
static void what_the_queue_pair_does_not_permit_is_refused(void **state)
{
	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
		plain_ready(&awaits, dials.qp->qp_num);
		plain_ready(&dials, awaits.qp->qp_num);
		permit(&awaits, requests[i].right);
		assert_int_equal(request(requests[i].opcode), IBV_WC_SUCCESS);
		permit(&awaits, ALL_RIGHTS & ~requests[i].right);
		assert_int_equal(request(requests[i].opcode), IBV_WC_REM_ACCESS_ERR);
		expect_event(IBV_EVENT_QP_ACCESS_ERR, awaits.qp);
		plain_reset(&awaits);
		plain_reset(&dials);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_pair, close_pair)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_first_message_is_reported_in_rtr),
		TEST(in_rts_messages_are_not_reported),
		TEST(the_last_receive_of_a_shared_queue_is_reported),
		TEST(in_sqd_posted_requests_wait),
		TEST(what_was_begun_is_finished_first),
		TEST(without_the_wish_no_event_comes),
		TEST(in_sqd_the_path_stays),
		TEST(what_the_queue_pair_does_not_permit_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
