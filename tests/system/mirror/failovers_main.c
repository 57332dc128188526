/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * failovers_main.c -- `mirror_failovers TIMES`: the role of the primary moves from host to host,
 * TIMES times because its process gives the role up, and TIMES times because its process is killed.
 * No acknowledged data must be missing. Afterwards daemons, programs and folders must have as many
 * descriptors, threads and files, and as much memory, as before. Prints how long the application
 * had no primary.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "apps.h"
#include "clients.h"
#include "system/lib/check.h"
#include "uses.h"

#define HOSTS      3
#define ALL        7
#define OFFSET     8192
#define GROWTH_KIB 4096 /* permitted growth of a process: memory that allocators keep */
/* permitted growth for each failover, in bytes: far less than the memory of a connection */
#define GROWTH_EACH    1024
#define WARM_UP(times) ((times) / 10 + 6)
#define SILENCE_MS     20000 /* long enough that no member is excluded because it is slow */

static struct proc lasting[HOSTS]; /* programs that repeatedly map and unmap the set */
static struct proc victim;
static struct uses uses = {.hosts = &hosts};
static unsigned times = 10;
/* times without a primary, after the role was given up and after a kill */
static uint64_t *given_ns, *killed_ns;

static void remember_uses(void)
{
	for (unsigned i = 0; i < HOSTS; i++) {
		uses_add(&uses, "daemon", i, hosts.hosts[i].daemon.pid);
		uses_add(&uses, "program", i, lasting[i].pid);
	}
	uses_remember(&uses);
}

static void compare_uses(void)
{
	uses_compare(&uses, GROWTH_KIB + (long)times * GROWTH_EACH / 1024);
}

/* ---- failovers ---- */

static uint64_t wait_ok(struct proc *p, uint64_t since_ns)
{
	app_check("ok", proc_line(p, 60000));
	return clock_now_ns() - since_ns;
}

/* The program on one host gives up the role, and a new program on the next host takes over the
 * role. The new program is killed, and the program on the third host takes over the role. */
static void fail_over(unsigned round, uint64_t *given, uint64_t *killed)
{
	unsigned first = round % HOSTS, second = (first + 1) % HOSTS, third = (first + 2) % HOSTS;
	uint64_t since;

	hosts_wait_insync(&hosts, ALL);
	app_expect(&lasting[first], "durable 7", "put %u %u", OFFSET, 2 * round + 1);
	app_start(&victim, &hosts, second, NULL);
	app_tell(&victim, "map-wait\n");
	since = clock_now_ns();
	app_expect(&lasting[first], "ok", "unmap");
	*given = wait_ok(&victim, since);
	assert_int_equal(atoi(proc_ask(&victim, "get %u", OFFSET)), 2 * round + 1);
	hosts_wait_insync(&hosts, ALL);
	app_expect(&victim, "durable 7", "put %u %u", OFFSET, 2 * round + 2);

	app_tell(&lasting[third], "map-wait\n");
	since = clock_now_ns();
	proc_kill(&victim);
	*killed = wait_ok(&lasting[third], since);
	assert_int_equal(atoi(proc_ask(&lasting[third], "get %u", OFFSET)), 2 * round + 2);
	hosts_wait_insync(&hosts, ALL);
	/* the next round begins with this host */
}

static int compare_ns(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void print_times(const char *what, uint64_t *ns, unsigned n)
{
	qsort(ns, n, sizeof(*ns), compare_ns);
	printf("%s: median %.1f ms, p99 %.1f ms, longest %.1f ms\n", what, ns[n / 2] / 1e6,
	       ns[n * 99 / 100] / 1e6, ns[n - 1] / 1e6);
}

/* Measure while no process is primary. */
static void measure_idle(unsigned primary, void (*use)(void))
{
	app_expect(&lasting[primary], "ok", "unmap");
	use();
	app_expect(&lasting[primary], "ok", "map-wait");
}

static void nothing_leaks(void **state)
{
	unsigned warm_up = WARM_UP(times);

	app_expect(&lasting[0], "ok", "map-wait");
	hosts_wait_insync(&hosts, ALL);
	for (unsigned i = 0; i < warm_up + times; i++) {
		unsigned at = i < warm_up ? i : i - warm_up;

		if (i == warm_up)
			measure_idle(2 * i % HOSTS, remember_uses);
		fail_over(2 * i, &given_ns[at], &killed_ns[at]);
	}
	measure_idle(2 * (warm_up + times) % HOSTS, compare_uses);
	print_times("given up", given_ns, times);
	print_times("killed", killed_ns, times);
}

static int setup(void **state)
{
	const struct hosts_opts opts = {.count = HOSTS,
					.peer_timeout_ms = SILENCE_MS,
					.replica_timeout_ms = SILENCE_MS,
					.automatic = true};

	hosts_start(&hosts, &opts);
	for (unsigned i = 0; i < HOSTS; i++)
		app_start(&lasting[i], &hosts, i, NULL);
	return 0;
}

static int teardown(void **state)
{
	for (unsigned i = 0; i < HOSTS; i++)
		proc_kill(&lasting[i]);
	if (victim.pid)
		proc_kill(&victim);
	hosts_stop(&hosts);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(nothing_leaks, setup, teardown)};
	int failed;

	if (argc > 1)
		times = (unsigned)atoi(argv[1]);
	if (!times)
		return 2;
	given_ns = calloc(times + WARM_UP(times), sizeof(*given_ns));
	killed_ns = calloc(times + WARM_UP(times), sizeof(*killed_ns));
	uses_prepare();
	setlinebuf(stdout);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	free(given_ns);
	free(killed_ns);
	return failed;
}
