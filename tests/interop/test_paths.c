/* SPDX-License-Identifier: BSD-3-Clause */
/* test_paths.c -- each call that takes a file name finds the device's files in a preloaded
 * program. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#define CLASS  "/sys/class/infiniband"
#define DEVICE CLASS "/softrnic0"
#define STATE  DEVICE "/ports/1/state"
#define ACTIVE "4: ACTIVE\n"
#define NODE   "/dev/infiniband/uverbs-softrnic0"

static void stat_and_its_kin_find_a_file(void **state)
{
	struct stat st;
	struct stat64 st64;
	struct statx stx;

	assert_int_equal(stat(STATE, &st), 0);
	assert_true(S_ISREG(st.st_mode));
	assert_int_equal(st.st_size, strlen(ACTIVE));
	assert_int_equal(stat64(STATE, &st64), 0);
	assert_int_equal(lstat(DEVICE, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(lstat64(DEVICE, &st64), 0);
	assert_int_equal(fstatat(AT_FDCWD, STATE, &st, 0), 0);
	assert_int_equal(fstatat64(AT_FDCWD, STATE, &st64, 0), 0);
	assert_int_equal(statx(AT_FDCWD, STATE, 0, STATX_SIZE, &stx), 0);
	assert_int_equal(stx.stx_size, strlen(ACTIVE));
}

/* Programs built before 2021 call these functions. Today's headers no longer declare them. */
static void the_calls_of_older_programs_find_a_file(void **state)
{
	static const char *const names[] = {"__xstat", "__xstat64", "__lxstat", "__lxstat64"};
	int (*call)(int, const char *, struct stat *);
	struct stat st;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		*(void **)&call = dlsym(RTLD_DEFAULT, names[i]);
		assert_non_null(call);
		assert_int_equal(call(1, STATE, &st), 0);
		assert_int_equal(st.st_size, strlen(ACTIVE));
		assert_int_equal(call(1, "/etc/passwd", &st), 0);
	}
}

static void assert_reads_active(int fd)
{
	char text[64] = "";

	assert_true(fd >= 0);
	assert_int_equal(read(fd, text, sizeof(text) - 1), strlen(ACTIVE));
	assert_string_equal(text, ACTIVE);
	close(fd);
}

static void files_are_opened_and_read(void **state)
{
	char text[64];
	FILE *file;
	int dir = open(DEVICE, O_RDONLY | O_DIRECTORY);

	assert_reads_active(open(STATE, O_RDONLY));
	assert_reads_active(open64(STATE, O_RDONLY));
	assert_reads_active(openat(AT_FDCWD, STATE, O_RDONLY));
	assert_reads_active(openat64(AT_FDCWD, STATE, O_RDONLY));
	assert_reads_active(openat(dir, "ports/1/state", O_RDONLY));
	close(dir);
	file = fopen(STATE, "r");
	assert_non_null(file);
	assert_non_null(fgets(text, sizeof(text), file));
	assert_string_equal(text, ACTIVE);
	fclose(file);
	file = fopen64(STATE, "r");
	assert_non_null(file);
	fclose(file);
}

/* A file that is created gets the mode of the call, as without the preloaded library. */
static void other_files_are_created_with_their_mode(void **state)
{
	char name[] = "paths-XXXXXX";
	struct stat st;
	int fd;

	assert_non_null(mkdtemp(name));
	assert_int_equal(chdir(name), 0);
	umask(0);
	fd = open("file", O_WRONLY | O_CREAT, 0641);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0641);
	close(fd);
	assert_int_equal(unlink("file"), 0);
	assert_int_equal(chdir(".."), 0);
	assert_int_equal(rmdir(name), 0);
}

static bool has(const char *folder, const char *name)
{
	DIR *dir = opendir(folder);
	const struct dirent *entry;
	bool found = false;

	assert_non_null(dir);
	while ((entry = readdir(dir)))
		found = found || !strcmp(entry->d_name, name);
	closedir(dir);
	return found;
}

