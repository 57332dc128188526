/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * one_sendmsg.c -- post one batch of 16 writes of 1 KiB and a flush, between two calls of
 * getppid(). one_sendmsg.sh finds these calls in strace's output.
 */
#include <unistd.h>

#include "ends_ext.h"

enum { WRITES = 16, EACH = 1024 };

static void a_batch_is_posted(void **state)
{
	struct rpma_conn_cfg *cfg = ends_cfg(0, 0, WRITES + 1, 0);
	struct ends_opts opts = {.cli_cfg = cfg};
	struct rpma_batch *b;
	struct ends d;

	ends_open(&d, &opts);
	OK(rpma_batch_new(d.cli, WRITES + 1, &b));
	for (size_t i = 0; i < WRITES; i++)
		OK(rpma_batch_write(b, d.at_srv, 2 * i * EACH, d.cli_mr, i * EACH, EACH,
				    RPMA_F_COMPLETION_ON_ERROR, NULL));
	OK(rpma_batch_flush(b, d.at_srv, 0, (size_t)2 * WRITES * EACH, RPMA_FLUSH_TYPE_VISIBILITY,
			    RPMA_F_COMPLETION_ALWAYS, &d));
	getppid();
	OK(rpma_batch_post(b));
	getppid();
	ends_expect_wc(d.cli, ends_flush_opcode(), &d);
	OK(rpma_batch_delete(&b));
	ends_close(&d);
	OK(rpma_conn_cfg_delete(&cfg));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(a_batch_is_posted)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
