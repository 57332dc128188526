/* SPDX-License-Identifier: BSD-3-Clause */
/* test_wait.c -- waits with a limit on completion channels of rdma-core that never become ready. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/poll.h"
#include "lib/unit.h"
#include "provider/provider.h"

static struct ibv_comp_channel comp;

static int setup(void **state)
{
	comp.fd = eventfd(0, EFD_CLOEXEC);
	return comp.fd < 0;
}

static int teardown(void **state)
{
	return close(comp.fd);
}

int __wrap_ibv_get_cq_event(struct ibv_comp_channel *ch, struct ibv_cq **cq, void **cq_context);

/* Block, as rdma-core's function does if there is no event. */
int __wrap_ibv_get_cq_event(struct ibv_comp_channel *ch, struct ibv_cq **cq, void **cq_context)
{
	uint64_t n;

	return read(ch->fd, &n, sizeof(n)) == (ssize_t)sizeof(n) ? 0 : -1;
}

static int wait_cq(int ms)
{
	struct ibv_cq *cq;
	void *context;

	return provider_verbs.wait_cq_event(&comp, ms, &cq, &context);
}

static void expect_timeout(int (*wait)(int ms), int ms)
{
	uint64_t begin = clock_now_ns();

	errno = 0;
	assert_int_equal(wait(ms), -1);
	assert_int_equal(errno, ETIMEDOUT);
	assert_true(clock_now_ns() - begin >= (uint64_t)ms * NSEC_PER_MS);
}

static void a_wait_in_vain_takes_its_time_and_says_so(void **state)
{
	expect_timeout(wait_cq, 0);
	expect_timeout(wait_cq, 30);
}

static void ignore(int sig)
{
}

static void signals_do_not_shorten_it(void **state)
{
	const struct sigaction act = {.sa_handler = ignore};
	const struct itimerval every = {{0, 4000}, {0, 4000}}, never = {0};

	assert_int_equal(sigaction(SIGALRM, &act, NULL), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &every, NULL), 0);
	expect_timeout(wait_cq, 60);
	assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
}

static void a_descriptor_that_is_none_is_an_error_and_no_timeout(void **state)
{
	struct ibv_comp_channel gone = {.fd = 1 << 20};
	struct ibv_cq *cq;
	void *context;

	assert_int_equal(provider_verbs.wait_cq_event(&gone, -1, &cq, &context), -1);
	assert_int_equal(errno, EBADF);
}

static void *wait_in_thread(void *arg)
{
	return (void *)(intptr_t)wait_cq(500);
}

static void of_several_waiters_one_is_woken_and_the_others_time_out(void **state)
{
	const uint64_t one = 1;
	pthread_t thread[8];
	int woken = 0;

	for (int round = 0; round < 10; round++) {
		for (int i = 0; i < 8; i++)
			assert_int_equal(pthread_create(&thread[i], NULL, wait_in_thread, NULL), 0);
		usleep(20000);
		assert_int_equal(write(comp.fd, &one, sizeof(one)), sizeof(one));
		for (int i = 0; i < 8; i++) {
			void *ret;

			assert_int_equal(pthread_join(thread[i], &ret), 0);
			woken += ret == NULL;
		}
		assert_int_equal(woken, round + 1);
	}
}

static void milliseconds_are_rounded_up_and_fit(void **state)
{
	assert_int_equal(poll_ms_left(CLOCK_NEVER), -1);
	assert_int_equal(poll_ms_left(0), 0);
	assert_int_equal(poll_ms_left(clock_now_ns()), 0);
	assert_in_range(poll_ms_left(clock_now_ns() + 3600 * NSEC_PER_SEC), 3000000, 3600000);
	assert_in_range(poll_ms_left(clock_now_ns() + 3600 * NSEC_PER_SEC * 1000), INT_MAX,
			INT_MAX);
	assert_int_equal(poll_ms_left(CLOCK_NEVER - 1), INT_MAX);
	assert_true(poll_deadline(-1) == CLOCK_NEVER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_wait_in_vain_takes_its_time_and_says_so),
		cmocka_unit_test(signals_do_not_shorten_it),
		cmocka_unit_test(a_descriptor_that_is_none_is_an_error_and_no_timeout),
		cmocka_unit_test(of_several_waiters_one_is_woken_and_the_others_time_out),
		cmocka_unit_test(milliseconds_are_rounded_up_and_fit),
	};

	return cmocka_run_group_tests_name("waits with a limit", tests, setup, teardown);
}
