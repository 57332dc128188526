/* SPDX-License-Identifier: BSD-3-Clause */
/* poolset_remove() removes the parts of unused pools, and no other files. */
#include "unit/poolset/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define HEAD "PMEMPOOLSET\n"
#define TWO  HEAD "2M @/p0\n2M @/p1\n"

static struct poolset_attr attr;

static int setup(void **state)
{
	attr = disk_attr();
	disk_setup(state);
	disk_write_set("a.set", TWO);
	disk_close(disk_create("a.set", &attr));
	return 0;
}

/* Remove the set, which must succeed. Returns the first obstacle that was reported. */
static const char *remove_set(const char *name, unsigned flags)
{
	struct poolset_place place = disk_place(name);

	if (poolset_remove(&place, flags, &disk_err))
		fail_msg("%s", disk_err.text);
	return disk_err.kind ? disk_err.text : NULL;
}

static void parts_go_and_the_set_file_if_asked(void **state)
{
	assert_null(remove_set("a.set", 0));
	assert_int_equal(disk_count_files(), 1);
	disk_close(disk_create("a.set", &attr));
	assert_null(remove_set("a.set", POOLSET_REMOVE_SET));
	assert_int_equal(disk_count_files(), 0);
}

static void a_pool_in_use_stays_whole_also_by_force(void **state)
{
	struct poolset_pool *pool;

	disk_write_set("b.set", HEAD "2M @/q0\n2M @/p1\n");
	disk_make_file("q0", 2 * MIB);
	pool = disk_open("a.set", NULL);
	disk_no_remove("b.set", 0, EWOULDBLOCK, "p1 is in use");
	assert_non_null(strstr(remove_set("b.set", POOLSET_REMOVE_FORCE), "p1 is in use"));
	assert_non_null(strstr(remove_set("a.set", POOLSET_REMOVE_FORCE | POOLSET_REMOVE_SET),
			       "p0 is in use"));
	assert_int_equal(disk_count_files(), 5);
	disk_close(pool);
}

static void a_missing_part_is_an_error_without_force(void **state)
{
	unlink("p0");
	disk_no_remove("a.set", 0, ENOENT, "p0");
	assert_true(disk_exists("p1"));
	assert_non_null(strstr(remove_set("a.set", POOLSET_REMOVE_FORCE), "p0"));
	assert_false(disk_exists("p1"));
	disk_no_remove("none.set", 0, ENOENT, "cannot open");
	assert_non_null(strstr(remove_set("none.set", POOLSET_REMOVE_FORCE), "cannot open"));
}

static void what_is_no_part_of_a_pool_stays(void **state)
{
	static const char junk = 'x';

	/* The file has another size and no header. */
	disk_write_set("b.set", HEAD "2M @/file\n");
	disk_write_set("file", "Something of value.\n");
	disk_no_remove("b.set", 0, EINVAL, "file");
	assert_non_null(remove_set("b.set", POOLSET_REMOVE_FORCE));
	assert_true(disk_exists("file"));

	/* The file has the set's size, but other content. */
	unlink("file");
	disk_make_file("file", 2 * MIB);
	disk_write_bytes("file", 0, &junk, 1);
	disk_no_remove("b.set", 0, EINVAL, "file is not removed");
	assert_true(disk_exists("file"));

	/* A text file instead of a set contains no pool. */
	disk_write_set("notes", "Not a pool set file.\n");
	disk_no_remove("notes", 0, EINVAL, "notes");
	assert_non_null(remove_set("notes", POOLSET_REMOVE_FORCE | POOLSET_REMOVE_SET));
	assert_true(disk_exists("notes"));
	disk_make_file("zeros", 2 * MIB);
	disk_no_remove("zeros", 0, EINVAL, "zeros is not removed");
	assert_non_null(remove_set("zeros", POOLSET_REMOVE_FORCE));
	assert_non_null(remove_set("file", POOLSET_REMOVE_FORCE));
	assert_true(disk_exists("zeros"));
	assert_true(disk_exists("file"));
}

