/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The folder of each host is a disk on which single blocks, or all blocks, can become unwritable.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apps.h"
#include "clients.h"
#include "system/lib/bad_disk.h"
#include "system/lib/cases.h"
#include "system/lib/check.h"

#define HOSTS       3
#define ALL         7
#define SIZE        (1u << 20)
#define OFFSET      BAD_DISK_BLOCK
#define NEXT        (OFFSET + 2 * BAD_DISK_BLOCK)
#define PATIENCE_MS 20000
#define TRIES       50
#define WHOLE       "durable 7 flags 0"
#define FROZEN      2   /* how many times the disk is frozen */
#define LOSSES      5   /* attempts to let a member report the failure of its disk */
#define STILL_MS    100 /* wait this long for late bytes */

static uint64_t last; /* the value that was flushed last to OFFSET */
/* length of each of two flushed ranges: the length of a word or of a block */
static unsigned flushed;
static char folder[200]; /* folder that has the disks */
static struct bad_disk disks[HOSTS];

/* ---- disks ---- */

static void mount_disk(unsigned host, const char *top)
{
	char own[256];

	snprintf(own, sizeof(own), "%s/%u", folder, host);
	bad_disk_mount(&disks[host], own, top);
}

static void read_medium(unsigned host, uint64_t words[2])
{
	bad_disk_read(&disks[host], "data", OFFSET, &words[0], 8);
	bad_disk_read(&disks[host], "data", NEXT, &words[1], 8);
}

/* Check that the superblocks and promises can be read. */
static void check_records(unsigned host)
{
	char command[1000];

	snprintf(command, sizeof(command), "cmp -n %u %s/data.rpmirror %s", 4 * BAD_DISK_BLOCK,
		 bad_disk_look(&disks[host]), hosts.hosts[host].meta);
	assert_int_equal(system(command), 0);
	bad_disk_look_away(&disks[host]);
}

static void check_media(unsigned members, uint64_t first, uint64_t second)
{
	uint64_t words[2];

	for (unsigned i = 0; i < HOSTS; i++) {
		if (!(members >> i & 1))
			continue;
		read_medium(i, words);
		if (words[0] != first || words[1] != second)
			fail_msg("the medium of %c has %llu and %llu instead of %llu and %llu",
				 'a' + i, (unsigned long long)words[0],
				 (unsigned long long)words[1], (unsigned long long)first,
				 (unsigned long long)second);
	}
}

/* ---- applications ---- */

static void go_on(unsigned host, const char *how)
{
	if (apps[0].pid)
		proc_kill(&apps[0]);
	app_start(&apps[0], &hosts, host, NULL);
	ask(0, "ok", "%s", how);
	assert_int_equal(atoll(proc_ask(&apps[0], "get %u", OFFSET)), last);
}

/* Store the value and flush until the set is whole: on a busy machine a member can be lost for a
 * short time. */
static void put_at_all(unsigned offset, uint64_t value)
{
	const char *line = "";

	for (unsigned i = 0; i < TRIES && strcmp(line, WHOLE) != 0; i++) {
		hosts_wait_insync(&hosts, ALL);
		line = proc_ask(&apps[0], "put %u %llu", offset, (unsigned long long)value);
		if (!line)
			fail_msg("no answer");
	}
	assert_string_equal(line, WHOLE);
}

static void put_until_whole(void)
{
	put_at_all(OFFSET, ++last);
	check_media(ALL, last, 0);
}

static void store_both(void)
{
	last++;
	ask(0, "ok", "store %u %llu", OFFSET, (unsigned long long)last);
	ask(0, "ok", "store %u %llu", NEXT, (unsigned long long)last);
}

/*
 * Flush two words or blocks by one call. They are not neighbours, because a loop device reports a
 * request as written if it could write the first part.
 */
static const char *put_both(void)
{
	store_both();
	return proc_ask(&apps[0], "pair %u %u %u", OFFSET, NEXT, flushed);
}

/* Flush until the flush is durable on exactly these members. On a busy machine one of them can be
 * excluded for a short time. A flush that is durable on another member fails the case. */
static void put_both_until(mirror_mask members)
{
	unsigned durable = 0;

	for (unsigned i = 0; i < TRIES && durable != members; i++) {
		const char *line = put_both();

		if (!line || sscanf(line, "durable %u", &durable) != 1 || durable & ~members)
			fail_msg("%s instead of durable %u", line ? line : "nothing", members);
		if (durable != members)
			hosts_wait_insync(&hosts, members);
	}
	assert_int_equal(durable, members);
}

