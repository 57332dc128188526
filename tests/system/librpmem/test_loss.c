/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Either end is lost: every call returns, the pool keeps the first failure, and no object is left.
 */
#include "system/librpmem/place.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "system/librpmem/kills.h"

/* The pool stays failed, with the text of the first failure, and can be closed. */
static void expect_lost(RPMEMpool *rpp, int error)
{
	unsigned char byte;

	RPMEM_FAILS(rpmem_persist(rpp, 8192, 8, 3, 0), error);
	RPMEM_FAILS(rpmem_read(rpp, &byte, 8192, 1, 0), error);
	RPMEM_FAILS(rpmem_drain(rpp, 0, 0), error);
	RPMEM_FAILS(rpmem_set_attr(rpp, &place_attr), error);
	assert_non_null(strstr(rpmem_errormsg(), "has failed before"));
	RPMEM_FAILS(rpmem_close(rpp), error);
}

static void a_daemon_that_is_killed_is_lost(void **state)
{
	RPMEMpool *rpp = place_create("localhost");
	pid_t daemon = place_daemon();

	RPMEM_OK(rpmem_persist(rpp, 8192, 8, 0, 0));
	kill(daemon, SIGKILL);
	place_wait_gone(daemon);
	RPMEM_FAILS(rpmem_persist(rpp, 8192, 8, 0, 0), ECONNRESET);
	expect_lost(rpp, ECONNRESET);
	/* The acknowledged bytes exist, and the pool can be opened again. */
	RPMEM_OK(rpmem_close(place_open("localhost")));
}

static void a_daemon_that_was_killed_is_noticed_by_a_close(void **state)
{
	RPMEMpool *rpp = place_create("localhost");
	pid_t daemon = place_daemon();

	kill(daemon, SIGKILL);
	place_wait_gone(daemon);
	RPMEM_FAILS(rpmem_close(rpp), ECONNRESET);
}

/* The call ends at its own time limit, not at the limit of liveness. */
static void a_daemon_that_stands_still_costs_the_time_limit(void **state)
{
	RPMEMpool *rpp;
	pid_t daemon;

	setenv("RPMEM_TIMEOUT_MS", "1500", 1);
	rpp = place_create("localhost");
	setenv("RPMEM_TIMEOUT_MS", "30000", 1);
	daemon = place_daemon();
	RPMEM_OK(rpmem_persist(rpp, 8192, 8, 0, 0));
	kill(daemon, SIGSTOP);
	RPMEM_FAILS(rpmem_persist(rpp, 4096, PLACE_POOL - 4096, 0, 0), ETIMEDOUT);
	assert_non_null(strstr(rpmem_errormsg(), "RPMEM_TIMEOUT_MS"));
	/* libpmemobj unmaps the pool even while writes are outstanding */
	munmap(place_local, PLACE_POOL);
	expect_lost(rpp, ETIMEDOUT);
	kill(daemon, SIGCONT);
	place_wait_gone(daemon);
}

static void a_daemon_that_stands_still_for_less_is_waited_for(void **state)
{
	pid_t daemon = place_daemon(), waker;

	RPMEM_OK(rpmem_persist(place_pool, 8192, 8, 0, 0));
	kill(daemon, SIGSTOP);
	waker = fork();
	if (!waker) {
		usleep(300000);
		kill(daemon, SIGCONT);
		_exit(0);
	}
	RPMEM_OK(rpmem_persist(place_pool, 8192, 8, 0, 0));
	waitpid(waker, NULL, 0);
}

static void a_control_call_is_bounded_too(void **state)
{
	RPMEMpool *rpp;
	pid_t daemon;

	setenv("RPMEM_TIMEOUT_MS", "500", 1);
	rpp = place_create("localhost");
	setenv("RPMEM_TIMEOUT_MS", "30000", 1);
	daemon = place_daemon();
	kill(daemon, SIGSTOP);
	RPMEM_FAILS(rpmem_set_attr(rpp, &place_attr), ETIMEDOUT);
	RPMEM_FAILS(rpmem_close(rpp), ETIMEDOUT);
	kill(daemon, SIGCONT);
	place_wait_gone(daemon);
}

