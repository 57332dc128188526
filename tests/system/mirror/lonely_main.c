/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lonely_main.c -- `mirror_lonely ROUNDS [SEED]`: a set that continues with a single copy
 * (`lonely`). An operator moves the role under load. In each round the primary is killed, or the
 * primary and its host's daemon, or a replica's daemon. When the set is whole again and the load
 * has ended, all copies must be equal. If they are not, the program prints the views of the
 * register with their times, and the differences.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps.h"
#include "base/clock.h"
#include "clients.h"
#include "sim/prng.h"
#include "system/lib/check.h"

#define HOSTS      3
#define ALL        7
#define VIEWS      256
#define SETTLE_MS  1000
#define HEALTHY_MS 60000
#define LOAD_MS    300 /* maximum time of the load before and after the kill */

static struct clients all;
static struct client primary;
static struct prng chance;
static unsigned rounds = 3;

/* ---- membership ---- */

static struct lonely_view {
	uint64_t ms;
	struct mirror_view view;
} views[VIEWS];
static unsigned view_count;

static void note(const char *what, unsigned host)
{
	fprintf(stderr, "%10.3f %s %c\n", (double)clock_boot_ms() / 1000, what, 'a' + (char)host);
}

static mirror_mask look(void)
{
	static struct register_entry now;
	struct lonely_view *last = view_count ? &views[(view_count - 1) % VIEWS] : NULL;

	hosts_read(&hosts, &now);
	if (!last || last->view.seq != now.record.view.seq ||
	    last->view.epoch.number != now.record.view.epoch.number)
		views[view_count++ % VIEWS] =
			(struct lonely_view){clock_boot_ms(), now.record.view};
	return now.record.view.phase == MIRROR_PHASE_SERVING ? now.record.view.insync : 0;
}

static void watch_for(unsigned ms)
{
	for (unsigned waited = 0; waited < ms; waited += 5) {
		look();
		usleep(5000);
	}
}

static void print_views(void)
{
	unsigned from = view_count > VIEWS ? view_count - VIEWS : 0;

	for (unsigned i = from; i < view_count; i++) {
		const struct lonely_view *v = &views[i % VIEWS];

		fprintf(stderr, "%10.3f epoch %llu seq %llu phase %d primary %u insync %u\n",
			(double)v->ms / 1000, (unsigned long long)v->view.epoch.number,
			(unsigned long long)v->view.seq, (int)v->view.phase, v->view.primary,
			v->view.insync);
	}
}

static void print_file(const char *path)
{
	char command[400];

	snprintf(command, sizeof(command), "tail -n 40 %s >&2", path);
	if (system(command))
		fprintf(stderr, "%s cannot be read\n", path);
}

static void give_up(const char *why)
{
	char path[300];

	print_views();
	for (unsigned i = 0; i < HOSTS; i++) {
		host_run_tool(&hosts, i, "explain " HOSTS_SET);
		snprintf(path, sizeof(path), "%s/said", hosts.folder);
		print_file(path);
	}
	fprintf(stderr, "client's wait status %#x\n", (unsigned)client_status(&primary));
	snprintf(path, sizeof(path), "%s/clients.log", hosts.folder);
	print_file(path);
	for (unsigned i = 0; i < HOSTS; i++)
		print_file(hosts.hosts[i].log);
	fail_msg("%s", why);
}

/* ---- the operator ---- */

/* Order the promotion of a process that waits on this host. If is_off, declare that the earlier
 * primary's host is off. */
static void move_to(unsigned host, unsigned former, bool is_off)
{
	char command[64];

	client_start(&all, &primary, host, NULL);
	for (unsigned tries = 0; !client_serves(&primary, 1); tries++) {
		if (tries > 30)
			give_up("no process serves");
		snprintf(command, sizeof(command), "fence " HOSTS_SET " %c", 'a' + (char)former);
		if (former != host && (is_off || tries))
			host_run_tool(&hosts, host, command);
		snprintf(command, sizeof(command), "promote " HOSTS_SET " %c", 'a' + (char)host);
		host_run_tool(&hosts, host, command);
		look();
		if (client_serves(&primary, 1000))
			break;
	}
	note("serves", host);
	/* Declaring a host off excludes its member, if another member is primary already. */
	snprintf(command, sizeof(command), "resume " HOSTS_SET " %c", 'a' + (char)former);
	if (former != host)
		host_run_tool(&hosts, host, command);
}

/* On a busy machine the primary can lose its lease and exit. If so, start it again. */
static void wait_whole(void)
{
	uint64_t end = clock_boot_ms() + HEALTHY_MS;

	while (look() != ALL) {
		if (clock_boot_ms() > end)
			give_up("the set is not whole");
		if (client_status(&primary) >= 0) {
			note("primary has ended", primary.host);
			move_to(primary.host, primary.host, false);
		}
		usleep(5000);
	}
	note("whole", 0);
}

