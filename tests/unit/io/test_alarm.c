/* SPDX-License-Identifier: BSD-3-Clause */
/* How often an alarm may be put off follows from what that takes. */
#include "lib/unit.h"

#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "softrnic/io/alarm.h"

#define US NSEC_PER_US

static uint64_t now_ns = 1000 * US, cost_ns;

int __wrap_clock_gettime(clockid_t clock, struct timespec *t);
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *when,
			   struct itimerspec *old);

int __wrap_clock_gettime(clockid_t clock, struct timespec *t)
{
	*t = (struct timespec){.tv_sec = (time_t)(now_ns / NSEC_PER_SEC),
			       .tv_nsec = (long)(now_ns % NSEC_PER_SEC)};
	return 0;
}

int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *when, struct itimerspec *old)
{
	now_ns += cost_ns;
	return 0;
}

/* Set it so often at that cost; then the pace of what may be put off each 40 us. */
static uint64_t pace_after(struct alarm *a, int times, uint64_t cost)
{
	cost_ns = cost;
	for (int i = 0; i < times; i++)
		assert_true(alarm_set(a, now_ns, 80 * US));
	return alarm_pace(a, 40 * US);
}

static void a_cheap_timer_is_set_as_often_as_wanted(void **state)
{
	struct alarm a = {.fd = 0};

	assert_int_equal(alarm_pace(&a, 40 * US), 40 * US);
	assert_int_equal(pace_after(&a, 50, US), 40 * US);
}

static void an_expensive_timer_is_set_for_a_tenth_of_the_time(void **state)
{
	struct alarm a = {.fd = 0};

	assert_in_range(pace_after(&a, 50, 20 * US), 190 * US, 200 * US);
	assert_int_equal(alarm_pace(&a, 300 * US), 300 * US);
	assert_int_equal(pace_after(&a, 50, US), 40 * US);
}

static void what_the_scheduler_takes_is_bounded(void **state)
{
	struct alarm a = {.fd = 0};

	assert_in_range(pace_after(&a, 50, 5000 * US), 240 * US, 250 * US);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cheap_timer_is_set_as_often_as_wanted),
		cmocka_unit_test(an_expensive_timer_is_set_for_a_tenth_of_the_time),
		cmocka_unit_test(what_the_scheduler_takes_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
