/* SPDX-License-Identifier: BSD-3-Clause */
/* A callback does not end: other threads must do the remaining work meanwhile, and no event is
 * lost. */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "lib/unit.h"
#include "softrnic/io/engine.h"
#include "softrnic/io/stall.h"

#define WAIT_NS  (10 * NSEC_PER_SEC)
#define PAUSE_US 100000

/* A source whose callback waits until the test releases it, and then sets the timer. */
static struct slow {
	struct eng_source source;
	struct eng_timer timer;
	int fd;
	atomic_bool begun, go_on;
	atomic_int fired, released;
} slow;

static void wait_for(atomic_bool *what)
{
	uint64_t end = clock_now_ns() + WAIT_NS;

	while (!atomic_load(what) && clock_now_ns() < end)
		usleep(1000);
	assert_true(atomic_load(what));
}

static void slow_ready(struct eng_source *src, uint32_t events)
{
	atomic_store(&slow.begun, true);
	wait_for(&slow.go_on);
	engine_set_timer(&slow.timer, clock_now_ns());
}

static void slow_fire(struct eng_timer *timer)
{
	atomic_fetch_add(&slow.fired, 1);
}

static void slow_free(struct eng_source *src)
{
	engine_set_timer(&slow.timer, CLOCK_NEVER);
	if (atomic_fetch_add(&slow.released, 1) > 0)
		/* a defective engine would repeat this call while the callback is held */
		usleep(1000);
}

static void slow_forked(struct eng_source *src)
{
}

static void slow_add(void)
{
	slow = (struct slow){
		.source = {.ready = slow_ready, .free = slow_free, .forked = slow_forked},
		.timer = {.at = CLOCK_NEVER, .fire = slow_fire, .source = &slow.source},
		.fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK),
	};
	list_init(&slow.source.all);
	assert_true(slow.fd >= 0);
	assert_int_equal(engine_add(&slow.source, slow.fd, false), 0);
	wait_for(&slow.begun);
}

static void slow_remove(void)
{
	engine_remove(&slow.source, slow.fd);
	close(slow.fd);
	engine_free_later(&slow.source);
}

static void a_source_whose_timer_is_set_late_is_released_once(void **state)
{
	slow_add();
	slow_remove();
	atomic_store(&slow.go_on, true);
	usleep(PAUSE_US);
	assert_int_equal(atomic_load(&slow.released), 1);
	assert_int_equal(atomic_load(&slow.fired), 0);
}

static atomic_bool ran, logged;
static void run(struct eng_task *task)
{
	atomic_store(&ran, true);
}
static struct eng_task task = {.link = LIST_INIT(task.link), .run = run};

/* A log function of an application. The function itself calls the library. */
static void sink(enum log_level level, const char *file, int line, const char *func,
		 const char *text)
{
	engine_defer(&task);
	atomic_store(&logged, true);
}

static void the_log_function_may_use_the_engine_after_a_replacement(void **state)
{
	log_set(sink, LOG_LVL_INFO);
	slow_add();
	usleep(PAUSE_US);
	atomic_store(&slow.go_on, true);
	wait_for(&logged);
	wait_for(&ran);
	log_set(NULL, LOG_LVL_OFF);
	slow_remove();
	usleep(PAUSE_US);
	assert_int_equal(atomic_load(&slow.released), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_source_whose_timer_is_set_late_is_released_once),
		cmocka_unit_test(the_log_function_may_use_the_engine_after_a_replacement),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
