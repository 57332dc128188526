/* SPDX-License-Identifier: BSD-3-Clause */
/* test_qp_post.c -- lists of work requests: either all requests of a list are posted, or none. */
#include <errno.h>
#include <string.h>

#include "lib/post.h"
#include "lib/qp_bench.h"
#include "lib/unit.h"
#include "softrnic/proto/rdmap.h"
#include "softrnic/rnic/op.h"
#include "softrnic/rnic/rnic.h"

#define LEN  65536u
#define REST 100 /* length of each Write */

static void a_list_is_taken_as_a_whole_or_not_at_all(void **state)
{
	struct bench *t = *state;
	struct vext_wr list[17];
	int posted = 99;

	for (int i = 0; i < 17; i++)
		list[i] = own_wr(VEXT_OP_ATOMIC_WRITE, (uint64_t)i, 0, t->mrb->ibv.rkey,
				 t->mrb->iova);
	assert_int_equal(qp_post_list(t->a->qp, list, 17, &posted), ENOMEM);
	assert_int_equal(posted, 0);
	list[15].wr.wr.rdma.remote_addr++;
	assert_int_equal(qp_post_list(t->a->qp, list, 16, &posted), EINVAL);
	assert_int_equal(posted, 0);
	list[15] = (struct vext_wr){.op = VEXT_OP_VERBS,
				    .wr = {.opcode = IBV_WR_RDMA_WRITE, .num_sge = 99}};
	assert_int_equal(qp_post_list(t->a->qp, list, 16, &posted), EINVAL);
	assert_true(qp_is_idle(t->a->qp));
	assert_int_equal(qp_post_list(t->a->qp, list, -1, &posted), EINVAL);
	assert_int_equal(qp_post_list(t->a->qp, list, 0, &posted), 0);
	assert_int_equal(qp_post_list(t->a->qp, list, 15, &posted), 0);
	assert_int_equal(posted, 15);
	assert_int_equal(qp_post_list(t->a->qp, list, 2, &posted), ENOMEM);
	assert_int_equal(qp_post_list(t->a->qp, list, 1, &posted), 0);
}

static void a_list_mixes_verbs_and_others_in_order(void **state)
{
	struct bench *t = *state;
	struct ibv_sge sge = {.length = REST};
	struct vext_wr list[3];
	int posted;

	sge.addr = t->mra->iova;
	sge.lkey = t->mra->ibv.lkey;
	for (int i = 0; i < 3; i++)
		list[i] = own_wr(VEXT_OP_VERBS, (uint64_t)i, IBV_SEND_SIGNALED, t->mrb->ibv.rkey,
				 t->mrb->iova);
	list[0].wr.opcode = IBV_WR_RDMA_WRITE;
	list[0].wr.sg_list = &sge;
	list[0].wr.num_sge = 1;
	list[0].wr.next = &list[0].wr; /* the call must ignore this */
	list[1].op = VEXT_OP_FLUSH_ALL;
	list[1].type = VEXT_FLUSH_PERSISTENT;
	list[2].op = VEXT_OP_ATOMIC_WRITE;
	list[2].wr.wr.rdma.remote_addr += 4096;
	memcpy(list[2].bytes, "commit!!", 8);
	assert_int_equal(qp_post_list(t->a->qp, list, 3, &posted), 0);
	assert_int_equal(posted, 3);
	pair_run(&t->p);
	assert_int_equal(qp_counters(t->a->qp)->tx_gathers, PAIR_HELLO + 1);
	for (uint64_t id = 0; id < 3; id++)
		expect_wc(&t->a->scq, id, IBV_WC_SUCCESS);
	assert_memory_equal(t->mb, t->ma, REST);
	assert_memory_equal(t->mb + 4096, "commit!!", 8);
}

static void incomplete_questions_are_refused_at_once(void **state)
{
	struct pair_options o = pair_defaults();
	struct vext_digest digest;
	uint32_t durability;
	struct bench t;
	struct qp *qp;

	bench_open(&t, &o, LEN);
	qp = t.a->qp;
	assert_int_equal(qp_verify(qp, 1, 1, 0, 8, 1, NULL), EINVAL);
	assert_int_equal(qp_verify(qp, 1, 1, 0, 0, 1, &digest), EINVAL);
	assert_int_equal(qp_verify(qp, 1, 1, 0, 1ull << 32, 1, &digest), EINVAL);
	assert_int_equal(qp_verify(qp, 1, 1, 0, 8, 0, &digest), EINVAL);
	assert_int_equal(qp_verify(qp, 1, 1, 0, 8, 3, &digest), EINVAL);
	assert_int_equal(qp_query_class(qp, 1, 1, 0, 8, NULL), EINVAL);
	assert_int_equal(qp_query_class(qp, 1, 1, 0, 0, &durability), EINVAL);
	assert_int_equal(qp_flush_all(qp, 1, (enum vext_flush_type)0), EINVAL);
	assert_int_equal(qp_flush_all(qp, 1, (enum vext_flush_type)4), EINVAL);
	assert_int_equal(qp_caps(qp),
			 VEXT_CAP_SOFTRNIC | VEXT_CAP_IMM | VEXT_CAP_ATOMICS | op_caps(op_kinds()));
	bench_close(&t);
	o.stream.consent = false;
	o.peer_rfc7306 = true;
	bench_open(&t, &o, LEN);
	assert_int_equal(qp_flush_all(t.a->qp, 1, VEXT_FLUSH_PERSISTENT), EINVAL);
	assert_int_equal(qp_verify(t.a->qp, 1, 1, 0, 8, 1, &digest), EINVAL);
	assert_int_equal(qp_query_class(t.a->qp, 1, 1, 0, 8, &durability), EINVAL);
	bench_close(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BENCH_TEST(a_list_is_taken_as_a_whole_or_not_at_all, LEN),
		BENCH_TEST(a_list_mixes_verbs_and_others_in_order, LEN),
		cmocka_unit_test(incomplete_questions_are_refused_at_once),
	};

	return cmocka_run_group_tests_name("post", tests, NULL, NULL);
}
