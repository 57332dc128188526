/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread of the engine that is replaced while it checks a source leaves the source to the poller. */
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "lib/unit.h"
#include "softrnic/io/engine.h"

#define SPIN_US "20000"
#define WAIT_NS (10 * NSEC_PER_SEC)

static struct eng_source source; /* exists until the process exits */
static int fd;
static atomic_uint served, stale;
static atomic_bool silent;                     /* the poller does not report the source */
static atomic_bool held, begun, over, went_on; /* states of the look() that is held */

static void wait_for(atomic_bool *what)
{
	uint64_t end = clock_now_ns() + WAIT_NS;

	while (!atomic_load(what) && clock_now_ns() < end)
		usleep(100);
	assert_true(atomic_load(what));
}

static void on_ready(struct eng_source *src, unsigned ready)
{
	uint64_t n;

	if (read(fd, &n, sizeof(n)) == sizeof(n))
		atomic_fetch_add(&served, 1);
	else
		atomic_fetch_add(&stale, 1);
}

/* The held look() turns the reports off only after the next leader has finished its own checks. */
static enum eng_look look(struct eng_source *src)
{
	bool is_held = atomic_exchange(&held, false);

	if (is_held) {
		atomic_store(&begun, true);
		wait_for(&over);
	}
	atomic_store(&silent, true);
	if (is_held)
		atomic_store(&went_on, true);
	return ENG_LOOK_NOTHING;
}

static void look_end(struct eng_source *src)
{
	atomic_store(&silent, false);
	if (atomic_load(&begun))
		atomic_store(&over, true);
}

static void add_source(void)
{
	source = (struct eng_source){.ready = on_ready, .look = look, .look_end = look_end};
	list_init(&source.all);
	fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	assert_true(fd >= 0);
	engine_assign(&source);
	assert_int_equal(engine_add(&source, fd, false), 0);
}

/* Cause one event, and wait for its callback. */
static void cause_event(void)
{
	uint64_t one = 1, end = clock_now_ns() + WAIT_NS;
	unsigned before = atomic_load(&served);

	assert_int_equal(write(fd, &one, sizeof(one)), sizeof(one));
	while (atomic_load(&served) == before && clock_now_ns() < end)
		usleep(50);
	assert_int_equal(atomic_load(&served), before + 1);
}

/* Events in quick succession make the leader check the source. */
static void hold_a_look(void)
{
	uint64_t end = clock_now_ns() + WAIT_NS;

	atomic_store(&held, true);
	while (!atomic_load(&begun) && clock_now_ns() < end)
		cause_event();
	assert_true(atomic_load(&begun));
}

static void a_look_that_ends_late_turns_the_reports_on_again(void **state)
{
	uint64_t end;

	add_source();
	hold_a_look();
	wait_for(&went_on);
	end = clock_now_ns() + WAIT_NS;
	while (atomic_load(&silent) && clock_now_ns() < end)
		usleep(100);
	assert_false(atomic_load(&silent));
	assert_int_equal(atomic_load(&stale), 0); /* no event is handled twice */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_look_that_ends_late_turns_the_reports_on_again),
	};

	if (setenv("SOFTRNIC_SPIN_US", SPIN_US, 1) || setenv("SOFTRNIC_THREADS", "1", 1))
		return 1;
	return cmocka_run_group_tests_name("spin_replaced", tests, NULL, NULL);
}
