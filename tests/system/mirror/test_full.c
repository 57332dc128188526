/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * File systems that are really full: each host's folder is a small file system (tmpfs) that has the
 * copy, its metadata and the log, and all free space is used. The reserved space must be
 * sufficient. If a file has lost its space, the copy is not in-sync, and its host reports the
 * reason.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apps.h"
#include "base/clock.h"
#include "clients.h"
#include "system/lib/cases.h"
#include "system/lib/check.h"
#include "system/lib/mounts.h"

#define HOSTS   3
#define ALL     7
#define OFFSET  4096
#define SIZE    (8u << 20)
#define DISK    (24u << 20)
#define WAIT_MS 30000

static unsigned last; /* the last flushed value */

/* ---- file systems ---- */

static void name_ballast(const char *folder, char *path, size_t size)
{
	snprintf(path, size, "%s/ballast", folder);
}

static void fill(const char *folder)
{
	static const char block[4096];
	char path[300];
	int fd;

	name_ballast(folder, path, sizeof(path));
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	while (write(fd, block, sizeof(block)) > 0)
		;
	assert_int_equal(errno, ENOSPC);
	close(fd);
}

static void make_room(const char *folder)
{
	char path[300];

	name_ballast(folder, path, sizeof(path));
	assert_int_equal(unlink(path), 0);
}

/* Remove the blocks of the host's file but keep its size, as in a copy of the file with holes. Then
 * immediately use all free space. */
static void take_blocks(const struct host *host)
{
	int fd = open(host->data, O_RDWR | O_CLOEXEC);

	assert_int_equal(
		fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, SIZE / 2, SIZE / 2), 0);
	close(fd);
	fill(host->folder);
}

/* Expect this text in the explanation that the tool gives on this host. */
static void expect_explained(unsigned host, const char *words)
{
	uint64_t end = clock_now_ns() + WAIT_MS * NSEC_PER_MS;
	char command[900], text[8192];

	snprintf(command, sizeof(command), SYSTEM_RPMIRROR " explain " HOSTS_SET " --socket %s",
		 hosts.hosts[host].socket);
	do {
		FILE *out = popen(command, "re");
		size_t n;

		assert_non_null(out);
		n = fread(text, 1, sizeof(text) - 1, out);
		text[n] = '\0';
		pclose(out);
		if (strstr(text, words))
			return;
		usleep(50000);
	} while (clock_now_ns() < end);
	fail_msg("'%s' is not in: %s", words, text);
}

/* ---- applications ---- */

static void go_on(unsigned host)
{
	if (apps[0].pid)
		proc_kill(&apps[0]);
	app_start(&apps[0], &hosts, host, NULL);
	ask(0, "ok", "map-wait");
	assert_int_equal(atoi(proc_ask(&apps[0], "get %u", OFFSET)), last);
}

static void put(const char *wanted)
{
	ask(0, wanted, "put %u %u", OFFSET, ++last);
}

/* Flush until the set is whole: on a busy machine a member can be lost for a short time. */
static void put_until_whole(void)
{
	uint64_t end = clock_now_ns() + WAIT_MS * NSEC_PER_MS;
	const char *line;

	do {
		hosts_wait_insync(&hosts, ALL);
		line = proc_ask(&apps[0], "put %u %u", OFFSET, ++last);
		if (!line || clock_now_ns() > end)
			fail_msg("%s", line ? line : "no answer");
	} while (strcmp(line, "durable 7 flags 0") != 0);
}

static void check_copies(unsigned insync)
{
	hosts_wait_insync(&hosts, (mirror_mask)insync);
	for (unsigned i = 0; i < HOSTS; i++)
		if (insync >> i & 1)
			assert_int_equal(host_read_word(&hosts, i, OFFSET), last);
}

/* ---- tests ---- */

/* The space for all writes of a flush, a resync and a change of the role was reserved at the
 * beginning. */
static void nothing_stops_where_all_is_reserved(void **state)
{
	go_on(0);
	put_until_whole();
	for (unsigned i = 0; i < HOSTS; i++)
		fill(hosts.hosts[i].folder);
	put_until_whole();
	host_kill(&hosts, 2);
	put("durable 3 flags 1");
	host_start(&hosts, 2, NULL);
	check_copies(ALL);
	go_on(1);
	put_until_whole();
	check_copies(ALL);
}

