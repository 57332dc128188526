/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rpmem_open() refuses a header with one changed byte, and each kind of damage to a set of several
 * parts. It sets the expected errno, and leaves the files unchanged. The test tries some bytes,
 * `./dev soak` tries more, and SYSTEM_ALL_BYTES=1 tries all; unit.poolset_header tests all
 * combinations.
 */
#include "system/rpmem_files/far.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SET    "PMEMPOOLSET\n4M @/p0\n4M @/p1\n"
#define SIZE   (8 * MIB - 4096)
#define SDS    4024 /* offset of the shutdown state, which has its own checksum and rules */
#define BEHIND 4088

static uint8_t good[2][4096];
static const char *const names[] = {"p0", "p1"};

static int setup(void **state)
{
	struct rpmem_pool_attr attr = place_attr;
	unsigned lanes = 1;
	RPMEMpool *rpp;

	place_setup(state);
	far_ssh(NULL);
	far_write("two.set", SET);
	attr.incompat_features = 6;
	rpp = rpmem_create("localhost", "two.set", place_local, SIZE, &lanes, &attr);
	if (!rpp || rpmem_close(rpp))
		fail_msg("%s", rpmem_errormsg());
	for (unsigned i = 0; i < 2; i++)
		far_read_bytes(names[i], 0, good[i], sizeof(good[i]));
	return 0;
}

static void open_and_close(void)
{
	struct rpmem_pool_attr attr;
	unsigned lanes = 1;
	RPMEMpool *rpp;

	rpp = rpmem_open("localhost", "two.set", place_local, SIZE, &lanes, &attr);
	if (!rpp)
		fail_msg("%s", rpmem_errormsg());
	assert_memory_equal(attr.signature, place_attr.signature, 8);
	RPMEM_OK(rpmem_close(rpp));
}

static void try_byte(unsigned part, unsigned at, uint8_t flip)
{
	uint8_t bad = good[part][at] ^ flip, now;

	far_write_bytes(names[part], at, &bad, 1);
	if (at >= SDS && at < BEHIND) {
		open_and_close();
	} else {
		/* the first 24 bytes of a header are first compared with those of the first part */
		if (part && at < 24)
			far_no_open("two.set", SIZE, EINVAL, "p1: its ");
		else
			far_no_open("two.set", SIZE, EREMOTEIO, "its pool header is corrupt");
		far_read_bytes(names[part], at, &now, 1);
		assert_int_equal(now, bad);
	}
	far_write_bytes(names[part], 0, good[part], sizeof(good[part]));
}

/* Returns the distance to the next byte that is tried. */
static unsigned step_at(unsigned at)
{
	bool is_used = at < 144 || at > 4080;

	if (getenv("SYSTEM_ALL_BYTES"))
		return 1;
	if (getenv("SYSTEM_ROUNDS"))
		return is_used ? 1 : 97;
	return is_used ? 5 : 331;
}

static void a_changed_byte_is_refused(void **state)
{
	for (unsigned part = 0; part < 2; part++)
		for (unsigned at = 0; at < 4096; at += step_at(at))
			try_byte(part, at, at % 2 ? 0x01 : 0x80);
	open_and_close();
}

static void parts_of_different_pools_are_refused(void **state)
{
	static const uint8_t zero[4096];

	far_write_bytes("p1", 0, zero, sizeof(zero));
	far_no_open("two.set", SIZE, EINVAL, "p1: there is no pool in it");
	far_write_bytes("p1", 0, good[0], sizeof(good[0]));
	far_no_open("two.set", SIZE, EINVAL, "it is not linked");
	far_write_bytes("p1", 0, good[1], sizeof(good[1]));
	far_write_bytes("p0", 0, zero, sizeof(zero));
	far_no_open("two.set", SIZE, EINVAL, "p0: there is no pool in it");
	assert_int_equal(truncate(place_path("p1"), 3 * MIB), 0);
	far_no_open("two.set", SIZE, EINVAL, "p1 has 3145728 bytes");
}

/* pmempool sync, too, removes a broken replica and creates it again. */
static void a_corrupt_pool_is_removed_by_force_and_made_again(void **state)
{
	struct rpmem_pool_attr attr = place_attr;
	unsigned lanes = 1;
	RPMEMpool *rpp;

	attr.incompat_features = 6;
	far_write_bytes("p0", 30, "?", 1);
	far_no_open("two.set", SIZE, EREMOTEIO, "p0: its pool header is corrupt");
	RPMEM_FAILS(rpmem_remove("localhost", "two.set", 0), EINVAL);
	assert_true(far_exists("p0"));
	RPMEM_OK(rpmem_remove("localhost", "two.set", RPMEM_REMOVE_FORCE));
	assert_false(far_exists("p0"));
	assert_false(far_exists("p1"));
	rpp = rpmem_create("localhost", "two.set", place_local, SIZE, &lanes, &attr);
	if (!rpp)
		fail_msg("%s", rpmem_errormsg());
	RPMEM_OK(rpmem_close(rpp));
}

int main(int argc, char **argv)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, place_teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_changed_byte_is_refused),
		TEST(parts_of_different_pools_are_refused),
		TEST(a_corrupt_pool_is_removed_by_force_and_made_again),
	};

	place_main(argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
