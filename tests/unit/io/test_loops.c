/* SPDX-License-Identifier: BSD-3-Clause */
/* An engine with several threads: which sources each thread serves, and work that waits for other
 * work. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "lib/unit.h"
#include "softrnic/io/engine.h"

#define THREADS 3
#define SOURCES 24
#define CROWD   4 /* the number of sources that one thread serves */
#define WAIT_NS (10 * NSEC_PER_SEC)

/*
 * A source whose callback stores its thread, and waits if the test requests that.
 */
struct place {
	struct eng_source source;
	struct eng_timer timer;
	struct eng_task task;
	int fd;
	_Atomic(pthread_t) thread, timer_thread, task_thread;
	atomic_uint served;
	atomic_bool blocks, waits, freed;
};
static struct place place[SOURCES];

static void place_ready(struct eng_source *src, unsigned ready)
{
	struct place *p = container_of(src, struct place, source);
	uint64_t n;

	assert_int_equal(read(p->fd, &n, sizeof(n)), sizeof(n));
	atomic_store(&p->thread, pthread_self());
	atomic_fetch_add(&p->served, 1);
	while (atomic_load(&p->blocks)) {
		atomic_store(&p->waits, true);
		usleep(1000);
	}
	atomic_store(&p->waits, false);
}

static void place_fire(struct eng_timer *timer)
{
	atomic_store(&container_of(timer, struct place, timer)->timer_thread, pthread_self());
}

static void place_run(struct eng_task *task)
{
	atomic_store(&container_of(task, struct place, task)->task_thread, pthread_self());
}

static void place_free(struct eng_source *src)
{
	atomic_store(&container_of(src, struct place, source)->freed, true);
}

static void place_forked(struct eng_source *src)
{
	close(container_of(src, struct place, source)->fd);
}

static void place_add(struct place *p)
{
	memset(p, 0, sizeof(*p));
	p->source = (struct eng_source){
		.ready = place_ready, .free = place_free, .forked = place_forked};
	list_init(&p->source.all);
	list_init(&p->task.link);
	p->timer = (struct eng_timer){.at = CLOCK_NEVER, .fire = place_fire, .source = &p->source};
	p->task.run = place_run;
	p->task.source = &p->source;
	p->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	assert_true(p->fd >= 0);
	engine_assign(&p->source);
	assert_int_equal(engine_add(&p->source, p->fd, false), 0);
}

static void place_remove(struct place *p)
{
	uint64_t end = clock_now_ns() + WAIT_NS;

	engine_remove(&p->source, p->fd);
	close(p->fd);
	engine_free_later(&p->source);
	while (!atomic_load(&p->freed) && clock_now_ns() < end)
		usleep(1000);
	assert_true(atomic_load(&p->freed));
}

static void place_signal(struct place *p)
{
	uint64_t one = 1;

	assert_int_equal(write(p->fd, &one, sizeof(one)), sizeof(one));
}

static void place_expect(struct place *p, unsigned served)
{
	uint64_t end = clock_now_ns() + WAIT_NS;

	while (atomic_load(&p->served) < served && clock_now_ns() < end)
		usleep(1000);
	assert_int_equal(atomic_load(&p->served), served);
}

static void add(int n)
{
	for (int i = 0; i < n; i++)
		place_add(&place[i]);
	for (int i = 0; i < n; i++) {
		place_signal(&place[i]);
		place_expect(&place[i], 1);
	}
}

static void remove_all(int n)
{
	for (int i = 0; i < n; i++)
		place_remove(&place[i]);
}

/* Returns how many threads served the first n sources; *most gets the largest number of sources
 * that one thread served. */
static int threads_of(int n, int *most)
{
	int threads = 0;

	*most = 0;
	for (int i = 0; i < n; i++) {
		int same = 0, before = 0;

		for (int j = 0; j < n; j++)
			if (atomic_load(&place[j].thread) == atomic_load(&place[i].thread)) {
				same++;
				before += j < i;
			}
		threads += before == 0;
		*most = same > *most ? same : *most;
	}
	return threads;
}

static void a_few_are_served_by_one_thread(void **state)
{
	int most;

	add(CROWD);
	assert_int_equal(threads_of(CROWD, &most), 1);
	remove_all(CROWD);
}

static void many_are_spread_evenly(void **state)
{
	int most;

	add(SOURCES);
	assert_int_equal(threads_of(SOURCES, &most), THREADS);
	assert_int_equal(most, SOURCES / THREADS);
	remove_all(SOURCES);
}

