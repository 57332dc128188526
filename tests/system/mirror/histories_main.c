/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * histories_main.c -- `mirror_histories [RUNS [SEED [AT_ONCE [TROUBLE...]]]]`: run many sets of
 * three hosts for a short time each (a "life"). Processes are killed, exit, or are stopped for some
 * time, several of them at the same time. Write-backs fail, and the time of day jumps. TROUBLE
 * selects troubles by name, for instance '*medium*'; the default is all. The history of each life
 * must be linearizable, and its copies must be equal. The lives have the seeds SEED, SEED + 1 and
 * so on. Several lives run at the same time, because a life waits half of its time. If a life
 * fails, its folder is kept. At the end the program prints how often each trouble was caused, and
 * how often it had its intended effect.
 */
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "clock_jumps.h"
#include "life.h"
#include "system/lib/cases.h"

#define STEPS_MAX    4 /* troubles in a life */
#define LEASE_MS     1000
#define STOP_MS      1800
#define DEATH_MS     1500
#define SERVE_MS     10000 /* a wide limit, because the machine can be busy */
#define WRITES_MAX   40    /* maximum number of writes between two troubles */
#define LIFE_LIMIT_S 300   /* far more than a life needs: a few seconds */
#define KINDS_MAX    16

/* Sums over all successful lives, shared by all processes of this program. */
static struct sums {
	struct clients_counts counts;
	struct clock_jumps jumps;
	unsigned jumping;  /* lives with jumps of the clock */
	unsigned replaced; /* copies that were replaced */
	unsigned made[KINDS_MAX], effective[KINDS_MAX];
} * sums;

static struct life life;
static unsigned replaced; /* copies that were replaced */
static unsigned runs = 4;
static unsigned kinds[KINDS_MAX], kind_count; /* numbers of the selected troubles */
static char medium_log[64];                   /* name of the log of the present step */

static unsigned below(unsigned n)
{
	return (unsigned)prng_below(&life.chance, n);
}

static void rest(unsigned most_ms)
{
	usleep(1000 * below(most_ms + 1));
}

/* Let the client work until its write-back has failed. */
static int wait_for_the_fault(struct client *c)
{
	int status;

	client_serves(c, SERVE_MS);
	status = c->proc.pid ? proc_wait(&c->proc, DEATH_MS) : 0;
	if (status == -ETIMEDOUT)
		proc_kill(&c->proc);
	return status;
}

/* Each of these functions causes a trouble. Returns true if the trouble had its intended effect. */
static bool primary_is_killed(void)
{
	life.primary = life_follow(&life, life_some_host(&life, LIFE_NO_HOST), NULL);
	return true;
}

static bool primary_gives_up(void)
{
	struct client next;
	bool in_order;

	client_start(&life.all, &next, life_some_host(&life, life.primary.host), NULL);
	in_order = client_end_before(&life.primary, &next);
	life.primary = next;
	return in_order;
}

static bool primary_dies_in_a_flush(void)
{
	static const char *const points[] = {"flush_begin", "flush_snapshot", "flush_posted",
					     "flush_local", "flush_settled",  "w6_known"};
	char at[64];
	const char *const envs[] = {at, NULL};

	snprintf(at, sizeof(at), "MIRROR_KILL_AT=%s:%u", points[below(ARRAY_LEN(points))],
		 1 + below(100));
	life.primary = life_follow(&life, life_some_host(&life, LIFE_NO_HOST), envs);
	return wait_for_the_fault(&life.primary) == SIGKILL;
}

/*
 * Stop the primary's process, and let it continue when another process serves or will soon serve.
 */
static bool primary_is_stopped(void)
{
	struct client next;
	bool is_fenced;

	client_start(&life.all, &next, life_some_host(&life, life.primary.host), NULL);
	proc_signal(&life.primary.proc, SIGSTOP);
	if (below(2))
		client_serves(&next, SERVE_MS);
	else
		rest(STOP_MS);
	proc_signal(&life.primary.proc, SIGCONT);
	is_fenced = !client_end_before(&life.primary, &next) && life.primary.serves;
	life.primary = next;
	return is_fenced;
}

static bool daemon_is_killed(void)
{
	unsigned host = below(LIFE_HOSTS);

	host_kill(&life.hosts, host);
	rest(300);
	life_restart(&life, host, NULL);
	return true;
}

static bool stop_past_a_lease(struct proc *daemon)
{
	uint64_t begin = clock_now_ns();

	proc_signal(daemon, SIGSTOP);
	rest(STOP_MS);
	proc_signal(daemon, SIGCONT);
	return clock_now_ns() - begin > LEASE_MS * NSEC_PER_MS;
}

static bool daemon_is_stopped(void)
{
	return stop_past_a_lease(&life.hosts.hosts[below(LIFE_HOSTS)].daemon);
}

