/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kills_main.c -- `mirror_kills TIMES [SEED [POINT...]]`: kill processes of a set with three hosts
 * while clients read and write registers. They are killed at each point of core/killpoint.h, or
 * only at points whose names match a POINT such as 'grow_*'. Each such point kills TIMES times in
 * each role that reaches it. A killed process is started again. Afterwards the history must be
 * linearizable, and the copies must be equal. A point that no process reaches is a failure.
 */
#include <fnmatch.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "life.h"
#include "mirror/core/killpoint.h"
#include "system/lib/check.h"

#define ROUNDS        24 /* kills during the life of one set */
#define DEATH_MS      1500
#define TRIES_FOR_ONE 40 /* after this many tries without a kill, a point counts as not reached */

/* A point, and a role of a process that reaches it. */
struct target {
	const char *name;
	unsigned who, hits, tries;
	/* the next try kills at the nth pass of the point, with a random n from 1 to `most` */
	unsigned most;
};

static const struct {
	const char *name;
	unsigned who;
} points[] = {
#define KILLS_POINT(name, who, where) {#name, who},
	KILLPOINTS(KILLS_POINT)};

static struct target targets[3 * ARRAY_LEN(points)];
static unsigned target_count, times = 1;
static struct life life;
static struct clients_counts counts;

static const char *who_2str(unsigned who)
{
	return who == KILLPOINT_LIBRARY   ? "library"
	       : who == KILLPOINT_PRIMARY ? "primary's daemon"
					  : "replica's daemon";
}

/* ---- the points to kill at ---- */

static void plan(int argc, char **argv)
{
	for (unsigned i = 0; i < ARRAY_LEN(points); i++) {
		bool wanted = argc <= 3;

		for (int k = 3; k < argc; k++)
			wanted |= !fnmatch(argv[k], points[i].name, 0);
		for (unsigned who = 1; wanted && who <= KILLPOINT_REPLICA; who *= 2)
			if (points[i].who & who)
				targets[target_count++] = (struct target){
					.name = points[i].name,
					.who = who,
					.most = strncmp(points[i].name, "flush", 5) ? 1 : 64};
	}
	if (!target_count)
		fail_msg("there is no such point");
}

/* Returns the target with the fewest kills so far, or NULL if all targets have enough kills. */
static struct target *next_target(void)
{
	struct target *least = NULL;
	unsigned first = (unsigned)prng_below(&life.chance, target_count);

	for (unsigned i = 0; i < target_count; i++) {
		struct target *t = &targets[(first + i) % target_count];

		if (t->hits < times && (!least || t->hits < least->hits ||
					(t->hits == least->hits && t->tries < least->tries)))
			least = t;
	}
	return least;
}

static void note(struct target *t, unsigned n, bool is_hit)
{
	t->tries++;
	t->hits += is_hit;
	if (is_hit)
		t->most++;
	else
		t->most = n > 1 ? n - 1 : 1;
	if (!t->hits && t->tries > TRIES_FOR_ONE)
		fail_msg("%s, %s: nobody comes there", t->name, who_2str(t->who));
}

/* ---- one kill ---- */

static bool is_of_growth(const struct target *t)
{
	return !strncmp(t->name, "grow", 4);
}

/* If the client does not reach the point, restart a daemon: some points need a member that returns.
 * Sometimes the set grows meanwhile. */
static bool kill_library(const char *const envs[])
{
	if (prng_below(&life.chance, 3) == 0)
		life_order_growth(&life, (unsigned)prng_below(&life.chance, LIFE_HOSTS));
	struct client next = life_follow(&life, life_some_host(&life, LIFE_NO_HOST), envs);
	int status = proc_wait(&next.proc, DEATH_MS / 2);

	if (status == -ETIMEDOUT) {
		life_restart(&life, (next.host + 1) % LIFE_HOSTS, NULL);
		status = proc_wait(&next.proc, DEATH_MS);
	}
	if (status == SIGKILL)
		return true;
	if (status != -ETIMEDOUT)
		fail_msg("a client ends with status %#x", (unsigned)status);
	proc_kill(&next.proc);
	return false;
}

