/* SPDX-License-Identifier: BSD-3-Clause */
/* The cost of setting an alarm decides how often an alarm may be moved to a later time. */
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

/* Set the alarm `times` times at this cost. Returns the interval between two settings of an alarm
 * that is due every 40 us. */
static uint64_t pace_after(struct alarm *a, int times, uint64_t cost)
{
	cost_ns = cost;
	for (int i = 0; i < times; i++)
		assert_true(alarm_set(a, now_ns, 80 * US));
	return alarm_pace(a, POLICY_WRITE);
}

static void a_cheap_timer_is_set_as_often_as_wanted(void **state)
{
	struct alarm a = {.fd = 0};

	assert_int_equal(alarm_pace(&a, POLICY_WRITE), 40 * US);
	assert_int_equal(pace_after(&a, 50, US), 40 * US);
}

static void an_expensive_timer_is_set_for_its_share_of_the_time(void **state)
{
	struct alarm a = {.fd = 0};

	assert_in_range(pace_after(&a, 50, 15 * US), 448 * US, 480 * US);
	assert_in_range(alarm_pace(&a, POLICY_POLLS), 448 * US, 480 * US);
	assert_int_equal(alarm_pace(&a, POLICY_WAITS), 150 * US);
	assert_int_equal(pace_after(&a, 500, US), 40 * US);
}

/* One setting is cheap because another timer expires earlier: a few of these change the average
 * little. */
static void some_that_were_cheap_change_little(void **state)
{
	struct alarm a = {.fd = 0};

	pace_after(&a, 50, 15 * US);
	assert_in_range(pace_after(&a, 8, US), 384 * US, 480 * US);
}

/* Setting a distant timer is cheap, because the hardware is not programmed. So such a setting does
 * not measure the cost of setting a near timer. */
static void a_distant_timer_is_no_measure_of_the_cost(void **state)
{
	struct alarm a = {.fd = 0};
	uint64_t pace = pace_after(&a, 50, 15 * US);

	cost_ns = US;
	for (int i = 0; i < 50; i++)
		assert_true(alarm_set(&a, now_ns, 2 * NSEC_PER_MS));
	assert_int_equal(alarm_pace(&a, POLICY_WRITE), pace);
}

static void what_the_scheduler_takes_is_bounded(void **state)
{
	struct alarm a = {.fd = 0};

	assert_in_range(pace_after(&a, 50, 5000 * US), 480 * US, 512 * US);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cheap_timer_is_set_as_often_as_wanted),
		cmocka_unit_test(an_expensive_timer_is_set_for_its_share_of_the_time),
		cmocka_unit_test(some_that_were_cheap_change_little),
		cmocka_unit_test(a_distant_timer_is_no_measure_of_the_cost),
		cmocka_unit_test(what_the_scheduler_takes_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
