/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests with Debian's ssh and sshd, which ssh.sh starts. PLACE_SSH runs ssh with its own
 * configuration, and sshd listens at PLACE_PORT.
 */
#include "system/librpmem/place.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>

#include "system/librpmem/kills.h"

static char target[128];

static const char *target_at(const char *host)
{
	snprintf(target, sizeof(target), "%s:%s", host, getenv("PLACE_PORT"));
	return target;
}

static void replicate(const char *where)
{
	const unsigned char *replica;
	unsigned char header[8];
	RPMEMpool *rpp = place_create(where);

	RPMEM_OK(rpmem_persist(rpp, 4096, PLACE_POOL - 4096, 0, 0));
	RPMEM_OK(rpmem_persist(rpp, 8192, 64, 7, 0));
	RPMEM_OK(rpmem_read(rpp, header, 0, sizeof(header), 3));
	assert_memory_equal(header, place_attr.signature, sizeof(header));
	replica = place_map("pool.set.part", NULL);
	assert_memory_equal(replica + 4096, place_local + 4096, PLACE_POOL - 4096);
	munmap((void *)replica, PLACE_POOL);
	RPMEM_OK(rpmem_close(rpp));
	assert_int_equal(place_child(), 0);
}

static void over_ipv4(void **state)
{
	replicate(target_at("127.0.0.1"));
}

static void over_ipv6(void **state)
{
	if (!getenv("PLACE_IPV6"))
		skip();
	replicate(target_at("[::1]"));
}

/* Only ssh's configuration has this name; the data path uses the address of the ssh session. */
static void to_an_alias_of_ssh(void **state)
{
	replicate("the-target");
}

static void removing_works_through_ssh(void **state)
{
	RPMEM_OK(rpmem_close(place_create(target_at("127.0.0.1"))));
	RPMEM_OK(rpmem_remove(target_at("127.0.0.1"), "pool.set", RPMEM_REMOVE_POOL_SET));
	assert_int_equal(access(place_path("pool.set.part"), F_OK), -1);
	RPMEM_FAILS(rpmem_remove(target_at("127.0.0.1"), "pool.set", 0), ENOENT);
}

static void a_killed_ssh_ends_the_daemon(void **state)
{
	RPMEMpool *rpp = place_create(target_at("127.0.0.1"));
	pid_t daemon = place_daemon();

	RPMEM_OK(rpmem_persist(rpp, 8192, 8, 0, 0));
	kill(place_child(), SIGKILL);
	place_wait_gone(daemon);
	RPMEM_FAILS(rpmem_persist(rpp, 8192, 8, 0, 0), ECONNRESET);
	RPMEM_FAILS(rpmem_close(rpp), ECONNRESET);
	assert_int_equal(place_child(), 0);
	RPMEM_OK(rpmem_close(place_open(target_at("127.0.0.1"))));
}

static void a_killed_daemon_is_lost(void **state)
{
	RPMEMpool *rpp = place_create(target_at("127.0.0.1"));
	pid_t daemon = place_daemon();

	kill(daemon, SIGKILL);
	place_wait_gone(daemon);
	RPMEM_FAILS(rpmem_persist(rpp, 8192, 8, 0, 0), ECONNRESET);
	RPMEM_FAILS(rpmem_close(rpp), ECONNRESET);
	assert_int_equal(place_child(), 0);
}

/* ssh needs almost a second for a session, so the suite has three rounds, and a long run has 50. */
static void nothing_acknowledged_is_missing_after_a_kill(void **state)
{
	kills_lose_nothing(target_at("127.0.0.1"), env_or("SYSTEM_ROUNDS", 60) / 20, true);
}

static void a_refused_key_is_named(void **state)
{
	unsigned n = 1;

	assert_null(rpmem_open("stranger", "pool.set", place_local, PLACE_POOL, &n, NULL));
	/* This machine cannot resolve the host, but ssh possibly can. */
	assert_int_equal(errno, ENOMEDIUM);
	assert_non_null(strstr(rpmem_errormsg(), "Permission denied"));
}

static void a_port_without_a_listener_is_named(void **state)
{
	unsigned n = 1;

	assert_null(rpmem_open("127.0.0.1:1", "pool.set", place_local, PLACE_POOL, &n, NULL));
	assert_int_equal(errno, ECONNRESET);
	assert_non_null(strstr(rpmem_errormsg(), "Connection refused"));
}

/* If ssh interpreted the target as an option, it would run the command on this machine. */
static void a_target_is_no_option_of_ssh(void **state)
{
	static const char *const forms[] = {"[-oProxyCommand=touch %s]",
					    "u@[-oProxyCommand=touch %s]",
					    "u@v@-oProxyCommand=touch %s"};
	char evil[900], mark[600];
	unsigned n = 1;

	snprintf(mark, sizeof(mark), "%s/mark", place_dir);
	unlink(mark);
	for (unsigned i = 0; i < 3; i++) {
		snprintf(evil, sizeof(evil), forms[i], mark);
		assert_null(rpmem_open(evil, "pool.set", place_local, PLACE_POOL, &n, NULL));
		assert_int_equal(errno, EINVAL);
		RPMEM_FAILS(rpmem_remove(evil, "pool.set", 0), EINVAL);
		assert_int_equal(access(mark, F_OK), -1);
	}
}

int main(int argc, char **argv)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, place_setup, place_teardown)
	const struct CMUnitTest tests[] = {
		TEST(over_ipv4),
		TEST(over_ipv6),
		TEST(to_an_alias_of_ssh),
		TEST(removing_works_through_ssh),
		TEST(a_killed_ssh_ends_the_daemon),
		TEST(a_killed_daemon_is_lost),
		TEST(nothing_acknowledged_is_missing_after_a_kill),
		TEST(a_refused_key_is_named),
		TEST(a_port_without_a_listener_is_named),
		TEST(a_target_is_no_option_of_ssh),
	};

	place_main(argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