/* Let the daemon of the primary's host pass the points for the exit of a process, for the promotion
 * of the next process, and for the exit of the next process. */
static bool kill_daemon_of_primary(const struct target *t, const char *const envs[])
{
	unsigned host = life.primary.host;
	bool is_hit = !life_restart(&life, host, envs) ||
		      (is_of_growth(t) && life_grow_until_dead(&life, host, DEATH_MS));

	if (is_hit)
		return true;
	life.primary = life_follow(&life, host, NULL);
	is_hit = life_is_daemon_dead(&life, host, DEATH_MS / 2);
	if (!is_hit && client_serves(&life.primary, DEATH_MS)) {
		close(life.primary.proc.in); /* closing its input makes the process unmap */
		life.primary.proc.in = -1;
		is_hit = life_is_daemon_dead(&life, host, DEATH_MS);
	}
	if (is_hit)
		life_restart(&life, host, NULL);
	/* The map call of the process can have failed because the daemon was killed. */
	if (life.primary.proc.pid && proc_wait(&life.primary.proc, DEATH_MS) == -ETIMEDOUT)
		proc_kill(&life.primary.proc);
	return is_hit;
}

/* Kill the replica's daemon. The member returns. Afterwards life.primary can be another process. */
static bool kill_daemon_of_replica(const struct target *t, const char *const envs[])
{
	unsigned host =
		(life.primary.host + 1 + (unsigned)prng_below(&life.chance, LIFE_HOSTS - 1)) %
		LIFE_HOSTS;

	if (!life_restart(&life, host, envs) ||
	    (is_of_growth(t) && life_grow_until_dead(&life, host, DEATH_MS)) ||
	    life_is_daemon_dead(&life, host, (int)prng_between(&life.chance, 1, DEATH_MS / 2)))
		return true;
	life.primary = life_follow(&life, life_some_host(&life, host), NULL);
	return life_is_daemon_dead(&life, host, DEATH_MS);
}

static void kill_at(struct target *t)
{
	unsigned n = (unsigned)prng_between(&life.chance, 1, t->most);
	char at[64];
	const char *const envs[] = {
		at, t->who == KILLPOINT_REPLICA ? "LD_PRELOAD=" SYSTEM_MIRROR_MEDIUM : NULL, NULL};
	bool is_hit;

	snprintf(at, sizeof(at), "MIRROR_KILL_AT=%s:%u", t->name, n);
	if (t->who == KILLPOINT_LIBRARY)
		is_hit = kill_library(envs);
	else if (t->who == KILLPOINT_PRIMARY)
		is_hit = kill_daemon_of_primary(t, envs);
	else
		is_hit = kill_daemon_of_replica(t, envs);
	note(t, n, is_hit);
	printf("%s:%u, %s: %s\n", t->name, n, who_2str(t->who), is_hit ? "killed" : "not reached");
	life_recover(&life);
}

/* ---- a life of the set ---- */

static void live(void)
{
	struct target *t;

	life_begin(&life);
	for (unsigned round = 0; round < ROUNDS && (t = next_target()); round++)
		kill_at(t);
	life_end(&life, &counts);
}

static void report(void)
{
	unsigned kills = 0;

	for (unsigned i = 0; i < target_count; i++) {
		printf("%-18s %-18s %4u kills in %4u tries\n", targets[i].name,
		       who_2str(targets[i].who), targets[i].hits, targets[i].tries);
		kills += targets[i].hits;
	}
	printf("%u kills, %zu writes were acknowledged, none is missing; %zu reads were confirmed\n",
	       kills, counts.acknowledged, counts.reads);
}

static void a_kill_at_any_point_loses_nothing(void **state)
{
	while (next_target())
		live();
	report();
}

static int stop(void **state)
{
	life_abort(&life);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_kill_at_any_point_loses_nothing, stop)};

	if (argc > 1)
		times = (unsigned)atoi(argv[1]);
	life.chance.state = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
	setlinebuf(stdout);
	plan(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