static void those_that_went_make_room_for_others(void **state)
{
	bool gone[SOURCES];
	pthread_t thread;
	int most;

	add(SOURCES);
	thread = atomic_load(&place[0].thread);
	for (int i = 0; i < SOURCES; i++)
		if ((gone[i] = atomic_load(&place[i].thread) == thread))
			place_remove(&place[i]);
	for (int i = 0; i < SOURCES; i++)
		if (gone[i]) {
			place_add(&place[i]);
			place_signal(&place[i]);
			place_expect(&place[i], 1);
		}
	assert_int_equal(threads_of(SOURCES, &most), THREADS);
	assert_int_equal(most, SOURCES / THREADS);
	remove_all(SOURCES);
}

static void timers_and_tasks_run_where_the_source_is_served(void **state)
{
	uint64_t end = clock_now_ns() + WAIT_NS;

	add(SOURCES);
	for (int i = 0; i < SOURCES; i++) {
		engine_set_timer(&place[i].timer, clock_now_ns());
		assert_true(engine_defer(&place[i].task));
	}
	for (int i = 0; i < SOURCES; i++) {
		while (!(atomic_load(&place[i].timer_thread) &&
			 atomic_load(&place[i].task_thread)) &&
		       clock_now_ns() < end)
			usleep(1000);
		assert_true(atomic_load(&place[i].timer_thread) == atomic_load(&place[i].thread));
		assert_true(atomic_load(&place[i].task_thread) == atomic_load(&place[i].thread));
	}
	remove_all(SOURCES);
}

static struct eng_timer crowd[1000];
static atomic_uint crowd_fired;

static void crowd_fire(struct eng_timer *timer)
{
	if (atomic_fetch_add(&crowd_fired, 1) == 0)
		place_signal(&place[0]);
	usleep(100);
}

static void events_have_their_turn_between_timers(void **state)
{
	uint64_t at = clock_now_ns() + 100 * NSEC_PER_MS;

	add(1);
	atomic_store(&crowd_fired, 0);
	for (int i = 0; i < 1000; i++) {
		crowd[i] = (struct eng_timer){.fire = crowd_fire, .source = &place[0].source};
		engine_set_timer(&crowd[i], at);
	}
	place_expect(&place[0], 2);
	assert_in_range(atomic_load(&crowd_fired), 1, 500);
	for (int i = 0; i < 1000; i++)
		engine_set_timer(&crowd[i], CLOCK_NEVER);
	remove_all(1);
}

/*
 * In each thread a callback waits. The guard lets other threads take over, and the remaining work
 * goes on.
 */
static void leaders_of_all_loops_may_wait_at_once(void **state)
{
	bool blocked[SOURCES] = {false};
	int n = 0;

	add(SOURCES);
	for (int i = 0; i < SOURCES; i++) {
		bool same = false;

		for (int j = 0; j < i; j++)
			same |= blocked[j] &&
				atomic_load(&place[j].thread) == atomic_load(&place[i].thread);
		blocked[i] = !same;
		n += blocked[i];
	}
	assert_int_equal(n, THREADS);
	for (int i = 0; i < SOURCES; i++)
		atomic_store(&place[i].blocks, blocked[i]);
	for (int i = 0; i < SOURCES; i++)
		place_signal(&place[i]);
	for (int i = 0; i < SOURCES; i++)
		place_expect(&place[i], 2);
	for (int i = 0; i < SOURCES; i++)
		atomic_store(&place[i].blocks, false);
	remove_all(SOURCES);
}

static void a_child_begins_with_one_thread(void **state)
{
	int status, most;
	pid_t pid;

	add(SOURCES);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		alarm(20);
		add(CROWD);
		if (threads_of(CROWD, &most) != 1)
			_exit(1);
		for (int i = CROWD; i < SOURCES; i++)
			place_add(&place[i]);
		for (int i = 0; i < SOURCES; i++) {
			place_signal(&place[i]);
			place_expect(&place[i], i < CROWD ? 2 : 1);
		}
		_exit(threads_of(SOURCES, &most) == THREADS ? 0 : 2);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	for (int i = 0; i < SOURCES; i++) {
		place_signal(&place[i]);
		place_expect(&place[i], 2);
	}
	remove_all(SOURCES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_few_are_served_by_one_thread),
		cmocka_unit_test(many_are_spread_evenly),
		cmocka_unit_test(those_that_went_make_room_for_others),
		cmocka_unit_test(timers_and_tasks_run_where_the_source_is_served),
		cmocka_unit_test(events_have_their_turn_between_timers),
		cmocka_unit_test(leaders_of_all_loops_may_wait_at_once),
		cmocka_unit_test(a_child_begins_with_one_thread),
	};

	setenv("SOFTRNIC_THREADS", "3", 1);
	pthread_atfork(io_atfork_prepare, io_atfork_parent, io_atfork_child);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