static void an_ssh_that_prints_nothing_is_bounded(void **state)
{
	unsigned n = 1;

	place_use_ssh("echo 'I am waiting' >&2\nexec sleep 1000\n");
	setenv("RPMEM_TIMEOUT_MS", "300", 1);
	assert_null(
		rpmem_create("localhost", "pool.set", place_local, PLACE_POOL, &n, &place_attr));
	assert_int_equal(errno, ETIMEDOUT);
	assert_non_null(strstr(rpmem_errormsg(), "I am waiting"));
	assert_int_equal(place_child(), 0);
	place_use_ssh(NULL);
	setenv("RPMEM_TIMEOUT_MS", "30000", 1);
}

static void sshs_own_words_reach_the_message(void **state)
{
	unsigned n = 1;

	place_use_ssh("echo 'me@there: Permission denied (publickey).' >&2\nexit 255\n");
	assert_null(rpmem_open("localhost", "pool.set", place_local, PLACE_POOL, &n, NULL));
	assert_int_equal(errno, ECONNRESET);
	assert_non_null(strstr(rpmem_errormsg(), "Permission denied (publickey)."));
	RPMEM_FAILS(rpmem_remove("localhost", "pool.set", 0), ECONNRESET);
	assert_non_null(strstr(rpmem_errormsg(), "Permission denied (publickey)."));
	/* This machine cannot resolve the name, but ssh possibly can. */
	assert_null(
		rpmem_open("no-such-host.invalid", "pool.set", place_local, PLACE_POOL, &n, NULL));
	assert_int_equal(errno, ENOMEDIUM);
	place_use_ssh(NULL);
}

/*
 * Runs in an initiator that the test kills. A child of this process has copies of all its
 * descriptors. Both processes exit at the latest when the test exits, because the test has the
 * other end of the pipe `hold`.
 */
static void be_killed(int hold, int ready)
{
	unsigned n = 1;
	RPMEMpool *rpp =
		rpmem_create("localhost", "pool.set", place_local, PLACE_POOL, &n, &place_attr);
	char byte = 'x';

	if (!rpp || rpmem_persist(rpp, 8192, 4096, 0, 0) || fork() < 0)
		_exit(1);
	if (write(ready, &byte, 1) != 1 || read(hold, &byte, 1))
		_exit(1);
	_exit(0);
}

/* Acknowledged bytes are preserved, and the pool is released although a child of the killed
 * initiator still runs. */
static void a_killed_initiator_ends_its_daemon(void **state)
{
	int hold[2], ready[2];
	pid_t initiator, daemon;
	const unsigned char *replica;
	char two[2];

	assert_int_equal(pipe(hold) | pipe(ready), 0);
	initiator = fork();
	if (!initiator) {
		close(hold[1]);
		be_killed(hold[0], ready[1]);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], two, 1), 1);
	assert_int_equal(read(ready[0], two + 1, 1), 1);
	daemon = place_daemon();
	kill(initiator, SIGKILL);
	waitpid(initiator, NULL, 0);
	place_wait_gone(daemon);
	replica = place_map("pool.set.part", NULL);
	assert_memory_equal(replica + 8192, place_local + 8192, 4096);
	munmap((void *)replica, PLACE_POOL);
	RPMEM_OK(rpmem_close(place_open("localhost")));
	close(hold[0]);
	close(hold[1]);
	close(ready[0]);
}

