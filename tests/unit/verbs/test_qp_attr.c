/* SPDX-License-Identifier: BSD-3-Clause */
/* Attributes of a queue pair: the first and last valid value of each, and how they are stored. */
#include <string.h>

#include "lib/unit.h"

#include "softrnic/verbs/qp_attr.h"

#define CHECK(bit, member, value)                                                                  \
	qp_attr_is_valid(&(struct ibv_qp_attr){.member = (value)}, IBV_QP_##bit)

static void values_have_bounds(void **state)
{
	assert_true(CHECK(PORT, port_num, 1));
	assert_false(CHECK(PORT, port_num, 0));
	assert_false(CHECK(PORT, port_num, 2));
	assert_true(CHECK(PKEY_INDEX, pkey_index, 0));
	assert_false(CHECK(PKEY_INDEX, pkey_index, 1));
	assert_false(CHECK(PATH_MTU, path_mtu, 0));
	assert_true(CHECK(PATH_MTU, path_mtu, IBV_MTU_256));
	assert_true(CHECK(PATH_MTU, path_mtu, IBV_MTU_4096));
	assert_false(CHECK(PATH_MTU, path_mtu, IBV_MTU_4096 + 1));
	assert_true(CHECK(DEST_QPN, dest_qp_num, 0xffffff));
	assert_false(CHECK(DEST_QPN, dest_qp_num, 0x1000000));
	assert_true(CHECK(TIMEOUT, timeout, 31));
	assert_false(CHECK(TIMEOUT, timeout, 32));
	assert_true(CHECK(RETRY_CNT, retry_cnt, 7));
	assert_false(CHECK(RETRY_CNT, retry_cnt, 8));
	assert_true(CHECK(RNR_RETRY, rnr_retry, 7));
	assert_false(CHECK(RNR_RETRY, rnr_retry, 8));
	assert_true(CHECK(MIN_RNR_TIMER, min_rnr_timer, 31));
	assert_false(CHECK(MIN_RNR_TIMER, min_rnr_timer, 32));
	assert_true(CHECK(MAX_QP_RD_ATOMIC, max_rd_atomic, 128));
	assert_false(CHECK(MAX_QP_RD_ATOMIC, max_rd_atomic, 129));
	assert_true(CHECK(MAX_DEST_RD_ATOMIC, max_dest_rd_atomic, 128));
	assert_false(CHECK(MAX_DEST_RD_ATOMIC, max_dest_rd_atomic, 129));
}

/* On Ethernet a local identifier reaches no peer, so a path needs a global header. */
static void a_path_has_a_global_header(void **state)
{
	struct ibv_qp_attr attr = {.ah_attr = {.is_global = 1, .port_num = 1}};

	assert_true(qp_attr_is_valid(&attr, IBV_QP_AV));
	attr.ah_attr.port_num = 2;
	assert_false(qp_attr_is_valid(&attr, IBV_QP_AV));
	attr.ah_attr = (struct ibv_ah_attr){.dlid = 1, .port_num = 1};
	assert_false(qp_attr_is_valid(&attr, IBV_QP_AV));
}

static void only_what_the_mask_names_is_looked_at(void **state)
{
	struct ibv_qp_attr attr;

	memset(&attr, 0xff, sizeof(attr));
	assert_true(qp_attr_is_valid(&attr, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_QKEY));
}

static void only_what_the_mask_names_is_stored(void **state)
{
	struct ibv_qp_attr stored = {.timeout = 3}, attr = {.timeout = 5, .retry_cnt = 6};

	attr.rq_psn = attr.sq_psn = 0x12345678;
	qp_attr_store(&stored, &attr, IBV_QP_STATE | IBV_QP_RETRY_CNT | IBV_QP_SQ_PSN);
	assert_int_equal(stored.timeout, 3);
	assert_int_equal(stored.retry_cnt, 6);
	assert_int_equal(stored.sq_psn, 0x345678);
	assert_int_equal(stored.rq_psn, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_have_bounds),
		cmocka_unit_test(a_path_has_a_global_header),
		cmocka_unit_test(only_what_the_mask_names_is_looked_at),
		cmocka_unit_test(only_what_the_mask_names_is_stored),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
