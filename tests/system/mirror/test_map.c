/* SPDX-License-Identifier: BSD-3-Clause */
/* Applications on hosts with real daemons: each is a process that maps, flushes and exits. */
#include <librpmirror.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apps.h"
#include "system/lib/cases.h"
#include "system/lib/check.h"

#define PATIENCE_MS 30000
#define FENCED      "This mapping is no longer the primary: set orders: "

static void test_the_role_moves_from_host_to_host(void **state)
{
	for (unsigned host = 0; host < 3; host++) {
		app_start(&apps[host], &hosts, host, NULL);
		ask(host, "ok", "map");
		if (host) /* the value that the earlier primary flushed */
			assert_int_equal(atoi(proc_ask(&apps[host], "get 4096")), 100 + host - 1);
		ask(host, "durable 7 flags 0", "put 4096 %u", 100 + host);
		for (unsigned i = 0; i < 3; i++)
			assert_int_equal(host_read_word(&hosts, i, 4096), 100 + host);
		ask(host, "ok", "unmap");
	}
}

static void test_one_process_at_a_time(void **state)
{
	app_start(&apps[0], &hosts, 0, NULL);
	app_start(&apps[1], &hosts, 1, NULL);
	ask(0, "ok", "map");
	ask(0, "durable 7", "put 0 1");
	ask(1, "Another process maps the set", "map");
	ask(0, "durable 7", "put 0 2");
	ask(0, "ok", "unmap");
	ask(1, "ok", "map");
	ask(1, "2", "get 0");
}

/*
 * It can take a long time until the demoted process notices the demotion. No member waits for that
 * process.
 */
static void test_a_demoted_primary_that_keeps_its_mapping_is_not_in_the_way(void **state)
{
	const char *demote[] = {SYSTEM_RPMIRROR,       "demote", "orders", "--socket",
				hosts.hosts[0].socket, NULL};
	const char *await[] = {
		SYSTEM_RPMIRROR,       "wait", "orders", "--until", "primary=none", "--socket",
		hosts.hosts[1].socket, NULL};
	struct proc tool;

	app_start(&apps[0], &hosts, 0, NULL);
	app_start(&apps[1], &hosts, 1, NULL);
	ask(0, "ok", "map-direct");
	ask(0, "durable 7", "put 0 1");
	ask(0, "ok", "touch 0");
	assert_int_equal(proc_start(&tool, demote, NULL), 0);
	assert_int_equal(proc_finish(&tool), 0);
	assert_int_equal(proc_start(&tool, await, NULL), 0);
	assert_int_equal(proc_finish(&tool), 0);
	ask(1, "ok", "map");
	ask(1, "durable 7 flags 0", "put 0 2");
	assert_int_equal(host_read_word(&hosts, 0, 0), 2);
	ask(0, "This mapping is no longer the primary: set orders: this host was demoted",
	    "put 0 3");
	ask(0, "This mapping is no longer the primary: set orders: this host was demoted",
	    "touch 0");
	assert_int_equal(host_read_word(&hosts, 0, 0), 2);
	ask(0, "ok", "unmap");
	ask(1, "durable 7 flags 0", "put 0 4");
}

static void test_a_member_whose_daemon_is_killed_is_excluded(void **state)
{
	app_start(&apps[0], &hosts, 0, NULL);
	ask(0, "ok", "map");
	ask(0, "durable 7", "put 8 1");
	host_kill(&hosts, 2);
	ask(0, "durable 3 flags 1", "put 8 2");
	assert_int_equal(host_read_word(&hosts, 1, 8), 2);
	host_kill(&hosts, 1);
	ask(0, "durable 1 flags 3", "put 8 3");
}

static void test_the_lease_is_renewed(void **state)
{
	const char *answer = "";

	app_start(&apps[0], &hosts, 0, NULL);
	ask(0, "ok", "map");
	for (int waited = 0; waited < PATIENCE_MS && strcmp(answer, "ok"); waited += 10) {
		answer = proc_ask(&apps[0], "confirm");
		assert_non_null(answer);
		usleep(10000);
	}
	assert_string_equal(answer, "ok");
}

static void wait_for(unsigned host, const char *question, const char *wanted)
{
	const char *answer = "";

	for (int waited = 0; waited < PATIENCE_MS && strncmp(answer, wanted, strlen(wanted));
	     waited += 10) {
		answer = proc_ask(&apps[host], "%s", question);
		assert_non_null(answer);
		usleep(10000);
	}
	if (strncmp(answer, wanted, strlen(wanted)))
		fail_msg("%s: %s instead of %s", question, answer, wanted);
}