/* A daemon that cannot get the space for its whole copy does not use the copy. */
static void a_copy_without_its_room_stays_away_and_says_so(void **state)
{
	struct host *host = &hosts.hosts[2];

	go_on(0);
	put_until_whole();
	host_kill(&hosts, 2);
	take_blocks(host);
	host_start(&hosts, 2, NULL);
	put("durable 3 flags 1");
	expect_explained(2, "not enough disk");
	make_room(host->folder);
	check_copies(ALL);
	put_until_whole();
}

/* The pages that a flush writes no longer exist, and there is no space for new ones. */
static void a_replica_that_loses_its_room_is_excluded(void **state)
{
	struct host *host = &hosts.hosts[2];

	go_on(0);
	put_until_whole();
	take_blocks(host);
	ask(0, "durable 3 flags 1", "put %u %u", SIZE - 4096, 1);
	put("durable 3 flags 1");
	hosts_wait_insync(&hosts, 3);
	assert_int_equal(host_read_word(&hosts, 1, SIZE - 4096), 1);
	assert_int_equal(proc_wait(&host->daemon, 0), -ETIMEDOUT);
	expect_explained(0, "The copy of c ");
	go_on(1);
	put("durable 3 flags 1");
}

static void a_primary_that_loses_its_room_says_so_and_another_goes_on(void **state)
{
	go_on(0);
	hosts_wait_insync(&hosts, ALL);
	ask(0, "durable", "put %u %u", SIZE - 4096, 1);
	put_until_whole();
	take_blocks(&hosts.hosts[0]);
	ask(0, "The local copy has failed", "put %u %u", SIZE - 4096, 2);
	hosts_wait_insync(&hosts, ALL & ~1u);
	for (unsigned i = 1; i < HOSTS; i++)
		assert_int_equal(host_read_word(&hosts, i, SIZE - 4096), 2);
	go_on(1);
	put("durable 6 flags 1");
	check_copies(ALL & ~1u);
}

/* A page that was never touched has to be allocated now. No member can replace the page, so the
 * process gets the signal. */
static void a_program_that_touches_what_has_no_room_ends_and_another_goes_on(void **state)
{
	go_on(0);
	put_until_whole();
	take_blocks(&hosts.hosts[0]);
	app_tell(&apps[0], "get 8384512\n");
	assert_int_equal(WTERMSIG(proc_wait(&apps[0], WAIT_MS)), SIGBUS);
	go_on(1);
	put("durable ");
}

static char register_folder[200];

/* No member is excluded without a record in the register, so no flush is acknowledged that a member
 * lacks. */
static void a_full_register_holds_flushes_up_until_there_is_room(void **state)
{
	go_on(0);
	put_until_whole();
	fill(register_folder);
	put_until_whole();
	host_kill(&hosts, 2);
	app_tell(&apps[0], "put 4096 100\n");
	assert_null(proc_line(&apps[0], 1000));
	expect_explained(0, "egister");
	make_room(register_folder);
	app_check("durable 3 flags 1", proc_line(&apps[0], WAIT_MS));
	last = 100;
	host_start(&hosts, 2, NULL);
	check_copies(ALL);
}

static int setup(void **state)
{
	static char uri[300];
	char here[128];
	const struct hosts_opts opts = {
		.count = HOSTS, .size = SIZE, .disk = DISK, .automatic = true, .register_uri = uri};

	last = 0;
	assert_non_null(getcwd(here, sizeof(here)));
	snprintf(register_folder, sizeof(register_folder), "%s/register.XXXXXX", here);
	assert_non_null(mkdtemp(register_folder));
	assert_int_equal(mount("tmpfs", register_folder, "tmpfs", 0, "size=1m"), 0);
	snprintf(uri, sizeof(uri), "file:%s/register", register_folder);
	hosts_start(&hosts, &opts);
	return 0;
}

static int teardown(void **state)
{
	apps_teardown(state);
	umount2(register_folder, MNT_DETACH);
	rmdir(register_folder);
	return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nothing_stops_where_all_is_reserved),
		TEST(a_copy_without_its_room_stays_away_and_says_so),
		TEST(a_replica_that_loses_its_room_is_excluded),
		TEST(a_primary_that_loses_its_room_says_so_and_another_goes_on),
		TEST(a_program_that_touches_what_has_no_room_ends_and_another_goes_on),
		TEST(a_full_register_holds_flushes_up_until_there_is_room),
	};

	need_own_mounts();
	return cases_run(tests, CASES_OF_HOSTS);
}
