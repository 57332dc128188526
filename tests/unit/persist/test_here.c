/* SPDX-License-Identifier: BSD-3-Clause */
/* test_here.c -- a short write-back that the submitting thread makes itself, and when it does
 * not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "gate.h"
#include "helpers.h"
#include "softrnic/persist/group.h"

enum { PAGES = 64, LIMIT_MS = 20000 };

static struct backed m;
static struct flush job, other, third; /* they outlive a failed assertion */

static struct file *file_behind(void)
{
	return m.region->ranges[0].file;
}

/* Whatever the disk of this machine takes. */
static void seem_quick(uint64_t single_ns, uint64_t calm_at)
{
	persist_atfork_prepare(); /* the pool's lock */
	file_behind()->single_ns = single_ns;
	file_behind()->calm_at = calm_at;
	persist_atfork_parent();
}

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
	gate_fail(0);
	gate_set(false);
	backed_fini(&m);
	return 0;
}

/* Dirty a page, and submit the flush of so many from there. Returns whether it is this thread's. */
static bool submit(struct flush *f, size_t page, size_t pages)
{
	bool here;

	m.p[page * PAGE]++;
	flush_start_here(f, m.region, m.p + page * PAGE, pages * PAGE, &here);
	return here;
}

/* The same, whatever those before it took. */
static bool submit_to_quick(struct flush *f, size_t page, size_t pages)
{
	seem_quick(1000, 0);
	return submit(f, page, pages);
}

static void it_is_on_the_medium_and_no_other_thread_was_needed(void **state)
{
	assert_true(submit_to_quick(&job, 3, 1));
	assert_int_equal(flush_wait(&job, 0), -ETIMEDOUT);
	assert_true(dirty_kib(m.p) > 0);
	persist_run_here();
	assert_int_equal(flush_wait(&job, 0), 0);
	assert_int_equal(gate_thread(), gettid());
	assert_int_equal(dirty_kib(m.p), 0);
}

static void a_long_range_is_the_pools(void **state)
{
	assert_true(submit_to_quick(&job, 0, GROUP_NEAR / PAGE));
	persist_run_here();
	assert_int_equal(flush_wait(&job, 0), 0);
	assert_false(submit_to_quick(&job, 0, GROUP_NEAR / PAGE + 1));
	assert_int_equal(flush_wait(&job, LIMIT_MS), 0);
	assert_int_not_equal(gate_thread(), gettid());
}

static void a_slow_or_unknown_file_is_the_pools(void **state)
{
	static const struct {
		uint64_t single_ns, calm_at;
	} slow[] = {{0, 0}, {NSEC_PER_MS, 0}, {1000, CLOCK_NEVER}};

	for (size_t i = 0; i < sizeof(slow) / sizeof(slow[0]); i++) {
		seem_quick(slow[i].single_ns, slow[i].calm_at);
		assert_false(submit(&job, i, 1));
		assert_int_equal(flush_wait(&job, LIMIT_MS), 0);
	}
	assert_int_equal(dirty_kib(m.p), 0);
}

static void a_thread_has_one_at_a_time(void **state)
{
	assert_true(submit_to_quick(&job, 0, 1));
	assert_false(submit(&other, 1, 1));
	persist_run_here();
	assert_int_equal(flush_wait(&job, LIMIT_MS), 0);
	assert_int_equal(flush_wait(&other, LIMIT_MS), 0);
	assert_int_equal(dirty_kib(m.p), 0);
}

/* Then it may share the next write-back. */
static void beside_a_write_back_of_the_same_file_it_is_the_pools(void **state)
{
	gate_set(true);
	m.p[0]++;
	flush_start(&job, m.region, m.p, PAGE);
	gate_await(1);
	assert_false(submit_to_quick(&other, 1, 1));
	gate_set(false);
	assert_int_equal(flush_wait(&job, LIMIT_MS), 0);
	assert_int_equal(flush_wait(&other, LIMIT_MS), 0);
	assert_int_equal(dirty_kib(m.p), 0);
}

static void *run_here(void *page)
{
	bool here = submit_to_quick(&job, (uintptr_t)page, 1);

	if (here)
		persist_run_here();
	return here ? &job : NULL;
}

/* A thread writes page 0 back by itself; the gate holds it. */
static pthread_t run_and_hold(void)
{
	pthread_t thread;

	gate_set(true);
	assert_int_equal(pthread_create(&thread, NULL, run_here, NULL), 0);
	gate_await(1);
	return thread;
}

static void let_go(pthread_t thread)
{
	void *ran;

	gate_set(false);
	pthread_join(thread, &ran);
	assert_non_null(ran);
}