/*
 * The local copy has failed during a flush. Each member that is in-sync now must have the flush,
 * and the result must name each of these members. On a busy machine a member can have been excluded
 * before the flush ended. Such a member lacks the flush. Returns the members that have the flush.
 */
static mirror_mask check_local_failure(const char *line)
{
	static struct register_entry now;
	unsigned durable = 0;

	if (!line || sscanf(line, "The local copy has failed: durable %u", &durable) != 1)
		fail_msg("%s", line ? line : "no answer");
	hosts_read(&hosts, &now);
	if (!durable || durable & 1 || now.record.view.insync & ~durable)
		fail_msg("in-sync are %#x: %s", now.record.view.insync, line);
	check_media(durable, last, last);
	return durable;
}

/* Returns true if the last exclusion is the exclusion of c for a failure of its disk. */
static bool is_lost_by_its_disk(void)
{
	const char *line = proc_ask(&apps[0], "lost");

	if (!line)
		fail_msg("no answer");
	return line[0] == 'c' && (strstr(line, "errno 5") || strstr(line, "errno 28"));
}

/* ---- a disk that does not answer ---- */

static void freeze(unsigned host, unsigned long how)
{
	int fd = open(disks[host].top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(ioctl(fd, how, 0), 0);
	close(fd);
}

/* The member is excluded while its daemon is placing bytes. The daemon finishes this only when the
 * disk answers again. These bytes must not overwrite bytes that the member gets when it returns. */
static void what_stood_still_at_a_replica_changes_nothing_later(void **state)
{
	go_on(0, "map-wait");
	put_until_whole();
	put_at_all(NEXT, last);
	for (unsigned i = 0; i < FROZEN; i++) {
		freeze(2, FIFREEZE);
		put_both_until(3);
		put_both_until(3);
		freeze(2, FITHAW);
		hosts_wait_insync(&hosts, ALL);
		put_both_until(ALL);
		usleep(STILL_MS * 1000);
		check_media(ALL, last, last);
	}
}

/* ---- failures on the primary's host ---- */

/*
 * Map the set on the first of these members, and flush until the other member has the flush, too.
 */
static void go_on_without_the_failed_copy(mirror_mask members, const char *how)
{
	go_on((unsigned)__builtin_ctz(members), how);
	hosts_wait_insync(&hosts, ALL & ~1u);
	put_both_until(ALL & ~1u);
	check_media(ALL & ~1u, last, last);
}

/* The medium of the failed copy must have the first value, but not the second. */
static void a_local_write_back_is_short(const char *how)
{
	mirror_mask members;

	go_on(0, how);
	put_until_whole();
	bad_disk_break_block(&disks[0], hosts.hosts[0].data, NEXT);
	members = check_local_failure(put_both());
	check_media(1, last, 0);
	bad_disk_repair(&disks[0]); /* a later write-back succeeds, which proves nothing */
	ask(0, "The local copy has failed", "put %u %u", OFFSET + 8, 1);
	go_on_without_the_failed_copy(members, how);
	hosts_wait_insync(&hosts, ALL & ~1u);
}

/* A replica is excluded during the flush in which the local copy fails. The replica lacks the
 * flush, so neither the result nor the in-sync set must name this replica. */
static void a_replica_is_excluded_while_the_local_copy_fails(void **state)
{
	pid_t pid = hosts.hosts[2].daemon.pid;
	mirror_mask members;

	go_on(0, "map-wait");
	put_until_whole();
	bad_disk_break_block(&disks[0], hosts.hosts[0].data, NEXT);
	kill(pid, SIGSTOP);
	process_wait_stopped(pid);
	members = check_local_failure(put_both());
	assert_int_equal(members, 2);
	check_media(4, last - 1, 0);
	kill(pid, SIGCONT);
	go_on_without_the_failed_copy(members, "map-wait");
}

static void a_local_write_back_is_short_in_an_isolated_mapping(void **state)
{
	a_local_write_back_is_short("map-wait");
}

static void a_local_write_back_of_blocks_is_short(void **state)
{
	flushed = BAD_DISK_BLOCK;
	a_local_write_back_is_short("map-wait");
}

static void a_local_write_back_is_short_in_a_direct_mapping(void **state)
{
	a_local_write_back_is_short("map-direct");
}

/* The kernel begins to write the first part while the second part is sent, and fails. The
 * write-back of both parts reports this failure, although the second part can be written. */
static void the_first_part_of_a_large_flush_is_short(void **state)
{
	go_on(0, "map-wait");
	put_until_whole();
	bad_disk_break_blocks(&disks[0], hosts.hosts[0].data, 0, SIZE / 2 / BAD_DISK_BLOCK);
	last++;
	ask(0, "ok", "store %u %llu", OFFSET, (unsigned long long)last);
	ask(0, "ok", "store %u %llu", NEXT, (unsigned long long)last);
	check_local_failure(proc_ask(&apps[0], "pair 0 %u %u", SIZE / 2, SIZE / 2));
}

static void a_primarys_disk_fails_under(unsigned bytes)
{
	flushed = bytes;
	go_on(0, "map-wait");
	put_until_whole();
	bad_disk_break(&disks[0]);
	go_on_without_the_failed_copy(check_local_failure(put_both()), "map-wait");
}

static void a_primarys_disk_fails(void **state)
{
	a_primarys_disk_fails_under(8);
}

static void a_primarys_disk_fails_under_blocks(void **state)
{
	a_primarys_disk_fails_under(BAD_DISK_BLOCK);
}

/*
 * A hole was punched into the copy, and the disk is full: the step before the write-back fails.
 */
static void a_primarys_copy_has_no_room(void **state)
{
	char command[500];
	int fd;

	flushed = BAD_DISK_BLOCK;
	go_on(0, "map-wait");
	put_until_whole();
	fd = open(hosts.hosts[0].data, O_RDWR | O_CLOEXEC);
	assert_int_equal(
		fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, NEXT, BAD_DISK_BLOCK), 0);
	close(fd);
	snprintf(command, sizeof(command),
		 "dd if=/dev/zero of=%s/ballast bs=%u status=none 2>/dev/null; test $? = 1",
		 disks[0].top, BAD_DISK_BLOCK);
	assert_int_equal(system(command), 0);
	go_on_without_the_failed_copy(check_local_failure(put_both()), "map-wait");
}