static void test_a_restart_of_the_own_daemon_does_not_hurt(void **state)
{
	app_start(&apps[0], &hosts, 0, NULL);
	ask(0, "ok", "map");
	ask(0, "durable 7 flags 0", "put 8 1");
	host_kill(&hosts, 0);
	ask(0, "durable 7 flags 0", "put 8 2");
	wait_for(0, "confirm", "The lease is over");
	host_start(&hosts, 0, NULL);
	wait_for(0, "confirm", "ok");
	ask(0, "durable 7 flags 0", "put 8 3");
	host_kill(&hosts, 2); /* the register can be reached again, so this member is excluded */
	ask(0, "durable 3 flags 1", "put 8 4");
	ask(0, "ok", "unmap");
}

/* Returns the greatest age of the application's copy as the daemon reports it, or a value that is
 * too great. */
static unsigned long long app_age(unsigned host)
{
	unsigned long long age;
	unsigned health;
	const char *answer = proc_ask(&apps[host], "age");

	assert_non_null(answer);
	assert_int_equal(sscanf(answer, "%llu health %u", &age, &health), 2);
	return health ? ULLONG_MAX : age;
}

static void app_await_age(unsigned host, unsigned long long most)
{
	int waited = 0;

	for (; app_age(host) > most && waited < PATIENCE_MS; waited += 10)
		usleep(10000);
	assert_true(waited < PATIENCE_MS);
}

static void test_a_reader_goes_on_when_its_daemon_was_restarted(void **state)
{
	app_start(&apps[0], &hosts, 0, NULL);
	app_start(&apps[1], &hosts, 1, NULL);
	ask(0, "ok", "map");
	ask(0, "durable 7 flags 0", "put 8 1");
	ask(1, "ok", "map-readonly");
	ask(1, "Not supported for this set or mapping", "events");
	ask(1, "Invalid argument: set orders is mapped read-only", "flush 0 8");
	app_await_age(1, 1000);
	host_kill(&hosts, 1);
	usleep(1100000);
	assert_true(app_age(1) == ULLONG_MAX);
	host_start(&hosts, 1, NULL);
	app_await_age(1, 1000);
	ask(1, "1", "get 8");
	ask(1, "ok", "unmap");
	host_kill(&hosts, 1);
	ask(0, "durable 5", "put 8 2");
}

/* With the default setting the mapping cannot be accessed after the end of the lease. */
static void app_expect_fault(unsigned host, const char *access)
{
	int status;

	assert_null(proc_ask(&apps[host], "%s", access));
	status = proc_wait(&apps[host], PATIENCE_MS);
	assert_true(status > 0);
	/* A sanitizer reports the signal, and ends the process with exit(). */
	assert_true(WIFSIGNALED(status) ? WTERMSIG(status) == SIGSEGV : WEXITSTATUS(status) != 0);
	memset(&apps[host], 0, sizeof(apps[host]));
}

/* The fenced process executes commands until it reads data that can be stale. */
static void test_a_fenced_process_gets_an_error_from_each_call_and_cannot_read(void **state)
{
	static const char *const protect[] = {"RPMIRROR_ON_FENCED=", NULL};

	app_start(&apps[0], &hosts, 0, protect);
	ask(0, "ok", "map-direct");
	ask(0, "ok", "store8 8 1");
	host_kill(&hosts, 0);
	wait_for(0, "confirm", "The lease is over");
	app_start(&apps[1], &hosts, 1, NULL);
	ask(1, "ok", "map-wait");
	host_start(&hosts, 0, NULL);
	wait_for(0, "confirm", FENCED);
	ask(0, FENCED, "store8 8 2");
	ask(0, FENCED, "flush 8 8");
	ask(0, FENCED, "verify 0 1000000");
	ask(0, FENCED, "sync");
	app_expect_fault(0, "get 8");
	ask(1, "1", "get 8");
}

/* Each host that takes over the role has the acknowledged data, and no unflushed data. */
static void test_after_a_crash_another_process_goes_on(void **state)
{
	app_start(&apps[0], &hosts, 0, NULL);
	ask(0, "ok", "map");
	for (unsigned i = 0; i < 20; i++)
		ask(0, "durable 7", "put %u %u", 8 * i, i + 1);
	ask(0, "ok", "store 0 99");
	proc_kill(&apps[0]);
	app_start(&apps[0], &hosts, 0, NULL); /* first continue on the same host */
	wait_for(0, "map-wait", "ok");
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(atoi(proc_ask(&apps[0], "get %u", 8 * i)), i + 1);
	ask(0, "durable 7 flags 0", "put 160 1000");
	proc_kill(&apps[0]);
	app_start(&apps[1], &hosts, 1, NULL); /* then continue on another host */
	wait_for(1, "map-wait", "ok");
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(atoi(proc_ask(&apps[1], "get %u", 8 * i)), i + 1);
	ask(1, "1000", "get 160");
	ask(1, "durable 7 flags 0", "put 160 1001");
	ask(1, "ok", "unmap");
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(host_read_word(&hosts, i, 160), 1001);
}

