/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pool files exchanged with the distribution's PMDK, in both directions: this project opens pools
 * that pmempool and libpmemobj made, and pmempool and libpmemobj open pools that this project made.
 * Exit code 77: PMDK is not installed.
 */
#include "unit/poolset/disk.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEAD "PMEMPOOLSET\n"

/* Functions of libpmemobj. The test loads the library at run time, so that the build does not need
 * it. */
static struct {
	void *(*create)(const char *path, const char *layout, size_t size, mode_t mode);
	void *(*open)(const char *path, const char *layout);
	void (*close)(void *pool);
} pmemobj;

static const struct {
	const char *text;
	unsigned nparts;
	bool is_single;
} sets[] = {
	{HEAD "8M @/p0\n", 1, false},
	{HEAD "16MB @/p0\n9M @/p1\n8388609 @/p2\n", 3, false},
	{HEAD "OPTION SINGLEHDR\n8M @/p0\n8M @/p1\n", 2, true},
	{HEAD "OPTION SINGLEHDR\n8M @/p0\n", 1, true},
};

static int run(const char *command)
{
	char line[512];
	int status;

	snprintf(line, sizeof(line), "%s >out 2>&1", command);
	status = system(line);
	return status;
}

static void expect_run(const char *command)
{
	if (run(command)) {
		assert_int_equal(system("cat out"), 0);
		fail_msg("%s", command);
	}
}

/* The last output must have a line that contains both `name` and `value`. */
static void expect_out(const char *name, const char *value)
{
	FILE *f = fopen("out", "r");
	char line[512];
	bool found = false;

	assert_non_null(f);
	while (!found && fgets(line, sizeof(line), f))
		found = strstr(line, name) && strstr(line, value);
	fclose(f);
	if (!found) {
		assert_int_equal(system("cat out"), 0);
		fail_msg("no line with \"%s\" and \"%s\"", name, value);
	}
}

static void read_header(const char *name, struct header *h)
{
	uint8_t page[HEADER_BYTES];

	disk_read_bytes(name, 0, page, sizeof(page));
	assert_true(header_is_intact(page));
	header_decode(page, h);
}

static void pools_of_pmdk_are_opened(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(sets); i++) {
		struct poolset_place place = disk_place("a.set");
		struct poolset_pool *pool;
		struct poolset_attr attr;
		struct header h;

		disk_write_set("a.set", sets[i].text);
		expect_run("pmempool create obj --layout=exchange a.set");
		read_header("p0", &h);
		pool = disk_open("a.set", &attr);
		assert_int_equal(attr.incompat, sets[i].is_single ? 7 : 6);
		assert_memory_equal(attr.uuid, h.uuid, HEADER_UUID);
		assert_memory_equal(attr.next_uuid, h.uuid, HEADER_UUID);
		assert_string_equal((char *)poolset_memory(pool)->base + 4096, "exchange");
		disk_close(pool);
		expect_run("pmempool info p0");
		expect_out("Checksum", "[OK]");
		expect_out("Last shutdown", "clean");
		expect_run("pmempool check -v a.set");
		expect_out("a.set", "consistent");
		assert_int_equal(poolset_remove(&place, POOLSET_REMOVE_SET, &disk_err), 0);
		assert_int_equal(disk_count_files(), 1); /* only the file "out" */
	}
}

/* Make a replica with the same content and the attributes that librpmem passes to a replica. */
static void replicate(const char *from, const char *to, const struct poolset_attr *attr)
{
	struct poolset_pool *source = disk_open(from, NULL), *target = disk_create(to, attr);
	const struct poolset_memory *a = poolset_memory(source), *b = poolset_memory(target);

	assert_int_equal(a->size, b->size);
	memcpy((char *)b->base + 4096, (char *)a->base + 4096, a->size - 4096);
	disk_close(target);
	disk_close(source);
}

static void pools_made_here_are_read_by_pmdk(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(sets); i++) {
		struct poolset_attr attr;
		char text[256];
		void *pool;

		disk_write_set("a.set", sets[i].text);
		expect_run("pmempool create obj --layout=exchange a.set");
		disk_close(disk_open("a.set", &attr));
		memset(attr.uuid, 0x5a, HEADER_UUID);
		memset(attr.prev_uuid, 0x5a, HEADER_UUID);
		memset(attr.next_uuid, 0x5a, HEADER_UUID);
		strcpy(text, sets[i].text);
		for (char *at = text; (at = strstr(at, "/p")); at++)
			at[1] = 'q';
		disk_write_set("b.set", text);
		replicate("a.set", "b.set", &attr);

		expect_run("pmempool info q0");
		expect_out("Signature", "PMEMOBJ");
		expect_out("Last shutdown", "clean");
		expect_run("pmempool info b.set");
		expect_out("Layout", "exchange");
		expect_run("pmempool check -v b.set");
		expect_out("b.set", "consistent");
		pool = pmemobj.open("b.set", "exchange");
		assert_non_null(pool);
		pmemobj.close(pool);
		disk_close(disk_open("b.set", NULL));
		expect_run("pmempool rm a.set b.set");
		assert_false(disk_exists("q0"));
		unlink("a.set");
		unlink("b.set");
	}
}

