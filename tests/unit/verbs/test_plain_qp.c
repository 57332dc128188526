/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs without an id, as far as they need no peer: states, posts, and queried values. */
#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/unit.h"

#include "softrnic/softrnic.h"

#define INIT_MASK (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define RTR_MASK                                                                                   \
	(IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |            \
	 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)

struct plain {
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
};

static struct ibv_qp_init_attr wanted(struct ibv_cq *cq)
{
	return (struct ibv_qp_init_attr){
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};
}

static int made(void **state)
{
	static struct plain p;
	struct ibv_context *ctx = softrnic_context();
	struct ibv_qp_init_attr attr;

	assert_non_null(ctx);
	p.pd = softrnic_alloc_pd(ctx);
	p.cq = softrnic_create_cq(ctx, 64, NULL, NULL, 0);
	assert_non_null(p.cq);
	attr = wanted(p.cq);
	p.qp = softrnic_create_plain_qp(p.pd, &attr);
	assert_non_null(p.qp);
	*state = &p;
	return 0;
}

static int destroyed(void **state)
{
	struct plain *p = *state;

	assert_int_equal(softrnic_dealloc_pd(p->pd), EBUSY); /* the queue pair uses the domain */
	assert_int_equal(softrnic_destroy_cq(p->cq), EBUSY);
	assert_int_equal(softrnic_destroy_plain_qp(p->qp), 0);
	assert_int_equal(softrnic_destroy_cq(p->cq), 0);
	assert_int_equal(softrnic_dealloc_pd(p->pd), 0);
	return 0;
}

static int move(struct plain *p, enum ibv_qp_state to)
{
	struct ibv_qp_attr attr = {.qp_state = to, .port_num = 1};

	attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	return softrnic_modify_qp(p->qp, &attr, to == IBV_QPS_INIT ? INIT_MASK : IBV_QP_STATE);
}

static struct ibv_qp_attr query(struct plain *p)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	assert_int_equal(softrnic_query_qp(p->qp, &attr, IBV_QP_STATE, &init), 0);
	assert_ptr_equal(init.recv_cq, p->cq);
	assert_int_equal(attr.cur_qp_state, attr.qp_state);
	return attr;
}

static int post_recv(struct plain *p, uint64_t wr_id)
{
	struct ibv_recv_wr wr = {.wr_id = wr_id}, *bad = NULL;
	int ret = p->qp->context->ops.post_recv(p->qp, &wr, &bad);

	assert_ptr_equal(bad, ret ? &wr : NULL);
	return ret;
}

static int post_send(struct plain *p, uint64_t wr_id)
{
	struct ibv_send_wr wr = {.wr_id = wr_id, .opcode = IBV_WR_SEND}, *bad = NULL;
	int ret = p->qp->context->ops.post_send(p->qp, &wr, &bad);

	assert_ptr_equal(bad, ret ? &wr : NULL);
	return ret;
}

/* Returns the wr_id of the next completion, or 0. Every completion here is of a flushed request. */
static uint64_t flushed(struct plain *p)
{
	struct ibv_wc wc;

	if (p->cq->context->ops.poll_cq(p->cq, 1, &wc) != 1)
		return 0;
	assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(wc.qp_num, p->qp->qp_num);
	return wc.wr_id;
}

static void it_begins_in_reset_and_takes_nothing(void **state)
{
	struct plain *p = *state;

	assert_int_equal(query(p).qp_state, IBV_QPS_RESET);
	assert_int_equal(p->qp->state, IBV_QPS_RESET);
	assert_int_equal(post_recv(p, 1), EINVAL);
	assert_int_equal(post_send(p, 2), EINVAL);
}

static void in_init_it_takes_receives_alone(void **state)
{
	struct plain *p = *state;

	assert_int_equal(move(p, IBV_QPS_INIT), 0);
	assert_int_equal(query(p).qp_state, IBV_QPS_INIT);
	assert_int_equal(post_recv(p, 1), 0);
	assert_int_equal(post_send(p, 2), EINVAL);
	assert_int_equal(flushed(p), 0);
}

