/* SPDX-License-Identifier: BSD-3-Clause */
/* test_cfg.c -- defaults and settings of the configuration objects, through the public interface
 * only. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <librpma.h>

#define GET(type, call)                                                                            \
	({                                                                                         \
		type value_;                                                                       \
		assert_int_equal(call(cfg, &value_), 0);                                           \
		value_;                                                                            \
	})

static void a_connection_has_the_documented_defaults(void **state)
{
	struct rpma_conn_cfg *cfg = NULL;

	assert_int_equal(rpma_conn_cfg_new(&cfg), 0);
	assert_int_equal(GET(int, rpma_conn_cfg_get_timeout), RPMA_DEFAULT_TIMEOUT_MS);
	assert_int_equal(GET(uint32_t, rpma_conn_cfg_get_cq_size), 10);
	assert_int_equal(GET(uint32_t, rpma_conn_cfg_get_rcq_size), 0);
	assert_int_equal(GET(uint32_t, rpma_conn_cfg_get_sq_size), 10);
	assert_int_equal(GET(uint32_t, rpma_conn_cfg_get_rq_size), 10);
	assert_false(GET(bool, rpma_conn_cfg_get_compl_channel));
	assert_null(GET(struct rpma_srq *, rpma_conn_cfg_get_srq));
	assert_int_equal(rpma_conn_cfg_delete(&cfg), 0);
	assert_null(cfg);
}

static void a_connection_keeps_what_was_set_and_nothing_else_changes(void **state)
{
	struct rpma_srq *srq = (struct rpma_srq *)state;
	struct rpma_conn_cfg *cfg = NULL;

	assert_int_equal(rpma_conn_cfg_new(&cfg), 0);
	assert_int_equal(rpma_conn_cfg_set_timeout(cfg, INT_MAX), 0);
	assert_int_equal(rpma_conn_cfg_set_cq_size(cfg, UINT32_MAX), 0);
	assert_int_equal(rpma_conn_cfg_set_rcq_size(cfg, 2), 0);
	assert_int_equal(rpma_conn_cfg_set_sq_size(cfg, 3), 0);
	assert_int_equal(rpma_conn_cfg_set_rq_size(cfg, 0), 0);
	assert_int_equal(rpma_conn_cfg_set_compl_channel(cfg, true), 0);
	assert_int_equal(rpma_conn_cfg_set_srq(cfg, srq), 0);
	assert_int_equal(rpma_conn_cfg_set_timeout(cfg, -1), RPMA_E_INVAL);
	assert_int_equal(rpma_conn_cfg_set_srq(cfg, NULL), RPMA_E_INVAL);

	assert_int_equal(GET(int, rpma_conn_cfg_get_timeout), INT_MAX);
	assert_int_equal(GET(uint32_t, rpma_conn_cfg_get_cq_size), UINT32_MAX);
	assert_int_equal(GET(uint32_t, rpma_conn_cfg_get_rcq_size), 2);
	assert_int_equal(GET(uint32_t, rpma_conn_cfg_get_sq_size), 3);
	assert_int_equal(GET(uint32_t, rpma_conn_cfg_get_rq_size), 0);
	assert_true(GET(bool, rpma_conn_cfg_get_compl_channel));
	assert_ptr_equal(GET(struct rpma_srq *, rpma_conn_cfg_get_srq), srq);
	assert_int_equal(rpma_conn_cfg_delete(&cfg), 0);
}

static void a_timeout_of_zero_is_allowed(void **state)
{
	struct rpma_conn_cfg *cfg = NULL;

	assert_int_equal(rpma_conn_cfg_new(&cfg), 0);
	assert_int_equal(rpma_conn_cfg_set_timeout(cfg, 0), 0);
	assert_int_equal(GET(int, rpma_conn_cfg_get_timeout), 0);
	assert_int_equal(rpma_conn_cfg_delete(&cfg), 0);
}

static void a_shared_receive_queue_has_twenty_of_each(void **state)
{
	struct rpma_srq_cfg *cfg = NULL;

	assert_int_equal(rpma_srq_cfg_new(&cfg), 0);
	assert_int_equal(GET(uint32_t, rpma_srq_cfg_get_rq_size), 20);
	assert_int_equal(GET(uint32_t, rpma_srq_cfg_get_rcq_size), 20);
	assert_int_equal(rpma_srq_cfg_set_rq_size(cfg, 5), 0);
	assert_int_equal(rpma_srq_cfg_set_rcq_size(cfg, 0), 0);
	assert_int_equal(GET(uint32_t, rpma_srq_cfg_get_rq_size), 5);
	assert_int_equal(GET(uint32_t, rpma_srq_cfg_get_rcq_size), 0);
	assert_int_equal(rpma_srq_cfg_delete(&cfg), 0);
	assert_null(cfg);
}

static void a_peer_does_not_write_directly_unless_it_says_so(void **state)
{
	struct rpma_peer_cfg *cfg = NULL;

	assert_int_equal(rpma_peer_cfg_new(&cfg), 0);
	assert_false(GET(bool, rpma_peer_cfg_get_direct_write_to_pmem));
	assert_int_equal(rpma_peer_cfg_set_direct_write_to_pmem(cfg, true), 0);
	assert_true(GET(bool, rpma_peer_cfg_get_direct_write_to_pmem));
	assert_int_equal(rpma_peer_cfg_set_direct_write_to_pmem(cfg, false), 0);
	assert_false(GET(bool, rpma_peer_cfg_get_direct_write_to_pmem));
	assert_int_equal(rpma_peer_cfg_delete(&cfg), 0);
	assert_null(cfg);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_connection_has_the_documented_defaults),
		cmocka_unit_test(a_connection_keeps_what_was_set_and_nothing_else_changes),
		cmocka_unit_test(a_timeout_of_zero_is_allowed),
		cmocka_unit_test(a_shared_receive_queue_has_twenty_of_each),
		cmocka_unit_test(a_peer_does_not_write_directly_unless_it_says_so),
	};

	return cmocka_run_group_tests_name("configurations", tests, NULL, NULL);
}
