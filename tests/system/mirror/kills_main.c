/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kills_main.c -- `mirror_kills TIMES [SEED [POINT...]]`: processes of a set with three hosts are
 * killed at each point of core/killpoint.h, TIMES times in each role that comes there, while
 * registers are read and written. Whoever died is started again. Then the history must be
 * linearizable and the copies equal, and a point that is never reached is a failure.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clients.h"
#include "mirror/core/killpoint.h"
#include "sim/prng.h"
#include "system/lib/check.h"

#define HOSTS         3
#define ALL           7
#define ROUNDS        24 /* of one set's life */
#define DEATH_MS      1500
#define SERVE_MS      20000
#define NO_HOST       HOSTS
#define TRIES_FOR_ONE 40 /* without a hit */

/* A point, and one of those who come there. */
struct target {
	const char *name;
	unsigned who, hits, tries;
	unsigned most; /* n of the next try is 1 to that */
};

static const struct {
	const char *name;
	unsigned who;
} points[] = {
#define KILLS_POINT(name, who, where) {#name, who},
	KILLPOINTS(KILLS_POINT)};

static struct target targets[3 * ARRAY_LEN(points)];
static unsigned target_count, times = 1;
static struct hosts hosts;
static struct clients all = {.hosts = &hosts, .pause_us = 1000};
static struct client primary;
static struct prng chance;
static size_t acknowledged;
static bool is_marked[HOSTS]; /* a daemon that may still die at a point */

static const char *who_2str(unsigned who)
{
	return who == KILLPOINT_LIBRARY   ? "library"
	       : who == KILLPOINT_PRIMARY ? "primary's daemon"
					  : "replica's daemon";
}

/* ---- what is to be hit ---- */