static void a_forked_child_leaves_its_parents_pool_alone(void **state)
{
	RPMEMpool *rpp = place_create("localhost");
	int status;
	pid_t child;

	RPMEM_OK(rpmem_persist(rpp, 8192, 8, 0, 0));
	child = fork();
	if (!child) {
		int bad = rpmem_persist(rpp, 8192, 8, 0, 0) != -1 || errno != EINVAL;

		bad |= rpmem_close(rpp) != 0;
		_exit(bad);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	RPMEM_OK(rpmem_persist(rpp, 8192, 8, 0, 0));
	RPMEM_OK(rpmem_persist(rpp, 8192, 8, 1, 0));
	RPMEM_OK(rpmem_close(rpp));
}

/* If an application waits for all its children, it takes the exit status of ssh. */
static void an_application_may_wait_for_ssh(void **state)
{
	RPMEMpool *rpp = place_create("localhost");
	pid_t daemon = place_daemon();

	kill(daemon, SIGKILL);
	assert_int_equal(waitpid(-1, NULL, 0), daemon);
	RPMEM_FAILS(rpmem_close(rpp), ECONNRESET);
	signal(SIGCHLD, SIG_IGN);
	rpp = place_open("localhost");
	RPMEM_OK(rpmem_persist(rpp, 8192, 8, 0, 0));
	RPMEM_OK(rpmem_close(rpp));
	signal(SIGCHLD, SIG_DFL);
}

static void nothing_acknowledged_is_missing_after_a_kill(void **state)
{
	kills_lose_nothing("localhost", 12, false);
}

static void a_failed_create_leaves_no_part(void **state)
{
	struct rpmem_pool_attr attr = place_attr;
	unsigned n = 1;

	attr.incompat_features = 1; /* the feature SINGLEHDR, which the set does not have */
	assert_null(rpmem_create("localhost", "pool.set", place_local, PLACE_POOL, &n, &attr));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(access(place_path("pool.set.part"), F_OK), -1);
	assert_int_equal(place_child(), 0);
}

/* The daemon checks the pool's files once a second. So flushes fail soon, because a later process
 * could not find their bytes. */
static void expect_flushes_to_fail(RPMEMpool *rpp)
{
	int i;

	for (i = 0; i < 200 && !rpmem_persist(rpp, 8192, 8, 0, 0); i++)
		usleep(50000);
	assert_true(i < 200);
	assert_int_equal(rpmem_close(rpp), -1);
}

static void a_part_that_is_removed_fails_the_pool(void **state)
{
	RPMEMpool *rpp = place_create("localhost");

	RPMEM_OK(rpmem_persist(rpp, 8192, 8, 0, 0));
	assert_int_equal(unlink(place_path("pool.set.part")), 0);
	expect_flushes_to_fail(rpp);
	place_expect_log("pool.set.part was removed or renamed");
}

static void a_part_that_is_replaced_fails_the_pool(void **state)
{
	RPMEMpool *rpp = place_create("localhost");
	char copy[700];
	int fd;

	snprintf(copy, sizeof(copy), "%s", place_path("copy"));
	fd = open(copy, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(ftruncate(fd, PLACE_POOL), 0);
	close(fd);
	assert_int_equal(rename(copy, place_path("pool.set.part")), 0);
	expect_flushes_to_fail(rpp);
	place_expect_log("pool.set.part was replaced by another file");
}

/* The pool is closed before the daemon's next check. */
static void a_close_reports_a_part_that_is_gone(void **state)
{
	RPMEMpool *rpp = place_create("localhost");

	RPMEM_OK(rpmem_persist(rpp, 8192, 8, 0, 0));
	assert_int_equal(unlink(place_path("pool.set.part")), 0);
	assert_int_equal(rpmem_close(rpp), -1);
}

int main(int argc, char **argv)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, place_setup, place_teardown)
#define POOL(f) cmocka_unit_test_setup_teardown(f, place_setup_pool, place_teardown_pool)
	const struct CMUnitTest tests[] = {
		TEST(a_daemon_that_is_killed_is_lost),
		TEST(a_daemon_that_was_killed_is_noticed_by_a_close),
		TEST(a_daemon_that_stands_still_costs_the_time_limit),
		POOL(a_daemon_that_stands_still_for_less_is_waited_for),
		TEST(a_control_call_is_bounded_too),
		TEST(an_ssh_that_prints_nothing_is_bounded),
		TEST(sshs_own_words_reach_the_message),
		TEST(a_killed_initiator_ends_its_daemon),
		TEST(a_forked_child_leaves_its_parents_pool_alone),
		TEST(an_application_may_wait_for_ssh),
		TEST(nothing_acknowledged_is_missing_after_a_kill),
		TEST(a_failed_create_leaves_no_part),
		TEST(a_part_that_is_removed_fails_the_pool),
		TEST(a_part_that_is_replaced_fails_the_pool),
		TEST(a_close_reports_a_part_that_is_gone),
	};

	place_main(argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
