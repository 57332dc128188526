/* SPDX-License-Identifier: BSD-3-Clause */
/* A lock that signal handlers can take, too. */
#include "lib/unit.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/time.h>

#include "base/siglock.h"

#define THREADS 3
#define ROUNDS  20000

static struct siglock lock;
static struct siglock_event event;
static unsigned long taken, collisions;
static atomic_ulong by_handler, errno_changes;
static bool is_inside;

static void take_once(void)
{
	siglock_take(&lock);
	collisions += is_inside;
	is_inside = true;
	taken++;
	is_inside = false;
	siglock_release(&lock);
}

static void on_timer(int sig)
{
	int before = errno;

	take_once();
	by_handler++;
	errno_changes += errno != before;
}

static void *thread_take(void *arg)
{
	for (unsigned i = 0; i < ROUNDS; i++)
		take_once();
	return NULL;
}

/* A handler must never find the lock taken by its own thread: the handler would wait for ever. */
static void handlers_and_threads_take_turns(void **state)
{
	struct sigaction sa = {.sa_handler = on_timer}, before;
	struct itimerval often = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
	pthread_t threads[THREADS];

	assert_int_equal(sigaction(SIGALRM, &sa, &before), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, thread_take, NULL), 0);
	while (!by_handler)
		take_once();
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	setitimer(ITIMER_REAL, &never, NULL);
	sigaction(SIGALRM, &before, NULL);
	siglock_take(&lock);
	assert_int_equal(collisions, 0);
	assert_int_equal(errno_changes, 0);
	assert_true(taken >= (unsigned long)THREADS * ROUNDS);
	siglock_release(&lock);
}

static void the_mask_is_as_before(void **state)
{
	sigset_t before, inside, after;

	pthread_sigmask(SIG_BLOCK, NULL, &before);
	siglock_take(&lock);
	pthread_sigmask(SIG_BLOCK, NULL, &inside);
	siglock_wait(&lock, &event, siglock_seen(&event), 1);
	siglock_release(&lock);
	pthread_sigmask(SIG_BLOCK, NULL, &after);
	assert_true(sigismember(&inside, SIGALRM) && !sigismember(&inside, SIGSEGV));
	for (int sig = 1; sig < 32; sig++)
		assert_int_equal(sigismember(&before, sig), sigismember(&after, sig));
}

static bool is_there;

static void *thread_notify(void *arg)
{
	siglock_take(&lock);
	is_there = true;
	siglock_notify(&event);
	siglock_release(&lock);
	return NULL;
}

static void an_event_ends_a_wait(void **state)
{
	unsigned seen = siglock_seen(&event);
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, thread_notify, NULL), 0);
	siglock_take(&lock);
	while (!is_there) /* hangs if the signal is lost */
		siglock_wait(&lock, &event, seen, 1000000);
	siglock_release(&lock);
	pthread_join(thread, NULL);
	/* A notification that arrived before the wait ends the wait immediately. */
	siglock_take(&lock);
	siglock_wait(&lock, &event, seen, 1000000);
	siglock_release(&lock);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(handlers_and_threads_take_turns),
		cmocka_unit_test(the_mask_is_as_before),
		cmocka_unit_test(an_event_ends_a_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
