/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the results of calls when a process loses its role, and the content of the medium
 * afterwards. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps.h"
#include "system/lib/cases.h"
#include "system/lib/check.h"

#define PATIENCE_MS 30000
#define FILES_MAX   200
#define PUTS_MAX    100
/* A thread of the library can have checked a descriptor just before the close, and then writes to
 * it. Wait this long until such threads have finished. */
#define IN_FLIGHT_MS 200
#define CLOSED                                                                                     \
	"This host's device, file or system failed: set orders: the application has closed "       \
	"descriptors of the library"
#define FENCED "This mapping is no longer the primary: set orders: "

static struct proc tool;

static int teardown(void **state)
{
	if (tool.pid)
		proc_kill(&tool);
	return apps_teardown(state);
}

/* From now on stores of this process must not change the set's file. */
static bool is_private(const struct proc *app, const char *file)
{
	char path[64], line[512];
	bool is = false;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)app->pid);
	maps = fopen(path, "re");
	assert_non_null(maps);
	while (!is && fgets(line, sizeof(line), maps))
		is = strstr(line, " rw-p ") && strstr(line, file);
	fclose(maps);
	return is;
}

static void wait_until_private(const struct proc *app, const char *file)
{
	for (int waited = 0; !is_private(app, file); waited++) {
		assert_in_range(waited, 0, PATIENCE_MS);
		usleep(1000);
	}
}

/* Begin to demote the process, while its flush of the word at 0 waits for the other copy. */
static void begin_demotion(void)
{
	const char *demote[] = {SYSTEM_RPMIRROR,       "demote", HOSTS_SET, "--socket",
				hosts.hosts[0].socket, NULL};

	app_start(&apps[0], &hosts, 0, NULL);
	ask(0, "ok", "map-direct");
	ask(0, "durable 3", "put 0 1");
	proc_signal(&hosts.hosts[1].daemon, SIGSTOP);
	ask(0, "ok", "begin 0 2");
	assert_int_equal(proc_start(&tool, demote, NULL), 0);
	wait_until_private(&apps[0], hosts.hosts[0].data);
}

/* Make this call during the demotion. It must return after the demotion's end. */
static void end_demotion(const char *call)
{
	app_tell(&apps[0], call);
	usleep(20000); /* by now the call has begun */
	proc_signal(&hosts.hosts[1].daemon, SIGCONT);
	app_check(FENCED, proc_line(&apps[0], PATIENCE_MS));
	assert_int_equal(proc_finish(&tool), 0);
	ask(0, "durable 3", "end");
	for (unsigned host = 0; host < 2; host++)
		assert_int_equal(host_read_word(&hosts, host, 0), 2);
}

/* One word is in an extent to which the process has stored before, the other in an untouched
 * extent. */
static void sync_beside_a_demotion_acknowledges_nothing_that_is_lost(void **state)
{
	begin_demotion();
	ask(0, "ok", "store 8 3");
	ask(0, "ok", "store 4194304 4");
	end_demotion("sync\n");
	for (unsigned host = 0; host < 2; host++) {
		assert_int_equal(host_read_word(&hosts, host, 8), 0);
		assert_int_equal(host_read_word(&hosts, host, 4194304), 0);
	}
}

static void other_calls_beside_a_demotion_acknowledge_nothing_that_is_lost(void **state)
{
	static const char *const calls[] = {"store8 8 3\n", "put 8 3\n", "verify 8 8\n",
					    "sync-range 8 8\n"};

	for (unsigned i = 0; i < ARRAY_LEN(calls); i++) {
		begin_demotion();
		ask(0, "ok", "touch 8");
		ask(0, "ok", "store 8 3");
		end_demotion(calls[i]);
		for (unsigned host = 0; host < 2; host++)
			assert_int_equal(host_read_word(&hosts, host, 8), 0);
		proc_kill(&apps[0]);
	}
}

/* If a map cannot get a descriptor, it leaves no resources in the process. */
static void a_map_without_descriptors_holds_nothing(void **state)
{
	const char *answer = "";

	app_start(&apps[0], &hosts, 0, NULL);
	app_start(&apps[1], &hosts, 0, NULL);
	for (unsigned more = 0; strcmp(answer, "ok"); more += more < 8 ? 1 : 7) {
		assert_in_range(more, 0, FILES_MAX);
		ask(0, "ok", "limit-files %u", more);
		answer = proc_ask(&apps[0], "map");
		assert_non_null(answer);
		if (!strcmp(answer, "ok"))
			break;
		if (!strstr(answer, "RLIMIT_NOFILE"))
			fail_msg("%u: %s", more, answer);
		ask(1, "ok", "map");
		ask(1, "ok", "unmap");
	}
	ask(0, "ok", "unmap");
}

/* A program that a process executes inherits nothing of the process's mapping. */
static void a_program_that_is_executed_maps_anew(void **state)
{
	app_start(&apps[0], &hosts, 0, NULL);
	ask(0, "ok", "map");
	ask(0, "durable 3", "put 0 1");
	ask(0, "executed", "exec");
	ask(0, "ok", "map");
	ask(0, "1", "get 0");
	ask(0, "durable 3 flags 0", "put 0 2");
	ask(0, "executed", "exec");
	ask(0, "ok", "map-direct");
	ask(0, "durable 3 flags 0", "put 0 3");
	ask(0, "ok", "unmap");
}