static void plan(int argc, char **argv)
{
	for (unsigned i = 0; i < ARRAY_LEN(points); i++) {
		bool wanted = argc <= 3;

		for (int k = 3; k < argc; k++)
			wanted |= !strcmp(argv[k], points[i].name);
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

/* The one that was hit least. NULL: all were hit often enough. */
static struct target *next_target(void)
{
	struct target *least = NULL;
	unsigned first = (unsigned)prng_below(&chance, target_count);

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

/* ---- processes ---- */

static bool is_daemon_dead(unsigned host, int timeout_ms)
{
	int status = hosts.hosts[host].daemon.pid ? proc_wait(&hosts.hosts[host].daemon, timeout_ms)
						  : SIGKILL;

	if (status == -ETIMEDOUT)
		return false;
	if (status != SIGKILL)
		fail_msg("the daemon of host %c ends with status %#x", 'a' + (char)host,
			 (unsigned)status);
	return true;
}

/* Again, without or with a point. False: it has died at that before it listened. */
static bool restart(unsigned host, const char *const envs[])
{
	if (hosts.hosts[host].daemon.pid)
		host_kill(&hosts, host);
	is_marked[host] = envs != NULL;
	if (!envs)
		host_start(&hosts, host, NULL);
	return !envs || host_try_start(&hosts, host, envs);
}

static unsigned some_host_in_sync(unsigned other_than)
{
	static struct register_entry now;
	unsigned host;

	hosts_read(&hosts, &now);
	do
		host = (unsigned)prng_below(&chance, HOSTS);
	while (!(now.record.view.insync & MIRROR_BIT(host)) || host == other_than);
	return host;
}

/* Everybody is there again, and all copies are in-sync. */
static void recover(void)
{
	for (unsigned host = 0; host < HOSTS; host++)
		if (is_marked[host] || is_daemon_dead(host, 0))
			restart(host, NULL);
	for (unsigned tries = 0; client_status(&primary) >= 0; tries++) {
		assert_in_range(tries, 0, 10);
		client_start(&all, &primary, some_host_in_sync(NO_HOST), NULL);
		if (!client_serves(&primary, SERVE_MS) && client_status(&primary) < 0)
			fail_msg("nobody becomes primary");
	}
	hosts_wait_insync(&hosts, ALL);
}

/* The primary dies, and another process follows it on that host. */
static struct client follow(unsigned host, const char *const envs[])
{
	struct client next;

	client_start(&all, &next, host, envs);
	proc_kill(&primary.proc);
	return next;
}

/* ---- one kill ---- */

static bool kill_library(const char *const envs[])
{
	struct client next = follow(some_host_in_sync(NO_HOST), envs);
	int status = proc_wait(&next.proc, DEATH_MS);

	if (status == SIGKILL)
		return true;
	if (status != -ETIMEDOUT)
		fail_msg("a client ends with status %#x", (unsigned)status);
	proc_kill(&next.proc);
	return false;
}

/* Its host's daemon sees its end, the next one's promotion, and that one's end. */
static bool kill_daemon_of_primary(const char *const envs[])
{
	unsigned host = primary.host;
	bool is_hit = !restart(host, envs);

	if (is_hit)
		return true;
	primary = follow(host, NULL);
	is_hit = is_daemon_dead(host, DEATH_MS / 2);
	if (!is_hit && client_serves(&primary, DEATH_MS)) {
		close(primary.proc.in); /* it unmaps */
		primary.proc.in = -1;
		is_hit = is_daemon_dead(host, DEATH_MS);
	}
	if (is_hit)
		restart(host, NULL);
	/* Its map may have failed with the daemon. */
	if (primary.proc.pid && proc_wait(&primary.proc, DEATH_MS) == -ETIMEDOUT)
		proc_kill(&primary.proc);
	return is_hit;
}

/* It returns, then another one is primary. */
static bool kill_daemon_of_replica(const char *const envs[])
{
	unsigned host = (primary.host + 1 + (unsigned)prng_below(&chance, HOSTS - 1)) % HOSTS;

	if (!restart(host, envs) ||
	    is_daemon_dead(host, (int)prng_between(&chance, 1, DEATH_MS / 2)))
		return true;
	primary = follow(some_host_in_sync(host), NULL);
	return is_daemon_dead(host, DEATH_MS);
}

static void kill_at(struct target *t)
{
	unsigned n = (unsigned)prng_between(&chance, 1, t->most);
	char at[64];
	const char *const envs[] = {
		at, t->who == KILLPOINT_REPLICA ? "LD_PRELOAD=" SYSTEM_MIRROR_MEDIUM : NULL, NULL};
	bool is_hit;

	snprintf(at, sizeof(at), "MIRROR_KILL_AT=%s:%u", t->name, n);
	if (t->who == KILLPOINT_LIBRARY)
		is_hit = kill_library(envs);
	else if (t->who == KILLPOINT_PRIMARY)
		is_hit = kill_daemon_of_primary(envs);
	else
		is_hit = kill_daemon_of_replica(envs);
	note(t, n, is_hit);
	printf("%s:%u, %s: %s\n", t->name, n, who_2str(t->who), is_hit ? "killed" : "not reached");
	recover();
}

/* ---- a life of the set ---- */

static void live(void)
{
	const struct hosts_opts opts = {.count = HOSTS,
					.size = CLIENTS_SIZE,
					.hot_slots = CLIENTS_SLOTS,
					.automatic = true};
	struct target *t;

	hosts_start(&hosts, &opts);
	memset(is_marked, 0, sizeof(is_marked));
	all.count = 0;
	recover();
	for (unsigned round = 0; round < ROUNDS && (t = next_target()); round++)
		kill_at(t);
	client_end(&primary);
	acknowledged += clients_judge(&all);
	hosts_stop(&hosts);
}

static void report(void)
{
	unsigned kills = 0;

	for (unsigned i = 0; i < target_count; i++) {
		printf("%-18s %-18s %4u kills in %4u tries\n", targets[i].name,
		       who_2str(targets[i].who), targets[i].hits, targets[i].tries);
		kills += targets[i].hits;
	}
	printf("%u kills, %zu writes were acknowledged, none is missing\n", kills, acknowledged);
}

static void who_dies_anywhere_loses_nothing(void **state)
{
	while (next_target())
		live();
	report();
}

static int stop(void **state)
{
	for (unsigned i = 0; i < HOSTS; i++)
		if (hosts.hosts[i].daemon.pid)
			host_kill(&hosts, i);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(who_dies_anywhere_loses_nothing, stop)};

	if (argc > 1)
		times = (unsigned)atoi(argv[1]);
	all.seed = chance.state = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
	setlinebuf(stdout);
	plan(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
