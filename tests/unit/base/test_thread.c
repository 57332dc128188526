/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads of the library: their signal mask, their descriptor table, and whether they are detached
 * or joined. */
#include "lib/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <time.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <unistd.h>

#include "base/thread.h"

static void *read_mask(void *arg)
{
	pthread_sigmask(SIG_BLOCK, NULL, arg);
	return NULL;
}

static void a_thread_blocks_all_signals_but_those_of_faults(void **state)
{
	static const int open_signals[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP};
	static const int blocked[] = {SIGINT, SIGTERM, SIGALRM, SIGCHLD, SIGUSR1, SIGPIPE, SIGPROF};
	pthread_t thread;
	sigset_t mask;

	sigemptyset(&mask);
	assert_int_equal(thread_start(&thread, 0, read_mask, &mask), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	for (size_t i = 0; i < sizeof(open_signals) / sizeof(open_signals[0]); i++)
		assert_false(sigismember(&mask, open_signals[i]));
	for (size_t i = 0; i < sizeof(blocked) / sizeof(blocked[0]); i++)
		assert_true(sigismember(&mask, blocked[i]));
}

static void the_mask_of_the_creator_stays_as_it_was(void **state)
{
	sigset_t before, after;
	pthread_t thread;

	pthread_sigmask(SIG_BLOCK, NULL, &before);
	assert_int_equal(thread_start(&thread, 64 << 10, read_mask, &after), 0);
	pthread_join(thread, NULL);
	pthread_sigmask(SIG_BLOCK, NULL, &after);
	for (int sig = 1; sig < NSIG; sig++)
		assert_int_equal(sigismember(&before, sig), sigismember(&after, sig));
}

struct detached {
	sem_t done;
	int detach_state;
};

static void *report_detach_state(void *arg)
{
	struct detached *d = arg;
	pthread_attr_t attr;

	pthread_getattr_np(pthread_self(), &attr);
	pthread_attr_getdetachstate(&attr, &d->detach_state);
	pthread_attr_destroy(&attr);
	sem_post(&d->done);
	return NULL;
}

static void a_thread_without_a_handle_is_detached(void **state)
{
	static struct detached d = {.detach_state = -1};

	assert_int_equal(sem_init(&d.done, 0, 0), 0);
	assert_int_equal(thread_start(NULL, 0, report_detach_state, &d), 0);
	while (sem_wait(&d.done) < 0)
		;
	assert_int_equal(d.detach_state, PTHREAD_CREATE_DETACHED);
}

static void *leave_and_open(void *arg)
{
	int fd = *(int *)arg;

	if (!thread_leave_descriptors())
		return (void *)1;
	if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF)
		return (void *)2;
	/* In a descriptor table of the thread's own, number 0 is free. */
	return open("/dev/null", O_RDONLY | O_CLOEXEC) == 0 ? NULL : (void *)3;
}

static void a_descriptor_table_of_its_own_is_empty_and_leaves_the_other_alone(void **state)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	pthread_t thread;
	void *result;

	assert_true(fd > 0);
	assert_int_equal(thread_start(&thread, 0, leave_and_open, &fd), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_int_equal((intptr_t)result, 0);
	assert_true(fcntl(fd, F_GETFD) >= 0);
	close(fd);
}

/* The time of day is far ahead of the monotonic clock: a wait that used it would end
 * immediately. */
static void a_timed_wait_is_by_the_monotonic_clock(void **state)
{
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct timespec begun, until, now;
	pthread_cond_t cond;

	thread_cond_init(&cond);
	clock_gettime(CLOCK_MONOTONIC, &begun);
	until = (struct timespec){begun.tv_sec + (begun.tv_nsec + 20000000) / 1000000000,
				  (begun.tv_nsec + 20000000) % 1000000000};
	pthread_mutex_lock(&lock);
	assert_int_equal(pthread_cond_timedwait(&cond, &lock, &until), ETIMEDOUT);
	pthread_mutex_unlock(&lock);
	clock_gettime(CLOCK_MONOTONIC, &now);
	assert_true(now.tv_sec > until.tv_sec ||
		    (now.tv_sec == until.tv_sec && now.tv_nsec >= until.tv_nsec));
	pthread_cond_destroy(&cond);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thread_blocks_all_signals_but_those_of_faults),
		cmocka_unit_test(the_mask_of_the_creator_stays_as_it_was),
		cmocka_unit_test(a_thread_without_a_handle_is_detached),
		cmocka_unit_test(a_descriptor_table_of_its_own_is_empty_and_leaves_the_other_alone),
		cmocka_unit_test(a_timed_wait_is_by_the_monotonic_clock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
