/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * histories_main.c -- `mirror_histories RUNS [SEED]`: short lives of sets with three hosts, in
 * which processes are killed, end, and stop for a while, some at once, and the time of day jumps.
 * The history of each must be linearizable, and its copies equal.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "life.h"
#include "mirror/core/killpoint.h"
#include "system/lib/check.h"

#define STEPS_MAX 4    /* of trouble, a run */
#define STOP_MS   1800 /* a lease has 1000 */
#define DEATH_MS  1000

static struct life life;
static unsigned runs = 1;

static unsigned below(unsigned n)
{
	return (unsigned)prng_below(&life.chance, n);
}

static void rest(unsigned most_ms)
{
	usleep(1000 * below(most_ms + 1));
}

static void primary_is_killed(void)
{
	life.primary = life_follow(&life, life_some_host(&life, LIFE_NO_HOST), NULL);
}

static void primary_gives_up(void)
{
	struct client next;

	client_start(&life.all, &next, life_some_host(&life, life.primary.host), NULL);
	client_end(&life.primary);
	life.primary = next;
}

static void primary_dies_in_a_flush(void)
{
	static const char *const points[] = {"flush_begin", "flush_snapshot", "flush_posted",
					     "flush_local", "flush_settled",  "w6_known"};
	char at[64];
	const char *const envs[] = {at, NULL};

	snprintf(at, sizeof(at), "MIRROR_KILL_AT=%s:%u", points[below(ARRAY_LEN(points))],
		 1 + below(200));
	life.primary = life_follow(&life, life_some_host(&life, LIFE_NO_HOST), envs);
	if (proc_wait(&life.primary.proc, DEATH_MS) == -ETIMEDOUT)
		proc_kill(&life.primary.proc);
}

/* It goes on when another one may have followed. */
static void primary_is_stopped(void)
{
	struct client next;

	client_start(&life.all, &next, life_some_host(&life, life.primary.host), NULL);
	proc_signal(&life.primary.proc, SIGSTOP);
	rest(STOP_MS);
	proc_signal(&life.primary.proc, SIGCONT);
	client_end(&life.primary);
	life.primary = next;
}

static void daemon_is_killed(void)
{
	unsigned host = below(LIFE_HOSTS);

	host_kill(&life.hosts, host);
	rest(300);
	life_restart(&life, host, NULL);
}

static void daemon_is_stopped(void)
{
	struct proc *daemon = &life.hosts.hosts[below(LIFE_HOSTS)].daemon;

	proc_signal(daemon, SIGSTOP);
	rest(STOP_MS);
	proc_signal(daemon, SIGCONT);
}

static void all_die(void)
{
	proc_kill(&life.primary.proc);
	for (unsigned i = 0; i < LIFE_HOSTS; i++)
		host_kill(&life.hosts, i);
}

static void primary_and_a_daemon_die(void)
{
	unsigned host = below(LIFE_HOSTS);

	host_kill(&life.hosts, host);
	rest(20);
	proc_kill(&life.primary.proc);
}

/* One of its write-backs fails, for good or full, and what follows succeeds. */
static const char *fault_by_chance(void)
{
	static const char *const files[] = {"data", "meta"};
	static const unsigned errors[] = {EIO, ENOSPC};
	static char fault[64];
	unsigned first = 1 + below(20);

	snprintf(fault, sizeof(fault), "MEDIUM_FAIL=%s:%u:%u:%u", files[below(2)], errors[below(2)],
		 first, first + below(3));
	return fault;
}

static void medium_of_a_daemon_fails(void)
{
	const char *const envs[] = {"LD_PRELOAD=" SYSTEM_MIRROR_MEDIUM, fault_by_chance(), NULL};

	life_restart(&life, below(LIFE_HOSTS), envs);
	rest(1000);
}

static void medium_of_the_primary_fails(void)
{
	const char *const envs[] = {"LD_PRELOAD=" SYSTEM_MIRROR_MEDIUM, fault_by_chance(), NULL};

	life.primary = life_follow(&life, life_some_host(&life, LIFE_NO_HOST), envs);
	if (proc_wait(&life.primary.proc, DEATH_MS) == -ETIMEDOUT)
		proc_kill(&life.primary.proc);
}

static const struct nemesis {
	const char *name;
	void (*strike)(void);
} nemeses[] = {
	{"the primary is killed", primary_is_killed},
	{"the primary gives up", primary_gives_up},
	{"the primary dies in a flush", primary_dies_in_a_flush},
	{"the primary is stopped", primary_is_stopped},
	{"a daemon is killed", daemon_is_killed},
	{"a daemon is stopped", daemon_is_stopped},
	{"all die", all_die},
	{"the primary and a daemon die", primary_and_a_daemon_die},
	{"the medium of a daemon fails", medium_of_a_daemon_fails},
	{"the medium of the primary fails", medium_of_the_primary_fails},
};

static unsigned strikes[ARRAY_LEN(nemeses)];

static void live(void)
{
	unsigned steps = 1 + below(STEPS_MAX);

	life_begin(&life);
	for (unsigned i = 0; i < steps; i++) {
		unsigned which = below(ARRAY_LEN(nemeses));

		rest(100);
		nemeses[which].strike();
		strikes[which]++;
		rest(100);
		/* A follower that lost its daemon, or was killed before it served. */
		if (life.primary.proc.pid && !client_serves(&life.primary, 0))
			rest(300);
		life_recover(&life);
	}
}

static void histories_are_linearizable(void **state)
{
	size_t acknowledged = 0;

	for (unsigned run = 1; run <= runs; run++) {
		/* The time of day means nothing: in every other run it jumps. */
		setenv("LD_PRELOAD", run % 2 ? SYSTEM_MIRROR_CLOCK : "", 1);
		live();
		acknowledged += life_end(&life);
		if (run % 10 == 0 || run == runs)
			printf("%u histories, %zu acknowledged writes\n", run, acknowledged);
	}
	for (unsigned i = 0; i < ARRAY_LEN(nemeses); i++)
		printf("%5u times: %s\n", strikes[i], nemeses[i].name);
}

static int stop(void **state)
{
	life_abort(&life);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(histories_are_linearizable, stop)};

	if (argc > 1)
		runs = (unsigned)atoi(argv[1]);
	life.chance.state = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
	setlinebuf(stdout);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
