/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of a copy are replaced, removed or truncated while a daemon or an application has them
 * open. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apps.h"
#include "system/lib/cases.h"
#include "system/lib/check.h"

static void begin(unsigned primary)
{
	app_start(&apps[0], &hosts, primary, NULL);
	ask(0, "ok", "map");
	assert_int_equal(host_run_tool(&hosts, primary, "wait orders --until health=healthy"), 0);
	ask(0, "durable 3", "put 64 1");
}

/* Replace the file like `cp` to another name and then `mv`. */
static void replace_file(const char *path)
{
	char command[1400];

	snprintf(command, sizeof(command), "cp -p '%s' '%s.new' && mv '%s.new' '%s'", path, path,
		 path, path);
	assert_int_equal(system(command), 0);
}

static bool has_said(const char *words)
{
	char command[700];

	snprintf(command, sizeof(command), "grep -qE -e '%s' '%s/said'", words, hosts.folder);
	return system(command) == 0;
}

static void expect_said(unsigned host, const char *words, const char *command)
{
	for (int tries = 0; tries < 200; tries++, usleep(50000)) {
		host_run_tool(&hosts, host, command);
		if (has_said(words))
			return;
	}
	fail_msg("'%s' does not say '%s'", command, words);
}

/*
 * The application gets events about the error, its flushes fail, and its copy is no longer in-sync.
 */
static void expect_primary_without_copy(void)
{
	assert_int_equal(host_run_tool(&hosts, 0, "wait orders --until insync.a=no"), 0);
	ask(0, "The local copy has failed", "put 64 2");
	assert_int_equal(host_run_tool(&hosts, 0, "wait orders --until health=degraded"), 0);
	assert_int_equal(host_run_tool(&hosts, 1, "wait orders --until health=degraded"), 0);
	assert_int_equal(host_read_word(&hosts, 1, 64), 2); /* the other copy has the value */
}

static void a_data_file_that_is_replaced_while_the_daemon_is_away_is_noticed(void **state)
{
	begin(0);
	host_kill(&hosts, 0);
	replace_file(hosts.hosts[0].data);
	host_start(&hosts, 0, NULL);
	expect_primary_without_copy();
}

static void a_data_file_that_is_replaced_below_the_primary_is_noticed(void **state)
{
	begin(0);
	replace_file(hosts.hosts[0].data);
	expect_primary_without_copy();
	expect_said(0, "copy.*failed", "status orders --json");
}

static void a_replicas_data_file_that_is_removed_is_noticed(void **state)
{
	begin(0);
	assert_int_equal(unlink(hosts.hosts[1].data), 0);
	ask(0, "durable", "put 64 2");
	assert_int_equal(host_run_tool(&hosts, 0, "wait orders --until insync.b=no,copy.b=failed"),
			 0);
	ask(0, "durable 1", "put 64 3");
	assert_int_equal(host_run_tool(&hosts, 0, "wait orders --until health=degraded"), 0);
}

/* The daemon continues to work for the other sets of its host. */
static void metadata_that_are_cut_off_do_not_end_the_daemon(void **state)
{
	begin(0);
	assert_int_equal(truncate(hosts.hosts[1].meta, 4096), 0);
	/* The next primary makes the daemon write to the metadata. */
	proc_kill(&apps[0]);
	app_start(&apps[0], &hosts, 0, NULL);
	ask(0, "ok", "map-wait");
	assert_int_equal(host_run_tool(&hosts, 1, "wait orders --until copy.b=failed"), 0);
	expect_said(1, "was cut off while it was in use|could not be read", "status orders --json");
	ask(0, "durable 1", "put 64 2");
	assert_int_equal(kill(hosts.hosts[1].daemon.pid, 0), 0);
}

/* The daemon continues all work that needs no answer of this file system: requests, leases, other
 * sets. The daemon can also end without waiting. */