static bool primary_is_killed_beside_a_stopped_daemon(void)
{
	unsigned host = below(LIFE_HOSTS);
	unsigned next = life_some_host(&life, host);
	struct proc *daemon = &life.hosts.hosts[host].daemon;

	proc_signal(daemon, SIGSTOP);
	life.primary = life_follow(&life, next, NULL);
	return stop_past_a_lease(daemon);
}

static bool all_die(void)
{
	proc_kill(&life.primary.proc);
	for (unsigned i = 0; i < LIFE_HOSTS; i++)
		host_kill(&life.hosts, i);
	return true;
}

static bool primary_and_a_daemon_die(void)
{
	unsigned host = below(LIFE_HOSTS);

	host_kill(&life.hosts, host);
	rest(20);
	proc_kill(&life.primary.proc);
	return true;
}

/* Returns settings for a process. One of its write-backs fails, by an error of the medium or a full
 * disk. Later write-backs succeed. */
static const char *const *fault_by_chance(void)
{
	static const struct {
		const char *name;
		unsigned first_max; /* metadata are written rarely, so the count is small */
	} files[] = {{"data", 20}, {"meta", 5}};
	static const unsigned errors[] = {EIO, ENOSPC};
	static char preload[1024], fault[64], log[sizeof(medium_log) + 16];
	static const char *const envs[] = {preload, fault, log, NULL};
	const char *clock = getenv("LD_PRELOAD");
	unsigned file = below(2), first = 1 + below(files[file].first_max);

	snprintf(preload, sizeof(preload), "LD_PRELOAD=" SYSTEM_MIRROR_MEDIUM ":%s",
		 clock ? clock : "");
	snprintf(fault, sizeof(fault), "MEDIUM_FAIL=%s:%u:%u:%u", files[file].name,
		 errors[below(2)], first, first + below(3));
	snprintf(log, sizeof(log), "MEDIUM_LOG=%s", medium_log);
	return envs;
}

static bool medium_of_a_daemon_fails(void)
{
	uint64_t end = clock_now_ns() + 2 * DEATH_MS * NSEC_PER_MS;

	life_restart(&life, below(LIFE_HOSTS), fault_by_chance());
	while (access(medium_log, F_OK) && clock_now_ns() < end)
		usleep(5000);
	rest(100);
	return !unlink(medium_log);
}

static bool medium_of_the_primary_fails(void)
{
	unsigned host = life_some_host(&life, LIFE_NO_HOST);

	life.primary = life_follow(&life, host, fault_by_chance());
	wait_for_the_fault(&life.primary);
	if (unlink(medium_log))
		return false;
	client_start(&life.all, &life.primary, life_some_host(&life, host), NULL);
	client_serves(&life.primary, SERVE_MS);
	replaced += life_replace_failed(&life, host);
	return true;
}

static const struct nemesis {
	const char *name;
	bool (*strike)(void);
	const char *effect;
} nemeses[] = {
	{"the primary is killed", primary_is_killed, "killed"},
	{"the primary gives up", primary_gives_up, "before it lost its role"},
	{"the primary dies in a flush", primary_dies_in_a_flush, "there"},
	{"the primary is stopped", primary_is_stopped, "fenced when it went on"},
	{"a daemon is killed", daemon_is_killed, "killed"},
	{"a daemon is stopped", daemon_is_stopped, "longer than a lease"},
	{"the primary is killed beside a stopped daemon", primary_is_killed_beside_a_stopped_daemon,
	 "longer than a lease"},
	{"all die", all_die, "killed"},
	{"the primary and a daemon die", primary_and_a_daemon_die, "killed"},
	{"the medium of a daemon fails", medium_of_a_daemon_fails, "a write-back failed"},
	{"the medium of the primary fails", medium_of_the_primary_fails, "a write-back failed"},
};

/*
 * Let the clients work. Sometimes return immediately, so that the trouble occurs before any work.
 */
static void work(void)
{
	if (life.primary.proc.pid && below(4))
		client_has_written(&life.all, &life.primary, 1 + below(WRITES_MAX), SERVE_MS);
	rest(50);
}

static void live(unsigned *made, unsigned *effective)
{
	unsigned steps = 1 + below(STEPS_MAX);

	for (unsigned i = 0; i < steps; i++) {
		unsigned which = kinds[below(kind_count)];

		work();
		effective[which] += nemeses[which].strike();
		made[which]++;
		rest(100);
		/* A waiting client can have lost its daemon, or can be killed before it serves. */
		client_serves(&life.primary, 300);
		life_recover(&life);
	}
}

/* ---- one life ---- */

