/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_digest_threads.c -- the threads that compute digests: how many run at the same time, and
 * when they end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "helpers.h"
#include "softrnic/persist/pool.h"

static sem_t told;

static void tell(struct persist_job *job, int status)
{
	sem_post(&told);
}

/* The caller may be the only thread that serves all connections, so it must not compute long
 * digests. */
static void only_short_digests_are_made_by_the_caller(void **state)
{
	unsigned char *p = map_anonymous(2 * PAGE);
	struct persist_region *region = region_of(p, 2 * PAGE);
	struct vext_digest d;
	struct persist_job job = {.region = region,
				  .addr = p,
				  .len = PAGE,
				  .want = PERSIST_DIGEST,
				  .alg = VEXT_DIGEST_BLAKE2B,
				  .digest = &d,
				  .done = tell};
	int status = 1;

	sem_init(&told, 0, 0);
	assert_true(persist_submit(&job, &status));
	assert_int_equal(status, 0);
	assert_digest(&d, VEXT_DIGEST_BLAKE2B, VEXT_DIGEST_FROM_MEMORY, p, PAGE);
	job.len = PAGE + 1;
	assert_false(persist_submit(&job, &status));
	while (sem_wait(&told) < 0)
		;
	assert_digest(&d, VEXT_DIGEST_BLAKE2B, VEXT_DIGEST_FROM_MEMORY, p, PAGE + 1);
	persist_region_put(region);
	munmap(p, 2 * PAGE);
}

static bool has_ended(struct flush *f)
{
	int value;

	assert_int_equal(sem_getvalue(&f->ended, &value), 0);
	return value > 0;
}

/* Returns how many slices of these files are being read. Takes the pool's lock. */
static unsigned readers_of(const struct backed *m, int n)
{
	unsigned readers = 0;

	persist_atfork_prepare();
	for (int i = 0; i < n; i++)
		readers += m[i].region->ranges[0].file->readers;
	persist_atfork_parent();
	return readers;
}

/* Wait until four threads read. Returns the largest number seen during a short time afterwards. */
static unsigned watch_readers(const struct backed *m, int n)
{
	unsigned most = 0;

	for (int i = 0; i < 5000 && most < 4; i++) {
		unsigned now = readers_of(m, n);

		most = now > most ? now : most;
		usleep(1000);
	}
	assert_true(most >= 4);
	for (int i = 0; i < 100; i++) {
		unsigned now = readers_of(m, n);

		most = now > most ? now : most;
		usleep(500);
	}
	return most;
}

enum { FILES = 10 };

/* static, because digests still run after a failed assertion. */
static struct vext_digest long_digests[2 * FILES];
static struct flush long_jobs[2 * FILES];

static void start_long_digests(const struct backed *longs)
{
	for (int i = 0; i < 2 * FILES; i++)
		digest_start(&long_jobs[i], longs[i / 2].region, longs[i / 2].p, longs[i / 2].size,
			     VEXT_DIGEST_BLAKE2B, &long_digests[i]);
}

static void end_long_digests(void)
{
	for (int i = 0; i < 2 * FILES; i++)
		persist_cancel(&long_jobs[i].job);
	for (int i = 0; i < 2 * FILES; i++)
		assert_int_equal(flush_wait(&long_jobs[i], 20000), -ECANCELED);
}

/*
 * Returns false if the counting took so long that a slice may have counted as stalled, so that one
 * more thread was started. In this case the number cannot be checked.
 */
static bool count_readers(const struct backed *longs)
{
	uint64_t start = clock_now_ns();
	unsigned most;

	start_long_digests(longs);
	most = watch_readers(longs, FILES);
	if (clock_now_ns() - start >= SLICE_READER_STALLED_NS)
		return false;
	assert_int_equal(most, 4);
	return true;
}

static void long_digests_leave_threads_to_others(void **state)
{
	const size_t size = 1024 * MIB;
	struct backed longs[FILES], other;
	bool counted = false;
	int running = 0;

	if (!here_is_persistent())
		skip();
	backed_init(&other, NULL, PAGE);
	for (int i = 0; i < FILES; i++) {
		longs[i].fd = file_create(NULL, size);
		longs[i].size = size;
		longs[i].p = map_file(longs[i].fd, size);
		longs[i].region = region_of(longs[i].p, size);
	}
	for (int i = 0; i < 20 && !counted; i++) {
		if (i > 0)
			end_long_digests();
		counted = count_readers(longs);
	}
	other.p[0]++;
	assert_int_equal(flush(other.region, other.p, PAGE), 0);
	for (int i = 0; i < 2 * FILES; i++)
		running += !has_ended(&long_jobs[i]);
	assert_int_equal(running, 2 * FILES);
	end_long_digests();
	for (int i = 0; i < FILES; i++)
		backed_fini(&longs[i]);
	backed_fini(&other);
	if (!counted)
		skip(); /* the machine is too busy to check the number */
}

static pid_t fork_as_the_engine_does(void)
{
	pid_t pid;

	persist_atfork_prepare();
	pid = fork();
	if (pid == 0)
		persist_atfork_child();
	else
		persist_atfork_parent();
	return pid;
}

static void digest_in_child(struct backed *m, const struct vext_digest *before)
{
	struct vext_digest d;

	alarm(20);
	if (digest(m->region, m->p, m->size, VEXT_DIGEST_CRC32C, &d))
		_exit(2);
	_exit(memcmp(&d, before, sizeof(d)) ? 3 : 0);
}

static void a_child_has_readers_of_its_own(void **state)
{
	struct vext_digest d;
	struct backed m;
	int status;
	pid_t pid;

	backed_init(&m, NULL, 3 * MIB);
	assert_int_equal(digest(m.region, m.p, m.size, VEXT_DIGEST_CRC32C, &d), 0);
	pid = fork_as_the_engine_does();
	assert_true(pid >= 0);
	if (pid == 0)
		digest_in_child(&m, &d);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(digest(m.region, m.p, m.size, VEXT_DIGEST_CRC32C, &d), 0);
	backed_fini(&m);
}

static void idle_readers_go_away(void **state)
{
	for (int i = 0; i < 100 && threads_named("rpma-") > 0; i++)
		usleep(100000);
	assert_int_equal(threads_named("rpma-"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_short_digests_are_made_by_the_caller),
		cmocka_unit_test(long_digests_leave_threads_to_others),
		cmocka_unit_test(a_child_has_readers_of_its_own),
		cmocka_unit_test(idle_readers_go_away),
	};

	return cmocka_run_group_tests_name("persist-digest-threads", tests, NULL, NULL);
}
