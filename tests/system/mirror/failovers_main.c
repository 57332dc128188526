/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * failovers_main.c -- `mirror_failovers TIMES`: the role of the primary moves from host to host, in
 * turns because it is given up and because its process is killed, TIMES times each. Nothing
 * acknowledged is missing, and daemons, programs and folders have as many descriptors, threads,
 * files and as much memory as before. Prints how long the application was without a primary.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "apps.h"
#include "clients.h"
#include "system/lib/check.h"
#include "system/lib/gauge.h"

#define HOSTS          3
#define ALL            7
#define OFFSET         8192
#define GROWTH_KIB     4096 /* of a process: what allocators keep at once, */
#define GROWTH_EACH    1024 /* and bytes a failover, far less than a connection's */
#define WARM_UP(times) ((times) / 10 + 6)
#define SLACK          8 /* what comes and goes: descriptors, threads, files that replace others */
#define SETTLE_MS      1000
#define END_MS         30000 /* what ends does so in its own time, on a busy machine, too */
#define SILENCE_MS     20000 /* nobody is excluded for being slow */

struct use {
	const char *what;
	unsigned host;
	pid_t pid;
	int fds, threads;
	long rss_kib;
};

static struct hosts hosts;
static struct proc lasting[HOSTS]; /* programs that map and unmap again and again */
static struct proc victim;
static struct use uses[2 * HOSTS];
static unsigned files, times = 10;
static uint64_t *given_ns, *killed_ns; /* how long nobody served */

/* ---- what is in use ---- */

static int count_threads(pid_t pid)
{
	char path[64], line[256];
	int threads = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	file = fopen(path, "re");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		sscanf(line, "Threads: %d", &threads);
	fclose(file);
	return threads;
}

static unsigned count_files(const char *folder)
{
	DIR *dir = opendir(folder);
	unsigned count = 0;

	assert_non_null(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

static unsigned count_all_files(void)
{
	unsigned count = count_files(hosts.folder);

	for (unsigned i = 0; i < HOSTS; i++)
		count += count_files(hosts.hosts[i].folder);
	return count;
}

static struct use measure(const char *what, unsigned host, pid_t pid)
{
	return (struct use){.what = what,
			    .host = host,
			    .pid = pid,
			    .fds = gauge_fds(pid),
			    .threads = count_threads(pid),
			    .rss_kib = gauge_rss_anon_kib(pid)};
}

static void measure_all(struct use *now)
{
	for (unsigned i = 0; i < HOSTS; i++) {
		now[2 * i] = measure("daemon", i, hosts.hosts[i].daemon.pid);
		now[2 * i + 1] = measure("program", i, lasting[i].pid);
	}
}

/* The most of a while: daemons ask each other now and then. */
static void remember_uses(void)
{
	struct use now[2 * HOSTS];

	files = count_all_files();
	measure_all(uses);
	for (int waited = 0; waited < SETTLE_MS; waited += 10) {
		usleep(10000);
		measure_all(now);
		for (unsigned i = 0; i < 2 * HOSTS; i++) {
			if (now[i].fds > uses[i].fds)
				uses[i].fds = now[i].fds;
			if (now[i].threads > uses[i].threads)
				uses[i].threads = now[i].threads;
			if (now[i].rss_kib > uses[i].rss_kib)
				uses[i].rss_kib = now[i].rss_kib;
		}
		if (count_all_files() > files)
			files = count_all_files();
	}
}

static bool is_as_before(const struct use *before, const struct use *now)
{
	return now->fds <= before->fds + SLACK && now->threads <= before->threads + SLACK &&
	       now->rss_kib - before->rss_kib <= GROWTH_KIB + (long)times * GROWTH_EACH / 1024;
}

static void compare_uses(void)
{
	unsigned now_files;
	bool equal = true;

	for (unsigned i = 0; i < 2 * HOSTS; i++) {
		struct use now, *before = &uses[i];

		for (int waited = 0; waited < END_MS; waited += 10) {
			now = measure(before->what, before->host, before->pid);
			if (is_as_before(before, &now))
				break;
			usleep(10000);
		}
		printf("%s of host %c: descriptors %d -> %d, threads %d -> %d, memory %ld -> %ld "
		       "KiB\n",
		       now.what, 'a' + (char)now.host, before->fds, now.fds, before->threads,
		       now.threads, before->rss_kib, now.rss_kib);
		equal &= is_as_before(before, &now);
	}
	now_files = count_all_files();
	printf("files %u -> %u\n", files, now_files);
	assert_true(equal);
	assert_true(now_files <= files + SLACK);
}

/* ---- failovers ---- */

static uint64_t wait_ok(struct proc *p, uint64_t since_ns)
{
	app_check("ok", proc_line(p, 60000));
	return clock_now_ns() - since_ns;
}

/* The program of one host gives the role up to a new one on the next host; that is killed, and the
 * program of the host after that follows. */
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
	/* The next round begins with this host. */
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

/* Nobody is primary while it is measured. */
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
	/* Else each new thread may take another arena, and what one has freed is not used again. */
	setenv("MALLOC_ARENA_MAX", "1", 1);
	/* Else a large block that is freed makes the heap keep the next ones. */
	setenv("MALLOC_MMAP_THRESHOLD_", "131072", 1);
	setlinebuf(stdout);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	free(given_ns);
	free(killed_ns);
	return failed;
}
