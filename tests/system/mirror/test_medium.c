/* SPDX-License-Identifier: BSD-3-Clause */
/* The medium of one copy fails or is full, once (medium_preload.c). The copy leaves the in-sync set
 * and is not used any more, and no acknowledged data are missing. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apps.h"
#include "base/clock.h"
#include "clients.h"
#include "system/lib/cases.h"
#include "system/lib/check.h"

#define HOSTS       3
#define ALL         7
#define OFFSET      4096
#define TRIES       50 /* maximum number of flushes until the fault occurs */
#define PATIENCE_MS 60000
#define STAY_MS     700
#define SLOW_MS     "2500"
#define PRELOAD     "LD_PRELOAD=" SYSTEM_MIRROR_MEDIUM

static uint64_t last; /* the last flushed value */

/* Flush until the answer begins with `wanted`. All earlier answers must show a whole set. */
static void put_until(const char *wanted)
{
	for (unsigned i = 0; i < TRIES; i++) {
		const char *line =
			proc_ask(&apps[0], "put %u %llu", OFFSET, (unsigned long long)++last);

		if (line && !strncmp(line, wanted, strlen(wanted)))
			return;
		app_check("durable 7 flags 0", line);
	}
	fail_msg("no flush is answered by %s", wanted);
}

static void go_on(unsigned host, const char *const envs[])
{
	if (apps[0].pid)
		proc_kill(&apps[0]);
	app_start(&apps[0], &hosts, host, envs);
	ask(0, "ok", "map-wait");
}

static unsigned long long read_value(void)
{
	return strtoull(proc_ask(&apps[0], "get %u", OFFSET), NULL, 10);
}

