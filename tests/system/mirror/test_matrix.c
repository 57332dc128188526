/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The failure matrix (which process fails, and when): processes are stopped in a phase of a flush,
 * and then a process is killed or does not return. The outcome must be permitted, equal on all
 * copies, and unchanged after the next change of the role. doc/mirror.md has the table ("The
 * failure matrix").
 */
#include <librpmirror.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "apps.h"
#include "clients.h"
#include "system/lib/cases.h"
#include "system/lib/check.h"

#define PATIENCE_MS 60000
#define SILENCE_MS  20000 /* long enough that no member is excluded because the machine is slow */
#define HOSTS       3
#define ALL         7
#define OLD         1 /* the value that was acknowledged */
#define NEW         2 /* the value that was not acknowledged */
#define OFFSET      4096

/*
 * Phases of the flush of NEW. F0: not called; F1: not durable; F2: durable only on this host; F3:
 * durable on all hosts, but the call has not returned.
 */
enum phase { F0, F1, F2, F3, PHASES };

static void stop_daemon(unsigned host)
{
	proc_signal(&hosts.hosts[host].daemon, SIGSTOP);
	process_wait_stopped(hosts.hosts[host].daemon.pid);
}

/* Bring the application of a whole set into this phase. */
static void get_to(enum phase phase)
{
	static const char *const points[PHASES] = {[F1] = "MIRROR_STOP_AT=flush_snapshot:2",
						   [F2] = "MIRROR_STOP_AT=flush_local:2",
						   [F3] = "MIRROR_STOP_AT=flush_settled:2"};
	const char *const envs[] = {points[phase], NULL};

	app_start(&apps[0], &hosts, 0, phase == F0 ? NULL : envs);
	ask(0, "ok", "map-wait");
	hosts_wait_insync(&hosts, ALL);
	ask(0, "durable 7 flags 0", "put %u %u", OFFSET, OLD);
	if (phase == F0) {
		ask(0, "ok", "store %u %u", OFFSET, NEW);
		return;
	}
	for (unsigned i = 1; phase == F2 && i < HOSTS; i++)
		stop_daemon(i);
	app_tell(&apps[0], "put 4096 2\n");
	process_wait_stopped(apps[0].pid);
}

/* Let another process on this host become primary. Returns the value that it reads. */
static uint64_t go_on(unsigned host)
{
	app_start(&apps[0], &hosts, host, NULL);
	ask(0, "ok", "map-wait");
	return strtoull(proc_ask(&apps[0], "get %u", OFFSET), NULL, 10);
}

/* Wait until the application's store is in the file of its host. */
static void wait_stored(uint64_t value)
{
	for (int waited = 0; host_read_word(&hosts, 0, OFFSET) != value; waited++) {
		assert_in_range(waited, 0, PATIENCE_MS);
		usleep(1000);
	}
}

/* All copies must have the value, also after the role moves, and flushes must work. */
static void check_settled(uint64_t value)
{
	hosts_wait_insync(&hosts, ALL);
	for (unsigned i = 0; i < HOSTS; i++)
		assert_int_equal(host_read_word(&hosts, i, OFFSET), value);
	ask(0, "ok", "unmap");
	proc_kill(&apps[0]);
	assert_int_equal(go_on(2), value);
	hosts_wait_insync(&hosts, ALL);
	ask(0, "durable 7 flags 0", "put %u %u", OFFSET, OLD + 100);
	ask(0, "ok", "unmap");
	proc_kill(&apps[0]);
}

/* Restart these daemons: bytes that they have received but not placed are lost. */
static void restart_daemons(unsigned from, unsigned to)
{
	for (unsigned i = from; i <= to; i++)
		host_kill(&hosts, i);
	for (unsigned i = from; i <= to; i++)
		host_start(&hosts, i, NULL);
}

/* ---- the primary's process crashes ---- */

/* Another host has only its own copy. If the same host takes the role again, its copy determines
 * the value. */
static void check_value(enum phase phase, unsigned host, uint64_t value)
{
	bool is_new = phase == F3 || (phase != F0 && host == 0);

	if (value != (is_new ? NEW : OLD))
		fail_msg("phase F%d: %llu", (int)phase, (unsigned long long)value);
}

static void crash_primary(unsigned next)
{
	for (enum phase phase = F0; phase < PHASES; phase++) {
		uint64_t value;

		get_to(phase);
		proc_kill(&apps[0]);
		if (phase == F2)
			restart_daemons(1, 2);
		value = go_on(next);
		check_value(phase, next, value);
		check_settled(value);
	}
}

static void a_primary_that_crashes_goes_on_in_its_place(void **state)
{
	crash_primary(0);
}

static void a_primary_that_crashes_is_followed_and_its_copy_returns(void **state)
{
	crash_primary(1);
}

/* ---- all hosts crash ---- */

static void all_crash_and_the_first_to_return_serves(void **state)
{
	for (enum phase phase = F0; phase < PHASES; phase++) {
		unsigned first = phase % 2;
		uint64_t value;

		get_to(phase);
		proc_kill(&apps[0]);
		restart_daemons(0, 2);
		value = go_on(first);
		check_value(phase, first, value);
		check_settled(value);
	}
}

/* ---- a replica crashes ---- */

static void a_replica_that_crashes_is_excluded_and_returns(void **state)
{
	for (enum phase phase = F0; phase < PHASES; phase++) {
		get_to(phase);
		host_kill(&hosts, 2);
		if (phase == F2)
			proc_signal(&hosts.hosts[1].daemon, SIGCONT);
		if (phase == F0)
			app_tell(&apps[0], "put 4096 2\n");
		else
			proc_signal(&apps[0], SIGCONT);
		/* In F3 the value was on all copies before the crash. */
		app_check(phase == F3 ? "durable " : "durable 3 flags 1",
			  proc_line(&apps[0], PATIENCE_MS));
		/* The replica can count as in-sync until the primary detects its end. */
		hosts_wait_insync(&hosts, 3);
		host_start(&hosts, 2, NULL);
		check_settled(NEW);
	}
}

/* ---- a replica is slow ---- */

static void a_flush_is_as_slow_as_the_slowest_copy_and_says_so(void **state)
{
	get_to(F0);
	/* Drop events of earlier flushes, which can have been slow on a busy machine. */
	assert_non_null(proc_ask(&apps[0], "slow"));
	stop_daemon(2);
	app_tell(&apps[0], "put 4096 2\n");
	wait_stored(NEW);
	assert_null(proc_line(&apps[0], 1100)); /* the set's slow_ms is 1000 */
	proc_signal(&hosts.hosts[2].daemon, SIGCONT);
	app_check("durable 7 flags 0", proc_line(&apps[0], PATIENCE_MS));
	ask(0, "1", "slow");
	check_settled(NEW);
}

#define TEST(name)                                                                                 \
	APPS_TEST(name, .count = HOSTS, .peer_timeout_ms = SILENCE_MS,                             \
		  .replica_timeout_ms = SILENCE_MS, .automatic = true)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_primary_that_crashes_goes_on_in_its_place),
		TEST(a_primary_that_crashes_is_followed_and_its_copy_returns),
		TEST(all_crash_and_the_first_to_return_serves),
		TEST(a_replica_that_crashes_is_excluded_and_returns),
		TEST(a_flush_is_as_slow_as_the_slowest_copy_and_says_so),
	};

	return cases_run(tests, CASES_OF_HOSTS);
}
