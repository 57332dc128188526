/* SPDX-License-Identifier: BSD-3-Clause */
/* test_abandoned.c -- the initiator of a long digest disconnects before the digest is complete. */
#include <sys/mman.h>

#include "ends_ext.h"

#define HUGE_LEN (UINT32_MAX - 4095u) /* the longest possible digest, in pages */

/* No test writes to this memory, so the kernel's page of zeros backs all of it. */
static uint8_t *map_zeros(void)
{
	void *p = mmap(NULL, HUGE_LEN, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	return p;
}

static void wait_for_counter(const struct rpma_conn *conn, const char *name)
{
	for (int i = 0; i < 20000 && !ends_counter(conn, name); i++)
		ends_sleep_ms(1);
	assert_int_equal(ends_counter(conn, name), 1);
}

/* In the counters a digest is a write-back, and an abandoned digest is a failed write-back. */
static void a_digest_ends_with_its_connection(void **state)
{
	uint8_t *zeros = map_zeros();
	struct rpma_mr_remote *remote;
	struct rpma_digest digest;
	struct rpma_mr_local *mr;
	struct ends d;

	ends_open(&d, NULL);
	mr = ends_reg(&d, zeros, HUGE_LEN);
	remote = ends_remote(mr);
	OK(rpma_verify(d.cli, remote, 0, HUGE_LEN, RPMA_DIGEST_BLAKE2B, &digest,
		       RPMA_F_COMPLETION_ON_ERROR, NULL));
	wait_for_counter(d.srv, "writebacks");
	rpma_conn_delete(&d.cli);
	ends_expect_event(d.srv, RPMA_CONN_CLOSED);
	wait_for_counter(d.srv, "writeback_failures");
	OK(rpma_mr_remote_delete(&remote));
	OK(rpma_mr_dereg(&mr));
	ends_close(&d);
	munmap(zeros, HUGE_LEN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_digest_ends_with_its_connection),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
