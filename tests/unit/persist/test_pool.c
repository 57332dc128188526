/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "helpers.h"

static void sixty_four_jobs_at_once_all_succeed(void **state)
{
	enum { FILES = 4, JOBS = 64 };
	struct backed m[FILES];
	struct flush jobs[JOBS];

	for (int i = 0; i < FILES; i++) {
		backed_init(&m[i], NULL, JOBS * PAGE);
		assert_int_equal(flush(m[i].region, m[i].p, JOBS * PAGE), 0);
	}
	for (size_t i = 0; i < JOBS; i++) {
		unsigned char *p = m[i % FILES].p + i * PAGE;

		memset(p, 1, PAGE);
		flush_start(&jobs[i], m[i % FILES].region, p, PAGE);
	}
	for (int i = 0; i < JOBS; i++)
		assert_int_equal(flush_wait(&jobs[i], 30000), 0);
	assert_true(threads_named("rpma-persist") <= 16);
	for (int i = 0; i < FILES; i++) {
		if (here_is_persistent())
			assert_int_equal(dirty_kib(m[i].p), 0);
		backed_fini(&m[i]);
	}
}

struct again {
	struct persist_job job;
	atomic_int left;
	sem_t ended;
};

/* Submit the next flush from done() of the previous one, as the engine does. */
static void start_the_next(struct persist_job *job, int status)
{
	struct again *a = container_of(job, struct again, job);

	while (status == 0 && atomic_fetch_sub(&a->left, 1) > 1)
		if (!persist_submit(job, &status))
			return;
	sem_post(&a->ended);
}

static void done_may_submit_again(void **state)
{
	struct backed m;
	struct again a = {.left = 5};
	int status = 0;

	backed_init(&m, NULL, PAGE);
	a.job = (struct persist_job){
		.region = m.region, .addr = m.p, .len = PAGE, .done = start_the_next};
	sem_init(&a.ended, 0, 0);
	if (persist_submit(&a.job, &status))
		start_the_next(&a.job, status);
	while (sem_wait(&a.ended) < 0)
		;
	assert_int_equal(atomic_load(&a.left), 0);
	backed_fini(&m);
}

static void *register_and_flush(void *arg)
{
	long bad = 0;
	int fd = *(int *)arg;

	for (int i = 0; i < 10; i++) {
		unsigned char *p = map_file(fd, 8 * PAGE);
		struct persist_region *region = region_of(p, 8 * PAGE);

		p[PAGE * (size_t)(i % 8)] = 1;
		bad |= flush(region, p, 8 * PAGE) != 0;
		persist_region_put(region);
		munmap(p, 8 * PAGE);
	}
	return (void *)bad;
}

static void threads_share_files(void **state)
{
	int fd = file_create("shared", 8 * PAGE);
	pthread_t threads[4];
	void *bad;

	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, register_and_flush, &fd), 0);
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], &bad);
		assert_null(bad);
	}
	unlink("shared");
	close(fd);
}

static void flush_in_child(struct backed *inherited)
{
	struct backed m;

	alarm(20);
	if (threads_named("rpma-persist") != 0)
		_exit(2);
	backed_init(&m, NULL, 4 * PAGE);
	memset(m.p, 1, 4 * PAGE);
	if (flush(m.region, m.p, 4 * PAGE) != 0)
		_exit(3);
	if (flush(inherited->region, inherited->p, PAGE) != 0)
		_exit(4);
	backed_fini(&m);
	persist_region_put(inherited->region);
	_exit(0);
}

static void a_child_starts_anew_and_leaves_the_parent_alone(void **state)
{
	enum { JOBS = 16 };
	struct backed m;
	struct flush jobs[JOBS];
	int status;
	pid_t pid;

	need_threads_after_fork();
	backed_init(&m, NULL, JOBS * PAGE);
	for (size_t i = 0; i < JOBS; i++) {
		m.p[i * PAGE] = 1;
		flush_start(&jobs[i], m.region, m.p + i * PAGE, PAGE);
	}
	pid = persist_fork();
	assert_true(pid >= 0);
	if (pid == 0)
		flush_in_child(&m);
	for (int i = 0; i < JOBS; i++)
		assert_int_equal(flush_wait(&jobs[i], 20000), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(flush(m.region, m.p, JOBS * PAGE), 0);
	backed_fini(&m);
}

static void look_at_mask(struct persist_job *job, int status)
{
	struct again *a = container_of(job, struct again, job);
	sigset_t mask;

	pthread_sigmask(SIG_BLOCK, NULL, &mask);
	atomic_store(&a->left, sigismember(&mask, SIGTERM) && sigismember(&mask, SIGALRM) &&
				       !sigismember(&mask, SIGBUS) && !sigismember(&mask, SIGSEGV));
	sem_post(&a->ended);
}

static void pool_threads_take_no_signals_but_faults(void **state)
{
	struct backed m;
	struct again a = {.left = 0};
	int status;

	if (!here_is_persistent())
		skip();
	backed_init(&m, NULL, PAGE);
	a.job = (struct persist_job){
		.region = m.region, .addr = m.p, .len = PAGE, .done = look_at_mask};
	sem_init(&a.ended, 0, 0);
	assert_false(persist_submit(&a.job, &status));
	while (sem_wait(&a.ended) < 0)
		;
	assert_int_equal(atomic_load(&a.left), 1);
	backed_fini(&m);
}

static void idle_threads_go_away(void **state)
{
	struct backed m;

	backed_init(&m, NULL, PAGE);
	assert_int_equal(flush(m.region, m.p, PAGE), 0);
	for (int i = 0; i < 100 && threads_named("rpma-persist") > 0; i++)
		usleep(100000);
	assert_int_equal(threads_named("rpma-persist"), 0);
	assert_int_equal(flush(m.region, m.p, PAGE), 0);
	backed_fini(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sixty_four_jobs_at_once_all_succeed),
		cmocka_unit_test(done_may_submit_again),
		cmocka_unit_test(threads_share_files),
		cmocka_unit_test(a_child_starts_anew_and_leaves_the_parent_alone),
		cmocka_unit_test(pool_threads_take_no_signals_but_faults),
		cmocka_unit_test(idle_threads_go_away),
	};

	return cmocka_run_group_tests_name("persist-pool", tests, NULL, NULL);
}