static int is_softrnic(const struct dirent *entry)
{
	return !strcmp(entry->d_name, "softrnic0");
}

static void folders_list_the_device(void **state)
{
	struct dirent **list;

	assert_true(has(CLASS, "softrnic0"));
	assert_true(has(CLASS "/", "softrnic0"));
	assert_true(has(CLASS "_verbs", "uverbs-softrnic0"));
	assert_true(has("/dev/infiniband", "uverbs-softrnic0"));
	assert_true(has(DEVICE "/ports", "1"));
	assert_int_equal(scandir(CLASS, &list, is_softrnic, alphasort), 1);
	free(list[0]);
	free(list);
}

/* Mooncake finds the parent of a device with realpath(). */
static void real_paths_exist(void **state)
{
	char *real = realpath(DEVICE "/../..", NULL), target[256];
	struct stat st;

	assert_non_null(real);
	assert_int_equal(stat(real, &st), 0);
	free(real);
	real = canonicalize_file_name(STATE);
	assert_non_null(real);
	assert_reads_active(open(real, O_RDONLY));
	free(real);
	assert_true(readlink(DEVICE, target, sizeof(target)) > 0);
	/* the device has no PCI path; NCCL searches for this path */
	assert_null(realpath(DEVICE "/device", NULL));
	assert_int_equal(errno, ENOENT);
}

/* UCX and Mooncake check the node before they use a device. */
static void the_node_is_a_character_device(void **state)
{
	struct stat st;

	assert_int_equal(stat(NODE, &st), 0);
	assert_true(S_ISCHR(st.st_mode));
	assert_int_equal(lstat(NODE, &st), 0);
	assert_true(S_ISCHR(st.st_mode));
	assert_int_equal(access(NODE, R_OK | W_OK), 0);
	assert_int_equal(faccessat(AT_FDCWD, NODE, R_OK | W_OK, 0), 0);
	assert_int_equal(euidaccess(NODE, R_OK | W_OK), 0);
}

/*
 * A name that differs from the device's, or only begins with it, is passed to the kernel unchanged.
 */
static void other_names_are_not_touched(void **state)
{
	int (*probe)(int, const char *, int, unsigned, void *);
	struct statx stx;
	struct stat st;
	char *real = realpath("/dev/null", NULL);

	assert_string_equal(real, "/dev/null");
	free(real);
	assert_int_equal(stat(DEVICE "1", &st), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(stat(CLASS "x", &st), -1);
	assert_int_equal(open("/nowhere/at/all", O_RDONLY), -1);
	assert_int_equal(errno, ENOENT);
	/* Programs make such a call with NULL to find out whether the kernel has statx(). */
	*(void **)&probe = dlsym(RTLD_DEFAULT, "statx");
	assert_int_equal(probe(0, NULL, 0, STATX_ALL, &stx), -1);
	assert_int_equal(errno, EFAULT);
}

/* --- the tree of the device's files --------------------------------------------------------- */

/* Write the path of this process's tree of files to a buffer of PATH_MAX bytes. */
static void find_tree(char *root)
{
	assert_non_null(realpath(CLASS, root));
}

/* Runs in a child process, which has its own tree. Writes the tree's path to the pipe. Then the
 * child ends by one of the functions below. */
static void child_uses_files(int to)
{
	char root[4096];
	struct stat st;

	if (!realpath(CLASS, root) || stat(STATE, &st) ||
	    write(to, root, sizeof(root)) != sizeof(root))
		abort();
}

static void leave_by_exit(void)
{
	exit(0);
}

static void leave_at_once(void)
{
	_exit(0);
}

static void leave_by_exec(void)
{
	execl("/bin/true", "true", NULL);
}

static void leave_by_kill(void)
{
	kill(getpid(), SIGKILL);
}

/* Let a child end by leave(). Writes the path of the child's tree to `root`. */
static void let_child_end(void (*leave)(void), char *root)
{
	int fds[2], status;
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		child_uses_files(fds[1]);
		leave();
		abort();
	}
	assert_int_equal(read(fds[0], root, 4096), 4096);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	close(fds[0]);
	close(fds[1]);
}