/* ---- failures on a replica's host ---- */

/* The kernel counts a page that it could not write as clean, and ext4 counts the block as written.
 * So if the same bytes are written again through the same page, they do not reach the medium. */
static void return_with_a_good_disk(void)
{
	bad_disk_repair(&disks[2]);
	host_start(&hosts, 2, NULL);
	hosts_wait_insync(&hosts, ALL);
	check_media(ALL, last, last);
	check_records(2);
}

/* Returns true if the member was excluded because it reported the failure of its disk. */
static bool lose_by_a_short_write_back(void)
{
	uint64_t first;

	put_until_whole();
	bad_disk_break_block(&disks[2], hosts.hosts[2].data, NEXT);
	first = last + 1;
	put_both_until(3);
	check_media(3, last, last);
	if (!is_lost_by_its_disk())
		return false;
	check_media(4, first, 0);
	return true;
}

/* On a busy machine the member can be excluded before it reports the failure. If so, the member
 * returns with a good disk, and fails again. */
static void a_remote_write_back_is_short(void)
{
	go_on(0, "map-wait");
	for (unsigned i = 0; !lose_by_a_short_write_back(); i++) {
		assert_true(i < LOSSES);
		host_kill(&hosts, 2);
		return_with_a_good_disk();
		put_at_all(NEXT, 0);
	}
	put_both_until(3);
	hosts_wait_insync(&hosts, 3);
	go_on(1, "map-wait");
	put_both_until(3);
	check_media(3, last, last);
}

static void a_remote_write_back_is_short_and_the_daemon_is_killed(void **state)
{
	a_remote_write_back_is_short();
	host_kill(&hosts, 2);
	return_with_a_good_disk();
}

static void a_remote_write_back_is_short_and_the_daemon_is_stopped(void **state)
{
	a_remote_write_back_is_short();
	host_stop(&hosts, 2);
	return_with_a_good_disk();
}

static void a_replicas_disk_fails(void **state)
{
	go_on(0, "map-wait");
	put_until_whole();
	bad_disk_break(&disks[2]);
	put_both_until(3);
	check_media(3, last, last);
	hosts_wait_insync(&hosts, 3);
	go_on(1, "map-wait");
	put_both_until(3);
	check_media(3, last, last);
}

/*
 * The replica's disk cannot store any record durably, neither for an exclusion nor for a promise.
 */
static void a_replicas_metadata_cannot_be_written(void **state)
{
	go_on(0, "map-wait");
	put_until_whole();
	bad_disk_break_blocks(&disks[2], hosts.hosts[2].meta, 0, 8);
	go_on(1, "map-wait");
	put_both_until(3);
	check_media(3, last, last);
	hosts_wait_insync(&hosts, 3);
	host_kill(&hosts, 2);
	return_with_a_good_disk();
}

