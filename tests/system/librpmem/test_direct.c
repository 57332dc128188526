/* SPDX-License-Identifier: BSD-3-Clause */
/* Targets without ssh: rpma://host:port is the address of a running rpmemd --listen. */
#include "system/librpmem/place.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

static pid_t listener;
static char target[128];

static void write_secret(const char *name, const char *text)
{
	char path[600];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", place_dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

static void use_secret(const char *name)
{
	char path[600];

	snprintf(path, sizeof(path), "%s/%s", place_dir, name);
	setenv("RPMEM_SECRET_FILE", path, 1);
}

static void run_listener(int out)
{
	char program[600], secret[620];

	snprintf(program, sizeof(program), "%s/rpmemd", place_dir);
	snprintf(secret, sizeof(secret), "--secret-file=%s/secret", place_dir);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(out, STDOUT_FILENO);
	execl(program, program, "--listen=127.0.0.1:0", secret, (char *)NULL);
	_exit(127);
}

static int start(void **state)
{
	char line[128] = "", *colon;
	size_t len = 0;
	int out[2];

	if (place_setup(state) || pipe(out))
		return -1;
	write_secret("secret", "a secret of many characters");
	write_secret("other", "another one, just as long....");
	use_secret("secret");
	listener = fork();
	if (!listener)
		run_listener(out[1]);
	close(out[1]);
	while (!strchr(line, '\n') && len < sizeof(line) - 1 && read(out[0], line + len, 1) == 1)
		len++;
	close(out[0]);
	colon = strrchr(line, ':');
	if (!colon)
		return -1;
	colon[strcspn(colon, "\n")] = '\0';
	snprintf(target, sizeof(target), "rpma://127.0.0.1%s", colon);
	return 0;
}

static int stop(void **state)
{
	kill(listener, SIGTERM);
	waitpid(listener, NULL, 0);
	return place_teardown(state);
}

static void a_pool_is_replicated(void **state)
{
	const unsigned char *replica;
	RPMEMpool *rpp = place_create(target);

	/* the only child is the daemon, so there is no ssh */
	assert_int_equal(place_child(), listener);
	RPMEM_OK(rpmem_persist(rpp, 4096, PLACE_POOL - 4096, 0, 0));
	RPMEM_OK(rpmem_persist(rpp, 8192, 8, 5, 0));
	replica = place_map("pool.set.part", NULL);
	assert_memory_equal(replica + 4096, place_local + 4096, PLACE_POOL - 4096);
	munmap((void *)replica, PLACE_POOL);
	RPMEM_OK(rpmem_set_attr(rpp, &place_attr));
	RPMEM_OK(rpmem_close(rpp));
	RPMEM_OK(rpmem_close(place_open(target)));
}

static void a_client_without_the_secret_gets_nothing(void **state)
{
	unsigned n = 1;

	use_secret("other");
	assert_null(rpmem_create(target, "pool.set", place_local, PLACE_POOL, &n, &place_attr));
	assert_int_equal(errno, EACCES);
	assert_non_null(strstr(rpmem_errormsg(), "secret"));
	assert_int_equal(access(place_path("pool.set.part"), F_OK), -1);
	RPMEM_FAILS(rpmem_remove(target, "pool.set", RPMEM_REMOVE_FORCE), EACCES);
	use_secret("no-such-file");
	assert_null(rpmem_create(target, "pool.set", place_local, PLACE_POOL, &n, &place_attr));
	assert_int_equal(errno, EACCES);
	assert_non_null(strstr(rpmem_errormsg(), "RPMEM_SECRET_FILE"));
}

static void removing_needs_no_ssh(void **state)
{
	RPMEMpool *rpp = place_create(target);

	RPMEM_FAILS(rpmem_remove(target, "pool.set", 0), EAGAIN);
	RPMEM_OK(rpmem_close(rpp));
	RPMEM_OK(rpmem_remove(target, "pool.set", 0));
	assert_int_equal(access(place_path("pool.set.part"), F_OK), -1);
	RPMEM_FAILS(rpmem_remove(target, "pool.set", 0), ENOENT);
	RPMEM_FAILS(rpmem_remove(target, "../x.set", 0), EBADF);
}

static int run(const char *fmt, const char *a, const char *b)
{
	char line[2048];
	int status;

	snprintf(line, sizeof(line), fmt, RPMEM_SSH_PROGRAM, a, b);
	status = system(line);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void rpmem_ssh_removes_for_pmempool(void **state)
{
	RPMEM_OK(rpmem_close(place_create(target)));
	assert_int_equal(run("%s -T -oBatchMode=yes %s '%s --remove pool.set'", target, "rpmemd"),
			 0);
	assert_int_equal(access(place_path("pool.set.part"), F_OK), -1);
	assert_int_equal(run("%s -T %s '%s --remove pool.set' 2>/dev/null", target, "rpmemd"),
			 ENOENT);
	assert_int_equal(run("%s -T -oBatchMode=yes %s '%s --remove pool.set --force --pool-set'",
			     target, "rpmemd"),
			 0);
	assert_int_equal(access(place_path("pool.set"), F_OK), -1);
	assert_int_equal(run("%s -T %s '%s' 2>/dev/null", target, "rpmemd"), 255);
}

static void rpmem_ssh_is_ssh_for_others(void **state)
{
	assert_int_equal(run("RPMEM_SSH_PROGRAM=echo %s -p 22 -T %s '%s' | "
			     "grep -qx -- '-p 22 -T me@host rpmemd --x'",
			     "me@host", "rpmemd --x"),
			 0);
}

static void a_daemon_that_is_not_there_is_named(void **state)
{
	unsigned n = 1;

	kill(listener, SIGKILL);
	place_wait_gone(listener);
	assert_null(rpmem_create(target, "pool.set", place_local, PLACE_POOL, &n, &place_attr));
	assert_int_equal(errno, ECONNRESET);
	assert_non_null(strstr(rpmem_errormsg(), "Connection refused"));
}

int main(int argc, char **argv)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, start, stop)
	const struct CMUnitTest tests[] = {
		TEST(a_pool_is_replicated),        TEST(a_client_without_the_secret_gets_nothing),
		TEST(removing_needs_no_ssh),       TEST(rpmem_ssh_removes_for_pmempool),
		TEST(rpmem_ssh_is_ssh_for_others), TEST(a_daemon_that_is_not_there_is_named),
	};

	place_main(argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
