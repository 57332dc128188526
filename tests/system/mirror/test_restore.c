/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The primary's host has unreadable pages, in a set with real daemons. If a page has no unflushed
 * stores, the library restores it from another copy while the load waits. Otherwise the library
 * restores the page's last flushed content, and reports the loss in the way that the application
 * has chosen. Each case runs in both kinds of mapping.
 */
#include <fcntl.h>
#include <librpmirror.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apps.h"
#include "clients.h"
#include "lib/bad_pages.h"
#include "system/lib/check.h"

#define MEMORY  "/dev/shm" /* folder in which pages can be made bad (lib/bad_pages.h) */
#define HOSTS   3
#define ALL     7
#define WAIT_MS 30000
#define PAGE    4096u
#define SIZE    (8u << 20)
#define FILLED  (4u << 20) /* bytes with a pattern that an earlier process flushed */
#define STORED  FILLED     /* after these bytes, the offset of the word to which the test stores */
#define OTHER   (6u << 20) /* offset of another word, which is flushed */
#define OLD     1          /* the acknowledged value of STORED */
#define NEW     2          /* the value of STORED that was not acknowledged */

static const char *const mappings[] = {"map-wait", "map-direct"};
enum { ISOLATED, DIRECT };

static unsigned flushed;   /* the value that was flushed to OTHER */
static bool has_bad_pages; /* the files are on a file system in which pages can be made bad */

/* ---- the medium ---- */