/* The kernel may report to the one what failed for the other. */
static void success_beside_it_counts_when_it_has_succeeded_too(void **state)
{
	pthread_t thread = run_and_hold();

	m.p[PAGE]++;
	flush_start(&other, m.region, m.p + PAGE, PAGE);
	gate_await(2);
	m.p[2 * PAGE]++;
	flush_start(&third, m.region, m.p + 2 * PAGE, PAGE); /* waits for a slot */
	assert_int_equal(flush_wait(&other, 50), -ETIMEDOUT);
	assert_int_equal(flush_wait(&third, 0), -ETIMEDOUT);
	let_go(thread);
	assert_int_equal(flush_wait(&job, LIMIT_MS), 0);
	assert_int_equal(flush_wait(&other, LIMIT_MS), 0);
	assert_int_equal(flush_wait(&third, LIMIT_MS), 0);
	assert_int_equal(dirty_kib(m.p), 0);
}

static void its_failure_is_that_of_the_file(void **state)
{
	struct persist_region *again = region_of(m.p, m.size);

	gate_fail(EIO);
	assert_true(submit_to_quick(&job, 0, 1));
	persist_run_here();
	gate_fail(0);
	assert_int_equal(flush_wait(&job, 0), -EIO);
	assert_int_equal(flush(again, m.p + PAGE, PAGE), -EIO);
	assert_false(submit(&job, 0, 1));
	assert_int_equal(flush_wait(&job, 0), -EIO);
	persist_region_put(again);
}

static void a_file_that_failed_before_it_runs_fails_it(void **state)
{
	assert_true(submit_to_quick(&job, 0, 1));
	file_fail(file_behind(), -ENOSPC);
	gate_set(true);
	persist_run_here();
	assert_int_equal(gate_begun(), 0);
	assert_int_equal(flush_wait(&job, 0), -ENOSPC);
}

static void past_the_end_of_the_file_it_fails_alone(void **state)
{
	bool here;

	assert_int_equal(ftruncate(m.fd, (off_t)PAGE), 0);
	seem_quick(1000, 0);
	flush_start_here(&job, m.region, m.p + PAGE, PAGE, &here);
	assert_true(here);
	persist_run_here();
	assert_int_equal(flush_wait(&job, 0), -EFAULT);
	assert_true(submit_to_quick(&job, 0, 1));
	persist_run_here();
	assert_int_equal(flush_wait(&job, 0), 0);
}

/* Its region may go at once; the bytes are written back all the same. */
static void it_can_be_abandoned(void **state)
{
	pthread_t thread = run_and_hold();

	assert_true(persist_abandon(&job.job));
	assert_int_equal(flush_wait(&job, 0), -ETIMEDOUT);
	let_go(thread);
	assert_int_equal(flush_wait(&job, 0), -ECANCELED);
	assert_int_equal(dirty_kib(m.p), 0);
	assert_true(submit_to_quick(&job, 0, 1));
	persist_run_here();
	assert_int_equal(flush_wait(&job, 0), 0);
}

/* What it cost others that it took so long is bounded by what follows. */
static void after_a_slow_one_the_file_is_the_pools_for_a_while(void **state)
{
	struct group g = {.count = 1, .bytes = PAGE, .shared = true};
	struct file f = {.single_ns = 1000};
	uint64_t start = clock_now_ns();

	group_measure(&g, &f, NSEC_PER_MS);
	assert_int_equal(f.calm_at, 0);
	group_measure(&g, &f, 100 * NSEC_PER_MS);
	assert_true(f.calm_at >= start + 50 * 100 * NSEC_PER_MS);
}

#define WITH_FILE(test) cmocka_unit_test_setup_teardown(test, file_init, file_fini)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FILE(it_is_on_the_medium_and_no_other_thread_was_needed),
		WITH_FILE(a_long_range_is_the_pools),
		WITH_FILE(a_slow_or_unknown_file_is_the_pools),
		WITH_FILE(a_thread_has_one_at_a_time),
		WITH_FILE(beside_a_write_back_of_the_same_file_it_is_the_pools),
		WITH_FILE(success_beside_it_counts_when_it_has_succeeded_too),
		WITH_FILE(its_failure_is_that_of_the_file),
		WITH_FILE(a_file_that_failed_before_it_runs_fails_it),
		WITH_FILE(past_the_end_of_the_file_it_fails_alone),
		WITH_FILE(it_can_be_abandoned),
		cmocka_unit_test(after_a_slow_one_the_file_is_the_pools_for_a_while),
	};

	return cmocka_run_group_tests_name("persist-here", tests, NULL, NULL);
}
