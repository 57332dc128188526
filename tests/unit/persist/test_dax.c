/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Each cache line of a DAX range is written back, and a fence follows before the write-back is
 * reported as done. The test replaces libpmem's two calls, because a machine without persistent
 * memory cannot show this order.
 */
#include "helpers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <libpmem.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { LINE = 64, SPAN = 1 << 20 };

/* Threads of the pool write these; the thread that waits for the pool reads them. */
static unsigned char *memory;
static atomic_uchar flushed[SPAN / LINE];
static atomic_uint lines_since_fence, fences;

void pmem_flush(const void *addr, size_t len)
{
	uintptr_t from = ((uintptr_t)addr - (uintptr_t)memory) / LINE;
	uintptr_t to = ((uintptr_t)addr + len - 1 - (uintptr_t)memory) / LINE;

	for (uintptr_t i = from; i <= to; i++) {
		atomic_store(&flushed[i], 1);
		atomic_fetch_add(&lines_since_fence, 1);
	}
}

void pmem_drain(void)
{
	atomic_store(&lines_since_fence, 0);
	atomic_fetch_add(&fences, 1);
}

static void expect_lines(size_t at, size_t len)
{
	for (size_t i = at / LINE; i <= (at + len - 1) / LINE; i++)
		assert_int_equal(atomic_load(&flushed[i]), 1);
	assert_true(atomic_load(&fences) > 0);
	assert_int_equal(atomic_load(&lines_since_fence), 0);
}

static void flush_and_look(size_t at, size_t len)
{
	struct fake_dax d;

	memory = map_anonymous(SPAN);
	memset(flushed, 0, sizeof(flushed));
	atomic_store(&fences, 0);
	fake_dax_init(&d, memory, SPAN);
	assert_int_equal(flush(&d.region, memory + at, len), 0);
	expect_lines(at, len);
	munmap(memory, SPAN);
}

static void a_short_dax_range_is_written_back_line_by_line_and_fenced(void **state)
{
	flush_and_look(0, 1);
	flush_and_look(63, 2);
	flush_and_look(100, 4096);
	flush_and_look(SPAN - 1, 1);
}

static void a_long_dax_range_is_written_back_by_the_pool_and_fenced(void **state)
{
	flush_and_look(0, SPAN);
	flush_and_look(77, SPAN - 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_short_dax_range_is_written_back_line_by_line_and_fenced),
		cmocka_unit_test(a_long_dax_range_is_written_back_by_the_pool_and_fenced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
