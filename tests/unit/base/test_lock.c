/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/unit.h"

#include <errno.h>
#include <sched.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/thread.h"

enum { THREADS = 4, TIMES = 50000 };

static struct {
	struct lock lock;
	unsigned count;
} shared;

/* Take the lock in all four ways. From time to time a thread releases the lock while others wait for
 * it. */
static void *count_up(void *arg)
{
	for (unsigned i = 0; i < TIMES; i++) {
		unsigned way = (i + *(unsigned *)arg) % 4;

		if (way == 0 && !lock_try(&shared.lock))
			lock_enter(&shared.lock);
		else if (way == 1)
			lock_enter(&shared.lock);
		else if (way == 2)
			while (!lock_enter_until(&shared.lock, clock_now_ns() + 20 * NSEC_PER_US))
				;
		else if (way == 3 && !lock_try_for(&shared.lock, 20 * NSEC_PER_US))
			lock_enter(&shared.lock);
		shared.count++;
		lock_leave(&shared.lock);
	}
	return NULL;
}

static void one_thread_at_a_time_has_it(void **state)
{
	pthread_t threads[THREADS];
	unsigned who[THREADS];

	for (unsigned i = 0; i < THREADS; i++) {
		who[i] = i;
		assert_int_equal(thread_start(&threads[i], 0, count_up, &who[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(shared.count, THREADS * TIMES);
	assert_true(lock_try(&shared.lock));
	assert_false(lock_try(&shared.lock));
	lock_leave(&shared.lock);
}

static void *lock_and_leave(void *arg)
{
	errno = EXDEV;
	lock_enter(&shared.lock);
	lock_leave(&shared.lock);
	return (void *)(intptr_t)errno;
}

static void a_waiting_thread_is_woken_and_keeps_errno(void **state)
{
	const struct timespec pause = {.tv_nsec = 20 * NSEC_PER_MS};
	pthread_t thread;
	void *result;

	lock_enter(&shared.lock);
	assert_int_equal(thread_start(&thread, 0, lock_and_leave, NULL), 0);
	nanosleep(&pause, NULL);
	lock_leave(&shared.lock);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_int_equal((intptr_t)result, EXDEV);
}

struct lock_wait {
	struct lock lock;
	uint64_t until;
	bool locked;
};

static void *lock_until(void *arg)
{
	struct lock_wait *w = arg;

	w->locked = lock_enter_until(&w->lock, w->until);
	if (w->locked)
		lock_leave(&w->lock);
	return NULL;
}

static bool locked_by_another(struct lock_wait *w, uint64_t until, bool unlock)
{
	pthread_t thread;

	w->until = until;
	lock_enter(&w->lock);
	assert_int_equal(thread_start(&thread, 0, lock_until, w), 0);
	if (unlock)
		lock_leave(&w->lock);
	assert_int_equal(pthread_join(thread, NULL), 0);
	if (!unlock)
		lock_leave(&w->lock);
	return w->locked;
}

static void a_lock_is_waited_for_until_a_monotonic_time(void **state)
{
	static struct lock_wait w;
	uint64_t soon = clock_now_ns() + 5 * NSEC_PER_MS;

	assert_false(locked_by_another(&w, soon, false));
	assert_true(clock_now_ns() >= soon);
	assert_false(locked_by_another(&w, 0, false));
	assert_true(locked_by_another(&w, CLOCK_NEVER / 4, true));
}

static atomic_bool tries;

static void *try_for_long(void *arg)
{
	atomic_store(&tries, true);
	return (void *)(intptr_t)lock_try_for(&shared.lock, 60 * NSEC_PER_SEC);
}

/* The value 2 would show that a thread sleeps, or is about to sleep. */
static void a_thread_may_try_for_a_time_without_sleeping(void **state)
{
	uint64_t begin = clock_now_ns();
	pthread_t thread;
	void *got;

	lock_enter(&shared.lock);
	assert_false(lock_try_for(&shared.lock, 2 * NSEC_PER_MS));
	assert_true(clock_now_ns() - begin >= 2 * NSEC_PER_MS);
	assert_int_equal(thread_start(&thread, 0, try_for_long, NULL), 0);
	while (!atomic_load(&tries))
		sched_yield();
	usleep(5000);
	assert_int_equal(atomic_load(&shared.lock.word), 1);
	lock_leave(&shared.lock);
	assert_int_equal(pthread_join(thread, &got), 0);
	assert_true(got);
	assert_false(lock_try(&shared.lock));
	lock_leave(&shared.lock);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_thread_at_a_time_has_it),
		cmocka_unit_test(a_waiting_thread_is_woken_and_keeps_errno),
		cmocka_unit_test(a_lock_is_waited_for_until_a_monotonic_time),
		cmocka_unit_test(a_thread_may_try_for_a_time_without_sleeping),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