static void a_pool_in_use_is_busy_in_both_directions(void **state)
{
	struct poolset_attr attr = disk_attr();
	struct poolset_pool *pool;
	void *theirs;

	disk_write_set("a.set", HEAD "8M @/p0\n");
	theirs = pmemobj.create("a.set", "busy", 0, 0600);
	assert_non_null(theirs);
	disk_no_open("a.set", 0, EWOULDBLOCK, "p0 is in use by another process");
	disk_no_create("a.set", 0, &attr, EWOULDBLOCK, "p0 is in use by another process");
	disk_no_remove("a.set", 0, EWOULDBLOCK, "p0 is in use by another process");
	pmemobj.close(theirs);
	pool = disk_open("a.set", NULL);
	assert_null(pmemobj.open("a.set", "busy"));
	disk_close(pool);
	theirs = pmemobj.open("a.set", "busy");
	assert_non_null(theirs);
	pmemobj.close(theirs);
}

static void pools_without_newer_features_are_opened(void **state)
{
	struct poolset_attr attr;

	disk_write_set("a.set", HEAD "8M @/p0\n8M @/p1\n");
	expect_run("pmempool create obj a.set");
	expect_run("pmempool feature --disable SHUTDOWN_STATE a.set");
	disk_close(disk_open("a.set", &attr));
	assert_int_equal(attr.incompat, HEADER_CKSUM_2K);
	expect_run("pmempool feature --disable CKSUM_2K a.set");
	disk_close(disk_open("a.set", &attr));
	assert_int_equal(attr.incompat, 0);
	expect_run("pmempool check -v a.set");
	expect_out("a.set", "consistent");
}

static void pools_of_other_kinds_and_single_files_are_opened(void **state)
{
	static const char *const commands[] = {"pmempool create blk -s 20M 512 pool",
					       "pmempool create log -s 20M pool",
					       "pmempool create obj -s 20M pool"};
	struct poolset_place place = disk_place("pool");
	struct poolset_attr attr;
	struct poolset_pool *pool;

	for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
		expect_run(commands[i]);
		pool = disk_open("pool", &attr);
		assert_int_equal(poolset_memory(pool)->size, 20 * MIB);
		assert_memory_equal(attr.signature, "PMEM", 4);
		assert_int_equal(poolset_set_attr(pool, &attr, &disk_err), 0);
		disk_close(pool);
		expect_run("pmempool check -v pool");
		expect_out("pool", "consistent");
		assert_int_equal(poolset_remove(&place, 0, &disk_err), 0);
		assert_false(disk_exists("pool"));
	}
}

/*
 * A process of libpmemobj is killed while its pool is open. The pool still has all committed data.
 */
static void a_killed_pool_of_pmdk_is_opened(void **state)
{
	disk_write_set("a.set", HEAD "8M @/p0\n");
	expect_run("pmempool create obj --layout=x a.set");
	disk_write_set("kill.py", "import ctypes, os, signal\n"
				  "obj = ctypes.CDLL('libpmemobj.so.1')\n"
				  "assert obj.pmemobj_open(b'a.set', b'x')\n"
				  "os.kill(os.getpid(), signal.SIGKILL)\n");
	assert_int_not_equal(run("python3 kill.py"), 0);
	expect_run("pmempool info p0");
	expect_out("Last shutdown", "dirty");
	disk_close(disk_open("a.set", NULL));
	expect_run("pmempool info p0");
	expect_out("Last shutdown", "clean");
}

static bool load_pmemobj(void)
{
	void *lib = dlopen("libpmemobj.so.1", RTLD_NOW);

	if (!lib || system("pmempool --version >/dev/null 2>&1"))
		return false;
	*(void **)&pmemobj.create = dlsym(lib, "pmemobj_create");
	*(void **)&pmemobj.open = dlsym(lib, "pmemobj_open");
	*(void **)&pmemobj.close = dlsym(lib, "pmemobj_close");
	return pmemobj.create && pmemobj.open && pmemobj.close;
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, disk_setup, disk_teardown)
	const struct CMUnitTest tests[] = {
		TEST(pools_of_pmdk_are_opened),
		TEST(pools_made_here_are_read_by_pmdk),
		TEST(a_pool_in_use_is_busy_in_both_directions),
		TEST(pools_without_newer_features_are_opened),
		TEST(pools_of_other_kinds_and_single_files_are_opened),
		TEST(a_killed_pool_of_pmdk_is_opened),
	};

	if (!load_pmemobj())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
