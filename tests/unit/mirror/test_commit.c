/* SPDX-License-Identifier: BSD-3-Clause */
/* One write-back serves all threads that wait for one. */
#include "lib/unit.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "mirror/commit.h"

#define THREADS  8
#define ROUNDS   200
#define TAKES_US 200
#define FAILS_AT 3

/* A file that holds numbers: those that were stored, and those that are durable. */
struct store {
	struct commit commit;
	atomic_ulong put, durable;
	atomic_uint runs, at_once;
	unsigned fails_at; /* number of the write-back that fails; 0: none fails */
};

static int store_write_back(void *arg)
{
	struct store *s = arg;
	unsigned long covers = atomic_load(&s->put);
	unsigned run = atomic_fetch_add(&s->runs, 1) + 1;

	assert_int_equal(atomic_fetch_add(&s->at_once, 1), 0);
	usleep(TAKES_US);
	atomic_fetch_sub(&s->at_once, 1);
	if (run == s->fails_at)
		return -EIO;
	atomic_store(&s->durable, covers);
	return 0;
}

static void *put_on_and_on(void *arg)
{
	struct store *s = arg;
	int rc = 0;

	for (unsigned i = 0; i < ROUNDS && !rc; i++) {
		unsigned long n = atomic_fetch_add(&s->put, 1) + 1;

		rc = commit_join(&s->commit, store_write_back, s);
		assert_true(rc || atomic_load(&s->durable) >= n);
	}
	assert_int_equal(rc, s->fails_at ? -EIO : 0);
	return NULL;
}

static void run(struct store *s)
{
	pthread_t threads[THREADS];

	commit_init(&s->commit);
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, put_on_and_on, s), 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

static void what_was_put_before_is_durable_after_few_write_backs(void **state)
{
	struct store s = {.fails_at = 0};

	run(&s);
	assert_int_equal(atomic_load(&s.durable), THREADS * ROUNDS);
	assert_true(atomic_load(&s.runs) <= THREADS * ROUNDS / 2);
	commit_fini(&s.commit);
}

static void alone_each_call_is_a_write_back(void **state)
{
	struct store s = {.fails_at = 0};

	commit_init(&s.commit);
	for (unsigned i = 1; i <= 3; i++) {
		assert_int_equal(commit_join(&s.commit, store_write_back, &s), 0);
		assert_int_equal(atomic_load(&s.runs), i);
	}
	commit_fini(&s.commit);
}

/* Every caller gets the failure, also if it calls later, and no further write-back is made. */
static void a_failure_is_everybodys(void **state)
{
	struct store s = {.fails_at = FAILS_AT};

	run(&s);
	assert_int_equal(commit_join(&s.commit, store_write_back, &s), -EIO);
	assert_int_equal(atomic_load(&s.runs), FAILS_AT);
	commit_fini(&s.commit);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_put_before_is_durable_after_few_write_backs),
		cmocka_unit_test(alone_each_call_is_a_write_back),
		cmocka_unit_test(a_failure_is_everybodys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
