/* SPDX-License-Identifier: BSD-3-Clause */
/* test_admission.c -- who has to wait held by a listener, until when, and how many can. */
#include "lib/unit.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <unistd.h>

#include "base/clock.h"
#include "softrnic/io/admission.h"
#include "softrnic/io/rate_limit.h"

#define INTERVAL (NSEC_PER_SEC / 10) /* SOFTRNIC_VIOLATIONS_PER_S is 10 by default */
#define START    (1000 * NSEC_PER_SEC)

static struct admission admission;

static struct sockaddr_storage guilty(unsigned char host)
{
	struct sockaddr_storage ss = {.ss_family = AF_INET};

	((struct sockaddr_in *)&ss)->sin_addr.s_addr = htonl(0x0a000000u | host);
	for (int i = 0; i < RATE_LIMIT_BURST; i++)
		admission_count_violation(&ss, START);
	return ss;
}

static int open_fd(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static int setup(void **state)
{
	admission_init(&admission);
	return 0;
}

static int teardown(void **state)
{
	admission_fini(&admission);
	return 0;
}

static void the_innocent_need_not_wait(void **state)
{
	struct sockaddr_storage peer = {.ss_family = AF_INET};
	uint64_t until;
	int fd = open_fd();

	assert_false(admission_hold(&admission, fd, &peer, START, &until));
	assert_true(is_open(fd));
	close(fd);
	assert_int_equal(admission_next(&admission, START, &until), -1);
	assert_true(until == CLOCK_NEVER);
}

/* The listener comes back at the earliest of these times, without a look at all who wait. */
static void each_is_told_when_his_time_has_come(void **state)
{
	struct sockaddr_storage peer = guilty(1), worse = guilty(2);
	uint64_t until, until_worse, next;
	int fd = open_fd(), other = open_fd();

	admission_count_violation(&worse, START);
	assert_true(admission_hold(&admission, other, &worse, START, &until_worse));
	assert_true(admission_hold(&admission, fd, &peer, START, &until));
	assert_true(until > START && until <= START + INTERVAL);
	assert_true(until_worse == until + INTERVAL);
	assert_int_equal(admission_next(&admission, START, &next), -1);
	assert_true(next == until);
	assert_int_equal(admission_next(&admission, until - 1, &next), -1);
	assert_int_equal(admission_next(&admission, until, &next), fd);
	assert_int_equal(admission_next(&admission, until, &next), -1);
	assert_true(next == until_worse);
	assert_int_equal(admission_next(&admission, until_worse, &next), other);
	close(fd);
	close(other);
}

static void the_longest_wait_ends_for_the_newest(void **state)
{
	struct sockaddr_storage peer = guilty(3);
	uint64_t until;
	int first = open_fd(), last;

	assert_true(admission_hold(&admission, first, &peer, START, &until));
	for (int i = 1; i < ADMISSION_MAX; i++)
		assert_true(admission_hold(&admission, open_fd(), &peer, START, &until));
	assert_true(is_open(first));
	last = fcntl(first, F_DUPFD_CLOEXEC, 1000);
	assert_true(last >= 1000);
	assert_true(admission_hold(&admission, last, &peer, START, &until));
	assert_false(is_open(first));
	assert_true(is_open(last));
	admission_fini(&admission);
	assert_false(is_open(last));
	assert_int_equal(admission.n_held, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_innocent_need_not_wait, setup, teardown),
		cmocka_unit_test_setup_teardown(each_is_told_when_his_time_has_come, setup,
						teardown),
		cmocka_unit_test_setup_teardown(the_longest_wait_ends_for_the_newest, setup,
						teardown),
	};

	return cmocka_run_group_tests_name("admission", tests, NULL, NULL);
}
