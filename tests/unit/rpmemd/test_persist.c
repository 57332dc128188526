/* SPDX-License-Identifier: BSD-3-Clause */
/* Several threads write one pool back: a failure counts for all write-backs that are running. */
#include "lib/unit.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "rpmemd/persist.h"

#define SIZE (16 * 4096u)

static struct persist persist;
static uint8_t *memory;

/* Replaces the kernel: calls arrive, and the test ends each with a result. */
static struct call {
	size_t offset, len;
	sem_t arrived, go;
	int result;
} calls[2];
static int next_call;

static int held_write_back(void *addr, size_t len)
{
	struct call *c = &calls[__atomic_fetch_add(&next_call, 1, __ATOMIC_SEQ_CST)];

	c->offset = (size_t)((uint8_t *)addr - memory);
	c->len = len;
	sem_post(&c->arrived);
	sem_wait(&c->go);
	return c->result;
}

static int setup(void **state)
{
	memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return -1;
	persist_init(&persist, memory, SIZE, false);
	next_call = 0;
	for (unsigned i = 0; i < ARRAY_LEN(calls); i++) {
		sem_init(&calls[i].arrived, 0, 0);
		sem_init(&calls[i].go, 0, 0);
	}
	return 0;
}

static int teardown(void **state)
{
	persist_fini(&persist);
	return munmap(memory, SIZE);
}

struct job {
	pthread_t thread;
	uint64_t offset;
	int result;
	bool is_done;
};

static void *job_run(void *arg)
{
	struct job *j = arg;

	j->result = persist_range(&persist, j->offset, 8);
	__atomic_store_n(&j->is_done, true, __ATOMIC_SEQ_CST);
	return NULL;
}

static void job_start(struct job *j, uint64_t offset)
{
	*j = (struct job){.offset = offset};
	assert_int_equal(pthread_create(&j->thread, NULL, job_run, j), 0);
}

static void whole_pages_are_written_back(void **state)
{
	struct job job;

	persist.write_back = held_write_back;
	job_start(&job, 4096 + 100);
	sem_wait(&calls[0].arrived);
	assert_int_equal(calls[0].offset, 4096);
	assert_int_equal(calls[0].len, 108);
	sem_post(&calls[0].go);
	pthread_join(job.thread, NULL);
	assert_int_equal(job.result, 0);
}

static void real_memory_can_be_written_back(void **state)
{
	assert_int_equal(persist_range(&persist, 0, SIZE), 0);
	assert_int_equal(persist_range(&persist, 5, 0), 0);
	assert_int_equal(persist_deep(&persist, SIZE - 1, 1), 0);
	persist.is_direct = true;
	assert_int_equal(persist_range(&persist, 0, SIZE), 0);
}

static void a_range_outside_is_refused_and_harms_nobody(void **state)
{
	assert_int_equal(persist_range(&persist, SIZE, 1), -EINVAL);
	assert_int_equal(persist_range(&persist, 1, SIZE), -EINVAL);
	assert_int_equal(persist_range(&persist, UINT64_MAX, 2), -EINVAL);
	assert_int_equal(persist_deep(&persist, 0, SIZE + 1), -EINVAL);
	assert_int_equal(persist_range(&persist, 0, 1), 0);
}

/*
 * The kernel reports an error only to the first call that asks. The other call succeeds, and
 * returns before or after the first one.
 */
static void a_success_waits_for_those_that_may_have_taken_its_error(void **state)
{
	struct job first, second;

	persist.write_back = held_write_back;
	job_start(&first, 0);
	sem_wait(&calls[0].arrived);
	job_start(&second, 8192);
	sem_wait(&calls[1].arrived);
	calls[1].result = 0;
	sem_post(&calls[1].go);
	/* The second write-back must not be acknowledged while the first one may still fail. */
	for (unsigned i = 0; i < 1000; i++) {
		assert_false(__atomic_load_n(&second.is_done, __ATOMIC_SEQ_CST));
		sched_yield();
	}
	calls[0].result = -EIO;
	sem_post(&calls[0].go);
	pthread_join(first.thread, NULL);
	pthread_join(second.thread, NULL);
	assert_int_equal(first.result, -EIO);
	assert_int_equal(second.result, -EIO);
}

static int fails_once(void *addr, size_t len)
{
	return next_call++ ? 0 : -ENOSPC;
}

static void a_failure_is_final(void **state)
{
	persist.write_back = fails_once;
	assert_int_equal(persist_deep(&persist, 0, 1), -ENOSPC);
	assert_int_equal(persist_deep(&persist, 0, 1), -ENOSPC);
	assert_int_equal(persist_range(&persist, 8192, 1), -ENOSPC);
}

static int counts(void *addr, size_t len)
{
	__atomic_fetch_add(&next_call, 1, __ATOMIC_SEQ_CST);
	return 0;
}

static void *many_run(void *arg)
{
	for (unsigned i = 0; i < 2000; i++)
		if (persist_range(&persist, (i % 16) * 4096, 4096))
			return arg;
	return NULL;
}

static void many_threads_do_not_hinder_each_other(void **state)
{
	pthread_t threads[8];
	void *failed;

	persist.write_back = counts;
	for (unsigned i = 0; i < ARRAY_LEN(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, many_run, &persist), 0);
	for (unsigned i = 0; i < ARRAY_LEN(threads); i++) {
		pthread_join(threads[i], &failed);
		assert_null(failed);
	}
	assert_int_equal(next_call, 16000);
	assert_null(persist.turns);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(whole_pages_are_written_back, setup, teardown),
		cmocka_unit_test_setup_teardown(real_memory_can_be_written_back, setup, teardown),
		cmocka_unit_test_setup_teardown(a_range_outside_is_refused_and_harms_nobody, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			a_success_waits_for_those_that_may_have_taken_its_error, setup, teardown),
		cmocka_unit_test_setup_teardown(a_failure_is_final, setup, teardown),
		cmocka_unit_test_setup_teardown(many_threads_do_not_hinder_each_other, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
