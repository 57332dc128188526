/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests each errno that a program can get when it creates, opens or removes a pool, and its text.
 * The first tests are about errors that rpmemd reports, the others about failures at the target. */
#include "system/rpmem_files/far.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEAD "PMEMPOOLSET\n"

static int setup(void **state)
{
	int rc = place_setup(state);

	far_ssh(NULL);
	return rc;
}

static void close_pool(RPMEMpool *rpp)
{
	RPMEM_OK(rpmem_close(rpp));
}

/* ---- errors that rpmemd reports ---- */

static void names_of_sets_that_are_not_acceptable(void **state)
{
	far_no_create("/etc/passwd", PLACE_POOL, &place_attr, EINVAL, "absolute path");
	far_no_open("../daemon", PLACE_POOL, EINVAL, "leads out of the pool set directory");
	far_no_create("../../x", PLACE_POOL, &place_attr, EINVAL, "leads out of");
	errno = 0;
	far_no_open("", PLACE_POOL, EINVAL, "");
}

static void sets_and_parts_that_do_not_exist(void **state)
{
	far_no_create("none.set", PLACE_POOL, &place_attr, ENOENT, "none.set: No such file");
	far_no_open("none.set", PLACE_POOL, ENOENT, "none.set: No such file");
	far_no_open("pool.set", PLACE_POOL, ENOENT, "pool.set.part: No such file");
	far_write("dir.set", HEAD "8M @/no/part\n");
	far_no_create("dir.set", PLACE_POOL, &place_attr, ENOENT, "/no/part: No such file");
}

static void a_pool_that_exists(void **state)
{
	close_pool(place_create("localhost"));
	far_no_create("pool.set", PLACE_POOL, &place_attr, EEXIST, "has a pool already");
	close_pool(place_open("localhost"));
}