/* ---- failures that the kernel reported to no process ---- */

/* Let the kernel write back and record the result. syncfs() waits for the write-back, but fetches
 * only errors of the file system. */
static void write_back_unasked(unsigned host)
{
	int fd = open(hosts.hosts[host].data, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE), 0);
	syncfs(fd);
	close(fd);
}

/*
 * A daemon that starts while the process that maps the copy is running trusts the page cache. The
 * kernel reports a failure that it has not reported yet to the next file description that is
 * opened.
 */
static void a_failure_while_no_daemon_runs_is_recorded_by_the_next(void **state)
{
	struct proc other;

	go_on(0, "map-direct");
	put_until_whole();
	host_kill(&hosts, 0);
	bad_disk_break_block(&disks[0], hosts.hosts[0].data, NEXT);
	ask(0, "ok", "store %u %u", NEXT, 1);
	write_back_unasked(0);
	bad_disk_repair(&disks[0]);
	assert_int_equal(host_read_word(&hosts, 0, NEXT), 1);
	check_media(1, last, 0);
	host_start(&hosts, 0, NULL);
	assert_true(host_wait_log(&hosts, 0, "goes on", PATIENCE_MS));
	proc_kill(&apps[0]);
	apps[0].pid = 0;
	app_start(&other, &hosts, 0, NULL);
	app_expect(&other, "The local copy has failed", "map");
	proc_kill(&other);
	host_kill(&hosts, 0);
	host_start(&hosts, 0, NULL);
	go_on(1, "map-direct");
	hosts_wait_insync(&hosts, ALL); /* the copy has been compared */
	check_media(ALL, last, 0);
}

/* Lose a store while no daemon runs. The kernel reports the failure to this test, which does not
 * map the copy, so it does not report the failure to the next daemon. */