static void wrong_moves_change_nothing(void **state)
{
	struct plain *p = *state;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 2};

	assert_int_equal(softrnic_modify_qp(p->qp, &attr, INIT_MASK), EINVAL);
	attr.port_num = 1;
	assert_int_equal(softrnic_modify_qp(p->qp, &attr, INIT_MASK & ~IBV_QP_PORT), EINVAL);
	assert_int_equal(move(p, IBV_QPS_RTR), EINVAL);
	assert_int_equal(move(p, IBV_QPS_RTS), EINVAL);
	assert_int_equal(query(p).qp_state, IBV_QPS_RESET);
	assert_int_equal(query(p).port_num, 0);
	assert_int_equal(move(p, IBV_QPS_INIT), 0);
	attr.cur_qp_state = IBV_QPS_RTS;
	assert_int_equal(softrnic_modify_qp(p->qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE), EINVAL);
}

/* pyverbs queries the attributes of a queue pair, and uses them to set it up again. */
static void all_that_was_set_is_returned(void **state)
{
	struct plain *p = *state;
	struct ibv_qp_attr attr;

	assert_int_equal(move(p, IBV_QPS_INIT), 0);
	attr = query(p);
	assert_int_equal(attr.port_num, 1);
	assert_int_equal(attr.pkey_index, 0);
	assert_int_equal(attr.qp_access_flags, IBV_ACCESS_REMOTE_WRITE);
	assert_int_equal(attr.cap.max_send_wr, 4);
	assert_true(attr.cap.max_inline_data > 0);
	attr.qp_access_flags = IBV_ACCESS_REMOTE_READ;
	assert_int_equal(softrnic_modify_qp(p->qp, &attr, IBV_QP_ACCESS_FLAGS), 0);
	assert_int_equal(query(p).qp_access_flags, IBV_ACCESS_REMOTE_READ);
	assert_int_equal(move(p, IBV_QPS_ERR), 0); /* the attributes stay valid in ERR */
	assert_int_equal(query(p).qp_access_flags, IBV_ACCESS_REMOTE_READ);
	assert_int_equal(move(p, IBV_QPS_RESET), 0); /* RESET clears the attributes */
	assert_int_equal(query(p).qp_access_flags, 0);
	assert_int_equal(query(p).port_num, 0);
	assert_int_equal(query(p).cap.max_send_wr, 4);
}

/* On Ethernet a path needs a global header. Programs for InfiniBand get this error first. */
static void a_path_by_local_identifiers_is_refused(void **state)
{
	struct plain *p = *state;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024};

	attr.ah_attr.port_num = 1;
	assert_int_equal(move(p, IBV_QPS_INIT), 0);
	assert_int_equal(softrnic_modify_qp(p->qp, &attr, RTR_MASK), EINVAL);
	assert_int_equal(query(p).qp_state, IBV_QPS_INIT);
	assert_int_equal(query(p).path_mtu, 0);
}

static void in_error_everything_is_flushed(void **state)
{
	struct plain *p = *state;

	assert_int_equal(move(p, IBV_QPS_INIT), 0);
	assert_int_equal(post_recv(p, 1), 0);
	assert_int_equal(post_recv(p, 2), 0);
	assert_int_equal(move(p, IBV_QPS_ERR), 0);
	assert_int_equal(query(p).qp_state, IBV_QPS_ERR);
	assert_int_equal(p->qp->state, IBV_QPS_ERR);
	assert_int_equal(flushed(p), 1);
	assert_int_equal(flushed(p), 2);
	assert_int_equal(post_recv(p, 3), 0);
	assert_int_equal(flushed(p), 3);
	assert_int_equal(post_send(p, 4), 0);
	assert_int_equal(flushed(p), 4);
	assert_int_equal(move(p, IBV_QPS_ERR), 0);
	assert_int_equal(move(p, IBV_QPS_INIT), EINVAL);
}

