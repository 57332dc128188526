/* SPDX-License-Identifier: BSD-3-Clause */
/* test_here.c -- the submitting thread makes a short write-back itself; cases in which it must
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

#include "gate.h"
#include "helpers.h"
#include "softrnic/persist/group.h"

enum { PAGES = 64, LIMIT_MS = 20000 };

static struct backed m;
/* static, because the jobs still run after a failed assertion */
static struct flush job, other, third;

static bool thread_starts_fail;

int __real_thread_start(pthread_t *thread, size_t stack, void *(*fn)(void *arg), void *arg);
int __wrap_thread_start(pthread_t *thread, size_t stack, void *(*fn)(void *arg), void *arg);

int __wrap_thread_start(pthread_t *thread, size_t stack, void *(*fn)(void *arg), void *arg)
{
	return thread_starts_fail ? -EAGAIN : __real_thread_start(thread, stack, fn, arg);
}

static struct file *file_behind(void)
{
	return m.region->ranges[0].file;
}

/* Open a file while the pool has no thread yet. */
static int file_init_alone(void **state)
{
	if (!here_is_persistent())
		skip();
	backed_init(&m, NULL, PAGES * PAGE);
	return 0;
}

static int file_init(void **state)
{
	file_init_alone(state);
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

/*
 * Dirty a page, and submit a flush of `pages` pages that begins with this page. Returns true if
 * this thread makes the write-back.
 */
static bool submit(struct flush *f, size_t page, size_t pages)
{
	bool here;

	m.p[page * PAGE]++;
	flush_start_here(f, m.region, m.p + page * PAGE, pages * PAGE, &here);
	return here;
}

static void it_is_on_the_medium_and_no_other_thread_was_needed(void **state)
{
	assert_true(submit(&job, 3, 1));
	assert_int_equal(flush_wait(&job, 0), -ETIMEDOUT);
	assert_true(dirty_kib(m.p) > 0);
	persist_run_here();
	assert_int_equal(flush_wait(&job, 0), 0);
	assert_int_equal(gate_thread(), gettid());
	assert_int_equal(dirty_kib(m.p), 0);
}

/* The file has no content, so no page is dirty: only the length decides. */
static void more_than_a_slice_is_the_pools(void **state)
{
	bool here;

	backed_fini(&m);
	m = (struct backed){.size = GROUP_SLICE + PAGE,
			    .fd = file_create(NULL, GROUP_SLICE + PAGE)};
	m.p = map_file(m.fd, m.size);
	m.region = region_of(m.p, m.size);
	m.p[0]++;
	flush_start_here(&job, m.region, m.p, GROUP_SLICE, &here);
	assert_true(here);
	persist_run_here();
	assert_int_equal(flush_wait(&job, 0), 0);
	assert_int_equal(gate_thread(), gettid());
	flush_start_here(&job, m.region, m.p, GROUP_SLICE + PAGE, &here);
	assert_false(here);
	assert_int_equal(flush_wait(&job, LIMIT_MS), 0);
	assert_int_not_equal(gate_thread(), gettid());
}

static void a_thread_has_one_at_a_time(void **state)
{
	assert_true(submit(&job, 0, 1));
	assert_false(submit(&other, 1, 1));
	persist_run_here();
	assert_int_equal(flush_wait(&job, LIMIT_MS), 0);
	assert_int_equal(flush_wait(&other, LIMIT_MS), 0);
	assert_int_equal(dirty_kib(m.p), 0);
}

static void *run_here(void *page)
{
	bool here = submit(page ? &other : &job, (uintptr_t)page, 1);

	if (here)
		persist_run_here();
	return here ? &job : NULL;
}

/* Start a thread that writes page 0 back itself, and hold it at the gate. */
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

/* The pool can start no thread. Other threads have taken both slots, and continue with the waiting
 * jobs. */
static void where_no_thread_can_be_started_they_go_on(void **state)
{
	pthread_t first, second;
	int waits;

	thread_starts_fail = true;
	first = run_and_hold();
	assert_int_equal(pthread_create(&second, NULL, run_here, (void *)1), 0);
	gate_await(2);
	m.p[2 * PAGE]++;
	flush_start(&third, m.region, m.p + 2 * PAGE, PAGE);
	waits = flush_wait(&third, 50);
	let_go(first);
	pthread_join(second, NULL);
	thread_starts_fail = false;
	assert_int_equal(waits, -ETIMEDOUT);
	assert_int_equal(flush_wait(&job, LIMIT_MS), 0);
	assert_int_equal(flush_wait(&other, LIMIT_MS), 0);
	assert_int_equal(flush_wait(&third, 0), 0);
}

/* Both slots are busy: the flush shares the next write-back with the flushes that already wait. */
static void where_others_wait_it_is_the_pools(void **state)
{
	pthread_t thread = run_and_hold();

	m.p[PAGE]++;
	flush_start(&other, m.region, m.p + PAGE, PAGE);
	gate_await(2);
	assert_false(submit(&third, 2, 1));
	assert_int_equal(flush_wait(&third, 50), -ETIMEDOUT);
	let_go(thread);
	assert_int_equal(flush_wait(&job, LIMIT_MS), 0);
	assert_int_equal(flush_wait(&other, LIMIT_MS), 0);
	assert_int_equal(flush_wait(&third, LIMIT_MS), 0);
	assert_int_equal(dirty_kib(m.p), 0);
}

static void beside_one_of_the_pool_it_takes_the_other_slot(void **state)
{
	bool ends;

	gate_set(true);
	m.p[0]++;
	flush_start(&other, m.region, m.p, PAGE);
	gate_await(1);
	assert_true(submit(&job, 1, 1));
	gate_set(false);
	persist_run_here();
	ends = flush_wait(&job, LIMIT_MS) == 0 && flush_wait(&other, LIMIT_MS) == 0;
	assert_true(ends);
	assert_int_equal(dirty_kib(m.p), 0);
}

/* The kernel may report one thread's failure to the other thread. */
static void success_beside_it_counts_when_it_has_succeeded_too(void **state)
{
	pthread_t thread = run_and_hold();

	m.p[PAGE]++;
	flush_start(&other, m.region, m.p + PAGE, PAGE);
	gate_await(2);
	m.p[2 * PAGE]++;
	flush_start(&third, m.region, m.p + 2 * PAGE, PAGE); /* the third flush waits for a slot */
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
	assert_true(submit(&job, 0, 1));
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
	assert_true(submit(&job, 0, 1));
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
	flush_start_here(&job, m.region, m.p + PAGE, PAGE, &here);
	assert_true(here);
	persist_run_here();
	assert_int_equal(flush_wait(&job, 0), -EFAULT);
	assert_true(submit(&job, 0, 1));
	persist_run_here();
	assert_int_equal(flush_wait(&job, 0), 0);
}

/* The region may be released immediately; its bytes are still written back. */
static void it_can_be_abandoned(void **state)
{
	pthread_t thread = run_and_hold();

	assert_true(persist_abandon(&job.job));
	assert_int_equal(flush_wait(&job, 0), -ETIMEDOUT);
	let_go(thread);
	assert_int_equal(flush_wait(&job, 0), -ECANCELED);
	assert_int_equal(dirty_kib(m.p), 0);
	assert_true(submit(&job, 0, 1));
	persist_run_here();
	assert_int_equal(flush_wait(&job, 0), 0);
}

#define WITH_FILE(test) cmocka_unit_test_setup_teardown(test, file_init, file_fini)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(where_no_thread_can_be_started_they_go_on,
						file_init_alone, file_fini),
		WITH_FILE(it_is_on_the_medium_and_no_other_thread_was_needed),
		WITH_FILE(more_than_a_slice_is_the_pools),
		WITH_FILE(a_thread_has_one_at_a_time),
		WITH_FILE(where_others_wait_it_is_the_pools),
		WITH_FILE(beside_one_of_the_pool_it_takes_the_other_slot),
		WITH_FILE(success_beside_it_counts_when_it_has_succeeded_too),
		WITH_FILE(its_failure_is_that_of_the_file),
		WITH_FILE(a_file_that_failed_before_it_runs_fails_it),
		WITH_FILE(past_the_end_of_the_file_it_fails_alone),
		WITH_FILE(it_can_be_abandoned),
	};

	return cmocka_run_group_tests_name("persist-here", tests, NULL, NULL);
}