static void lose_a_store_without_a_daemon(void)
{
	int fd;

	app_start(&apps[0], &hosts, 0, NULL);
	/*
	 * The application has no right to open the file, so the daemon must pass the descriptors.
	 */
	assert_int_equal(chmod(hosts.hosts[0].data, 0), 0);
	ask(0, "ok", "drop-rights");
	ask(0, "ok", "map-direct");
	put_until_whole();
	host_kill(&hosts, 0);
	bad_disk_break_block(&disks[0], hosts.hosts[0].data, NEXT);
	ask(0, "ok", "store %u %u", NEXT, 1);
	fd = open(hosts.hosts[0].data, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(fdatasync(fd), -1);
	close(fd);
	bad_disk_repair(&disks[0]);
	check_media(1, last, 0);
}

static void a_failure_that_other_members_know_is_reported_by_the_process(void **state)
{
	lose_a_store_without_a_daemon();
	host_start(&hosts, 0, NULL);
	assert_true(host_wait_log(&hosts, 0, "the copy has failed", PATIENCE_MS));
	ask(0, "The local copy has failed", "put %u %u", OFFSET + 8, 1);
	hosts_wait_insync(&hosts, ALL & ~1u);
	host_kill(&hosts, 0);
	go_on(1, "map-direct");
	host_start(&hosts, 0, NULL);
	hosts_wait_insync(&hosts, ALL); /* the copy has been compared */
	check_media(ALL, last, 0);
}

/*
 * No process can report the failure any more, so the daemon writes the copy's cached content to the
 * medium.
 */
static void a_failure_that_no_process_can_report_any_more_is_repaired(void **state)
{
	lose_a_store_without_a_daemon();
	kill(apps[0].pid, SIGSTOP);
	host_start(&hosts, 0, NULL);
	assert_true(host_wait_log(&hosts, 0, "still maps it", PATIENCE_MS));
	proc_kill(&apps[0]);
	apps[0].pid = 0;
	assert_true(host_wait_log(&hosts, 0, "the cached pages are written again", PATIENCE_MS));
	go_on(0, "map-direct");
	hosts_wait_insync(&hosts, ALL);
	check_media(ALL, last, 1);
}

/* ---- blocks that cannot be read ---- */

#define PATTERN 0xb10cb10c00000000ull

static bool has_sums;

/* Mount disks; the third host's disk has checksums. */
static void mount_sums(unsigned host, const char *top)
{
	char own[256];

	if (host != 2)
		return;
	snprintf(own, sizeof(own), "%s/%u", folder, host);
	has_sums = bad_disk_mount_sums(&disks[host], own, top);
}

/* Stop the host, and make the first value on its medium unreadable. */
static void stop_and_spoil(void)
{
	if (!has_sums)
		skip();
	go_on(0, "map-wait");
	last = PATTERN;
	put_at_all(OFFSET, ++last);
	host_stop(&hosts, 2);
	bad_disk_spoil(&disks[2], hosts.hosts[2].data, &last, sizeof(last));
}

static void return_with_a_bad_block(void)
{
	host_start(&hosts, 2, NULL);
	assert_true(host_wait_log(&hosts, 2, "1 of the blocks at", PATIENCE_MS));
	hosts_wait_insync(&hosts, ALL);
	assert_int_equal(host_read_word(&hosts, 2, OFFSET), last);
	put_at_all(NEXT, last);
	assert_int_equal(host_run_tool(&hosts, 0, "verify " HOSTS_SET), 0);
}

/* A store to the page would have to read it first, so the block is overwritten as a whole. */
static void a_block_that_a_replica_can_neither_read_nor_store_into_is_cured(void **state)
{
	stop_and_spoil();
	ask(0, "durable 3 flags 1", "put %u %llu", OFFSET, (unsigned long long)++last);
	return_with_a_bad_block();
}

static void a_block_that_a_replica_cannot_compare_is_cured(void **state)
{
	stop_and_spoil();
	return_with_a_bad_block();
}

static int setup_opts(const struct hosts_opts *opts)
{
	char here[128];

	last = 0;
	flushed = 8;
	assert_non_null(getcwd(here, sizeof(here)));
	snprintf(folder, sizeof(folder), "%s/disks.XXXXXX", here);
	assert_non_null(mkdtemp(folder));
	hosts_start(&hosts, opts);
	return 0;
}

static int setup_with(void (*mount_one)(unsigned host, const char *folder))
{
	const struct hosts_opts opts = {
		.count = HOSTS, .size = SIZE, .mount = mount_one, .automatic = true};

	return setup_opts(&opts);
}

static int setup(void **state)
{
	return setup_with(mount_disk);
}

/* Set-up for frozen disks: the daemon's own time limit must not end a connection. */
static int setup_still(void **state)
{
	const struct hosts_opts opts = {.count = HOSTS,
					.size = SIZE,
					.mount = mount_disk,
					.peer_timeout_ms = 60000,
					.replica_timeout_ms = 700,
					.automatic = true};

	return setup_opts(&opts);
}

static int setup_sums(void **state)
{
	return setup_with(mount_sums);
}

static int teardown(void **state)
{
	int fd = open(disks[2].top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0) {
		(void)ioctl(fd, FITHAW, 0); /* a failed case can have left the file system frozen */
		close(fd);
	}
	if (apps[0].pid)
		proc_kill(&apps[0]);
	hosts_stop(&hosts);
	for (unsigned i = 0; i < HOSTS; i++)
		bad_disk_unmount(&disks[i]);
	rmdir(folder);
	return 0;
}

#define TEST(name)      cmocka_unit_test_setup_teardown(name, setup, teardown)
#define TEST_SUMS(name) cmocka_unit_test_setup_teardown(name, setup_sums, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_local_write_back_is_short_in_an_isolated_mapping),
		TEST(a_local_write_back_of_blocks_is_short),
		TEST(a_local_write_back_is_short_in_a_direct_mapping),
		cmocka_unit_test_setup_teardown(what_stood_still_at_a_replica_changes_nothing_later,
						setup_still, teardown),
		cmocka_unit_test_setup_teardown(a_replica_is_excluded_while_the_local_copy_fails,
						setup_still, teardown),
		TEST(the_first_part_of_a_large_flush_is_short),
		TEST(a_primarys_disk_fails),
		TEST(a_primarys_disk_fails_under_blocks),
		TEST(a_primarys_copy_has_no_room),
		TEST(a_remote_write_back_is_short_and_the_daemon_is_killed),
		TEST(a_remote_write_back_is_short_and_the_daemon_is_stopped),
		TEST(a_replicas_disk_fails),
		TEST(a_replicas_metadata_cannot_be_written),
		TEST(a_failure_while_no_daemon_runs_is_recorded_by_the_next),
		TEST(a_failure_that_other_members_know_is_reported_by_the_process),
		TEST(a_failure_that_no_process_can_report_any_more_is_repaired),
		TEST_SUMS(a_block_that_a_replica_can_neither_read_nor_store_into_is_cured),
		TEST_SUMS(a_block_that_a_replica_cannot_compare_is_cured),
	};

	bad_disk_need();
	return cases_run(tests, CASES_OF_HOSTS);
}