static void lose(unsigned host, uint64_t offset, uint64_t len)
{
	int fd = open(hosts.hosts[host].data, O_RDWR | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_true(bad_pages_lose(fd, offset, len));
	close(fd);
}

/*
 * Lose the store: in an isolated mapping it is in private memory, in a direct mapping in the file.
 */
static void lose_store(unsigned mapping)
{
	if (mapping == ISOLATED)
		ask(0, "ok", "poison %u", STORED);
	else
		lose(0, STORED, PAGE);
}

static void assert_copies_are_equal(void)
{
	char command[2 * sizeof(hosts.hosts[0].data) + 16];

	for (unsigned i = 1; i < HOSTS; i++) {
		snprintf(command, sizeof(command), "cmp %s %s", hosts.hosts[0].data,
			 hosts.hosts[i].data);
		assert_int_equal(system(command), 0);
	}
}

/* ---- applications ---- */

static void begin_on(unsigned host, const char *mapping, const char *env, bool has_handler)
{
	const char *const envs[] = {env, NULL};

	app_start(&apps[0], &hosts, host, envs);
	if (has_handler)
		ask(0, "ok", "handler");
	ask(0, "ok", "%s", mapping);
	if (has_bad_pages)
		ask(0, "ok", "watch %s", hosts.hosts[host].data);
}

/*
 * Wait until the primary counts all members. It does so shortly after the register has them in S.
 */
static void wait_whole(void)
{
	const char *line = "";

	hosts_wait_insync(&hosts, ALL);
	for (unsigned waited = 0; line && !strstr(line, "insync 7 ") && waited < WAIT_MS;
	     waited++) {
		line = proc_ask(&apps[0], "state");
		usleep(1000);
	}
	if (!line || !strstr(line, "insync 7 "))
		fail_msg("the primary does not count all: %s", line ? line : "no answer");
}

static void begin(unsigned mapping, const char *env, bool has_handler)
{
	begin_on(0, mappings[mapping], env, has_handler);
	wait_whole();
}

static void put(const char *wanted)
{
	ask(0, wanted, "put %u %u", OTHER, ++flushed);
}

/* End the application properly. All copies must be equal. */
static void end(void)
{
	wait_whole();
	put("durable 7 flags 0");
	ask(0, "ok", "sync");
	ask(0, "ok", "unmap");
	assert_int_equal(proc_finish(&apps[0]), 0);
	assert_copies_are_equal();
}

struct errors {
	unsigned count, dirty, repaired;
	unsigned long long bytes, offset;
	char text[300];
};

static void add_errors(struct errors *sum)
{
	const char *line = proc_ask(&apps[0], "errors");
	struct errors e = {0};

	if (!line || sscanf(line, "%u dirty %u repaired %u: %llu from %llu: %299[^\n]", &e.count,
			    &e.dirty, &e.repaired, &e.bytes, &e.offset, e.text) < 5)
		fail_msg("%s", line ? line : "no answer");
	e.count += sum->count;
	e.dirty += sum->dirty;
	e.repaired += sum->repaired;
	e.bytes += sum->bytes;
	e.offset = e.offset < sum->offset ? e.offset : sum->offset;
	*sum = e;
}

/* Take the errors about this many bytes. If no data were lost, the errors can arrive some time
 * after the access. */
static struct errors take_errors(uint64_t bytes)
{
	struct errors sum = {.offset = UINT64_MAX};

	for (unsigned waited = 0; sum.bytes < bytes && waited < WAIT_MS; waited++) {
		add_errors(&sum);
		usleep(1000);
	}
	assert_int_equal(sum.bytes, bytes);
	return sum;
}

/* The store must be lost, and the bytes that were flushed before must be restored. */
static void expect_loss(void)
{
	struct errors e;

	ask(0, "value 1", "read %u", STORED);
	/* No flush that relies on the lost store must succeed. */
	put("The local copy has failed: set orders: stores that were not flushed are lost");
	put("The local copy has failed");
	e = take_errors(PAGE);
	assert_int_equal(e.count, 1);
	assert_int_equal(e.dirty, 1);
	assert_int_equal(e.repaired, 1);
	assert_int_equal(e.offset, STORED);
	put("durable 7 flags 0");
	ask(0, "durable 7 flags 0", "put %u %u", STORED, NEW + 1);
	for (unsigned i = 0; i < HOSTS; i++)
		assert_int_equal(host_read_word(&hosts, i, STORED), NEW + 1);
}

static void store(void)
{
	ask(0, "durable 7 flags 0", "put %u %u", STORED, OLD);
	ask(0, "ok", "store %u %u", STORED, NEW);
}

/* ---- no data are lost ---- */

/* `members`: names of members that have the page. The library asks the member that it connected
 * first. A member that cannot be reached yet causes no delay if another member has the page. */
static void expect_restored(uint64_t len, const char *members)
{
	const char *from;
	struct errors e;

	lose(0, 0, len);
	ask(0, len == FILLED ? "1024" : "16", "right 0 %llu", (unsigned long long)len);
	put("durable ");
	e = take_errors(len);
	assert_int_equal(e.offset, 0);
	assert_int_equal(e.dirty, 0);
	assert_int_equal(e.repaired, e.count);
	from = strstr(e.text, "could not be read: from ");
	from = from ? from + strlen("could not be read: from ") : "";
	if (!*from || !strchr(members, *from) || from[1] != ' ')
		fail_msg("%s, and not from one of %s", e.text, members);
}

static void a_page_comes_back_from_another_copy(unsigned mapping)
{
	begin(mapping, NULL, false);
	expect_restored(FILLED, "bc");
	host_kill(&hosts, 1);
	expect_restored(16 * PAGE, "c");
	host_start(&hosts, 1, NULL);
	end();
}

static void isolated_a_page_comes_back(void **state)
{
	a_page_comes_back_from_another_copy(ISOLATED);
}

static void direct_a_page_comes_back(void **state)
{
	a_page_comes_back_from_another_copy(DIRECT);
}

/* ---- a store is lost, and the application is informed ---- */

static void by_the_next_flush(unsigned mapping)
{
	begin(mapping, NULL, false);
	store();
	lose_store(mapping);
	expect_loss();
	end();
}

static void isolated_a_lost_store_fails_the_next_flush(void **state)
{
	by_the_next_flush(ISOLATED);
}

static void direct_a_lost_store_fails_the_next_flush(void **state)
{
	by_the_next_flush(DIRECT);
}

static void by_a_jump(unsigned mapping)
{
	begin(mapping, NULL, false);
	store();
	ask(0, "value 2", "back %u", STORED);
	lose_store(mapping);
	ask(0, "back", "back %u", STORED);
	expect_loss();
	end();
}

static void isolated_a_lost_store_goes_back_to_the_point(void **state)
{
	by_a_jump(ISOLATED);
}

static void direct_a_lost_store_goes_back_to_the_point(void **state)
{
	by_a_jump(DIRECT);
}

/* The application's handler, which was installed before the map, gets this signal and signals that
 * do not concern the set, but no other signals. */
static void by_the_signal(unsigned mapping)
{
	begin(mapping, "RPMIRROR_ON_MEDIUM=signal", true);
	expect_restored(16 * PAGE, "bc");
	store();
	lose_store(mapping);
	ask(0, "signal", "elsewhere");
	ask(0, "signal", "read %u", STORED);
	expect_loss();
	end();
}

static void isolated_a_lost_store_raises_the_signal(void **state)
{
	by_the_signal(ISOLATED);
}

static void direct_a_lost_store_raises_the_signal(void **state)
{
	by_the_signal(DIRECT);
}

static void expect_killed(void)
{
	int status = proc_wait(&apps[0], WAIT_MS);

	/* A sanitizer has its own handler, which ends the process. */
	if (SYSTEM_SANITIZED)
		assert_true(WIFEXITED(status) && WEXITSTATUS(status));
	else
		assert_int_equal(WTERMSIG(status), SIGBUS);
}

/*
 * No handler handles the signal, so the process is killed. The next process has all acknowledged
 * data.
 */
static void by_the_end(unsigned mapping)
{
	begin(mapping, "RPMIRROR_ON_MEDIUM=signal", false);
	store();
	lose_store(mapping);
	app_tell(&apps[0], "read 4194304\n");
	expect_killed();
	begin_on(1, mappings[mapping], NULL, false);
	ask(0, "value 1", "read %u", STORED);
	ask(0, "1024", "right 0 %u", FILLED);
	end();
}

static void isolated_a_lost_store_ends_the_process(void **state)
{
	by_the_end(ISOLATED);
}

static void direct_a_lost_store_ends_the_process(void **state)
{
	by_the_end(DIRECT);
}

/* ---- the file is truncated, on an ordinary file system ---- */

static void a_truncated_file_gets_all_back(unsigned mapping)
{
	const unsigned left = 3 * PAGE + 100;
	struct errors e;

	begin(mapping, NULL, false);
	store();
	assert_int_equal(truncate(hosts.hosts[0].data, left), 0);
	ask(0, "1", "right %u %u", 5 * PAGE, PAGE);
	put("The local copy has failed");
	ask(0, "1024", "right 0 %u", FILLED);
	ask(0, "value 1", "read %u", STORED);
	e = take_errors(SIZE - 3 * PAGE);
	assert_int_equal(e.dirty, e.count);
	assert_int_equal(e.repaired, e.count);
	assert_int_equal(e.offset, 3 * PAGE);
	put("durable 7 flags 0");
	end();
}

static void isolated_a_truncated_file_gets_all_back(void **state)
{
	a_truncated_file_gets_all_back(ISOLATED);
}

static void direct_a_truncated_file_gets_all_back(void **state)
{
	a_truncated_file_gets_all_back(DIRECT);
}

/* ---- no copy has the bytes ---- */

static void expect_raised(unsigned host)
{
	struct errors e;

	lose(host, PAGE, PAGE);
	ask(0, "signal", "read %u", PAGE + 8);
	e = take_errors(PAGE);
	assert_int_equal(e.repaired, 0);
	assert_int_equal(e.offset, PAGE);
	if (!strstr(e.text, "cannot be read, and no other member has them"))
		fail_msg("%s", e.text);
}

/* Use another host each time, because the page is lost on the previous host. */
static void without_members_the_signal_is_raised(void **state)
{
	for (unsigned host = 0; host < 2; host++) {
		begin_on(host, mappings[host], NULL, true);
		hosts_wait_insync(&hosts, ALL);
		for (unsigned i = 0; i < HOSTS; i++)
			if (i != host)
				host_kill(&hosts, i);
		ask(0, host ? "durable 2 flags 3" : "durable 1 flags 3", "put %u %u", OTHER,
		    ++flushed);
		expect_raised(host);
		for (unsigned i = 0; i < HOSTS; i++)
			if (i != host)
				host_start(&hosts, i, NULL);
		hosts_wait_insync(&hosts, ALL);
		ask(0, "ok", "unmap");
		assert_int_equal(proc_finish(&apps[0]), 0);
	}
}

/* The page is bad on all copies, so the loss is reported. */
static void what_no_copy_has_is_lost(void **state)
{
	begin(ISOLATED, NULL, true);
	for (unsigned i = 1; i < HOSTS; i++)
		assert_int_equal(truncate(hosts.hosts[i].data, 0), 0);
	expect_raised(0);
}

/* ---- set-up ---- */

static int start(unsigned replica_timeout_ms)
{
	const struct hosts_opts opts = {.count = HOSTS,
					.size = SIZE,
					.replica_timeout_ms = replica_timeout_ms,
					.automatic = true};

	hosts_start(&hosts, &opts);
	app_start(&apps[0], &hosts, 0, NULL);
	ask(0, "ok", "map-wait");
	ask(0, "ok", "fill 0 %u", FILLED);
	ask(0, "ok", "unmap");
	return proc_finish(&apps[0]);
}

static int setup_all(void **state)
{
	return start(0);
}

/* Set-up with a short time limit for fetching a page from a copy. */
static int setup_impatient(void **state)
{
	return start(1000);
}

static int teardown(void **state)
{
	if (apps[0].pid)
		proc_kill(&apps[0]);
	return 0;
}

static int teardown_all(void **state)
{
	hosts_stop(&hosts);
	return 0;
}

static int teardown_impatient(void **state)
{
	return teardown(state) | teardown_all(state);
}

/* Returns true if pages can be made bad, which needs Linux 6.6 and userfaultfd(2). */
static bool can_be_bad(void)
{
	uint8_t *page =
		mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int watch = bad_pages_watch(page, PAGE);
	bool has = watch >= 0 && bad_pages_poison(watch, page);

	close(watch);
	munmap(page, PAGE);
	return has;
}

#define TEST(name) cmocka_unit_test_teardown(name, teardown)

static const struct CMUnitTest tests_on_disk[] = {
	TEST(isolated_a_truncated_file_gets_all_back),
	TEST(direct_a_truncated_file_gets_all_back),
};

static const struct CMUnitTest tests_in_memory[] = {
	TEST(isolated_a_page_comes_back),
	TEST(direct_a_page_comes_back),
	TEST(isolated_a_lost_store_fails_the_next_flush),
	TEST(direct_a_lost_store_fails_the_next_flush),
	TEST(isolated_a_lost_store_goes_back_to_the_point),
	TEST(direct_a_lost_store_goes_back_to_the_point),
	TEST(isolated_a_lost_store_raises_the_signal),
	TEST(direct_a_lost_store_raises_the_signal),
	TEST(isolated_a_lost_store_ends_the_process),
	TEST(direct_a_lost_store_ends_the_process),
	TEST(without_members_the_signal_is_raised),
};

static const struct CMUnitTest tests_of_loss[] = {
	cmocka_unit_test_setup_teardown(what_no_copy_has_is_lost, setup_impatient,
					teardown_impatient),
};

int main(void)
{
	int failed = cmocka_run_group_tests(tests_on_disk, setup_all, teardown_all);

	if (failed)
		return failed;
	if (chdir(MEMORY) || !can_be_bad()) {
		printf("skipped: no pages of " MEMORY " can be made bad\n");
		return SKIPPED;
	}
	has_bad_pages = true;
	failed = cmocka_run_group_tests(tests_in_memory, setup_all, teardown_all);
	return failed ? failed : cmocka_run_group_tests(tests_of_loss, NULL, NULL);
}
