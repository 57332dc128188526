/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The medium of one copy fails or is full, once (medium_preload.c): that copy leaves the in-sync
 * set and is not believed later, and nothing acknowledged is missing.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "apps.h"
#include "clients.h"
#include "system/lib/check.h"

#define HOSTS   3
#define ALL     7
#define OFFSET  4096
#define TRIES   50 /* flushes until the fault is met */
#define PRELOAD "LD_PRELOAD=" SYSTEM_MIRROR_MEDIUM

static struct hosts hosts;
static struct proc app;
static uint64_t last; /* value that was flushed */

/* Flush until the answer begins so; others before are of a whole set. */
static void put_until(const char *wanted)
{
	for (unsigned i = 0; i < TRIES; i++) {
		const char *line =
			proc_ask(&app, "put %u %llu", OFFSET, (unsigned long long)++last);

		if (line && !strncmp(line, wanted, strlen(wanted)))
			return;
		app_check("durable 7 flags 0", line);
	}
	fail_msg("no flush is answered by %s", wanted);
}

static void go_on(unsigned host, const char *const envs[])
{
	if (app.pid)
		proc_kill(&app);
	app_start(&app, &hosts, host, envs);
	app_expect(&app, "ok", "map-wait");
}

static unsigned long long read_value(void)
{
	return strtoull(proc_ask(&app, "get %u", OFFSET), NULL, 10);
}

static void a_primary_whose_medium_fails_says_so_and_another_goes_on(const char *fault)
{
	const char *const envs[] = {PRELOAD, fault, NULL};

	go_on(0, envs);
	put_until("The local copy has failed");
	/* The next write-back would succeed, which means nothing. */
	app_expect(&app, "The local copy has failed", "put %u %u", OFFSET + 8, 1);
	hosts_wait_insync(&hosts, ALL & ~1u);
	go_on(1, NULL);
	assert_int_equal(read_value(), last);
	app_expect(&app, "durable 6 flags 1", "put %u %u", OFFSET, 1);
	hosts_wait_insync(&hosts, ALL & ~1u);
}

static void local_data_fails(void **state)
{
	a_primary_whose_medium_fails_says_so_and_another_goes_on("MEDIUM_FAIL=data:5:4:4");
}

static void local_data_is_full(void **state)
{
	a_primary_whose_medium_fails_says_so_and_another_goes_on("MEDIUM_FAIL=data:28:2:2");
}

/* A hot slot is not durable: nothing may be written to its extent. */
static void local_metadata_are_full(void **state)
{
	a_primary_whose_medium_fails_says_so_and_another_goes_on("MEDIUM_FAIL=meta:28:1:1");
}

/* Of a data file: the event says which, where, and why. */
static void check_lost(const char *why)
{
	const char *line = proc_ask(&app, "lost");

	if (!line || !strstr(line, why) || !strstr(line, "bytes 4096 to 4103") ||
	    !strstr(line, hosts.hosts[2].data) || line[0] != 'c')
		fail_msg("%s", line ? line : "no answer");
}

static void a_replica_whose_medium_fails_is_excluded(const char *fault, const char *why)
{
	const char *const envs[] = {PRELOAD, fault, NULL};

	host_kill(&hosts, 2);
	host_start(&hosts, 2, envs);
	go_on(0, NULL);
	put_until("durable 3 flags 1");
	app_expect(&app, "durable 3 flags 1", "put %u %llu", OFFSET, (unsigned long long)++last);
	hosts_wait_insync(&hosts, 3);
	if (why)
		check_lost(why);
	assert_int_equal(host_read_word(&hosts, 1, OFFSET), last);
	go_on(1, NULL);
	assert_int_equal(read_value(), last);
}

static void remote_data_fails(void **state)
{
	a_replica_whose_medium_fails_is_excluded("MEDIUM_FAIL=data:5:3:3", "errno 5");
}

static void remote_data_is_full(void **state)
{
	a_replica_whose_medium_fails_is_excluded("MEDIUM_FAIL=data:28:1:1", "errno 28");
}

/* It cannot promise durably, so it promises nothing. */
static void remote_metadata_are_full(void **state)
{
	a_replica_whose_medium_fails_is_excluded("MEDIUM_FAIL=meta:28:2", NULL);
}

static void a_host_whose_metadata_fail_does_not_become_primary(void **state)
{
	const char *const envs[] = {PRELOAD, "MEDIUM_FAIL=meta:5:2", NULL};
	const char *line;

	host_kill(&hosts, 0);
	host_start(&hosts, 0, envs);
	app_start(&app, &hosts, 0, NULL);
	line = proc_ask(&app, "map");
	if (!line || !strcmp(line, "ok"))
		fail_msg("%s", line ? line : "no answer");
	go_on(1, NULL);
	put_until("durable 6 flags 1");
}

static int setup(void **state)
{
	const struct hosts_opts opts = {.count = HOSTS, .automatic = true};

	last = 0;
	hosts_start(&hosts, &opts);
	return 0;
}

static int teardown(void **state)
{
	if (app.pid)
		proc_kill(&app);
	hosts_stop(&hosts);
	return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(local_data_fails),
		TEST(local_data_is_full),
		TEST(local_metadata_are_full),
		TEST(remote_data_fails),
		TEST(remote_data_is_full),
		TEST(remote_metadata_are_full),
		TEST(a_host_whose_metadata_fail_does_not_become_primary),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