static void a_pool_in_use(void **state)
{
	RPMEMpool *rpp = place_create("localhost");
	int fd;

	far_no_open("pool.set", PLACE_POOL, EBUSY, "is in use by another process");
	far_no_create("pool.set", PLACE_POOL, &place_attr, EBUSY, "is in use by another process");
	/* the refused call does not disturb the open pool */
	RPMEM_OK(rpmem_persist(rpp, 4096, 4096, 0, 0));
	close_pool(rpp);
	fd = open(place_path("pool.set"), O_RDONLY | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	far_no_open("pool.set", PLACE_POOL, EBUSY, "pool.set is in use");
	close(fd);
	close_pool(place_open("localhost"));
}

static void pools_that_are_smaller_than_asked(void **state)
{
	far_write("small.set", HEAD "2M @/small.part\n");
	far_no_create("small.set", PLACE_POOL, &place_attr, EFBIG, "is a pool of 2097152 bytes");
	assert_false(far_exists("small.part"));
	close_pool(place_create("localhost"));
	far_write("two.set", HEAD "2M @/small.part\n2M @/small.part2\n");
	far_no_create("two.set", 2 * 2 * MIB, &place_attr, EFBIG, "is a pool of 4190208 bytes");
}

static void sets_that_cannot_be_used(void **state)
{
	struct rpmem_pool_attr single = place_attr;

	single.incompat_features = 1;
	far_write("a.set", HEAD "8M part\n");
	far_no_create("a.set", PLACE_POOL, &place_attr, EINVAL, "a.set:2: 'part' is no absolute");
	far_no_open("a.set", PLACE_POOL, EINVAL, "a.set:2: 'part' is no absolute");
	far_write("a.set", HEAD "8M @/part\nREPLICA host b.set\n");
	far_no_create("a.set", PLACE_POOL, &place_attr, EINVAL, "a.set:3: REPLICA");
	far_write("a.set", HEAD "1M @/part\n");
	far_no_create("a.set", MIB, &place_attr, EINVAL, "too small for a part");
	far_write("a.set", HEAD "OPTION SINGLEHDR\n8M @/part\n");
	far_no_create("a.set", PLACE_POOL, &place_attr, EINVAL, "SINGLEHDR");
	far_no_create("pool.set", PLACE_POOL, &single, EINVAL, "SINGLEHDR");
	far_write("a.set", HEAD "OPTION NOHDRS\n8M @/part\n");
	far_no_create("a.set", PLACE_POOL, &place_attr, EINVAL, "NOHDRS");
	far_no_create("pool.set", PLACE_POOL, NULL, EINVAL, "NOHDRS");
	far_write("junk", "This is a text.\n");
	far_no_open("junk", PLACE_POOL, EINVAL, "too small for a part");
	assert_false(far_exists("part"));
	assert_false(far_exists("pool.set.part"));

	close_pool(place_create("localhost"));
	far_write("a.set", HEAD "8388609 @/pool.set.part\n");
	far_no_open("a.set", PLACE_POOL, EINVAL,
		    "has 8388608 bytes, but the pool set states 8388609");
}

/* root has every right, so if this process runs as root, run rpmemd as another user. */
static void files_that_rpmemd_may_not_use(void **state)
{
	close_pool(place_create("localhost"));
	far_ssh(geteuid()
			? "exec $rpmemd"
			: "HOME=/ exec setpriv --reuid 65534 --regid 65534 --clear-groups $rpmemd");
	chmod(place_path("pool.set.part"), 0444);
	far_no_open("pool.set", PLACE_POOL, EACCES, "pool.set.part: Permission denied");
	chmod(place_path("pool.set.part"), 0600);
	if (!geteuid()) /* the file has another owner */
		far_no_open("pool.set", PLACE_POOL, EACCES, "pool.set.part: Permission denied");
	chmod(place_path("pool.set"), geteuid() ? 0 : 0600);
	far_no_open("pool.set", PLACE_POOL, EACCES, "pool.set: Permission denied");
	mkdir(place_path("dir"), 0555);
	far_write("dir.set", HEAD "8M @/dir/part\n");
	chmod(place_path("dir.set"), 0644);
	far_no_create("dir.set", PLACE_POOL, &place_attr, EACCES, "dir/part: Permission denied");
	rmdir(place_path("dir"));
}

static void a_disk_that_is_too_small(void **state)
{
	far_write("large.set", HEAD "8M @/part\n900000G @/part2\n");
	far_no_create("large.set", PLACE_POOL, &place_attr, EREMOTEIO, "not enough disk");
	assert_false(far_exists("part"));
	assert_false(far_exists("part2"));
}

/* Mount a file system that no other process sees. */
static void a_disk_that_becomes_full(void **state)
{
	unsigned lanes = 1;
	RPMEMpool *rpp;

	if (system("unshare -rm true 2>/dev/null"))
		skip();
	far_write("full.set", HEAD "4M @/disk/part\n4M @/disk/part2\n");
	mkdir(place_path("disk"), 0755);
	far_ssh("exec unshare -rm sh -c \"mount -t tmpfs -o size=6M none disk && exec $rpmemd\"");
	far_no_create("full.set", 2 * MIB, &place_attr, EREMOTEIO, "not enough disk for 4 MiB");
	far_ssh("exec unshare -rm sh -c \"mount -t tmpfs -o size=16M none disk && exec $rpmemd\"");
	rpp = rpmem_create("localhost", "full.set", place_local, 2 * MIB, &lanes, &place_attr);
	if (!rpp)
		fail_msg("%s", rpmem_errormsg());
	close_pool(rpp);
	rmdir(place_path("disk"));
}

static void a_data_port_that_is_taken(void **state)
{
	struct sockaddr_in addr = {.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(addr);
	char script[128];
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&addr, &len), 0);
	snprintf(script, sizeof(script), "exec $rpmemd --port-range %u-%u", ntohs(addr.sin_port),
		 ntohs(addr.sin_port));
	far_ssh(script);
	far_no_create("pool.set", PLACE_POOL, &place_attr, ECONNABORTED, "");
	assert_false(far_exists("pool.set.part")); /* the part was created and then removed */
	close(fd);
}

static void an_address_without_a_device(void **state)
{
	far_ssh("export SSH_CONNECTION='192.0.2.9 1 192.0.2.1 22'; exec $rpmemd");
	far_no_create("pool.set", PLACE_POOL, &place_attr, EMEDIUMTYPE, "192.0.2.1");
	assert_false(far_exists("pool.set.part"));
}

/* ---- failures before rpmemd answers ---- */

static void start_ups_that_fail(void **state)
{
	far_ssh("exec $rpmemd -c /no/such/file");
	far_no_open("pool.set", PLACE_POOL, ENOENT, "/no/such/file");
	far_write("conf", "log-level = err\nno such key\n");
	far_ssh("exec $rpmemd -c ./conf");
	far_no_open("pool.set", PLACE_POOL, EINVAL, "Invalid config file line at ./conf:2");
	far_ssh("exec $rpmemd --poolset-dir relative");
	far_no_open("pool.set", PLACE_POOL, EINVAL, "relative");
}

