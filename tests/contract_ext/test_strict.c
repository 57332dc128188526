/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_strict.c -- a persistent flush of volatile memory fails in programs built with this
 * project's header, and succeeds in programs of librpma 1.3; RPMA_STRICT_PERSIST overrides both
 * defaults.
 */
#include "ends_ext.h"
#include "flush_1_3.h"

/* Returns the setting in the environment of this run, otherwise the default. */
static bool is_strict(bool by_default)
{
	const char *value = getenv("RPMA_STRICT_PERSIST");

	return value ? value[0] == '1' : by_default;
}

static void expect_outcome(struct ends *d, bool refused)
{
	char text[256];
	struct ibv_wc wc;

	ends_wait_wc(d->cli, &wc);
	assert_ptr_equal((void *)(uintptr_t)wc.wr_id, d);
	if (!refused) {
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		return;
	}
	assert_int_equal(wc.status, IBV_WC_REM_OP_ERR);
	assert_int_equal(rpma_wc_get_reason(d->cli, &wc, NULL), RPMA_REASON_VOLATILE);
	OK(rpma_wc_explain(d->cli, &wc, text, sizeof(text)));
	assert_non_null(strstr(text, "memory there is volatile"));
	assert_non_null(strstr(text, "RPMA_STRICT_PERSIST=0"));
}

static void a_flush_of_our_header_is_strict(void **state)
{
	struct ends d;

	ends_open(&d, NULL);
	OK(rpma_flush(d.cli, d.at_srv, 0, 64, RPMA_FLUSH_TYPE_PERSISTENT, RPMA_F_COMPLETION_ALWAYS,
		      &d));
	expect_outcome(&d, is_strict(true));
	ends_close(&d);
}

static void a_flush_of_librpma_1_3_is_not(void **state)
{
	struct ends d;

	ends_open(&d, NULL);
	OK(flush_1_3(d.cli, d.at_srv, &d));
	expect_outcome(&d, is_strict(false));
	ends_close(&d);
}

static void a_flush_to_visibility_never_is(void **state)
{
	struct ends d;

	ends_open(&d, NULL);
	OK(rpma_flush(d.cli, d.at_srv, 0, 64, RPMA_FLUSH_TYPE_VISIBILITY, RPMA_F_COMPLETION_ALWAYS,
		      &d));
	expect_outcome(&d, false);
	ends_close(&d);
}

static void batches_and_flushes_of_everything_are_strict(void **state)
{
	struct rpma_batch *b;
	struct ends d;

	ends_open(&d, NULL);
	OK(rpma_batch_new(d.cli, 1, &b));
	OK(rpma_batch_flush(b, d.at_srv, 0, 64, RPMA_FLUSH_TYPE_PERSISTENT,
			    RPMA_F_COMPLETION_ALWAYS, &d));
	OK(rpma_batch_post(b));
	expect_outcome(&d, is_strict(true));
	OK(rpma_batch_delete(&b));
	ends_close(&d);
	ends_open(&d, NULL);
	OK(rpma_write(d.cli, d.at_srv, 0, d.cli_mr, 0, 64, RPMA_F_COMPLETION_ON_ERROR, NULL));
	OK(rpma_flush_all(d.cli, RPMA_FLUSH_TYPE_PERSISTENT, RPMA_F_COMPLETION_ALWAYS, &d));
	expect_outcome(&d, is_strict(true));
	ends_close(&d);
}

static void a_file_is_flushed_by_all(void **state)
{
	struct ends_file file;
	struct ends d;

	ends_open(&d, NULL);
	ends_file_open(&file, &d, 4096);
	OK(rpma_flush(d.cli, file.remote, 0, 64, RPMA_FLUSH_TYPE_PERSISTENT,
		      RPMA_F_COMPLETION_ALWAYS, &d));
	expect_outcome(&d, !file.is_on_medium && is_strict(true));
	ends_file_close(&file);
	ends_close(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_flush_of_our_header_is_strict),
		cmocka_unit_test(a_flush_of_librpma_1_3_is_not),
		cmocka_unit_test(a_flush_to_visibility_never_is),
		cmocka_unit_test(batches_and_flushes_of_everything_are_strict),
		cmocka_unit_test(a_file_is_flushed_by_all),
	};

	return cmocka_run_group_tests_name("strict", tests, NULL, NULL);
}
