/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory limits of both versions of cgroups, read from a tree of files that the test makes. */
#include "lib/unit.h"

#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "softrnic/io/memory_limit.h"

#define MIB (1ull << 20)

static char root[] = "cgroups-XXXXXX";

static void write_file(const char *folder, const char *name, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s%s/%s", root, folder, name);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void write_number(const char *folder, const char *name, uint64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRIu64 "\n", value);
	write_file(folder, name, text);
}

static void make_folder(const char *folder)
{
	char path[256];

	snprintf(path, sizeof(path), "%s%s", root, folder);
	assert_int_equal(mkdir(path, 0700), 0);
}

static bool permits(uint64_t len)
{
	char proc[64];

	snprintf(proc, sizeof(proc), "%s/proc", root);
	return memory_limit_permits(len, proc, root);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	return remove(path);
}

static int make_root(void **state)
{
	strcpy(root + strlen(root) - 6, "XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
	return nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void what_cannot_be_read_is_no_limit(void **state)
{
	assert_true(permits(MIB));
	write_file("", "proc", "0::/nowhere\n3:cpu:/\nnonsense\n");
	assert_true(permits(MIB));
	write_file("", "memory.max", "max\n");
	write_number("", "memory.current", 100 * MIB);
	assert_true(permits(1000 * MIB));
}

static void an_eighth_of_the_limit_is_left(void **state)
{
	write_file("", "proc", "0::/\n");
	write_number("", "memory.max", 80 * MIB);
	write_number("", "memory.current", 60 * MIB);
	assert_true(permits(10 * MIB));
	assert_false(permits(10 * MIB + 1));
	write_number("", "memory.current", 90 * MIB);
	assert_false(permits(1));
}

static void pages_that_can_be_dropped_are_free(void **state)
{
	write_file("", "proc", "0::/\n");
	write_number("", "memory.max", 80 * MIB);
	write_number("", "memory.current", 79 * MIB);
	write_file("", "memory.stat", "anon 1\ninactive_file 31457280\nactive_file 7\n");
	assert_true(permits(21 * MIB));
	assert_false(permits(21 * MIB + 1));
}

static void limits_above_the_own_cgroup_count(void **state)
{
	make_folder("/a");
	make_folder("/a/b");
	write_file("", "proc", "0::/a/b\n");
	write_file("/a/b", "memory.max", "max\n");
	write_number("/a/b", "memory.current", MIB);
	write_number("/a", "memory.max", 8 * MIB);
	write_number("/a", "memory.current", 4 * MIB);
	assert_true(permits(3 * MIB));
	assert_false(permits(3 * MIB + 1));
}

static void version_1_counts_likewise(void **state)
{
	make_folder("/memory");
	make_folder("/memory/box");
	write_file("", "proc", "5:cpu,memoryless:/no\n4:hugetlb,memory:/box\n0::/\n");
	write_number("/memory/box", "memory.limit_in_bytes", 80 * MIB);
	write_number("/memory/box", "memory.usage_in_bytes", 79 * MIB);
	write_file("/memory/box", "memory.stat", "inactive_file 0\ntotal_inactive_file 10485760\n");
	assert_true(permits(MIB));
	assert_false(permits(MIB + 1));
}

/* In a container the path in /proc is the host's, but the container's own cgroup is the root of the
 * tree. */
static void a_path_of_the_host_leads_to_the_limit_of_the_root(void **state)
{
	make_folder("/memory");
	write_file("", "proc", "4:memory:/docker/0123\n");
	write_number("/memory", "memory.limit_in_bytes", 8 * MIB);
	write_number("/memory", "memory.usage_in_bytes", 7 * MIB);
	assert_false(permits(MIB));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_cannot_be_read_is_no_limit, make_root,
						remove_root),
		cmocka_unit_test_setup_teardown(an_eighth_of_the_limit_is_left, make_root,
						remove_root),
		cmocka_unit_test_setup_teardown(pages_that_can_be_dropped_are_free, make_root,
						remove_root),
		cmocka_unit_test_setup_teardown(limits_above_the_own_cgroup_count, make_root,
						remove_root),
		cmocka_unit_test_setup_teardown(version_1_counts_likewise, make_root, remove_root),
		cmocka_unit_test_setup_teardown(a_path_of_the_host_leads_to_the_limit_of_the_root,
						make_root, remove_root),
	};

	return cmocka_run_group_tests_name("memory_limit", tests, NULL, NULL);
}