static void reset_empties_without_completions(void **state)
{
	struct plain *p = *state;
	uint32_t num = p->qp->qp_num;

	assert_int_equal(move(p, IBV_QPS_INIT), 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(post_recv(p, 1), 0);
	assert_int_equal(post_recv(p, 1), ENOMEM);
	assert_int_equal(move(p, IBV_QPS_RESET), 0);
	assert_int_equal(flushed(p), 0);
	assert_int_equal(post_recv(p, 1), EINVAL);
	assert_int_equal(p->qp->qp_num, num);
	assert_int_equal(move(p, IBV_QPS_INIT), 0);
	for (int i = 0; i < 4; i++) /* all slots of the queue are free again */
		assert_int_equal(post_recv(p, 1), 0);
	assert_int_equal(move(p, IBV_QPS_ERR), 0);
	/* RESET also drops completions that were not polled */
	assert_int_equal(move(p, IBV_QPS_RESET), 0);
	assert_int_equal(flushed(p), 0);
}

static void it_may_be_reset_again_and_again(void **state)
{
	struct plain *p = *state;

	for (int i = 0; i < 2000; i++) {
		assert_int_equal(move(p, IBV_QPS_RESET), 0);
		assert_int_equal(move(p, IBV_QPS_INIT), 0);
		assert_int_equal(post_recv(p, 1), 0);
		if (i % 2)
			assert_int_equal(move(p, IBV_QPS_ERR), 0);
	}
	assert_int_equal(move(p, IBV_QPS_RESET), 0);
	assert_int_equal(flushed(p), 0);
}

static void numbers_differ(void **state)
{
	struct plain *p = *state;
	struct ibv_qp_init_attr attr = wanted(p->cq);
	struct ibv_qp *other = softrnic_create_plain_qp(p->pd, &attr);

	assert_non_null(other);
	assert_int_not_equal(other->qp_num, p->qp->qp_num);
	assert_true(other->qp_num <= 0xffffff);
	assert_true(softrnic_is_plain_qp(other));
	assert_int_equal(softrnic_destroy_plain_qp(other), 0);
}

static void what_the_device_lacks_is_refused(void **state)
{
	struct plain *p = *state;
	struct ibv_qp_init_attr attr = wanted(p->cq);

	attr.qp_type = IBV_QPT_RAW_PACKET;
	assert_null(softrnic_create_plain_qp(p->pd, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
	attr = wanted(NULL);
	assert_null(softrnic_create_plain_qp(p->pd, &attr));
	assert_int_equal(errno, EINVAL);
	attr = wanted(p->cq);
	attr.cap.max_inline_data = 1u << 20;
	assert_null(softrnic_create_plain_qp(p->pd, &attr));
	assert_int_equal(errno, EINVAL);
}

/* A queue pair with builders (ibv_wr_*()) of other operations is refused: these builders would fail
 * at their first use. */
static void a_datagram_queue_pair_has_builders_of_sends_alone(void **state)
{
	static const uint64_t lacking[] = {IBV_QP_EX_WITH_BIND_MW, IBV_QP_EX_WITH_LOCAL_INV,
					   IBV_QP_EX_WITH_SEND_WITH_INV, IBV_QP_EX_WITH_RDMA_WRITE};
	struct plain *p = *state;
	struct ibv_qp_init_attr_ex ex = {
		.send_cq = p->cq,
		.recv_cq = p->cq,
		.cap = wanted(p->cq).cap,
		.qp_type = IBV_QPT_UD,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = p->pd,
	};

	for (size_t i = 0; i < ARRAY_LEN(lacking); i++) {
		ex.send_ops_flags = IBV_QP_EX_WITH_SEND | lacking[i];
		assert_null(softrnic_create_plain_qp_ex(softrnic_context(), &ex));
		assert_int_equal(errno, EOPNOTSUPP);
	}
}

static void a_child_may_only_destroy_it(void **state)
{
	struct plain *p = *state;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(move(p, IBV_QPS_INIT) != ENODEV || post_recv(p, 1) != ENODEV ||
		      softrnic_query_qp(p->qp, &attr, IBV_QP_STATE, &init) != ENODEV ||
		      softrnic_destroy_plain_qp(p->qp) || softrnic_destroy_cq(p->cq));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(move(p, IBV_QPS_INIT), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, made, destroyed)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(it_begins_in_reset_and_takes_nothing),
		TEST(in_init_it_takes_receives_alone),
		TEST(wrong_moves_change_nothing),
		TEST(all_that_was_set_is_returned),
		TEST(a_path_by_local_identifiers_is_refused),
		TEST(in_error_everything_is_flushed),
		TEST(reset_empties_without_completions),
		TEST(it_may_be_reset_again_and_again),
		TEST(numbers_differ),
		TEST(what_the_device_lacks_is_refused),
		TEST(a_datagram_queue_pair_has_builders_of_sends_alone),
		TEST(a_child_may_only_destroy_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