static void a_process_removes_its_files_at_its_end(void **state)
{
	void (*const ways[])(void) = {leave_by_exit, leave_at_once, leave_by_exec};
	char mine[4096], childs[4096];
	struct stat st;

	find_tree(mine);
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		let_child_end(ways[i], childs);
		assert_string_not_equal(mine, childs);
		assert_int_equal(stat(childs, &st), -1);
		assert_int_equal(errno, ENOENT);
		assert_int_equal(stat(mine, &st), 0);
	}
}

static void files_of_a_killed_process_are_removed_by_the_next_one(void **state)
{
	char killed[4096], next[4096];
	struct stat st;

	let_child_end(leave_by_kill, killed);
	assert_int_equal(stat(killed, &st), 0);
	let_child_end(leave_by_exit, next);
	assert_int_equal(stat(killed, &st), -1);
	assert_int_equal(errno, ENOENT);
}

static void *thread_reads(void *arg)
{
	char *root = arg;
	struct stat st;

	return realpath(CLASS, root) && !stat(STATE, &st) ? root : NULL;
}

/* Runs in a child that has no tree yet. */
static bool threads_see_one_tree(void)
{
	enum { THREADS = 8 };
	static char roots[THREADS][4096];
	pthread_t threads[THREADS];
	bool same = true;
	void *ret;

	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, thread_reads, roots[i]))
			return false;
	for (int i = 0; i < THREADS; i++)
		same = !pthread_join(threads[i], &ret) && ret && !strcmp(roots[i], roots[0]) &&
		       same;
	return same;
}

static void threads_that_come_at_once_find_the_same_files(void **state)
{
	enum { ROUNDS = 20 };
	int status;

	for (int i = 0; i < ROUNDS; i++) {
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (!pid)
			exit(threads_see_one_tree() ? 0 : 1);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
}

/* A failed exec has removed the files; the next call that needs them makes them again. */
static void files_are_there_after_an_exec_that_fails(void **state)
{
	static char name[] = "x";
	char *const argv[] = {name, NULL};
	struct stat st;
	int file = open("/dev/null", O_RDONLY);

	assert_int_equal(fexecve(file, argv, environ), -1);
	close(file);
	assert_int_equal(stat(STATE, &st), 0);
}

static int run_all(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stat_and_its_kin_find_a_file),
		cmocka_unit_test(the_calls_of_older_programs_find_a_file),
		cmocka_unit_test(files_are_opened_and_read),
		cmocka_unit_test(other_files_are_created_with_their_mode),
		cmocka_unit_test(folders_list_the_device),
		cmocka_unit_test(real_paths_exist),
		cmocka_unit_test(the_node_is_a_character_device),
		cmocka_unit_test(other_names_are_not_touched),
		cmocka_unit_test(a_process_removes_its_files_at_its_end),
		cmocka_unit_test(files_of_a_killed_process_are_removed_by_the_next_one),
		cmocka_unit_test(threads_that_come_at_once_find_the_same_files),
		cmocka_unit_test(files_are_there_after_an_exec_that_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Use a separate folder, because any process that uses the common folder removes the files of
 * killed processes from it. */
int main(void)
{
	char folder[] = "/tmp/paths-XXXXXX";
	int status = 1;
	pid_t pid;

	if (!mkdtemp(folder) || setenv("TMPDIR", folder, 1))
		return 1;
	pid = fork();
	if (!pid)
		exit(run_all());
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return 1;
	if (rmdir(folder)) {
		fprintf(stderr, "%s: files are left there: %s\n", folder, strerror(errno));
		return 1;
	}
	return status ? 1 : 0;
}
