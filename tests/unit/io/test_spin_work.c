/* SPDX-License-Identifier: BSD-3-Clause */
/* How long a thread of the engine spins does not depend on how long its callbacks take. */
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "lib/unit.h"
#include "softrnic/io/engine.h"

#define SPIN_US "4000"
/* time of a callback: longer than a spin, shorter than the 20 ms after which the guard acts */
#define WORK_US 6000u
#define WARM    10u /* callbacks after which the engine has determined its spin time */
#define ROUNDS  10u
#define WAIT_NS (10 * NSEC_PER_SEC)

static struct eng_source source; /* exists until the process exits */
static int fd;
static atomic_uint served, looks;

static void work_ready(struct eng_source *src, unsigned ready)
{
	uint64_t n;

	assert_int_equal(read(fd, &n, sizeof(n)), sizeof(n));
	usleep(WORK_US);
	atomic_fetch_add(&served, 1);
}

static enum eng_look work_look(struct eng_source *src)
{
	atomic_fetch_add(&looks, 1);
	return ENG_LOOK_NOTHING;
}

static void work_look_end(struct eng_source *src)
{
}

static void work_add(void)
{
	source = (struct eng_source){
		.ready = work_ready, .look = work_look, .look_end = work_look_end};
	list_init(&source.all);
	fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	assert_true(fd >= 0);
	engine_assign(&source);
	assert_int_equal(engine_add(&source, fd, false), 0);
}

/* Cause one event, when the callback of the last event has ended. */
static void work_once(void)
{
	uint64_t one = 1, end = clock_now_ns() + WAIT_NS;
	unsigned before = atomic_load(&served);

	assert_int_equal(write(fd, &one, sizeof(one)), sizeof(one));
	while (atomic_load(&served) == before && clock_now_ns() < end)
		usleep(50);
	assert_int_equal(atomic_load(&served), before + 1);
}

static void a_long_callback_is_no_gap(void **state)
{
	unsigned before;

	work_add();
	for (unsigned i = 0; i < WARM; i++)
		work_once();
	before = atomic_load(&looks);
	for (unsigned i = 0; i < ROUNDS; i++) {
		work_once();
		usleep(100);
	}
	assert_true(atomic_load(&looks) > before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_long_callback_is_no_gap),
	};

	if (setenv("SOFTRNIC_SPIN_US", SPIN_US, 1) || setenv("SOFTRNIC_THREADS", "1", 1))
		return 1;
	return cmocka_run_group_tests_name("spin_work", tests, NULL, NULL);
}