static void test_a_member_that_comes_back_is_made_equal(void **state)
{
	app_start(&apps[0], &hosts, 0, NULL);
	ask(0, "ok", "map");
	ask(0, "durable 7", "put 8 1");
	host_kill(&hosts, 2);
	ask(0, "durable 3", "put 8 2");
	ask(0, "durable 3", "put 2000000 3");
	host_start(&hosts, 2, NULL);
	wait_for(0, "put 16 4", "durable 7 flags 0");
	assert_int_equal(host_read_word(&hosts, 2, 8), 2);
	assert_int_equal(host_read_word(&hosts, 2, 2000000), 3);
	assert_int_equal(host_read_word(&hosts, 2, 16), 4);
	ask(0, "ok", "unmap");
}

static void test_stores_that_were_not_flushed_reach_no_file(void **state)
{
	app_start(&apps[0], &hosts, 0, NULL);
	ask(0, "ok", "map");
	ask(0, "durable 7", "put 0 1");
	ask(0, "ok", "store 0 2");
	proc_kill(&apps[0]);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(host_read_word(&hosts, i, 0), 1);
}

static void test_hosts_with_a_secret_prove_it(void **state)
{
	app_start(&apps[1], &hosts, 1, NULL);
	ask(1, "ok", "map");
	ask(1, "durable 7 flags 0", "put 16 5");
	ask(1, "ok", "unmap");
}

/* ---- direct mappings ---- */

#define EXTENT 2097152u

static void assert_files_are_equal(void)
{
	static uint8_t first[4 * EXTENT], other[4 * EXTENT];

	for (unsigned host = 0; host < 3; host++) {
		uint8_t *bytes = host ? other : first;
		FILE *file = fopen(hosts.hosts[host].data, "re");

		assert_non_null(file);
		assert_int_equal(fread(bytes, 1, sizeof(first), file), sizeof(first));
		fclose(file);
		assert_memory_equal(first, bytes, sizeof(first));
	}
}

/* The earlier primary's file has unflushed stores in many places, which must be removed when the
 * host returns. */
static void test_unflushed_stores_of_a_lost_host_are_taken_back(void **state)
{
	app_start(&apps[0], &hosts, 0, NULL);
	ask(0, "ok", "map-direct");
	ask(0, "durable 7 flags 0", "put 8 1");
	for (unsigned i = 0; i < 8; i++)
		ask(0, "ok", "store %u %u", i * 1000000 / 8 * 8, 100 + i);
	assert_int_equal(host_read_word(&hosts, 0, 1000000), 101);
	proc_kill(&apps[0]);
	host_kill(&hosts, 0);
	app_start(&apps[1], &hosts, 1, NULL);
	ask(1, "ok", "map-direct");
	ask(1, "1", "get 8");
	ask(1, "durable 6", "put 16 2");
	ask(1, "ok", "store 6000000 77");
	host_start(&hosts, 0, NULL);
	wait_for(1, "put 24 3", "durable 7 flags 0");
	ask(1, "ok", "unmap");
	assert_files_are_equal();
	assert_int_equal(host_read_word(&hosts, 0, 6000000), 77);
}

#ifndef __SANITIZE_THREAD__
/*
 * The library raises the signal for a forbidden store. ThreadSanitizer's runtime holds a lock
 * during an atomic store, and does not release it if a handler jumps out, so skip the test there.
 */

/* The library must not undo a protection that the application has set. */
static void check_forbidden_store(const char *map)
{
	app_start(&apps[0], &hosts, 0, NULL);
	ask(0, "ok", "handler");
	ask(0, "ok", "%s", map);
	ask(0, "ok", "store8 8 1");
	ask(0, "ok", "protect");
	ask(0,
	    "This host's device, file or system failed: set orders: the word cannot be stored to",
	    "store8 8 2");
	for (unsigned i = 0; i < 2; i++) {
		ask(0, "signal", "try 8 2");
		ask(0, "stored", "try 4096 3");
	}
	ask(0, "ok", "store8 4096 3");
	ask(0, "1", "get 8");
	ask(0, "ok", "unmap");
}

static void test_a_store_that_the_application_forbade_ends_with_an_error(void **state)
{
	check_forbidden_store("map-direct");
}

static void test_a_store_that_an_isolated_mapping_forbids_ends_with_an_error(void **state)
{
	check_forbidden_store("map");
}
#endif

