/* SPDX-License-Identifier: BSD-3-Clause */
/* test_large.c -- half a GiB in one operation, without checksums: the device receives the bytes
 * directly into the region, without a buffer of this size. */
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ends.h"

#define SLACK ((size_t)8 << 20)
#define STEP  (1u << 20)

/* The thread sanitizer makes memory accesses slow, and its shadow of the regions would count as
 * memory. */
#ifdef __SANITIZE_THREAD__
#define SIZE       ((size_t)64 << 20)
#define HAS_SHADOW 1
#else
#define SIZE       ((size_t)512 << 20)
#define HAS_SHADOW 0
#endif

/* Resident anonymous memory of this process, without shared mappings such as the regions. */
static size_t private_resident(void)
{
	char line[128];
	size_t kb = 0;
	FILE *f = fopen("/proc/self/status", "r");

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "RssAnon: %zu", &kb) == 1)
			break;
	fclose(f);
	return kb * 1024;
}

/* Fill each step with a different value by the fast memset(), so that the fast memcmp() can check
 * the bytes. */
static void fill_steps(uint8_t *p, size_t size)
{
	for (size_t at = 0; at < size; at += STEP) {
		memset(p + at, (int)(at / STEP), STEP);
		memcpy(p + at, &at, sizeof(at));
	}
}

static void large_write_needs_no_memory_but_the_regions(void **state)
{
	struct ends_opts opts = {.buf_size = SIZE};
	size_t before;
	struct ends d;

	ends_open(&d, &opts);
	fill_steps(d.cli_buf, SIZE);
	before = private_resident();
	OK(rpma_write(d.cli, d.at_srv, 0, d.cli_mr, 0, SIZE, RPMA_F_COMPLETION_ON_ERROR, NULL));
	ends_flush(d.cli, d.at_srv, 0, SIZE);
	assert_true(HAS_SHADOW || private_resident() < before + SLACK);
	assert_memory_equal(d.srv_buf, d.cli_buf, SIZE);
	ends_close(&d);
}

static void large_read_needs_no_memory_but_the_regions(void **state)
{
	struct ends_opts opts = {.buf_size = SIZE / 2};
	size_t before;
	struct ends d;

	ends_open(&d, &opts);
	fill_steps(d.srv_buf, SIZE / 2);
	before = private_resident();
	OK(rpma_read(d.cli, d.cli_mr, 0, d.at_srv, 0, SIZE / 2, RPMA_F_COMPLETION_ALWAYS, &d));
	ends_expect_wc(d.cli, IBV_WC_RDMA_READ, &d);
	assert_true(HAS_SHADOW || private_resident() < before + SLACK);
	assert_memory_equal(d.srv_buf, d.cli_buf, SIZE / 2);
	ends_close(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(large_write_needs_no_memory_but_the_regions),
		cmocka_unit_test(large_read_needs_no_memory_but_the_regions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
