/* SPDX-License-Identifier: BSD-3-Clause */
/* Names stay below their directory, even if a seccomp filter forbids openat2(). */
#include "unit/poolset/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "poolset/place.h"

/* Open a name below "in". Returns 0 or the cause. An opened file must begin with 'i'. */
static int try_name(const char *name)
{
	char dir[100], first = 0;
	struct poolset_place place = {dir, name};
	struct error err = {0};
	int fd;

	strcpy(dir, disk_folder);
	strcat(dir, "/in");
	if (place_open(&place, O_RDONLY, &fd, &err))
		return err.cause;
	if (pread(fd, &first, 1, 0) != 1 || first != 'i')
		first = 0;
	close(fd);
	return first ? 0 : -1;
}

static void make_tree(void)
{
	mkdir("in", 0700);
	mkdir("in/sub", 0700);
	disk_write_set("in/file", "inside");
	disk_write_set("in/sub/file", "inside");
	disk_write_set("out", "outside");
	assert_int_equal(symlink("../out", "in/link"), 0);
	assert_int_equal(symlink("/etc/passwd", "in/absolute"), 0);
	assert_int_equal(symlink("..", "in/up"), 0);
	assert_int_equal(symlink("sub", "in/down"), 0);
}

static const struct {
	const char *name;
	int cause;
} names[] = {
	{"file", 0},
	{"sub/file", 0},
	{"./sub//file", 0},
	{"none", ENOENT},
	{"sub/none", ENOENT},
	{"none/file", ENOENT},
	{"file/file", ENOTDIR},
	{"..", EBADF},
	{"../out", EBADF},
	{"../in/file", EBADF},
	{"sub/../../out", EBADF},
	{"link", EBADF},
	{"absolute", EBADF},
	{"up/out", EBADF},
	{"sub/../up/out", EBADF},
	{"/etc/passwd", EBADF},
	{"", EBADF},
};

static void names_that_lead_out_are_refused(void **state)
{
	make_tree();
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (try_name(names[i].name) != names[i].cause)
			fail_msg("%s: %d", names[i].name, try_name(names[i].name));
	assert_int_equal(try_name("down/file"), 0);
	assert_int_equal(try_name("sub/../file"), 0);
}

static int forbid_openat2(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {ARRAY_LEN(filter), filter};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* Returns the number, from 1 on, of the first name with an unexpected result, or 0. */
static int try_all_filtered(void)
{
	if (forbid_openat2())
		return 100;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (try_name(names[i].name) != names[i].cause)
			return (int)i + 1;
	/* Without openat2() the code is stricter than necessary: it follows no symbolic link. */
	return try_name("down/file") == EBADF && try_name("sub/../file") == EBADF ? 0 : 101;
}

static void without_openat2_they_are_refused_as_well(void **state)
{
	pid_t child;
	int status;

	make_tree();
	child = fork();
	assert_true(child >= 0);
	if (!child)
		_exit(try_all_filtered());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 100)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, disk_setup, disk_teardown)
	const struct CMUnitTest tests[] = {
		TEST(names_that_lead_out_are_refused),
		TEST(without_openat2_they_are_refused_as_well),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
