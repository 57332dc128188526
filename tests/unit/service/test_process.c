/* SPDX-License-Identifier: BSD-3-Clause */
/* How the process of a serving program is set up. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "service/process.h"

static void signals_come_through_the_descriptor(void **state)
{
	static const int signals[] = {SIGUSR1, SIGUSR2};
	int fd = process_take_signals(signals, 2);
	struct signalfd_siginfo info;

	assert_true(fd >= 0);
	assert_int_equal(read(fd, &info, sizeof(info)), -1);
	assert_int_equal(errno, EAGAIN);
	kill(getpid(), SIGUSR2);
	assert_int_equal(read(fd, &info, sizeof(info)), sizeof(info));
	assert_int_equal(info.ssi_signo, SIGUSR2);
	close(fd);
}

static void a_closed_pipe_is_an_error_of_the_call(void **state)
{
	int fds[2], fd = process_take_signals(NULL, 0);

	assert_int_equal(pipe(fds), 0);
	close(fds[0]);
	assert_int_equal(write(fds[1], "x", 1), -1);
	assert_int_equal(errno, EPIPE);
	close(fds[1]);
	close(fd);
}

static void the_limit_on_descriptors_is_raised(void **state)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max / 2;
	setrlimit(RLIMIT_NOFILE, &limit);
	process_raise_limit();
	getrlimit(RLIMIT_NOFILE, &limit);
	assert_int_equal(limit.rlim_cur, limit.rlim_max);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(signals_come_through_the_descriptor),
		cmocka_unit_test(a_closed_pipe_is_an_error_of_the_call),
		cmocka_unit_test(the_limit_on_descriptors_is_raised),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