static void a_file_system_that_does_not_answer_holds_nothing_else_up(void **state)
{
	char away[300], away_env[320];
	const char *const envs[] = {"LD_PRELOAD=" SYSTEM_MIRROR_MEDIUM, away_env, NULL};

	snprintf(away, sizeof(away), "%.250s/away", hosts.folder);
	snprintf(away_env, sizeof(away_env), "MEDIUM_AWAY=%s", away);
	host_kill(&hosts, 0);
	host_start(&hosts, 0, envs);
	app_start(&apps[0], &hosts, 0, NULL);
	ask(0, "ok", "map");
	assert_int_equal(host_run_tool(&hosts, 0, "wait orders --until health=healthy"), 0);
	close(open(away, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	assert_true(host_wait_log(&hosts, 0, "has not answered for", 20000));
	expect_said(0, "healthy", "status orders");
	ask(0, "ok", "confirm");
	ask(0, "durable 3", "put 64 2");
	assert_int_equal(host_stop(&hosts, 0), 0);
	assert_int_equal(unlink(away), 0);
}

/* An operator cannot resolve an error of the medium by choosing a copy, so it must not be shown as
 * a split. */
static void an_error_of_the_own_metadata_is_not_shown_as_split(void **state)
{
	char arm[300], arm_env[320];
	const char *const envs[] = {"LD_PRELOAD=" SYSTEM_MIRROR_MEDIUM, "MEDIUM_FAIL=meta:5:1",
				    arm_env, NULL};
	struct proc waiting;

	begin(0);
	snprintf(arm, sizeof(arm), "%.250s/arm", hosts.folder);
	snprintf(arm_env, sizeof(arm_env), "MEDIUM_ARM=%s", arm);
	host_kill(&hosts, 1);
	host_start(&hosts, 1, envs);
	assert_int_equal(host_run_tool(&hosts, 0, "wait orders --until health=healthy"), 0);
	app_start(&waiting, &hosts, 1, NULL);
	app_tell(&waiting, "map-wait\n");
	expect_said(1, "waits to be primary", "status orders --json");
	close(open(arm, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	assert_int_equal(host_run_tool(&hosts, 0, "set orders slow=0.3"), 0);
	assert_int_equal(host_run_tool(&hosts, 1, "wait orders --until copy.b=failed"), 0);
	expect_said(1, "its metadata, .*Input/output error", "status orders --json");
	assert_false(has_said("split"));
	app_check("The local copy has failed", proc_line(&waiting, 30000));
	proc_kill(&waiting);
}

/*
 * A set gets its first secret, and later loses it again. Each daemon uses the changed configuration
 * after its next start. The application continues to work, and the tool names hosts whose secrets
 * do not match meanwhile.
 */
static void a_live_set_gets_its_first_secret_and_loses_it(void **state)
{
	begin(0);
	for (unsigned i = 0; i < 2; i++) {
		hosts.opts.has_secret = i == 0;
		host_kill(&hosts, 1);
		host_start(&hosts, 1, NULL);
		expect_said(0, i ? "does not know the set.s secret|secret" : "it requires a secret",
			    "status orders --json");
		expect_said(0, "Next: put the same secret file on each host", "explain orders");
		host_kill(&hosts, 0);
		host_start(&hosts, 0, NULL);
		assert_int_equal(host_run_tool(&hosts, 0, "wait orders --until health=healthy"), 0);
		ask(0, "durable 3", "put 64 %u", i + 2);
	}
}

/* The copy of b exists, so the tool must not advise to make a new copy. */
static void an_open_secret_file_is_not_called_a_lost_copy(void **state)
{
	begin(0);
	host_kill(&hosts, 1);
	assert_int_equal(chmod(hosts.secret, 0644), 0);
	host_start(&hosts, 1, NULL);
	expect_said(1, "open to others than its owner .mode 0644.", "explain orders");
	expect_said(1, "Next: put the secret file of another host here, with mode 600",
		    "explain orders");
	assert_false(has_said("member replace"));
	expect_said(0, "its secret file cannot be used", "status orders");
	expect_said(0, "Next: put the same secret file on each host, with mode 600",
		    "explain orders");
	assert_false(has_said("member replace"));
	assert_int_equal(chmod(hosts.secret, 0600), 0);
	assert_int_equal(host_run_tool(&hosts, 0, "wait orders --until health=healthy"), 0);
}

static off_t length_of(unsigned host)
{
	struct stat st;

	assert_int_equal(stat(hosts.hosts[host].data, &st), 0);
	return st.st_size;
}

/* The host of b is down, so the set keeps its size, although the host of a has already extended its
 * files. */
static void a_refused_growth_gives_its_room_back(void **state)
{
	const off_t size = 8 << 20;

	host_kill(&hosts, 1);
	assert_int_not_equal(host_run_tool(&hosts, 0, "grow orders 12M"), 0);
	assert_true(has_said("member b: "));
	for (unsigned tries = 0; length_of(0) > size; tries++) {
		if (tries == 600)
			fail_msg("the file has %lld bytes", (long long)length_of(0));
		usleep(100000);
	}
	host_start(&hosts, 1, NULL);
	assert_int_equal(host_run_tool(&hosts, 0, "grow orders 12M"), 0);
	assert_int_equal(host_run_tool(&hosts, 0, "wait orders --until phase=none"), 0);
	assert_int_equal(length_of(0), 12 << 20);
}

/* Hold the register's lock: a daemon that is replacing the file at this moment would create it
 * again. */
static void move_register(const char *path, const char *from, const char *to)
{
	char name[320];
	int lock;

	snprintf(name, sizeof(name), "%s.lock", path);
	lock = open(name, O_RDWR | O_CLOEXEC);
	assert_int_equal(flock(lock, LOCK_EX), 0);
	assert_int_equal(rename(from, to), 0);
	close(lock);
}

/* With RPMIRROR_ON_FENCED=error flushes succeed, but every confirm is refused. */
static void a_set_without_its_register_is_not_healthy(void **state)
{
	const char *const envs[] = {"RPMIRROR_ON_FENCED=error", NULL};
	const char *path;
	char away[320];

	app_start(&apps[0], &hosts, 0, envs);
	ask(0, "ok", "map");
	assert_int_equal(host_run_tool(&hosts, 0, "wait orders --until health=healthy"), 0);
	path = strchr(hosts.register_uri, ':') + 1;
	snprintf(away, sizeof(away), "%s.away", path);
	move_register(path, path, away);
	assert_int_equal(host_run_tool(&hosts, 0, "wait orders --until health=degraded"), 0);
	assert_int_equal(host_run_tool(&hosts, 1, "wait orders --until health=degraded"), 0);
	expect_said(0, "the lease is over, because the register was not reached", "status orders");
	ask(0, "durable 3", "put 64 2");
	move_register(path, away, path);
	assert_int_equal(host_run_tool(&hosts, 0, "wait orders --until health=healthy"), 0);
}

/* The member's exclusion in the register is delayed, because the test holds the register's lock. */
static void a_set_that_has_lost_a_member_is_not_healthy_at_once(void **state)
{
	char path[320];
	int lock;

	begin(0);
	snprintf(path, sizeof(path), "%s.lock", strchr(hosts.register_uri, ':') + 1);
	for (unsigned is_busy = 0; is_busy < 2; is_busy++) {
		lock = open(path, O_RDWR | O_CLOEXEC);
		assert_int_equal(flock(lock, LOCK_EX), 0);
		/* Stop the daemon first: otherwise the flush might end before the kill. */
		proc_signal(&hosts.hosts[1].daemon, SIGSTOP);
		if (is_busy)
			ask(0, "ok", "begin 64 2");
		host_kill(&hosts, 1);
		assert_int_equal(host_run_tool(&hosts, 0, "wait orders --until link.b=down"), 0);
		host_run_tool(&hosts, 0, "status orders --json");
		assert_true(has_said("\"health\": ?\"(degraded|blocked)\""));
		close(lock);
		if (is_busy)
			ask(0, "durable 1", "end");
		host_start(&hosts, 1, NULL);
		assert_int_equal(host_run_tool(&hosts, 0, "wait orders --until health=healthy"), 0);
	}
}

/* The register's file becomes a pipe without a writer, like a file on a file system that does not
 * answer. */
static void a_register_that_never_answers_is_noticed_and_not_waited_for(void **state)
{
	const char *path;
	char away[320], still[320];

	app_start(&apps[0], &hosts, 0, NULL);
	ask(0, "ok", "map");
	assert_int_equal(host_run_tool(&hosts, 0, "wait orders --until health=healthy"), 0);
	path = strchr(hosts.register_uri, ':') + 1;
	snprintf(away, sizeof(away), "%s.away", path);
	snprintf(still, sizeof(still), "%s.still", path);
	assert_int_equal(mkfifo(still, 0600), 0);
	assert_int_equal(link(path, away), 0);
	assert_int_equal(rename(still, path), 0);
	assert_int_equal(host_run_tool(&hosts, 0, "wait orders --until health=degraded"), 0);
	assert_int_equal(host_run_tool(&hosts, 1, "wait orders --until health=degraded"), 0);
	/* The other host can hold the register's lock in a call that never returns. */
	expect_said(1, "The register: .*(not answer|cannot lock)", "explain orders");
	ask(0, "durable 3", "put 64 2");
	assert_int_equal(host_stop(&hosts, 1), 0);
}

/* `explain` must print the text of the refusal, and not the text for an unreachable register. */
static void a_register_that_refuses_is_named_with_its_refusal(void **state)
{
	const char *path;
	char away[320];

	begin(0);
	path = strchr(hosts.register_uri, ':') + 1;
	snprintf(away, sizeof(away), "%s.away", path);
	move_register(path, path, away);
	assert_int_equal(mkdir(path, 0700), 0);
	expect_said(0, "Why: the register refuses this host", "explain orders");
	expect_said(0, "The register: cannot read .*Is a directory", "explain orders");
	assert_true(has_said("Next: give the daemon of this host its rights"));
	assert_false(has_said("does not answer"));
	assert_int_equal(rmdir(path), 0);
	move_register(path, away, path);
	assert_int_equal(host_run_tool(&hosts, 0, "wait orders --until health=healthy"), 0);
}

/* A daemon that starts without its register must not advise to start the application, which cannot
 * become the primary without a register. */
static void a_daemon_that_starts_without_its_register_names_the_register(void **state)
{
	const char *path;
	char still[320];

	(void)state;
	path = strchr(hosts.register_uri, ':') + 1;
	snprintf(still, sizeof(still), "%s.still", path);
	host_kill(&hosts, 1);
	assert_int_equal(mkfifo(still, 0600), 0);
	assert_int_equal(rename(still, path), 0);
	host_start(&hosts, 1, NULL);
	expect_said(1, "Why: the register has not been read yet", "explain orders");
	expect_said(1, "Next: check the register", "explain orders");
	assert_int_equal(host_stop(&hosts, 1), 0);
}

/* A new etcd answers, but does not have the set. The copies have the data that are needed to
 * restore the set. */
static void a_register_without_the_set_names_the_way_back(void **state)
{
	const char *path;
	char away[320];

	begin(0);
	path = strchr(hosts.register_uri, ':') + 1;
	snprintf(away, sizeof(away), "%s.away", path);
	move_register(path, path, away);
	expect_said(0, "The register: there is no set", "explain orders");
	assert_true(has_said("Next: check whether .register. .* rpmirror init --from MEMBER"));
	move_register(path, away, path);
	assert_int_equal(host_run_tool(&hosts, 0, "wait orders --until health=healthy"), 0);
}

/* Renewing the alive key needs the same right as a swap, so the loss of the right is detected
 * seconds before the lease ends. */
static void a_lost_right_to_write_shows_before_it_is_needed(void **state)
{
	char blocked[320];

	app_start(&apps[0], &hosts, 0, NULL);
	ask(0, "ok", "map");
	assert_int_equal(host_run_tool(&hosts, 0, "wait orders --until health=healthy"), 0);
	snprintf(blocked, sizeof(blocked), "%s.new", strchr(hosts.register_uri, ':') + 1);
	assert_int_equal(mkdir(blocked, 0700), 0);
	assert_int_equal(host_run_tool(&hosts, 0, "wait orders --until health=degraded"), 0);
	host_run_tool(&hosts, 0, "explain orders");
	assert_true(has_said("Why: the register refuses to be written by this host"));
	assert_true(has_said("The register: cannot write .*Is a directory"));
	assert_true(has_said("Next: give the daemon of this host its rights"));
	ask(0, "durable 3", "put 64 2");
	assert_int_equal(rmdir(blocked), 0);
	assert_int_equal(host_run_tool(&hosts, 0, "wait orders --until health=healthy"), 0);
}

/* Before a failover, `fence a` declares that the primary is off. If the member is not the primary,
 * `fence` is an order that excludes this member. */
static void a_fence_says_what_it_means(void **state)
{
	const char *path;
	char away[320];

	begin(0);
	expect_said(1, "WARNING: member a renewed its lease .* ago and may be alive",
		    "fence orders a");
	path = strchr(hosts.register_uri, ':') + 1;
	snprintf(away, sizeof(away), "%s.away", path);
	move_register(path, path, away);
	assert_int_equal(host_run_tool(&hosts, 1, "fence orders a"), 3);
	assert_true(has_said("nothing was done, because the register cannot be read"));
	move_register(path, away, path);
	assert_int_equal(host_run_tool(&hosts, 0, "wait orders --until health=healthy"), 0);
	assert_int_equal(host_run_tool(&hosts, 0, "fence orders b"), 0);
	assert_true(has_said("member b is not the primary: it is excluded until"));
}

static void a_removed_copy_is_not_called_split(void **state)
{
	begin(0);
	assert_int_equal(host_run_tool(&hosts, 0, "fence orders b"), 0);
	assert_int_equal(host_run_tool(&hosts, 0, "wait orders --until insync.b=no"), 0);
	assert_int_equal(host_run_tool(&hosts, 0, "member remove orders b"), 0);
	expect_said(1, "Why: copy .* of this host was removed from the set", "explain orders");
	assert_true(has_said("Next: take the set out of rpmirrord.s configuration on this host"));
	assert_false(has_said("split"));
	ask(0, "durable 1", "put 64 2");
}

#define TEST(name) APPS_TEST(name, .count = 2, .lease_ms = 600000)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_data_file_that_is_replaced_while_the_daemon_is_away_is_noticed),
		TEST(a_data_file_that_is_replaced_below_the_primary_is_noticed),
		TEST(a_replicas_data_file_that_is_removed_is_noticed),
		TEST(metadata_that_are_cut_off_do_not_end_the_daemon),
		APPS_TEST(a_file_system_that_does_not_answer_holds_nothing_else_up, .count = 2,
			  .lease_ms = 1000),
		APPS_TEST(a_set_without_its_register_is_not_healthy, .count = 2, .lease_ms = 1000),
		TEST(a_set_that_has_lost_a_member_is_not_healthy_at_once),
		APPS_TEST(a_register_that_never_answers_is_noticed_and_not_waited_for, .count = 2,
			  .lease_ms = 2500, .register_timeout_ms = 600),
		TEST(a_register_that_refuses_is_named_with_its_refusal),
		APPS_TEST(a_daemon_that_starts_without_its_register_names_the_register, .count = 2,
			  .register_timeout_ms = 600),
		TEST(a_register_without_the_set_names_the_way_back),
		APPS_TEST(a_lost_right_to_write_shows_before_it_is_needed, .count = 2,
			  .lease_ms = 10000),
		TEST(a_fence_says_what_it_means),
		TEST(a_removed_copy_is_not_called_split),
		TEST(a_live_set_gets_its_first_secret_and_loses_it),
		APPS_TEST(a_refused_growth_gives_its_room_back, .count = 2,
			  .register_timeout_ms = 300),
		APPS_TEST(an_open_secret_file_is_not_called_a_lost_copy, .count = 2,
			  .has_secret = true),
		TEST(an_error_of_the_own_metadata_is_not_shown_as_split),
	};

	return cases_run(tests, CASES_OF_HOSTS);
}
