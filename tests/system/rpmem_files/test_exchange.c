/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pool files and the distribution's PMDK: librpmem opens pools that pmempool made at the target,
 * and pmempool checks pools that librpmem made there. Exit code 77: pmempool is not installed.
 */
#include "system/rpmem_files/far.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEAD "PMEMPOOLSET\n"

static const struct {
	const char *text;
	size_t size;
} sets[] = {
	{HEAD "8M @/p0\n", 8 * MIB},
	{HEAD "OPTION SINGLEHDR\n4M @/p0\n4M @/p1\n", 8 * MIB},
	{HEAD "3M @/p0\n3M @/p1\n2105344 @/p2\n", 8 * MIB}, /* the size without two headers */
};

static int setup(void **state)
{
	int rc = place_setup(state);

	far_ssh(NULL);
	return rc;
}

/* Run the command in the folder of the pool sets. Its output goes to the file "out". */
static void run(const char *command)
{
	char line[1200];

	snprintf(line, sizeof(line), "cd %s/pools && { %s; } >out 2>&1", place_dir, command);
	if (system(line)) {
		snprintf(line, sizeof(line), "cat %s/pools/out", place_dir);
		assert_int_equal(system(line), 0);
		fail_msg("%s", command);
	}
}

/* Compare the attributes with the header of the pool. */
static void expect_attr(const struct rpmem_pool_attr *attr, const uint8_t header[4096])
{
	assert_memory_equal(attr->signature, header, 8);
	assert_memory_equal(&attr->major, header + 8, 4);
	assert_memory_equal(&attr->compat_features, header + 12, 12);
	assert_memory_equal(attr->poolset_uuid, header + 24, 16);
	assert_memory_equal(attr->uuid, header + 40, 16);
	assert_memory_equal(attr->prev_uuid, header + 88, 16);
	assert_memory_equal(attr->next_uuid, header + 104, 16);
	assert_memory_equal(attr->user_flags, header + 128, 16);
}

static void pools_of_pmdk_are_opened_at_the_target(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(sets); i++) {
		struct rpmem_pool_attr attr;
		uint8_t header[4096], descriptor[32];
		unsigned lanes = 1;
		RPMEMpool *rpp;

		far_write("a.set", sets[i].text);
		run("pmempool create obj --layout=exchange a.set");
		far_read_bytes("p0", 0, header, sizeof(header));
		rpp = rpmem_open("localhost", "a.set", place_local, sets[i].size, &lanes, &attr);
		if (!rpp)
			fail_msg("%s", rpmem_errormsg());
		expect_attr(&attr, header);
		RPMEM_OK(rpmem_read(rpp, descriptor, 4096, sizeof(descriptor), 0));
		assert_string_equal((char *)descriptor, "exchange");
		RPMEM_OK(rpmem_set_attr(rpp, &attr));
		RPMEM_OK(rpmem_close(rpp));
		run("pmempool check -v a.set | grep consistent");
		RPMEM_OK(rpmem_remove("localhost", "a.set", RPMEM_REMOVE_POOL_SET));
		assert_false(far_exists("p0"));
	}
}

/* Load a pool that pmempool made as the local pool. */
static void load_local(struct rpmem_pool_attr *attr)
{
	uint8_t header[4096];
	int fd;

	run("rm -f local; pmempool create obj --layout=exchange -s 8M local");
	fd = open(place_path("local"), O_RDONLY | O_CLOEXEC);
	assert_int_equal(pread(fd, place_local, PLACE_POOL, 0), PLACE_POOL);
	close(fd);
	memcpy(header, place_local, sizeof(header));
	memset(attr, 0, sizeof(*attr));
	memcpy(attr->signature, header, 8);
	memcpy(&attr->major, header + 8, 4);
	memcpy(&attr->compat_features, header + 12, 12);
	memcpy(attr->poolset_uuid, header + 24, 16);
	memcpy(attr->user_flags, header + 128, 16);
}

static void replicas_are_pools_to_pmdk(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(sets); i++) {
		struct rpmem_pool_attr attr;
		uint8_t header[4096];
		unsigned lanes = 1;
		RPMEMpool *rpp;

		load_local(&attr);
		if (strstr(sets[i].text, "SINGLEHDR"))
			attr.incompat_features |= 1;
		/* The target makes a replica, and fills in the attributes that the caller left
		 * open. */
		far_write("a.set", sets[i].text);
		rpp = rpmem_create("localhost", "a.set", place_local, sets[i].size, &lanes, &attr);
		if (!rpp)
			fail_msg("%s", rpmem_errormsg());
		RPMEM_OK(rpmem_persist(rpp, 4096, sets[i].size - 4096, 0, 0));
		RPMEM_OK(rpmem_close(rpp));
		run("pmempool info p0 | grep 'Last shutdown.*clean'");
		run("pmempool info a.set | grep 'Layout.*exchange'");
		run("pmempool check -v a.set | grep 'a.set: consistent'");

		rpp = rpmem_open("localhost", "a.set", place_local, sets[i].size, &lanes, &attr);
		if (!rpp)
			fail_msg("%s", rpmem_errormsg());
		RPMEM_OK(rpmem_close(rpp));
		far_read_bytes("p0", 0, header, sizeof(header));
		expect_attr(&attr, header);
		run("pmempool rm a.set");
		assert_false(far_exists("p0"));
	}
}

int main(int argc, char **argv)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, place_teardown)
	const struct CMUnitTest tests[] = {
		TEST(pools_of_pmdk_are_opened_at_the_target),
		TEST(replicas_are_pools_to_pmdk),
	};

	place_main(argv);
	if (system("pmempool --version >/dev/null 2>&1"))
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
