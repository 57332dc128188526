/* SPDX-License-Identifier: BSD-3-Clause */
/* test_strict.c -- with RPMA_STRICT_PERSIST=1 a persistent flush of volatile memory fails. */
#include "ends.h"

static void persistent_flush_of_anonymous_memory_fails(void **state)
{
	struct ibv_wc wc = {0};
	struct ends d;

	ends_open(&d, NULL);
	OK(rpma_flush(d.cli, d.at_srv, 0, 4096, RPMA_FLUSH_TYPE_PERSISTENT,
		      RPMA_F_COMPLETION_ALWAYS, &d));
	ends_wait_wc(d.cli, &wc);
	assert_int_equal(wc.status, IBV_WC_REM_OP_ERR);
	assert_ptr_equal((void *)(uintptr_t)wc.wr_id, &d);
	ends_close(&d);
}

static void visible_flush_of_anonymous_memory_succeeds(void **state)
{
	struct ends d;

	ends_open(&d, NULL);
	ends_flush(d.cli, d.at_srv, 0, 4096);
	ends_close(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(persistent_flush_of_anonymous_memory_fails),
		cmocka_unit_test(visible_flush_of_anonymous_memory_succeeds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