/* The process is killed, as it would be without the library. */
static void test_a_process_that_stores_where_it_forbade_it_ends(void **state)
{
	app_start(&apps[0], &hosts, 0, NULL);
	ask(0, "ok", "map-direct");
	ask(0, "ok", "store8 8 1");
	ask(0, "ok", "protect");
	app_tell(&apps[0], "store 8 2\n");
	assert_null(proc_line(&apps[0], 10000));
	assert_true(proc_wait(&apps[0], 10000) > 0); /* a sanitizer exits instead */
}

/* From now on the application is allowed to read its own file, so all copies must have the same
 * data as this file. */
static void test_unflushed_stores_of_a_killed_process_are_pushed_first(void **state)
{
	app_start(&apps[0], &hosts, 0, NULL);
	ask(0, "ok", "map-direct");
	ask(0, "durable 7 flags 0", "put 8 1");
	for (unsigned i = 0; i < 8; i++)
		ask(0, "ok", "store %u %u", i * 1000000 / 8 * 8, 100 + i);
	proc_kill(&apps[0]);
	app_start(&apps[0], &hosts, 0, NULL);
	ask(0, "ok", "map-direct");
	assert_files_are_equal();
	ask(0, "1", "get 8");
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(host_read_word(&hosts, 2, i * 1000000 / 8 * 8), 100 + i);
	ask(0, "ok", "unmap");
}

#ifdef RPMA_KILLPOINTS
/*
 * Store, and sometimes flush, until the process is killed. Returns the value that was flushed last.
 */
static unsigned app_store_until_killed(unsigned first)
{
	unsigned flushed = 0;

	for (unsigned i = first;; i++) {
		const char *answer = proc_ask(&apps[0], i % 4 ? "store %u %u" : "put %u %u",
					      i % 7 * 1200000 + 8 * i, i);

		if (!answer)
			return flushed;
		if (i % 4 == 0)
			flushed = i;
		assert_true(i < first + 2000);
	}
}

static void test_a_process_that_is_killed_at_each_step(void **state)
{
	static const char *const points[] = {"w2_before:2",        "w2_after:3",  "direct_opened:4",
					     "direct_protected:2", "w3_before:2", "w3_after:2",
					     "flush_posted:3"};
	unsigned flushed = 0;
	char setting[64];

	for (unsigned i = 0; i < sizeof(points) / sizeof(points[0]); i++) {
		snprintf(setting, sizeof(setting), "MIRROR_KILL_AT=%s", points[i]);
		app_start(&apps[0], &hosts, 0, (const char *const[]){setting, NULL});
		ask(0, "ok", "map-direct");
		assert_files_are_equal();
		if (flushed)
			assert_int_equal(
				host_read_word(&hosts, 1, flushed % 7 * 1200000 + 8 * flushed),
				flushed);
		flushed = app_store_until_killed(1 + 100 * i);
		proc_kill(&apps[0]);
	}
	app_start(&apps[0], &hosts, 0, NULL);
	ask(0, "ok", "map-direct");
	assert_files_are_equal();
	ask(0, "ok", "unmap");
}
#endif

#define TEST(name) APPS_TEST(name, .count = 3)
#define DIRECT(name)                                                                               \
	APPS_TEST(name, .count = 3, .automatic = true, .hot_slots = 3, .lease_ms = 3000)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_the_role_moves_from_host_to_host),
		TEST(test_one_process_at_a_time),
		TEST(test_a_demoted_primary_that_keeps_its_mapping_is_not_in_the_way),
		TEST(test_a_member_whose_daemon_is_killed_is_excluded),
		TEST(test_the_lease_is_renewed),
		TEST(test_a_restart_of_the_own_daemon_does_not_hurt),
		APPS_TEST(test_after_a_crash_another_process_goes_on, .count = 3,
			  .automatic = true),
		APPS_TEST(test_a_fenced_process_gets_an_error_from_each_call_and_cannot_read,
			  .count = 3, .automatic = true),
		TEST(test_a_reader_goes_on_when_its_daemon_was_restarted),
		TEST(test_a_member_that_comes_back_is_made_equal),
		TEST(test_stores_that_were_not_flushed_reach_no_file),
		DIRECT(test_unflushed_stores_of_a_lost_host_are_taken_back),
#ifndef __SANITIZE_THREAD__
		DIRECT(test_a_store_that_the_application_forbade_ends_with_an_error),
		DIRECT(test_a_store_that_an_isolated_mapping_forbids_ends_with_an_error),
#endif
		DIRECT(test_a_process_that_stores_where_it_forbade_it_ends),
		DIRECT(test_unflushed_stores_of_a_killed_process_are_pushed_first),
#ifdef RPMA_KILLPOINTS
		DIRECT(test_a_process_that_is_killed_at_each_step),
#endif
		APPS_TEST(test_hosts_with_a_secret_prove_it, .count = 3, .has_secret = true),
	};

	return cases_run(tests, CASES_OF_HOSTS);
}