static void a_program_that_is_executed_while_the_daemon_is_away_maps_anew(void **state)
{
	app_start(&apps[0], &hosts, 0, NULL);
	ask(0, "ok", "map");
	ask(0, "durable 3", "put 0 1");
	host_kill(&hosts, 0);
	ask(0, "executed", "exec");
	host_start(&hosts, 0, NULL);
	ask(0, "ok", "map");
	ask(0, "1", "get 0");
	ask(0, "durable 3 flags 0", "put 0 2");
	ask(0, "ok", "unmap");
}

static void a_program_that_never_maps_does_not_keep_the_copy(void **state)
{
	app_start(&apps[0], &hosts, 0, NULL);
	app_start(&apps[1], &hosts, 0, NULL);
	ask(0, "ok", "map");
	ask(0, "durable 3", "put 0 1");
	app_tell(&apps[0], "exec-other\n");
	ask(1, "ok", "map-wait");
	ask(1, "durable 3 flags 0", "put 0 2");
	ask(1, "ok", "unmap");
}

/* If a daemon gets no CPU for replica_timeout_ms, as on a busy machine, its copy is excluded until its
 * next resync. */
static void put_on_both_copies(void)
{
	const char *answer = "";

	for (unsigned tries = 0; strncmp(answer, "durable 3", 9) != 0; tries++) {
		if (tries == PUTS_MAX)
			fail_msg("%s instead of durable 3, %u times", answer, tries);
		if (tries > 0)
			usleep(100000);
		answer = proc_ask(&apps[0], "put 0 1");
		assert_non_null(answer);
	}
}

/* The application closes descriptors that it did not open, like a program that becomes a daemon.
 * Each call must return, and the library must not touch files that have got the closed numbers. */
static void check_closed_descriptors(const char *map, const char *closes, bool is_busy)
{
	static const char *const envs[] = {"RPMIRROR_ON_FENCED=error", NULL};

	app_start(&apps[0], &hosts, 0, envs);
	ask(0, "ok", "%s", map);
	put_on_both_copies();
	if (is_busy) {
		proc_signal(&hosts.hosts[1].daemon, SIGSTOP);
		ask(0, "ok", "begin 0 2");
	}
	usleep(IN_FLIGHT_MS * 1000);
	ask(0, "ok", "%s", closes);
	app_tell(&apps[0], is_busy ? "end\n" : "flush 0 8\n");
	app_check(CLOSED, proc_line(&apps[0], PATIENCE_MS));
	ask(0, CLOSED, "flush 8 8");
	ask(0, CLOSED, "store8 8 3");
	ask(0, CLOSED, "sync");
	ask(0, "The lease is over", "confirm");
	if (is_busy)
		proc_signal(&hosts.hosts[1].daemon, SIGCONT);
	sleep(3); /* several periods of the liveness check */
	if (!strcmp(closes, "reuse"))
		ask(0, "ok", "reused");
	ask(0, CLOSED, "unmap");
	if (!strcmp(closes, "reuse"))
		ask(0, "ok", "reused");
}

static void an_application_that_closes_all_descriptors_gets_errors(void **state)
{
	check_closed_descriptors("map", "close-all", false);
}

static void what_gets_the_numbers_of_closed_descriptors_is_not_touched(void **state)
{
	check_closed_descriptors("map", "reuse", false);
}

static void a_flush_ends_when_the_application_closes_all_descriptors(void **state)
{
	check_closed_descriptors("map", "reuse", true);
}

static void a_direct_mapping_without_descriptors_gives_errors(void **state)
{
	check_closed_descriptors("map-direct", "reuse", false);
}

/* The daemon cannot see the process, as in a container with its own process numbers. */
static void a_process_that_the_daemon_does_not_see_is_refused_with_the_reason(void **state)
{
	struct proc *daemon = &hosts.hosts[0].daemon;
	const char *const argv[] = {
		"/usr/bin/unshare",  "-pf", "--kill-child", SYSTEM_RPMIRRORD, "-c",
		hosts.hosts[0].conf, NULL};

	if (system("unshare -pf true 2>/dev/null"))
		skip(); /* the test lacks the privilege */
	host_kill(&hosts, 0);
	assert_int_equal(proc_start(daemon, argv, NULL), 0);
	assert_non_null(proc_line(daemon, PATIENCE_MS));
	app_start(&apps[0], &hosts, 0, NULL);
	ask(0, "This host's device, file or system failed: set orders: rpmirrord is in a PID name",
	    "map");
}

#define LIVELY(name) HOSTS_TEST(name, .count = 2, .lease_ms = 20000, .replica_timeout_ms = 2000)
#define TEST(name)                                                                                 \
	HOSTS_TEST(name, .count = 2, .automatic = true, .lease_ms = 20000,                         \
		   .replica_timeout_ms = 20000)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(sync_beside_a_demotion_acknowledges_nothing_that_is_lost),
		TEST(other_calls_beside_a_demotion_acknowledge_nothing_that_is_lost),
		TEST(a_map_without_descriptors_holds_nothing),
		TEST(a_program_that_is_executed_maps_anew),
		TEST(a_program_that_is_executed_while_the_daemon_is_away_maps_anew),
		TEST(a_program_that_never_maps_does_not_keep_the_copy),
		LIVELY(an_application_that_closes_all_descriptors_gets_errors),
		LIVELY(what_gets_the_numbers_of_closed_descriptors_is_not_touched),
		LIVELY(a_flush_ends_when_the_application_closes_all_descriptors),
		LIVELY(a_direct_mapping_without_descriptors_gives_errors),
		TEST(a_process_that_the_daemon_does_not_see_is_refused_with_the_reason),
	};

	return cases_run(tests, CASES_OF_HOSTS);
}