static void a_primary_whose_medium_fails_says_so_and_another_goes_on(const char *fault)
{
	const char *const envs[] = {PRELOAD, fault, NULL};

	go_on(0, envs);
	put_until("The local copy has failed");
	/* The next write-back would succeed, which proves nothing. */
	ask(0, "The local copy has failed", "put %u %u", OFFSET + 8, 1);
	hosts_wait_insync(&hosts, ALL & ~1u);
	go_on(1, NULL);
	assert_int_equal(read_value(), last);
	ask(0, "durable 6 flags 1", "put %u %u", OFFSET, 1);
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

/* A hot slot cannot be made durable, so no byte must be written to its extent. */
static void local_metadata_are_full(void **state)
{
	a_primary_whose_medium_fails_says_so_and_another_goes_on("MEDIUM_FAIL=meta:28:1:1");
}

/* ---- faults that begin when the test calls arm() ---- */

static char arm_file[300], arm_env[320];

/* Returns a setting for envs: faults begin only after a call of arm(). */
static const char *armed(void)
{
	snprintf(arm_file, sizeof(arm_file), "%s/arm", hosts.folder);
	snprintf(arm_env, sizeof(arm_env), "MEDIUM_ARM=%s", arm_file);
	return arm_env;
}

static void arm(void)
{
	int fd = open(arm_file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	close(fd);
}

static bool was_met(void)
{
	return access(arm_file, F_OK) != 0;
}

/* ---- faults of a replica ---- */

/* The event about a failed data file names the member, the file and the reason. */
static void check_lost(const char *why)
{
	const char *line = proc_ask(&apps[0], "lost");

	if (!line || !strstr(line, why) || !strstr(line, "bytes 4096 to 4103") ||
	    !strstr(line, hosts.hosts[2].data) || line[0] != 'c')
		fail_msg("%s", line ? line : "no answer");
}

static void a_replica_whose_medium_fails_is_excluded(const char *fault, const char *why)
{
	const char *const envs[] = {PRELOAD, fault, why ? armed() : NULL, NULL};

	host_kill(&hosts, 2);
	host_start(&hosts, 2, envs);
	go_on(0, NULL);
	if (why) {
		hosts_wait_insync(&hosts, ALL);
		arm();
	}
	put_until("durable 3 flags 1");
	ask(0, "durable 3 flags 1", "put %u %llu", OFFSET, (unsigned long long)++last);
	hosts_wait_insync(&hosts, 3);
	if (why)
		check_lost(why);
	assert_int_equal(host_read_word(&hosts, 1, OFFSET), last);
	go_on(1, NULL);
	assert_int_equal(read_value(), last);
}

/* The member of this host cannot be promoted. */
static void check_in_doubt(unsigned host)
{
	struct proc other;
	const char *line;

	app_start(&other, &hosts, host, NULL);
	line = proc_ask(&other, "map");
	if (!line || !strstr(line, "not known what the copy"))
		fail_msg("%s", line ? line : "no answer");
	proc_kill(&other);
}

static void remote_data_fails(void **state)
{
	a_replica_whose_medium_fails_is_excluded("MEDIUM_FAIL=data:5:1:1", "errno 5");
}

static void remote_data_is_full(void **state)
{
	a_replica_whose_medium_fails_is_excluded("MEDIUM_FAIL=data:28:1:1", "errno 28");
}

/* The member cannot make a promise durable, so it makes no promise. */
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
	app_start(&apps[0], &hosts, 0, NULL);
	line = proc_ask(&apps[0], "map");
	if (!line || !strcmp(line, "ok"))
		fail_msg("%s", line ? line : "no answer");
	go_on(1, NULL);
	put_until("durable 6 flags 1");
}

/* The fault occurs in the middle of a promotion. The process must give the role up instead of
 * waiting for its own daemon, because a host with a good copy can need the role. */
static void a_promotion_whose_metadata_fail(const char *fault)
{
	const char *const envs[] = {PRELOAD, fault, armed(), NULL};
	const char *served = NULL;
	struct proc first;

	host_kill(&hosts, 0);
	host_start(&hosts, 0, envs);
	assert_int_equal(host_run_tool(&hosts, 0, "wait orders --until copy.a=in-sync"), 0);
	arm();
	app_start(&first, &hosts, 0, NULL);
	app_tell(&first, "map-wait\n");
	for (unsigned waited = 0; !was_met(); waited++, usleep(1000))
		assert_in_range(waited, 0, PATIENCE_MS);
	app_start(&apps[0], &hosts, 1, NULL);
	app_tell(&apps[0], "map-wait\n");
	/* If the promotion ended before the fault, the first process serves. */
	for (unsigned tries = 0; tries < TRIES && !served; tries++) {
		served = proc_line(&apps[0], 200);
		if (!served)
			served = proc_line(&first, 200);
		if (served && strcmp(served, "ok") != 0)
			served = NULL;
	}
	assert_non_null(served);
	proc_kill(&first);
}

static void a_promotion_ends_when_the_own_promise_fails(void **state)
{
	a_promotion_whose_metadata_fail("MEDIUM_FAIL=meta:5:4");
}

/* The fault occurs in the last step of a promotion. */
static void a_promotion_ends_when_it_cannot_be_recorded_as_served(void **state)
{
	a_promotion_whose_metadata_fail("MEDIUM_FAIL=meta:5:9");
}

/* ---- a partial write-back ---- */

#define NEXT (OFFSET + 2 * 4096) /* on another page than OFFSET */

/* Flush both words by one call; the pages in between do not change. */
static void put_two(const char *wanted)
{
	ask(0, "ok", "store %u %llu", OFFSET, (unsigned long long)++last);
	ask(0, "ok", "store %u %llu", NEXT, (unsigned long long)last);
	ask(0, wanted, "flush %u %u", OFFSET, NEXT + 8 - OFFSET);
}

static void check_two(unsigned host)
{
	assert_int_equal(host_read_word(&hosts, host, OFFSET), last);
	assert_int_equal(host_read_word(&hosts, host, NEXT), last);
}

/*
 * Restart the daemons without faults. A copy that has lost written data must still count as failed.
 */
static void check_return(unsigned primary, unsigned insync)
{
	proc_kill(&apps[0]);
	for (unsigned i = 0; i < HOSTS; i++) {
		host_kill(&hosts, i);
		host_start(&hosts, i, NULL);
	}
	go_on(primary, NULL);
	hosts_wait_insync(&hosts, (mirror_mask)insync);
	for (unsigned i = 0; i < HOSTS; i++)
		if (insync >> i & 1)
			check_two(i);
}

static void a_part_of_a_local_write_back(void **state)
{
	const char *const envs[] = {PRELOAD, "MEDIUM_FAIL=data:5:1:1", "MEDIUM_PART=1", armed(),
				    NULL};

	go_on(0, envs);
	hosts_wait_insync(&hosts, ALL);
	put_two("durable 7 flags 0");
	arm();
	put_two("The local copy has failed");
	hosts_wait_insync(&hosts, ALL & ~1u);
	/* The medium of host 0 has the first page, but not the second. The other copies have both
	 * pages. */
	assert_int_equal(host_read_word(&hosts, 0, OFFSET), last);
	assert_int_equal(host_read_word(&hosts, 0, NEXT), last - 1);
	check_two(1);
	check_two(2);
	check_return(1, ALL & ~1u); /* an operator replaces the medium */
}

static bool was_said(const char *text)
{
	char line[300];

	snprintf(line, sizeof(line), "grep -q '%s' %s/said", text, hosts.folder);
	return !system(line);
}

/* The explanation must not advise steps that do not help. */
static void check_failed_copy_is_explained(void)
{
	for (int waited = 0; host_run_tool(&hosts, 0, "status") || !was_said("a copy has failed");
	     waited++) {
		assert_in_range(waited, 0, PATIENCE_MS / 10);
		usleep(10000);
	}
	assert_true(was_said("restart rpmirrord on its host"));
	for (int waited = 0;
	     host_run_tool(&hosts, 0, "explain") ||
	     !was_said("Waiting: the daemon of member c .*the next attempt is in [0-9.]* s");
	     waited++) {
		assert_in_range(waited, 0, PATIENCE_MS / 10);
		usleep(10000);
	}
	assert_int_equal(host_run_tool(&hosts, 0, "resync " HOSTS_SET " c --full"), 9);
	assert_true(was_said("member replace"));
}

static void a_part_of_a_remote_write_back(void **state)
{
	const char *const envs[] = {PRELOAD, "MEDIUM_FAIL=data:5:1:1", "MEDIUM_PART=1", armed(),
				    NULL};

	host_kill(&hosts, 2);
	host_start(&hosts, 2, envs);
	go_on(0, NULL);
	hosts_wait_insync(&hosts, ALL);
	put_two("durable 7 flags 0");
	arm();
	put_two("durable 3 flags 1");
	assert_true(was_met());
	hosts_wait_insync(&hosts, 3);
	assert_int_equal(host_read_word(&hosts, 2, NEXT), last - 1);
	put_two("durable 3 flags 1");
	check_failed_copy_is_explained();
	check_return(1, ALL);
}

/* ---- faults during a resync ---- */

/* Let an absent copy return, and stop its daemon before the first byte is copied. */
static void stop_target_in_resync(const char *const envs[])
{
	hosts_wait_insync(&hosts, ALL);
	put_two("durable 7 flags 0");
	host_kill(&hosts, 2);
	put_two("durable 3 flags 1");
	host_start(&hosts, 2, envs);
	process_wait_stopped(hosts.hosts[2].daemon.pid);
}

static void go_on_in_resync(void)
{
	proc_signal(&hosts.hosts[2].daemon, SIGCONT);
}

static void wait_met(void)
{
	for (int waited = 0; !was_met(); waited++) {
		assert_in_range(waited, 0, PATIENCE_MS);
		usleep(1000);
	}
}

static void a_target_fails_in_a_resync(const char *fault)
{
	const char *const envs[] = {PRELOAD, fault, "MEDIUM_PART=0", "MIRROR_STOP_AT=w4_after",
				    armed(), NULL};

	go_on(0, NULL);
	stop_target_in_resync(envs);
	arm();
	go_on_in_resync();
	wait_met();
	put_two("durable ");
	check_two(1);
	check_return(1, ALL);
}

static void a_targets_data_fail_in_a_resync(void **state)
{
	a_target_fails_in_a_resync("MEDIUM_FAIL=data:5:1:1");
}

static void a_targets_data_are_full_in_a_resync(void **state)
{
	a_target_fails_in_a_resync("MEDIUM_FAIL=data:28:1:1");
}

static void a_targets_metadata_are_full_in_a_resync(void **state)
{
	a_target_fails_in_a_resync("MEDIUM_FAIL=meta:28:1:1");
}

/* Wait longer than a join takes, and check that the member has not joined. */
static void stays_out(unsigned members)
{
	static struct register_entry now;

	for (int waited = 0; waited < STAY_MS; waited += 10) {
		hosts_read(&hosts, &now);
		assert_int_equal(now.record.view.insync & members, 0);
		usleep(10000);
	}
}

/* The kernel has dropped bytes before they reached this copy's medium, so no member must get them
 * from this copy. */
static void a_source_fails_in_a_resync(void **state)
{
	const char *const target[] = {"MIRROR_STOP_AT=w4_after", NULL};
	const char *const source[] = {PRELOAD, "MEDIUM_FAIL=data:5:1:1", "MEDIUM_PART=0", armed(),
				      NULL};

	go_on(0, source);
	stop_target_in_resync(target);
	arm();
	put_two("The local copy has failed");
	go_on_in_resync();
	stays_out(MIRROR_BIT(2));
	go_on(1, NULL);
	hosts_wait_insync(&hosts, ALL & ~1u);
	check_two(1);
	check_two(2);
}

/* ---- faults during a promotion ---- */

/* When the primary's process exits, only its host has the last flush. When the next primary is
 * promoted, it makes the other members equal. One member stops just before it is made equal. */
static void end_with_a_difference(const char *const envs[])
{
	const char *const stops[] = {"MIRROR_STOP_AT=flush_local:2", NULL};

	go_on(0, stops);
	hosts_wait_insync(&hosts, ALL);
	put_two("durable 7 flags 0");
	for (unsigned i = 1; i < HOSTS; i++) {
		proc_signal(&hosts.hosts[i].daemon, SIGSTOP);
		process_wait_stopped(hosts.hosts[i].daemon.pid);
	}
	ask(0, "ok", "store %u %llu", OFFSET, (unsigned long long)++last);
	ask(0, "ok", "store %u %llu", NEXT, (unsigned long long)last);
	app_tell(&apps[0], "flush 4096 8200\n");
	process_wait_stopped(apps[0].pid);
	proc_kill(&apps[0]);
	for (unsigned i = 1; i < HOSTS; i++) {
		host_kill(&hosts, i);
		host_start(&hosts, i, i == 2 ? envs : NULL);
	}
}

/* The failure excludes the member, and the promotion succeeds. */
static void a_replica_fails_in_a_promotion(const char *fault)
{
	const char *const envs[] = {PRELOAD, fault, "MEDIUM_PART=0", "MIRROR_STOP_AT=w9_after",
				    armed(), NULL};

	end_with_a_difference(envs);
	app_start(&apps[0], &hosts, 0, NULL);
	app_tell(&apps[0], "map-wait\n");
	process_wait_stopped(hosts.hosts[2].daemon.pid);
	arm();
	proc_signal(&hosts.hosts[2].daemon, SIGCONT);
	app_check("ok", proc_line(&apps[0], PATIENCE_MS));
	assert_true(was_met());
	check_two(0);
	check_two(1);
	check_return(1, ALL);
}

static void a_replicas_data_fail_in_a_promotion(void **state)
{
	a_replica_fails_in_a_promotion("MEDIUM_FAIL=data:5:1:1");
}

static void a_replicas_data_are_full_in_a_promotion(void **state)
{
	a_replica_fails_in_a_promotion("MEDIUM_FAIL=data:28:1:1");
}

/* Afterwards another member is promoted, and has all acknowledged data. */
static void the_next_primarys_data_fail_in_its_promotion(void **state)
{
	const char *const envs[] = {PRELOAD, "MEDIUM_FAIL=data:5:1:1", NULL};

	end_with_a_difference(NULL);
	app_start(&apps[0], &hosts, 0, envs);
	ask(0, "The local copy has failed", "map-wait");
	proc_kill(&apps[0]);
	last--; /* the last value was not acknowledged */
	go_on(1, NULL);
	hosts_wait_insync(&hosts, ALL & ~1u);
	check_two(1);
	check_two(2);
}

/* ---- failures stay recorded ---- */

#define RECORD_MS 2000

/* Give the daemon time to record the failure. */
static void give_time_to_record(unsigned host)
{
	host_wait_log(&hosts, host, "the copy has failed", RECORD_MS);
}

/*
 * The primary ends before the exclusion is committed, and the failed copy's daemon is restarted.
 * The kernel has reported the failed write-back once, and does not report it to a file description
 * that is opened later.
 */
static void a_failed_replica_is_not_promoted_after_a_restart(void **state)
{
	const char *const envs[] = {PRELOAD, "MEDIUM_FAIL=data:5:1:1", "MEDIUM_PART=0", armed(),
				    NULL};

	host_kill(&hosts, 2);
	host_start(&hosts, 2, envs);
	go_on(0, NULL);
	hosts_wait_insync(&hosts, ALL);
	put_two("durable 7 flags 0");
	host_kill(&hosts, 0); /* the primary reaches the register through this daemon */
	arm();
	ask(0, "ok", "store %u %llu", OFFSET, (unsigned long long)++last);
	app_tell(&apps[0], "flush 4096 8\n");
	wait_met();
	give_time_to_record(2);
	proc_kill(&apps[0]);
	host_kill(&hosts, 2);
	host_start(&hosts, 2, NULL);
	check_in_doubt(2);
	host_start(&hosts, 0, NULL);
	go_on(1, NULL);
	hosts_wait_insync(&hosts, ALL); /* the copy was compared, and is in-sync again */
}

static void what_is_lost_at_the_daemons_end_is_recorded(void **state)
{
	const char *const envs[] = {PRELOAD, "MEDIUM_FAIL=sync:5:1:1", armed(), NULL};

	host_kill(&hosts, 2);
	host_start(&hosts, 2, envs);
	go_on(0, NULL);
	hosts_wait_insync(&hosts, ALL);
	put_two("durable 7 flags 0");
	arm();
	assert_int_equal(host_stop(&hosts, 2), 0);
	assert_true(was_met());
	proc_kill(&apps[0]);
	host_start(&hosts, 2, NULL);
	check_in_doubt(2);
}

/* The process has been killed, so it cannot report the failure. */
static void what_a_killed_primary_has_lost_is_recorded(void **state)
{
	const char *const daemon[] = {PRELOAD, NULL};
	const char *const envs[] = {PRELOAD, "MEDIUM_FAIL=data:5:1:1", "MEDIUM_KILL=1", armed(),
				    NULL};

	host_kill(&hosts, 0);
	host_start(&hosts, 0, daemon);
	go_on(0, envs);
	hosts_wait_insync(&hosts, ALL);
	put_two("durable 7 flags 0");
	arm();
	ask(0, "ok", "store %u %llu", OFFSET, (unsigned long long)++last);
	app_tell(&apps[0], "flush 4096 8\n");
	proc_wait(&apps[0], PATIENCE_MS);
	give_time_to_record(0);
	host_kill(&hosts, 0);
	host_start(&hosts, 0, NULL);
	check_in_doubt(0);
	go_on(1, NULL);
	hosts_wait_insync(&hosts, ALL);
}

#define SEND_MS 100

/* The daemon is killed while the report is still unread in its socket. The kernel does not report
 * the failure to the next daemon. */
static void a_failure_that_a_daemon_did_not_record_is_reported_to_the_next(void **state)
{
	const char *const envs[] = {PRELOAD, "MEDIUM_FAIL=data:5:1:1", "MEDIUM_PART=0", armed(),
				    NULL};

	go_on(0, envs);
	hosts_wait_insync(&hosts, ALL);
	put_two("durable 7 flags 0");
	proc_signal(&hosts.hosts[0].daemon, SIGSTOP);
	process_wait_stopped(hosts.hosts[0].daemon.pid);
	arm();
	ask(0, "ok", "store %u %llu", OFFSET, (unsigned long long)++last);
	app_tell(&apps[0], "flush 4096 8\n");
	wait_met();
	usleep(SEND_MS * 1000);
	host_kill(&hosts, 0);
	host_start(&hosts, 0, NULL);
	assert_true(
		host_wait_log(&hosts, 0, "reports that the copy's medium has failed", PATIENCE_MS));
	app_check("The local copy has failed", proc_line(&apps[0], PATIENCE_MS));
	hosts_wait_insync(&hosts, ALL & ~1u);
	go_on(1, NULL);
	assert_int_equal(read_value(), last);
}

/* ---- blocks that cannot be read ---- */

#define UNREADABLE (1u << 20)
#define PIECE      (64u << 10)

static int verify_and_repair(void)
{
	return host_run_tool(&hosts, 0, "verify " HOSTS_SET " --repair");
}

static void write_word(unsigned host, uint64_t offset, uint64_t word)
{
	int fd = open(hosts.hosts[host].data, O_WRONLY | O_CLOEXEC);

	assert_int_equal(pwrite(fd, &word, sizeof(word), (off_t)offset), sizeof(word));
	close(fd);
}

/* The member is excluded, gets the block that it could not read, and returns. */
static void a_block_that_a_replica_cannot_read_is_copied(void **state)
{
	const char *const envs[] = {PRELOAD, "MEDIUM_UNREADABLE=1048576:4096", armed(), NULL};

	host_kill(&hosts, 2);
	host_start(&hosts, 2, envs);
	go_on(0, NULL);
	hosts_wait_insync(&hosts, ALL);
	put_two("durable 7 flags 0");
	write_word(2, UNREADABLE + 8, 1); /* this copy differs in the block that cannot be read */
	arm();
	assert_int_equal(verify_and_repair(), 5);
	assert_true(was_met());
	hosts_wait_insync(&hosts, ALL);
	assert_int_equal(host_read_word(&hosts, 2, UNREADABLE + 8), 0);
	put_two("durable 7 flags 0");
	assert_int_equal(verify_and_repair(), 0);
}

/* The member is excluded until its file is complete. */
static void a_replica_that_cannot_be_mended_is_excluded(void **state)
{
	off_t size = (off_t)hosts.opts.size;

	go_on(0, NULL);
	hosts_wait_insync(&hosts, ALL);
	put_two("durable 7 flags 0");
	assert_int_equal(truncate(hosts.hosts[2].data, size - PIECE), 0);
	assert_int_equal(verify_and_repair(), 5);
	hosts_wait_insync(&hosts, 3);
	stays_out(MIRROR_BIT(2));
	assert_int_equal(truncate(hosts.hosts[2].data, size), 0);
	hosts_wait_insync(&hosts, ALL);
	assert_int_equal(verify_and_repair(), 0);
}

/* ---- slow media ---- */

static struct register_entry now;

/*
 * A flush waits for the medium of the primary's host for longer than the lease. The wait must not
 * cause the exclusion of a member, or another primary.
 */
static void a_slow_medium_of_the_primary_is_waited_for(void **state)
{
	const char *const envs[] = {PRELOAD, "MEDIUM_SLOW=" SLOW_MS, armed(), NULL};
	struct proc next;
	uint64_t begin;

	go_on(0, envs);
	hosts_wait_insync(&hosts, ALL);
	ask(0, "durable 7 flags 0", "put %u %llu", OFFSET, (unsigned long long)++last);
	app_start(&next, &hosts, 1, NULL);
	app_tell(&next, "map-wait\n");
	arm();
	begin = clock_now_ns();
	ask(0, "durable 7 flags 0", "put %u %llu", OFFSET, (unsigned long long)++last);
	assert_true(clock_now_ns() - begin >= atoi(SLOW_MS) * NSEC_PER_MS);
	ask(0, "ok", "confirm");
	unlink(arm_file);
	ask(0, "durable 7 flags 0", "put %u %llu", OFFSET, (unsigned long long)++last);
	assert_null(proc_line(&next, 0));
	hosts_read(&hosts, &now);
	assert_int_equal(now.record.view.insync, ALL);
	assert_int_equal(now.record.view.epoch.number, 1);
	ask(0, "ok", "unmap");
	app_check("ok", proc_line(&next, PATIENCE_MS));
	proc_kill(&apps[0]);
	apps[0] = next;
	assert_int_equal(read_value(), last);
}

/* ---- the application continues with the other copies ---- */

/* The flags must be LOCAL_FAILED and DEGRADED, and also SOLO if only one copy is left. */
static void a_primary_without_its_medium_continues_where_that_is_configured(void **state)
{
	const char *const envs[] = {PRELOAD, "MEDIUM_FAIL=data:5:1:1", "MEDIUM_PART=0", armed(),
				    NULL};

	go_on(0, envs);
	hosts_wait_insync(&hosts, ALL);
	put_two("durable 7 flags 0");
	arm();
	put_two("durable 6 flags 5");
	hosts_wait_insync(&hosts, ALL & ~1u);
	/* The next write-back would succeed, which proves nothing. */
	put_two("durable 6 flags 5");
	assert_int_equal(read_value(), last);
	check_two(1);
	check_two(2);
	/*
	 * No copy must leave the set for a comparison, because this primary cannot compare copies.
	 */
	assert_int_equal(host_run_tool(&hosts, 0, "resync orders b --full"), 9);
	put_two("durable 6 flags 5");
	/* No member gets data from this copy, which lacks some data. So a returning copy waits for
	 * another source. */
	host_kill(&hosts, 2);
	put_two("durable 2 flags 7");
	host_start(&hosts, 2, NULL);
	stays_out(MIRROR_BIT(0) | MIRROR_BIT(2));
	check_return(1, ALL & ~1u);
}

#define TEST(name, ...) APPS_TEST(name, .count = HOSTS, .automatic = true, __VA_ARGS__)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(local_data_fails),
		TEST(local_data_is_full),
		TEST(local_metadata_are_full),
		TEST(remote_data_fails),
		TEST(remote_data_is_full),
		TEST(remote_metadata_are_full),
		TEST(a_part_of_a_local_write_back),
		TEST(a_part_of_a_remote_write_back),
		TEST(a_source_fails_in_a_resync),
		TEST(a_targets_data_fail_in_a_resync),
		TEST(a_targets_data_are_full_in_a_resync),
		TEST(a_targets_metadata_are_full_in_a_resync),
		TEST(a_replicas_data_fail_in_a_promotion),
		TEST(a_replicas_data_are_full_in_a_promotion),
		TEST(the_next_primarys_data_fail_in_its_promotion),
		TEST(a_block_that_a_replica_cannot_read_is_copied),
		TEST(a_replica_that_cannot_be_mended_is_excluded),
		TEST(a_failed_replica_is_not_promoted_after_a_restart),
		TEST(what_is_lost_at_the_daemons_end_is_recorded),
		TEST(what_a_killed_primary_has_lost_is_recorded),
		TEST(a_failure_that_a_daemon_did_not_record_is_reported_to_the_next),
		TEST(a_slow_medium_of_the_primary_is_waited_for),
		TEST(a_primary_without_its_medium_continues_where_that_is_configured,
		     .local_error_continues = true),
		TEST(a_host_whose_metadata_fail_does_not_become_primary),
		TEST(a_promotion_ends_when_the_own_promise_fails),
		TEST(a_promotion_ends_when_it_cannot_be_recorded_as_served),
	};

	return cases_run(tests, CASES_OF_HOSTS);
}
