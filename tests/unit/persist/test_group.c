/* SPDX-License-Identifier: BSD-3-Clause */
/* test_group.c -- waiting flushes of one file share a write-back, and each flush keeps its
 * guarantee. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gate.h"
#include "helpers.h"
#include "softrnic/persist/group.h"

enum { PAGES = 64, SLOTS = 2 };

/* --- a file, and flushes of its pages ------------------------------------------------------ */

static struct backed m;
static struct flush jobs[PAGES]; /* static, because the jobs still run after a failed assertion */

static int file_init(void **state)
{
	if (!here_is_persistent())
		skip();
	backed_init(&m, NULL, PAGES * PAGE);
	assert_int_equal(flush(m.region, m.p, m.size), 0);
	return 0;
}

static int file_fini(void **state)
{
	gate_set(false);
	backed_fini(&m);
	return 0;
}

static void start(size_t i)
{
	m.p[i * PAGE]++;
	flush_start(&jobs[i], m.region, m.p + i * PAGE, PAGE);
}

/* Shut the gate, and fill both slots of the file with flushes of pages 0 and 1. */
static void shut_and_fill(void)
{
	gate_set(true);
	for (size_t i = 0; i < SLOTS; i++) {
		start(i);
		gate_await((unsigned)i + 1);
	}
}

static void expect(size_t from, size_t to, int status)
{
	for (size_t i = from; i < to; i++)
		assert_int_equal(flush_wait(&jobs[i], 20000), status);
}

static void flushes_that_wait_share_a_write_back(void **state)
{
	shut_and_fill();
	for (size_t i = SLOTS; i < PAGES; i++)
		start(i);
	assert_int_equal(gate_begun(), SLOTS);
	gate_set(false);
	expect(0, PAGES, 0);
	assert_in_range(gate_begun(), SLOTS + 1, SLOTS + 2);
	assert_int_equal(dirty_kib(m.p), 0);
}

/* Page 0 is written back, and becomes dirty again before this write-back ends. */
static void no_flush_is_answered_by_a_write_back_that_began_before_it(void **state)
{
	struct flush again;
	unsigned before;

	shut_and_fill();
	assert_int_equal(dirty_kib(m.p), 0);
	m.p[0]++;
	before = gate_begun();
	flush_start(&again, m.region, m.p, PAGE);
	assert_int_equal(flush_wait(&again, 50), -ETIMEDOUT);
	assert_true(dirty_kib(m.p) > 0);
	gate_set(false);
	assert_int_equal(flush_wait(&again, 20000), 0);
	assert_true(gate_begun() > before);
	assert_int_equal(dirty_kib(m.p), 0);
	expect(0, SLOTS, 0);
}

static void a_range_past_the_end_fails_no_other(void **state)
{
	shut_and_fill();
	for (size_t i = SLOTS; i < PAGES; i++)
		start(i);
	assert_int_equal(ftruncate(m.fd, (PAGES - 8) * (off_t)PAGE), 0);
	gate_set(false);
	expect(0, PAGES - 8, 0);
	expect(PAGES - 8, PAGES, -EFAULT);
	m.p[0]++;
	assert_int_equal(flush(m.region, m.p, PAGE), 0);
}

static void a_failure_is_that_of_all_and_of_the_file(void **state)
{
	shut_and_fill();
	for (size_t i = SLOTS; i < PAGES; i++)
		start(i);
	gate_fail(EIO);
	gate_set(false);
	expect(SLOTS, PAGES, -EIO);
	/* each job ended before or after the failure, so either status is right */
	for (size_t i = 0; i < SLOTS; i++)
		assert_int_not_equal(flush_wait(&jobs[i], 20000), -ETIMEDOUT);
	gate_fail(0);
	assert_int_equal(flush(m.region, m.p, PAGE), -EIO);
}