static void a_corrupt_pool_is_removed_by_force(void **state)
{
	static const char junk = 'x';

	disk_write_bytes("p1", 100, &junk, 1);
	disk_no_remove("a.set", 0, EINVAL, "p1 is not removed");
	assert_int_equal(disk_count_files(), 3);
	assert_null(remove_set("a.set", POOLSET_REMOVE_FORCE));
	assert_int_equal(disk_count_files(), 1);

	/* The file has a header, but another size. */
	disk_close(disk_create("a.set", &attr));
	assert_int_equal(truncate("p1", 3 * MIB), 0);
	disk_no_remove("a.set", 0, EINVAL, "p1 is not removed");
	assert_null(remove_set("a.set", POOLSET_REMOVE_FORCE));
	assert_int_equal(disk_count_files(), 1);
}

static void an_interrupted_creation_can_be_removed(void **state)
{
	static const uint8_t zero[HEADER_BYTES];

	disk_write_bytes("p0", 0, zero, sizeof(zero));
	disk_no_create("a.set", 0, &attr, EEXIST, "interrupted creation");
	assert_null(remove_set("a.set", 0));
	disk_close(disk_create("a.set", &attr));
}

static void a_pool_file_is_removed_by_its_name(void **state)
{
	disk_make_file("pool", 2 * MIB);
	disk_close(disk_create("pool", &attr));
	assert_null(remove_set("pool", POOLSET_REMOVE_SET));
	assert_false(disk_exists("pool"));
}

static void replicas_are_removed_unless_one_is_remote(void **state)
{
	disk_write_set("c.set", HEAD "2M @/q0\n");
	disk_close(disk_create("c.set", &attr));
	disk_write_set("b.set", TWO "REPLICA\n2M @/q0\nREPLICA host x.set\n");
	disk_no_remove("b.set", 0, EINVAL, "b.set:4: a set with a remote replica");
	assert_non_null(remove_set("b.set", POOLSET_REMOVE_FORCE));
	assert_int_equal(disk_count_files(), 6);
	disk_write_set("b.set", TWO "REPLICA\n2M @/q0\n");
	assert_null(remove_set("b.set", POOLSET_REMOVE_SET));
	assert_int_equal(disk_count_files(), 2);
}

static void parts_without_a_header_go_by_their_size(void **state)
{
	disk_write_set("b.set", HEAD "OPTION NOHDRS\n2M @/q0\n2M @/q1\n");
	disk_close(disk_create("b.set", NULL));
	assert_int_equal(truncate("q1", 2 * MIB + 1), 0);
	disk_no_remove("b.set", 0, EINVAL, "q1 is not removed");
	assert_non_null(remove_set("b.set", POOLSET_REMOVE_FORCE));
	assert_true(disk_exists("q1"));
	assert_false(disk_exists("q0"));
}

/* Give up root's privilege to ignore the folder's access rights. */
static void drop_privilege(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct caps[2];

	if (syscall(SYS_capget, &head, caps))
		_exit(2);
	caps[0].effective &= ~(1u << CAP_DAC_OVERRIDE | 1u << CAP_DAC_READ_SEARCH);
	if (syscall(SYS_capset, &head, caps) || open(".", O_RDONLY) >= 0)
		_exit(3);
}

/* A folder that cannot be read cannot be synchronized, either. */
static void a_folder_that_cannot_be_read_is_no_obstacle(void **state)
{
	pid_t pid;
	int status;

	assert_int_equal(chmod(".", 0300), 0);
	pid = fork();
	if (!pid) {
		struct poolset_place place = disk_place("a.set");

		drop_privilege();
		if (!poolset_remove(&place, 0, &disk_err))
			_exit(0);
		fprintf(stderr, "%s\n", disk_err.text);
		_exit(1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(chmod(".", 0700), 0);
	assert_int_equal(status, 0);
	assert_int_equal(disk_count_files(), 1);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, disk_teardown)
	const struct CMUnitTest tests[] = {
		TEST(parts_go_and_the_set_file_if_asked),
		TEST(a_pool_in_use_stays_whole_also_by_force),
		TEST(a_missing_part_is_an_error_without_force),
		TEST(what_is_no_part_of_a_pool_stays),
		TEST(a_corrupt_pool_is_removed_by_force),
		TEST(an_interrupted_creation_can_be_removed),
		TEST(a_pool_file_is_removed_by_its_name),
		TEST(replicas_are_removed_unless_one_is_remote),
		TEST(parts_without_a_header_go_by_their_size),
		TEST(a_folder_that_cannot_be_read_is_no_obstacle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
