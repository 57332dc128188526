/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process that creates a pool is killed before each of its system calls in turn. The remains must
 * be one of three: nothing that prevents a new creation, a complete pool, or files that are refused
 * with an explanation and can be removed without force.
 */
#include "unit/poolset/disk.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#define SET "PMEMPOOLSET\n2M @/p0\n2M @/p1\n2M @/p2\n"

enum left { LEFT_NOTHING, LEFT_HALF, LEFT_POOL, LEFTS };

static struct poolset_attr attr;

static int setup(void **state)
{
	attr = disk_attr();
	return disk_setup(state);
}

static void child_create(void)
{
	struct poolset_place place = disk_place("a.set");
	struct poolset_pool *pool;

	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		_exit(77);
	raise(SIGSTOP);
	_exit(poolset_create(&place, 0, &attr, &pool, NULL) ? 1 : 0);
}

/* Returns true if the child was killed before its n-th system call, false if it ended before that
 * call. */
static bool kill_at(unsigned n)
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (!child)
		child_create();
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFEXITED(status)) {
		assert_int_equal(WEXITSTATUS(status), 77);
		skip();
	}
	/* The child stops twice for each system call: at its beginning and at its end. */
	for (unsigned stops = 0; WIFSTOPPED(status) && stops < 2 * n - 1; stops++) {
		assert_int_equal(ptrace(PTRACE_SYSCALL, child, NULL, NULL), 0);
		assert_int_equal(waitpid(child, &status, 0), child);
	}
	if (WIFEXITED(status)) {
		assert_int_equal(WEXITSTATUS(status), 0);
		return false;
	}
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, &status, 0), child);
	return true;
}

static enum left look_at_what_is_left(void)
{
	struct poolset_place place = disk_place("a.set");
	struct poolset_pool *pool;
	enum left left = LEFT_HALF;

	disk_err = (struct error){0};
	if (!poolset_create(&place, 0, &attr, &pool, &disk_err)) {
		disk_close(pool);
		return LEFT_NOTHING;
	}
	assert_int_equal(disk_err.cause, EEXIST);
	if (!poolset_open(&place, 0, NULL, &pool, NULL)) {
		disk_close(pool);
		left = LEFT_POOL;
	} else {
		assert_non_null(strstr(disk_err.text, "interrupted creation"));
	}
	assert_int_equal(poolset_remove(&place, 0, &disk_err), 0);
	disk_close(disk_create("a.set", &attr));
	return left;
}

static void whatever_is_left_can_be_made_good(void **state)
{
	struct poolset_place place = disk_place("a.set");
	unsigned counts[LEFTS] = {0};
	unsigned n = 1;

	disk_write_set("a.set", SET);
	for (; kill_at(n); n++) {
		counts[look_at_what_is_left()]++;
		assert_int_equal(poolset_remove(&place, 0, &disk_err), 0);
		assert_int_equal(disk_count_files(), 1); /* not even a temporary file is left */
		assert_in_range(n, 1, 10000);
	}
	print_message("%u kills: %u times nothing, %u times a half, %u times a pool\n", n - 1,
		      counts[LEFT_NOTHING], counts[LEFT_HALF], counts[LEFT_POOL]);
	assert_true(counts[LEFT_NOTHING] > 20);
	assert_true(counts[LEFT_POOL] > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(whatever_is_left_can_be_made_good, setup,
						disk_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
