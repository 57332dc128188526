/* SPDX-License-Identifier: BSD-3-Clause */
/* With two CPUs a thread of the engine spins by default while the program's other threads sleep. */
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "lib/unit.h"
#include "softrnic/io/engine.h"

#define WAIT_NS (30 * NSEC_PER_SEC)

static struct eng_source source; /* exists until the process exits */
static int fd;
static atomic_uint looks;

/* The peer is another process, so that its CPU time does not count as this program's. */
static struct spare_peer {
	atomic_uint served;
	atomic_bool over;
} * peer;

static bool spare_serve(void)
{
	uint64_t n;

	if (read(fd, &n, sizeof(n)) != sizeof(n))
		return false;
	atomic_fetch_add(&peer->served, 1);
	return true;
}

static void spare_ready(struct eng_source *src, unsigned ready)
{
	spare_serve();
}

static enum eng_look spare_look(struct eng_source *src)
{
	atomic_fetch_add(&looks, 1);
	return spare_serve() ? ENG_LOOK_FOUND : ENG_LOOK_NOTHING;
}

static void spare_look_end(struct eng_source *src)
{
}

/* Make the next event as soon as the last one was served. */
static void spare_run_peer(void)
{
	uint64_t one = 1;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (unsigned n = 0; !atomic_load(&peer->over); n++) {
		if (write(fd, &one, sizeof(one)) != sizeof(one))
			_exit(1);
		while (atomic_load(&peer->served) == n && !atomic_load(&peer->over))
			;
	}
	_exit(0);
}

static void it_spins_while_the_program_sleeps(void **state)
{
	uint64_t end = clock_now_ns() + WAIT_NS;
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0)
		spare_run_peer();
	source = (struct eng_source){
		.ready = spare_ready, .look = spare_look, .look_end = spare_look_end};
	list_init(&source.all);
	engine_assign(&source);
	assert_int_equal(engine_add(&source, fd, false), 0);
	while (atomic_load(&looks) == 0 && clock_now_ns() < end)
		usleep(2000);
	atomic_store(&peer->over, true);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_true(atomic_load(&looks) > 0);
}

/* Returns false if this process may use only one CPU. */
static bool spare_use_two_cpus(void)
{
	cpu_set_t may, two;

	CPU_ZERO(&two);
	if (sched_getaffinity(0, sizeof(may), &may))
		return false;
	for (size_t cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&two) < 2; cpu++)
		if (CPU_ISSET(cpu, &may))
			CPU_SET(cpu, &two);
	return CPU_COUNT(&two) == 2 && !sched_setaffinity(0, sizeof(two), &two);
}

static int spare_set_up(void **state)
{
	peer = mmap(NULL, sizeof(*peer), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return peer == MAP_FAILED || fd < 0 || unsetenv("SOFTRNIC_SPIN_US") ||
	       setenv("SOFTRNIC_THREADS", "1", 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_spins_while_the_program_sleeps),
	};

	if (!spare_use_two_cpus())
		return 77;
	return cmocka_run_group_tests_name("spare", tests, spare_set_up, NULL);
}