/* Let the time of day jump in this life, which must have no effect. */
static const struct clock_jumps *let_the_clock_jump(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	struct clock_jumps *jumps;

	assert_int_equal(ftruncate(fd, sizeof(*jumps)), 0);
	jumps = mmap(NULL, sizeof(*jumps), PROT_READ, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(jumps, MAP_FAILED);
	close(fd);
	setenv("CLOCK_JUMPS", path, 1);
	setenv("LD_PRELOAD", SYSTEM_MIRROR_CLOCK, 1);
	return jumps;
}

static void add(unsigned *sum, unsigned more)
{
	__atomic_add_fetch(sum, more, __ATOMIC_RELAXED);
}

static void add_long(uint64_t *sum, uint64_t more)
{
	__atomic_add_fetch(sum, more, __ATOMIC_RELAXED);
}

static void add_counts(const struct clients_counts *counts)
{
	add_long(&sums->counts.acknowledged, counts->acknowledged);
	add_long(&sums->counts.unsure, counts->unsure);
	add_long(&sums->counts.reads, counts->reads);
	add_long(&sums->counts.epochs, counts->epochs);
}

/* In the daemons, only the times of events use the time of day. */
static void add_jumps(const struct clock_jumps *jumps)
{
	assert_true(jumps->daemons && jumps->applications);
	add(&sums->jumping, 1);
	add_long(&sums->jumps.daemons, jumps->daemons);
	add_long(&sums->jumps.applications, jumps->applications);
}
static void history_is_linearizable(void **state)
{
	uint64_t seed = *(const uint64_t *)*state;
	unsigned made[KINDS_MAX] = {0}, effective[KINDS_MAX] = {0};
	const struct clock_jumps *jumps = NULL;
	struct clients_counts counts = {0};
	char clock[64];

	alarm(LIFE_LIMIT_S);
	life.chance.state = seed;
	snprintf(medium_log, sizeof(medium_log), "medium.%llu", (unsigned long long)seed);
	snprintf(clock, sizeof(clock), "clock.%llu", (unsigned long long)seed);
	if (below(2))
		jumps = let_the_clock_jump(clock);
	life_begin(&life);
	live(made, effective);
	life_end(&life, &counts);
	add_counts(&counts);
	add(&sums->replaced, replaced);
	if (jumps)
		add_jumps(jumps);
	unlink(clock);
	for (unsigned i = 0; i < ARRAY_LEN(nemeses); i++) {
		add(&sums->made[i], made[i]);
		add(&sums->effective[i], effective[i]);
	}
}

static int stop(void **state)
{
	life_abort(&life);
	return 0;
}

/* ---- all lives ---- */

static void print_progress(size_t ended)
{
	if (ended % 10 == 0 || ended == runs)
		printf("%zu histories, %zu acknowledged writes, %zu confirmed reads\n", ended,
		       sums->counts.acknowledged, sums->counts.reads);
}

static void print_sums(void)
{
	printf("%zu epochs, %zu writes without an answer\n", sums->counts.epochs,
	       sums->counts.unsure);
	printf("the time of day jumped in %u histories, %llu times for daemons and %llu times for "
	       "applications\n",
	       sums->jumping, (unsigned long long)sums->jumps.daemons,
	       (unsigned long long)sums->jumps.applications);
	printf("%u copies had failed and were replaced\n", sums->replaced);
	for (unsigned k = 0; k < kind_count; k++) {
		unsigned i = kinds[k];

		printf("%5u times: %s (%u: %s)\n", sums->made[i], nemeses[i].name,
		       sums->effective[i], nemeses[i].effect);
	}
}

static int live_all(uint64_t first, unsigned at_once)
{
	struct CMUnitTest *tests = calloc(runs, sizeof(*tests));
	uint64_t *seeds = calloc(runs, sizeof(*seeds));
	char(*names)[32] = calloc(runs, sizeof(*names));
	int failed;

	if (!tests || !seeds || !names)
		return 1;
	for (unsigned i = 0; i < runs; i++) {
		seeds[i] = first + i;
		snprintf(names[i], sizeof(names[i]), "seed %llu", (unsigned long long)seeds[i]);
		tests[i] = (struct CMUnitTest){.name = names[i],
					       .test_func = history_is_linearizable,
					       .teardown_func = stop,
					       .initial_state = &seeds[i]};
	}
	failed = cases_run_many(tests, runs, at_once, print_progress);
	print_sums();
	printf("%d of %u histories failed\n", failed, runs);
	free(names);
	free(seeds);
	free(tests);
	return failed;
}

static void choose_kinds(int argc, char **argv)
{
	_Static_assert(ARRAY_LEN(nemeses) <= KINDS_MAX, "each needs a place");

	for (unsigned i = 0; i < ARRAY_LEN(nemeses); i++) {
		bool wanted = argc <= 4;

		for (int k = 4; k < argc; k++)
			wanted |= !fnmatch(argv[k], nemeses[i].name, 0);
		if (wanted)
			kinds[kind_count++] = i;
	}
}

int main(int argc, char **argv)
{
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
	unsigned at_once = argc > 3 ? (unsigned)atoi(argv[3]) : 2;

	if (argc > 1)
		runs = (unsigned)atoi(argv[1]);
	choose_kinds(argc, argv);
	if (!runs || !kind_count || !at_once || at_once > CASES_AT_ONCE_MAX)
		return 2;
	sums = mmap(NULL, sizeof(*sums), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (sums == MAP_FAILED)
		return 1;
	setlinebuf(stdout);
	return live_all(seed, at_once) != 0;
}
