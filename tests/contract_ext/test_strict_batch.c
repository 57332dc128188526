/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_strict_batch.c -- a flush of volatile memory in the middle of a batch fails. The batch's
 * later ordered operations are not executed and report the flush's reason. Other operations that
 * promise persistence fail with the same reason.
 */
#include "ends_ext.h"

static void a_commit_after_a_failed_flush_never_happens(void **state)
{
	char tokens[2], text[256];
	struct rpma_batch *b;
	struct ibv_wc wc;
	struct ends d;

	ends_open(&d, NULL);
	OK(rpma_batch_new(d.cli, 3, &b));
	ends_fill(d.cli_buf, 64, 1);
	OK(rpma_batch_write(b, d.at_srv, 0, d.cli_mr, 0, 64, RPMA_F_COMPLETION_ON_ERROR, NULL));
	OK(rpma_batch_flush(b, d.at_srv, 0, 64, RPMA_FLUSH_TYPE_PERSISTENT,
			    RPMA_F_COMPLETION_ON_ERROR, &tokens[0]));
	OK(rpma_batch_atomic_write(b, d.at_srv, 4096, "1234567", RPMA_F_COMPLETION_ON_ERROR,
				   &tokens[1]));
	OK(rpma_batch_post(b));
	for (size_t i = 0; i < 2; i++) {
		ends_wait_wc(d.cli, &wc);
		assert_ptr_equal((void *)(uintptr_t)wc.wr_id, &tokens[i]);
		assert_int_equal(wc.status, i ? IBV_WC_WR_FLUSH_ERR : IBV_WC_REM_OP_ERR);
		assert_int_equal(rpma_wc_get_reason(d.cli, &wc, NULL), RPMA_REASON_VOLATILE);
		OK(rpma_wc_explain(d.cli, &wc, text, sizeof(text)));
		assert_non_null(strstr(text, "RPMA_STRICT_PERSIST"));
	}
	assert_true(ends_is_zero(d.srv_buf + 4096, 8));
	OK(rpma_batch_delete(&b));
	ends_close(&d);
}

static void volatile_memory_is_not_verified_but_can_be_asked_about(void **state)
{
	enum rpma_durability class = RPMA_DURABILITY_UNKNOWN;
	struct rpma_digest digest = {.len = 77};
	struct ibv_wc wc;
	struct ends d;

	ends_open(&d, NULL);
	OK(rpma_query_durability(d.cli, d.at_srv, 0, 64, &class, RPMA_F_COMPLETION_ALWAYS, &d));
	ends_expect_wc(d.cli, (enum ibv_wc_opcode)RPMA_WC_QUERY, &d);
	assert_int_equal(class, RPMA_DURABILITY_VOLATILE);
	OK(rpma_verify(d.cli, d.at_srv, 0, 64, RPMA_DIGEST_AUTO, &digest, RPMA_F_COMPLETION_ALWAYS,
		       &d));
	ends_wait_wc(d.cli, &wc);
	assert_int_equal(wc.status, IBV_WC_REM_OP_ERR);
	assert_int_equal(rpma_wc_get_reason(d.cli, &wc, NULL), RPMA_REASON_VOLATILE);
	assert_int_equal(digest.len, 77);
	ends_close(&d);
}

static void a_flush_of_everything_fails_for_volatile_bytes(void **state)
{
	struct ibv_wc wc;
	struct ends d;

	ends_open(&d, NULL);
	OK(rpma_flush_all(d.cli, RPMA_FLUSH_TYPE_PERSISTENT, RPMA_F_COMPLETION_ALWAYS, &d));
	/* no write has completed yet */
	ends_expect_wc(d.cli, (enum ibv_wc_opcode)RPMA_WC_FLUSH, &d);
	OK(rpma_write(d.cli, d.at_srv, 0, d.cli_mr, 0, 64, RPMA_F_COMPLETION_ON_ERROR, NULL));
	OK(rpma_flush_all(d.cli, RPMA_FLUSH_TYPE_PERSISTENT, RPMA_F_COMPLETION_ALWAYS, &d));
	ends_wait_wc(d.cli, &wc);
	assert_int_equal(wc.status, IBV_WC_REM_OP_ERR);
	assert_int_equal(rpma_wc_get_reason(d.cli, &wc, NULL), RPMA_REASON_VOLATILE);
	ends_close(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_commit_after_a_failed_flush_never_happens),
		cmocka_unit_test(volatile_memory_is_not_verified_but_can_be_asked_about),
		cmocka_unit_test(a_flush_of_everything_fails_for_volatile_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