static void ssh_that_fails(void **state)
{
	far_ssh("echo 'ssh: connect to host x: No route to host' >&2; exit 255");
	far_no_open("pool.set", PLACE_POOL, ECONNRESET, "No route to host");
	far_ssh("exec sh -c rpmemd-is-not-installed");
	far_no_open("pool.set", PLACE_POOL, ECONNRESET, "not found");
	far_ssh("kill -9 $$");
	far_no_open("pool.set", PLACE_POOL, ECONNRESET, "closed the connection");
	setenv("RPMEM_SSH", "/no/such/ssh", 1);
	far_no_open("pool.set", PLACE_POOL, ECONNRESET, "/no/such/ssh");
}

static void other_ends_that_are_no_rpmemd(void **state)
{
	far_ssh("echo Welcome to this host; exec $rpmemd");
	far_no_open("pool.set", PLACE_POOL, EPROTO, "\"Welcome to this host\"");
	far_ssh("printf '\\0\\0\\0\\0'; cat >/dev/null");
	far_no_open("pool.set", PLACE_POOL, EPROTO, "the rpmemd of PMDK");
	far_ssh("printf 'RPMM\\377\\001\\0\\0\\0\\0\\0\\0'; cat >/dev/null");
	far_no_open("pool.set", PLACE_POOL, EPROTONOSUPPORT, "another version");
	far_ssh("printf 'RPMM\\001\\001\\0\\0\\377\\377\\377\\377'; cat >/dev/null");
	far_no_open("pool.set", PLACE_POOL, EPROTO, "broke the protocol");
}

static void a_target_that_sends_nothing(void **state)
{
	setenv("RPMEM_TIMEOUT_MS", "300", 1);
	far_ssh("exec cat 3>&1 >&2"); /* ssh's output stays open */
	far_no_open("pool.set", PLACE_POOL, ETIMEDOUT, "did not answer in time");
	setenv("RPMEM_TIMEOUT_MS", "30000", 1);
}

static void devices_that_are_not_allowed(void **state)
{
	setenv("RPMEM_ENABLE_SOCKETS", "0", 1);
	far_no_open("pool.set", PLACE_POOL, ENOMEDIUM, "RPMEM_ENABLE_SOCKETS=1");
	setenv("RPMEM_ENABLE_SOCKETS", "1", 1);
}

/* ---- removal: the exit status is the errno ---- */

static void removals(void **state)
{
	RPMEMpool *rpp = place_create("localhost");

	RPMEM_FAILS(rpmem_remove("localhost", "pool.set", 0), EAGAIN);
	RPMEM_OK(rpmem_remove("localhost", "pool.set", RPMEM_REMOVE_FORCE));
	assert_true(far_exists("pool.set.part"));
	close_pool(rpp);
	RPMEM_FAILS(rpmem_remove("localhost", "none.set", 0), ENOENT);
	RPMEM_OK(rpmem_remove("localhost", "none.set", RPMEM_REMOVE_FORCE));
	RPMEM_FAILS(rpmem_remove("localhost", "/abs.set", 0), EBADF);
	RPMEM_FAILS(rpmem_remove("localhost", "../pools/pool.set", 0), EBADF);
	far_write("bad.set", HEAD);
	RPMEM_FAILS(rpmem_remove("localhost", "bad.set", 0), EINVAL);
	assert_non_null(strstr(rpmem_errormsg(), "bad.set:2: the pool set has no parts"));
	RPMEM_OK(rpmem_remove("localhost", "pool.set", RPMEM_REMOVE_POOL_SET));
	assert_false(far_exists("pool.set.part"));
	assert_false(far_exists("pool.set"));
}

int main(int argc, char **argv)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, place_teardown)
	const struct CMUnitTest tests[] = {
		TEST(names_of_sets_that_are_not_acceptable),
		TEST(sets_and_parts_that_do_not_exist),
		TEST(a_pool_that_exists),
		TEST(a_pool_in_use),
		TEST(pools_that_are_smaller_than_asked),
		TEST(sets_that_cannot_be_used),
		TEST(files_that_rpmemd_may_not_use),
		TEST(a_disk_that_is_too_small),
		TEST(a_disk_that_becomes_full),
		TEST(a_data_port_that_is_taken),
		TEST(an_address_without_a_device),
		TEST(start_ups_that_fail),
		TEST(ssh_that_fails),
		TEST(other_ends_that_are_no_rpmemd),
		TEST(a_target_that_sends_nothing),
		TEST(devices_that_are_not_allowed),
		TEST(removals),
	};

	place_main(argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