/* ---- copies ---- */

static uint64_t *copies[HOSTS];

static bool compare(unsigned first, unsigned host)
{
	uint64_t words = CLIENTS_SIZE / 8;
	unsigned differ = 0;

	for (uint64_t i = 0; i < words; i++) {
		if (copies[first][i] == copies[host][i])
			continue;
		if (differ++ < 40)
			fprintf(stderr, "offset %llu: %c %016llx, %c %016llx\n",
				(unsigned long long)i * 8, 'a' + (char)first,
				(unsigned long long)copies[first][i], 'a' + (char)host,
				(unsigned long long)copies[host][i]);
	}
	return !differ;
}

/* Check the copies that are in-sync now; a killed member can be excluded later. */
static void check_copies(void)
{
	mirror_mask insync;
	bool are_equal = true;

	for (unsigned i = 0; i < HOSTS; i++) {
		FILE *file = fopen(hosts.hosts[i].data, "re");

		assert_non_null(file);
		assert_int_equal(fread(copies[i], 1, CLIENTS_SIZE, file), CLIENTS_SIZE);
		fclose(file);
	}
	look();
	insync = views[(view_count - 1) % VIEWS].view.insync;
	for (unsigned i = 0; i < HOSTS; i++)
		if (insync >> i & 1)
			are_equal &= compare((unsigned)__builtin_ctz(insync), i);
	if (!are_equal)
		give_up("copies differ");
}

/* ---- failures ---- */

static void fail_primary(unsigned former, unsigned next, bool with_daemon)
{
	note(with_daemon ? "kill primary and daemon" : "kill primary", former);
	proc_kill(&primary.proc);
	if (with_daemon)
		host_kill(&hosts, former);
	move_to(next, former, with_daemon);
	watch_for(prng_below(&chance, LOAD_MS));
	if (with_daemon)
		host_start(&hosts, former, NULL);
}

static void fail_replica(unsigned victim)
{
	note("kill replica", victim);
	host_kill(&hosts, victim);
	watch_for(prng_below(&chance, 2 * LOAD_MS));
	host_start(&hosts, victim, NULL);
}

/* Returns a host whose copy has all acknowledged data. */
static unsigned some_insync(void)
{
	unsigned host = (unsigned)prng_below(&chance, HOSTS);

	look();
	while (!(views[(view_count - 1) % VIEWS].view.insync >> host & 1))
		host = (host + 1) % HOSTS;
	return host;
}

static void one_round(unsigned round)
{
	unsigned host = primary.host, other = (host + 1 + (unsigned)prng_below(&chance, 2)) % HOSTS;
	unsigned what = (unsigned)prng_below(&chance, 4);

	view_count = 0;
	fprintf(stderr, "round %u\n", round);
	watch_for(prng_below(&chance, LOAD_MS));
	if (what == 0)
		fail_replica(other);
	else
		fail_primary(host, what == 3 ? host : other, what == 1);
	wait_whole();
	watch_for(prng_below(&chance, LOAD_MS));
	look();
	/* The load has ended, but its process still runs, so each write is either on all copies or
	 * was never begun. */
	client_end(&primary);
	note("ended", primary.host);
	watch_for(SETTLE_MS / 4);
	check_copies();
	move_to(some_insync(), primary.host, false);
	wait_whole();
}

static void copies_are_equal(void **state)
{
	move_to(0, 0, false);
	wait_whole();
	for (unsigned i = 0; i < rounds; i++)
		one_round(i);
	client_end(&primary);
}

static int setup(void **state)
{
	const struct hosts_opts opts = {.count = HOSTS,
					.size = CLIENTS_SIZE,
					.hot_slots = CLIENTS_SLOTS,
					.peer_timeout_ms = 2000,
					.replica_timeout_ms = 1000,
					.lonely = MIRROR_LONELY_MANUAL};

	hosts_start(&hosts, &opts);
	all = (struct clients){.hosts = &hosts, .seed = chance.state, .pause_us = 300};
	for (unsigned i = 0; i < HOSTS; i++)
		copies[i] = malloc(CLIENTS_SIZE);
	return 0;
}

static int teardown(void **state)
{
	if (primary.proc.pid)
		proc_kill(&primary.proc);
	hosts_stop(&hosts);
	for (unsigned i = 0; i < HOSTS; i++)
		free(copies[i]);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(copies_are_equal, setup, teardown)};

	if (argc > 1)
		rounds = (unsigned)atoi(argv[1]);
	if (!rounds)
		return 2;
	chance.state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