static void one_that_is_given_up_meanwhile_ends_alone(void **state)
{
	shut_and_fill();
	for (size_t i = SLOTS; i < 8; i++)
		start(i);
	persist_cancel(&jobs[4].job); /* this job only waits, so it ends immediately */
	assert_int_equal(flush_wait(&jobs[4], 0), -ECANCELED);
	persist_cancel(&jobs[0].job); /* this job is running */
	assert_int_equal(flush_wait(&jobs[0], 0), -ETIMEDOUT);
	gate_set(false);
	expect(0, 1, -ECANCELED);
	expect(1, 4, 0);
	expect(5, 8, 0);
}

/* A digest covers bytes that are read after a write-back; other flushes may share this
 * write-back. */
static void a_digest_that_waits_shares_it_too(void **state)
{
	struct vext_digest d;
	struct flush sum;

	shut_and_fill();
	for (size_t i = SLOTS; i < 8; i++)
		start(i);
	digest_start(&sum, m.region, m.p + 8 * PAGE, PAGE, VEXT_DIGEST_CRC32C, &d);
	gate_set(false);
	expect(0, 8, 0);
	assert_int_equal(flush_wait(&sum, 20000), 0);
	assert_in_range(gate_begun(), SLOTS + 1, SLOTS + 2);
	assert_digest(&d, VEXT_DIGEST_CRC32C, d.source, m.p + 8 * PAGE, PAGE);
}

/* --- how far apart flushes may be to share a write-back ------------------------------------ */

/* Needs the pool's lock. */
static void set_reach(uint64_t reach)
{
	persist_atfork_prepare();
	m.region->ranges[0].file->reach = reach;
	persist_atfork_parent();
}

/* The last page is too far from the other pages. */
static void what_is_out_of_reach_is_written_back_alone(void **state)
{
	shut_and_fill();
	set_reach(GROUP_NEAR);
	for (size_t i = SLOTS; i < 8; i++)
		start(i);
	start(PAGES - 1);
	gate_forget_longest();
	gate_set(false);
	expect(0, 8, 0);
	expect(PAGES - 1, PAGES, 0);
	assert_int_equal(gate_longest(), 6 * PAGE);
}

static void measure(struct file *f, unsigned count, uint64_t took_ns)
{
	struct group g = {.count = count, .bytes = count * PAGE, .shared = true};

	group_measure(&g, f, took_ns);
}

static void groups_that_take_long_reach_less_far(void **state)
{
	struct file f = {.reach = 0};

	measure(&f, 4, 1000000); /* the first measurement, so there is no earlier one */
	assert_int_equal(f.reach, GROUP_SLICE);
	measure(&f, 1, 100);
	measure(&f, 4, 399);
	assert_int_equal(f.reach, GROUP_SLICE);
	for (int i = 0; i < 20; i++)
		measure(&f, 4, 401);
	assert_int_equal(f.reach, GROUP_NEAR);
	measure(&f, 4, 300);
	assert_int_equal(f.reach, 2 * GROUP_NEAR);
	for (int i = 0; i < 20; i++)
		measure(&f, 4, 300);
	assert_int_equal(f.reach, GROUP_SLICE);
}

static void long_ranges_say_nothing_about_the_reach(void **state)
{
	struct group g = {.count = 2, .bytes = GROUP_SLICE, .shared = true};
	struct file f = {.single_ns = 100};

	group_measure(&g, &f, 1000000);
	assert_int_equal(f.reach, 0);
}

#define WITH_FILE(test) cmocka_unit_test_setup_teardown(test, file_init, file_fini)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FILE(flushes_that_wait_share_a_write_back),
		WITH_FILE(no_flush_is_answered_by_a_write_back_that_began_before_it),
		WITH_FILE(a_range_past_the_end_fails_no_other),
		WITH_FILE(a_failure_is_that_of_all_and_of_the_file),
		WITH_FILE(one_that_is_given_up_meanwhile_ends_alone),
		WITH_FILE(a_digest_that_waits_shares_it_too),
		WITH_FILE(what_is_out_of_reach_is_written_back_alone),
		cmocka_unit_test(groups_that_take_long_reach_less_far),
		cmocka_unit_test(long_ranges_say_nothing_about_the_reach),
	};

	return cmocka_run_group_tests_name("persist-group", tests, NULL, NULL);
}
